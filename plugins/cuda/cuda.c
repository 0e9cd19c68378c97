/* The table of device.h over cuBLAS and cuSOLVER.
 *
 * A lower triangle stored row by row is an upper one to these libraries, which store by columns: with U = L^T, A = U^T
 * U. All is done by blocks of BLOCK columns, in place:
 *
 *     factor     U_kk^T U_kk = A_kk,  U_kr = U_kk^-T A_kr,  A_rr -= U_kr^T U_kr      for r > k, block after block
 *     invert     W = U^-1:      W_lk = -W_ll U_lk U_kk^-1,  W_kk = U_kk^-1           for l < k
 *                A^-1 = W W^T:  A_lk = W_lk W_kk^T + W_lr W_kr^T,  A_kk = W_kk W_kk^T + W_kr W_kr^T
 *
 * cuSOLVER would do each in one call, which could not be interrupted. Below the diagonals of blocks there is anything:
 * nobody reads it. */
#include "base/device.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tests take less, so that small matrices have several blocks and lanes. */
#ifndef CUDA_BLOCK
#define CUDA_BLOCK 2048
#define CUDA_LANE ((size_t)16 << 20)
#endif

enum { BLOCK = CUDA_BLOCK };
static const size_t LANE = CUDA_LANE;            /* bytes of a lane's buffer */
static const size_t VECTORS = (size_t)256 << 20; /* bytes of vectors that are solved for at a time */
static const cublasFillMode_t UPPER = CUBLAS_FILL_MODE_UPPER;
static const cublasDiagType_t PLAIN = CUBLAS_DIAG_NON_UNIT;

typedef struct lane {
    cudaStream_t stream;
    double *buffer; /* page-locked; NULL until somebody needs it */
} lane;

typedef struct device {
    cublasHandle_t blas;
    cusolverDnHandle_t solver;
    cusolverDnParams_t params;
    int *info;
    double *identity, *corner; /* BLOCK x BLOCK */
    void *work, *host_work;    /* for the factor of a block */
    size_t work_size, host_work_size;
    lane lane[ESPI_DEVICE_LANES];
} device;

typedef struct matrix {
    device *device;
    size_t n;
    double *a;
} matrix;

/* ----------------------------------------------------------------- errors */

static espi_device_result say(espi_device_result result, char *why, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static espi_device_result say(espi_device_result result, char *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, ESPI_DEVICE_WORDS, format, args);
    va_end(args);
    return result;
}

static espi_device_result runtime(cudaError_t error, char *why)
{
    if (error == cudaSuccess) return ESPI_DEVICE_OK;
    return say(error == cudaErrorMemoryAllocation ? ESPI_DEVICE_FULL : ESPI_DEVICE_BROKEN, why, "CUDA: %s",
               cudaGetErrorString(error));
}

static espi_device_result blas(cublasStatus_t status, char *why)
{
    return status == CUBLAS_STATUS_SUCCESS ? ESPI_DEVICE_OK
                                           : say(ESPI_DEVICE_BROKEN, why, "cuBLAS: %s", cublasGetStatusString(status));
}

static espi_device_result solver(cusolverStatus_t status, char *why)
{
    return status == CUSOLVER_STATUS_SUCCESS ? ESPI_DEVICE_OK
                                             : say(ESPI_DEVICE_BROKEN, why, "cuSOLVER: error %d", (int)status);
}

/* Goes on to the next call as long as none has failed; `result` and `why` are those of the function around it. */
#define TRY(kind, call)                                                                                                \
    do {                                                                                                               \
        if (result == ESPI_DEVICE_OK) result = kind((call), why);                                                      \
    } while (0)

/* ----------------------------------------------------------------- device */

static void close_device(void *state)
{
    device *d = state;
    for (size_t i = 0; i < ESPI_DEVICE_LANES; i++) {
        if (d->lane[i].buffer == NULL) continue;
        cudaStreamDestroy(d->lane[i].stream);
        cudaFreeHost(d->lane[i].buffer);
    }
    cudaFree(d->info);
    cudaFree(d->identity);
    cudaFree(d->corner);
    cudaFree(d->work);
    free(d->host_work);
    if (d->params != NULL) cusolverDnDestroyParams(d->params);
    if (d->solver != NULL) cusolverDnDestroy(d->solver);
    if (d->blas != NULL) cublasDestroy(d->blas);
    free(d);
}

static espi_device_result make_identity(device *d, char *why)
{
    const size_t bytes = (size_t)BLOCK * BLOCK * sizeof(double);
    espi_device_result result = ESPI_DEVICE_OK;
    double *identity = calloc(1, bytes);
    if (identity == NULL) return say(ESPI_DEVICE_FULL, why, "out of memory");
    for (size_t i = 0; i < BLOCK; i++) identity[i * BLOCK + i] = 1.0;
    TRY(runtime, cudaMalloc((void **)&d->identity, bytes));
    TRY(runtime, cudaMalloc((void **)&d->corner, bytes));
    TRY(runtime, cudaMemcpy(d->identity, identity, bytes, cudaMemcpyHostToDevice));
    free(identity);
    return result;
}

static espi_device_result make_tools(device *d, char *why)
{
    espi_device_result result = ESPI_DEVICE_OK;
    TRY(blas, cublasCreate(&d->blas));
    TRY(solver, cusolverDnCreate(&d->solver));
    TRY(solver, cusolverDnCreateParams(&d->params));
    TRY(runtime, cudaMalloc((void **)&d->info, sizeof *d->info));
    if (result == ESPI_DEVICE_OK) result = make_identity(d, why);
    TRY(solver, cusolverDnXpotrf_bufferSize(d->solver, d->params, UPPER, BLOCK, CUDA_R_64F, d->corner, BLOCK,
                                            CUDA_R_64F, &d->work_size, &d->host_work_size));
    TRY(runtime, cudaMalloc(&d->work, d->work_size + sizeof(double)));
    if (result != ESPI_DEVICE_OK) return result;
    d->host_work = malloc(d->host_work_size + sizeof(double));
    return d->host_work != NULL ? ESPI_DEVICE_OK : say(ESPI_DEVICE_FULL, why, "out of memory");
}

static espi_device_result open_device(void **state, char *name, size_t *memory, char *why)
{
    int count = 0;
    size_t all;
    struct cudaDeviceProp properties;
    *state = NULL;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count < 1)
        return say(ESPI_DEVICE_BROKEN, why, "there is no GPU that CUDA can use (%s)",
                   error != cudaSuccess ? cudaGetErrorString(error) : "it lists none");
    device *d = calloc(1, sizeof *d);
    if (d == NULL) return say(ESPI_DEVICE_FULL, why, "out of memory");
    espi_device_result result = ESPI_DEVICE_OK;
    TRY(runtime, cudaSetDevice(0));
    TRY(runtime, cudaGetDeviceProperties(&properties, 0));
    if (result == ESPI_DEVICE_OK) result = make_tools(d, why);
    TRY(runtime, cudaMemGetInfo(memory, &all));
    if (result != ESPI_DEVICE_OK) {
        close_device(d);
        return result;
    }
    snprintf(name, ESPI_DEVICE_WORDS, "%s", properties.name);
    *state = d;
    return ESPI_DEVICE_OK;
}

/* ----------------------------------------------------------------- matrix */

static espi_device_result matrix_new(void *state, size_t n, void **out, char *why)
{
    const double bytes = (double)n * (double)n * sizeof(double);
    size_t free_bytes = 0, all;
    espi_device_result result = ESPI_DEVICE_OK;
    *out = NULL;
    TRY(runtime, cudaSetDevice(0)); /* which holds for the calling thread */
    TRY(runtime, cudaMemGetInfo(&free_bytes, &all));
    if (result != ESPI_DEVICE_OK) return result;
    if (bytes + (double)VECTORS > (double)free_bytes || n * sizeof(double) > LANE)
        return say(ESPI_DEVICE_FULL, why,
                   "the matrix of %zu examples takes %.1f GB and the GPU has %.1f GB free: using the CPU for it", n,
                   1e-9 * (bytes + (double)VECTORS), 1e-9 * (double)free_bytes);
    matrix *m = calloc(1, sizeof *m);
    if (m == NULL) return say(ESPI_DEVICE_FULL, why, "out of memory");
    *m = (matrix){.device = state, .n = n};
    TRY(runtime, cudaMalloc((void **)&m->a, n * n * sizeof *m->a));
    TRY(runtime, cudaMemset(m->a, 0, n * n * sizeof *m->a));
    TRY(runtime, cudaDeviceSynchronize());
    if (result == ESPI_DEVICE_OK) {
        *out = m;
        return ESPI_DEVICE_OK;
    }
    cudaFree(m->a);
    free(m);
    return result;
}

static void matrix_free(void *state)
{
    matrix *m = state;
    if (m == NULL) return;
    cudaDeviceSynchronize(); /* what was sent may be on its way */
    cudaFree(m->a);
    free(m);
}

static size_t rows_most(const void *state)
{
    const matrix *m = state;
    return LANE / (m->n * sizeof(double));
}

static espi_device_result take_lane(lane *l, char *why)
{
    espi_device_result result = ESPI_DEVICE_OK;
    TRY(runtime, cudaSetDevice(0));
    if (result != ESPI_DEVICE_OK || l->buffer != NULL) return result;
    TRY(runtime, cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking));
    TRY(runtime, cudaMallocHost((void **)&l->buffer, LANE));
    return result;
}

static espi_device_result put(void *state, unsigned number, size_t first, size_t rows, const double *numbers, char *why)
{
    const matrix *m = state;
    lane *l = &m->device->lane[number];
    const size_t width = first + rows, bytes = width * sizeof *numbers;
    espi_device_result result = take_lane(l, why);
    TRY(runtime, cudaStreamSynchronize(l->stream)); /* what the buffer held has gone */
    if (result != ESPI_DEVICE_OK) return result;
    for (size_t i = 0; i < rows; i++)
        memcpy(l->buffer + i * width, numbers + i * m->n, (first + i + 1) * sizeof *numbers);
    for (size_t i = 0; i < rows; i++)
        memset(l->buffer + i * width + first + i + 1, 0, (rows - 1 - i) * sizeof *numbers);
    return runtime(cudaMemcpy2DAsync(m->a + first * m->n, m->n * sizeof *numbers, l->buffer, bytes, bytes, rows,
                                     cudaMemcpyHostToDevice, l->stream),
                   why);
}

static espi_device_result get(void *state, unsigned number, size_t first, size_t rows, double *numbers, char *why)
{
    const matrix *m = state;
    lane *l = &m->device->lane[number];
    const size_t width = first + rows, bytes = width * sizeof *numbers;
    espi_device_result result = take_lane(l, why);
    TRY(runtime, cudaMemcpy2DAsync(l->buffer, bytes, m->a + first * m->n, m->n * sizeof *numbers, bytes, rows,
                                   cudaMemcpyDeviceToHost, l->stream));
    TRY(runtime, cudaStreamSynchronize(l->stream));
    for (size_t i = 0; result == ESPI_DEVICE_OK && i < rows; i++)
        memcpy(numbers + i * m->n, l->buffer + i * width, (first + i + 1) * sizeof *numbers);
    return result;
}

/* ---------------------------------------------------------------- algebra */

static const double ONE = 1.0, MINUS = -1.0;

static double *at(const matrix *m, size_t row, size_t column) { return m->a + column * m->n + row; }
static int64_t width_at(const matrix *m, size_t k) { return m->n - k < BLOCK ? (int64_t)(m->n - k) : BLOCK; }

static espi_device_result ask(bool (*go_on)(void *user), void *user, char *why)
{
    espi_device_result result = runtime(cudaStreamSynchronize(NULL), why);
    if (result == ESPI_DEVICE_OK && !go_on(user)) result = ESPI_DEVICE_STOPPED;
    return result;
}

static espi_device_result factor(void *state, size_t *failed, bool (*go_on)(void *user), void *user, char *why)
{
    const matrix *m = state;
    const device *d = m->device;
    const int64_t n = (int64_t)m->n;
    espi_device_result result = runtime(cudaDeviceSynchronize(), why); /* all rows are there */
    int info = 0;
    *failed = 0;
    for (size_t k = 0; result == ESPI_DEVICE_OK && k < m->n; k += BLOCK) {
        const int64_t width = width_at(m, k), rest = n - (int64_t)k - width;
        double *corner = at(m, k, k), *right = corner + width * n;
        TRY(solver, cusolverDnXpotrf(d->solver, d->params, UPPER, width, CUDA_R_64F, corner, n, CUDA_R_64F, d->work,
                                     d->work_size, d->host_work, d->host_work_size, d->info));
        TRY(runtime, cudaMemcpy(&info, d->info, sizeof info, cudaMemcpyDeviceToHost));
        if (result == ESPI_DEVICE_OK && info < 0) result = say(ESPI_DEVICE_BROKEN, why, "cuSOLVER: argument %d", -info);
        if (info > 0) *failed = k + (size_t)info;
        if (info != 0 || rest == 0) break;
        TRY(blas, cublasDtrsm_64(d->blas, CUBLAS_SIDE_LEFT, UPPER, CUBLAS_OP_T, PLAIN, width, rest, &ONE, corner, n,
                                 right, n));
        TRY(blas, cublasDsyrk_64(d->blas, UPPER, CUBLAS_OP_T, rest, width, &MINUS, right, n, &ONE, right + width, n));
        if (result == ESPI_DEVICE_OK) result = ask(go_on, user, why);
    }
    TRY(runtime, cudaStreamSynchronize(NULL));
    return result;
}

static espi_device_result copy_corner(const matrix *m, size_t k, char *why)
{
    const size_t width = (size_t)width_at(m, k) * sizeof(double);
    return runtime(cudaMemcpy2DAsync(at(m, k, k), m->n * sizeof(double), m->device->corner, BLOCK * sizeof(double),
                                     width, (size_t)width_at(m, k), cudaMemcpyDeviceToDevice, NULL),
                   why);
}

static espi_device_result copy_identity(const matrix *m, char *why)
{
    return runtime(cudaMemcpyAsync(m->device->corner, m->device->identity, (size_t)BLOCK * BLOCK * sizeof(double),
                                   cudaMemcpyDeviceToDevice, NULL),
                   why);
}

/* W_lk and W_kk, those before k being known. */
static espi_device_result invert_columns(const matrix *m, size_t k, char *why)
{
    const device *d = m->device;
    const int64_t n = (int64_t)m->n, width = width_at(m, k), above = (int64_t)k;
    double *corner = at(m, k, k), *top = at(m, 0, k);
    espi_device_result result = ESPI_DEVICE_OK;
    if (k > 0) {
        TRY(blas, cublasDtrmm_64(d->blas, CUBLAS_SIDE_LEFT, UPPER, CUBLAS_OP_N, PLAIN, above, width, &MINUS, m->a, n,
                                 top, n, top, n));
        TRY(blas, cublasDtrsm_64(d->blas, CUBLAS_SIDE_RIGHT, UPPER, CUBLAS_OP_N, PLAIN, above, width, &ONE, corner, n,
                                 top, n));
    }
    if (result == ESPI_DEVICE_OK) result = copy_identity(m, why);
    TRY(blas, cublasDtrsm_64(d->blas, CUBLAS_SIDE_LEFT, UPPER, CUBLAS_OP_N, PLAIN, width, width, &ONE, corner, n,
                             d->corner, BLOCK));
    return result == ESPI_DEVICE_OK ? copy_corner(m, k, why) : result;
}

/* Columns k of W W^T, those behind k of W being as they were. */
static espi_device_result multiply_columns(const matrix *m, size_t k, char *why)
{
    const device *d = m->device;
    const int64_t n = (int64_t)m->n, width = width_at(m, k), above = (int64_t)k, rest = n - above - width;
    double *corner = at(m, k, k), *top = at(m, 0, k);
    espi_device_result result = ESPI_DEVICE_OK;
    if (k > 0)
        TRY(blas, cublasDtrmm_64(d->blas, CUBLAS_SIDE_RIGHT, UPPER, CUBLAS_OP_T, PLAIN, above, width, &ONE, corner, n,
                                 top, n, top, n));
    if (k > 0 && rest > 0)
        TRY(blas, cublasDgemm_64(d->blas, CUBLAS_OP_N, CUBLAS_OP_T, above, width, rest, &ONE, top + width * n, n,
                                 corner + width * n, n, &ONE, top, n));
    /* The corner, first without what is below its diagonal, then by its transpose. */
    if (result == ESPI_DEVICE_OK) result = copy_identity(m, why);
    TRY(blas, cublasDtrmm_64(d->blas, CUBLAS_SIDE_LEFT, UPPER, CUBLAS_OP_N, PLAIN, width, width, &ONE, corner, n,
                             d->corner, BLOCK, d->corner, BLOCK));
    TRY(blas, cublasDtrmm_64(d->blas, CUBLAS_SIDE_RIGHT, UPPER, CUBLAS_OP_T, PLAIN, width, width, &ONE, corner, n,
                             d->corner, BLOCK, d->corner, BLOCK));
    if (rest > 0)
        TRY(blas, cublasDsyrk_64(d->blas, UPPER, CUBLAS_OP_N, width, rest, &ONE, corner + width * n, n, &ONE, d->corner,
                                 BLOCK));
    return result == ESPI_DEVICE_OK ? copy_corner(m, k, why) : result;
}

static espi_device_result invert(void *state, bool (*go_on)(void *user), void *user, char *why)
{
    const matrix *m = state;
    espi_device_result result = runtime(cudaSetDevice(0), why);
    for (size_t k = 0; result == ESPI_DEVICE_OK && k < m->n; k += BLOCK) {
        result = invert_columns(m, k, why);
        if (result == ESPI_DEVICE_OK) result = ask(go_on, user, why);
    }
    for (size_t k = 0; result == ESPI_DEVICE_OK && k < m->n; k += BLOCK) {
        result = multiply_columns(m, k, why);
        if (result == ESPI_DEVICE_OK) result = ask(go_on, user, why);
    }
    TRY(runtime, cudaDeviceSynchronize());
    return result;
}

static espi_device_result diagonal(void *state, double *out, char *why)
{
    const matrix *m = state;
    double *room = NULL;
    espi_device_result result = runtime(cudaMalloc((void **)&room, m->n * sizeof *room), why);
    TRY(blas, cublasDcopy_64(m->device->blas, (int64_t)m->n, m->a, (int64_t)m->n + 1, room, 1));
    TRY(runtime, cudaMemcpy(out, room, m->n * sizeof *room, cudaMemcpyDeviceToHost));
    cudaFree(room);
    return result;
}

static espi_device_result solve(void *state, bool turn, double *x, size_t count, char *why)
{
    const matrix *m = state;
    const size_t bytes = m->n * sizeof *x, most = VECTORS / bytes, some = most < 1 ? 1 : most < count ? most : count;
    const cublasOperation_t turned = turn ? CUBLAS_OP_N : CUBLAS_OP_T;
    double *room = NULL;
    espi_device_result result = runtime(cudaSetDevice(0), why);
    TRY(runtime, cudaMalloc((void **)&room, some * bytes + sizeof *room));
    for (size_t first = 0; result == ESPI_DEVICE_OK && first < count; first += some) {
        const size_t now = count - first < some ? count - first : some;
        double *here = x + first * m->n;
        TRY(runtime, cudaMemcpy(room, here, now * bytes, cudaMemcpyHostToDevice));
        TRY(blas, cublasDtrsm_64(m->device->blas, CUBLAS_SIDE_LEFT, UPPER, turned, PLAIN, (int64_t)m->n, (int64_t)now,
                                 &ONE, m->a, (int64_t)m->n, room, (int64_t)m->n));
        TRY(runtime, cudaMemcpy(here, room, now * bytes, cudaMemcpyDeviceToHost));
    }
    cudaFree(room);
    return result;
}

static const espi_device_table table = {.head = {.name = "cuda", .version = ESPI_DEVICE_VERSION, .size = sizeof table},
                                        .open = open_device,
                                        .close = close_device,
                                        .matrix_new = matrix_new,
                                        .matrix_free = matrix_free,
                                        .rows_most = rows_most,
                                        .put = put,
                                        .get = get,
                                        .factor = factor,
                                        .diagonal = diagonal,
                                        .invert = invert,
                                        .solve = solve};

ESP_API const espi_plugin_head *espalier_plugin(void);
const espi_plugin_head *espalier_plugin(void) { return &table.head; }
