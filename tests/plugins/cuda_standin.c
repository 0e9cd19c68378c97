/* Stands in for CUDA's libraries where there is no GPU: the functions that plugins/cuda uses, by plain loops over the
 * processor's memory. What is copied in a stream of its own arrives only when somebody waits for that stream, so that a
 * wait that is missing shows. STANDIN in the environment makes one of them fail: see the names below. */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool wanted(const char *failure)
{
    const char *value = getenv("STANDIN");
    return value != NULL && strcmp(value, failure) == 0;
}

/* ---------------------------------------------------------------- runtime */

typedef struct copy {
    struct copy *next;
    void *to;
    const void *from;
    size_t to_pitch, from_pitch, width, height;
} copy;

struct CUstream_st {
    struct CUstream_st *next;
    copy *first, **last;
};

static struct CUstream_st *streams;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void perform(const copy *c)
{
    for (size_t i = 0; i < c->height; i++)
        memcpy((char *)c->to + i * c->to_pitch, (const char *)c->from + i * c->from_pitch, c->width);
}

static void finish(struct CUstream_st *s)
{
    while (s->first != NULL) {
        copy *c = s->first;
        perform(c);
        s->first = c->next;
        free(c);
    }
    s->last = &s->first;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = wanted("no-gpu") ? 0 : 1;
    return wanted("no-driver") ? cudaErrorInsufficientDriver : cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "stand-in %d", device);
    return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorInsufficientDriver ? "the driver is too old"
           : error == cudaErrorMemoryAllocation ? "out of memory"
                                                : "unspecified failure";
}
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all)
{
    *free_bytes = wanted("full") ? 1000000 : (size_t)1 << 33;
    *all = (size_t)1 << 33;
    return cudaSuccess;
}
cudaError_t cudaMalloc(void **out, size_t size)
{
    if (wanted("no-room") && size > 1500000) return cudaErrorMemoryAllocation;
    *out = malloc(size);
    if (*out != NULL) memset(*out, 0xff, size); /* NaN */
    return *out != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void *pointer) { return free(pointer), cudaSuccess; }
cudaError_t cudaMallocHost(void **out, size_t size) { return cudaMalloc(out, size); }
cudaError_t cudaFreeHost(void *pointer) { return cudaFree(pointer); }
cudaError_t cudaMemset(void *to, int value, size_t size) { return memset(to, value, size), cudaSuccess; }
cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
    (void)kind;
    return memcpy(to, from, size), cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)kind;
    if (wanted("copy")) return cudaErrorUnknown;
    const copy now = {
        .to = to, .from = from, .to_pitch = to_pitch, .from_pitch = from_pitch, .width = width, .height = height};
    if (width > to_pitch || width > from_pitch) return cudaErrorInvalidValue;
    if (stream == NULL) return perform(&now), cudaSuccess;
    copy *later = malloc(sizeof *later);
    if (later == NULL) return cudaErrorMemoryAllocation;
    *later = now;
    pthread_mutex_lock(&lock);
    *stream->last = later;
    stream->last = &later->next;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return cudaMemcpy2DAsync(to, size, from, size, size, 1, kind, stream);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    (void)flags;
    *out = calloc(1, sizeof **out);
    if (*out == NULL) return cudaErrorMemoryAllocation;
    pthread_mutex_lock(&lock);
    **out = (struct CUstream_st){.next = streams, .last = &(*out)->first};
    streams = *out;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    finish(stream);
    struct CUstream_st **place = &streams;
    while (*place != stream) place = &(*place)->next;
    *place = stream->next;
    pthread_mutex_unlock(&lock);
    return free(stream), cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    if (stream != NULL) finish(stream);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void)
{
    pthread_mutex_lock(&lock);
    for (struct CUstream_st *s = streams; s != NULL; s = s->next) finish(s);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

/* ------------------------------------------------------------------- BLAS */

/* Element (i, j) of an upper triangle, or of its transpose. */
static double upper(const double *a, int64_t lda, bool turn, int64_t i, int64_t j)
{
    if (turn) return upper(a, lda, false, j, i);
    return i <= j ? a[j * lda + i] : 0.0;
}

cublasStatus_t cublasCreate(cublasHandle_t *out)
{
    *out = malloc(1);
    return wanted("cublas") || *out == NULL ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) { return free(handle), CUBLAS_STATUS_SUCCESS; }
const char *cublasGetStatusString(cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS ? "" : "it failed"; }

cublasStatus_t cublasDcopy_64(cublasHandle_t handle, int64_t n, const double *x, int64_t x_step, double *y,
                              int64_t y_step)
{
    (void)handle;
    for (int64_t i = 0; i < n; i++) y[i * y_step] = x[i * x_step];
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDgemm_64(cublasHandle_t handle, cublasOperation_t turn_a, cublasOperation_t turn_b, int64_t m,
                              int64_t n, int64_t k, const double *alpha, const double *a, int64_t lda, const double *b,
                              int64_t ldb, const double *beta, double *c, int64_t ldc)
{
    (void)handle;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) {
            double sum = 0.0;
            for (int64_t l = 0; l < k; l++)
                sum += (turn_a == CUBLAS_OP_T ? a[i * lda + l] : a[l * lda + i]) *
                       (turn_b == CUBLAS_OP_T ? b[l * ldb + j] : b[j * ldb + l]);
            c[j * ldc + i] = *alpha * sum + *beta * c[j * ldc + i];
        }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDsyrk_64(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t turn, int64_t n,
                              int64_t k, const double *alpha, const double *a, int64_t lda, const double *beta,
                              double *c, int64_t ldc)
{
    (void)handle;
    if (fill != CUBLAS_FILL_MODE_UPPER || wanted("syrk")) return CUBLAS_STATUS_EXECUTION_FAILED;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i <= j; i++) {
            double sum = 0.0;
            for (int64_t l = 0; l < k; l++)
                sum += turn == CUBLAS_OP_T ? a[i * lda + l] * a[j * lda + l] : a[l * lda + i] * a[l * lda + j];
            c[j * ldc + i] = *alpha * sum + *beta * c[j * ldc + i];
        }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDtrmm_64(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill,
                              cublasOperation_t turn, cublasDiagType_t diagonal, int64_t m, int64_t n,
                              const double *alpha, const double *a, int64_t lda, const double *b, int64_t ldb,
                              double *c, int64_t ldc)
{
    (void)handle, (void)diagonal;
    const bool left = side == CUBLAS_SIDE_LEFT, turned = turn == CUBLAS_OP_T;
    double *all = malloc((size_t)(m * n) * sizeof *all);
    if (fill != CUBLAS_FILL_MODE_UPPER || all == NULL || wanted("trmm"))
        return free(all), CUBLAS_STATUS_EXECUTION_FAILED;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) {
            double sum = 0.0;
            for (int64_t l = 0; l < (left ? m : n); l++)
                sum +=
                    left ? upper(a, lda, turned, i, l) * b[j * ldb + l] : b[l * ldb + i] * upper(a, lda, turned, l, j);
            all[j * m + i] = *alpha * sum;
        }
    for (int64_t j = 0; j < n; j++) memcpy(c + j * ldc, all + j * m, (size_t)m * sizeof *c);
    return free(all), CUBLAS_STATUS_SUCCESS;
}

/* One vector: T x = b (or x T = b, which is T' x' = b'), `step` apart. */
static void solve_one(const double *a, int64_t lda, bool turned, int64_t n, double *x, int64_t step)
{
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = turned ? k : n - 1 - k; /* a transposed upper triangle is a lower one */
        for (int64_t l = turned ? 0 : i + 1; l < (turned ? i : n); l++)
            x[i * step] -= upper(a, lda, turned, i, l) * x[l * step];
        x[i * step] /= upper(a, lda, turned, i, i);
    }
}

cublasStatus_t cublasDtrsm_64(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill,
                              cublasOperation_t turn, cublasDiagType_t diagonal, int64_t m, int64_t n,
                              const double *alpha, const double *a, int64_t lda, double *b, int64_t ldb)
{
    (void)handle, (void)diagonal;
    const bool turned = turn == CUBLAS_OP_T;
    if (fill != CUBLAS_FILL_MODE_UPPER || *alpha != 1.0 || wanted("trsm")) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (side == CUBLAS_SIDE_LEFT)
        for (int64_t j = 0; j < n; j++) solve_one(a, lda, turned, m, b + j * ldb, 1);
    else
        for (int64_t i = 0; i < m; i++) solve_one(a, lda, !turned, n, b + i, ldb);
    return CUBLAS_STATUS_SUCCESS;
}

/* ----------------------------------------------------------------- solver */

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *out)
{
    return (*out = malloc(1)) != NULL ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_ALLOC_FAILED;
}
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) { return free(handle), CUSOLVER_STATUS_SUCCESS; }
cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t *out)
{
    return (*out = malloc(1)) != NULL ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_ALLOC_FAILED;
}
cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t params) { return free(params), CUSOLVER_STATUS_SUCCESS; }
cusolverStatus_t cusolverDnXpotrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                             cublasFillMode_t fill, int64_t n, cudaDataType type, const void *a,
                                             int64_t lda, cudaDataType compute, size_t *size, size_t *host_size)
{
    (void)handle, (void)params, (void)fill, (void)type, (void)a, (void)lda, (void)compute;
    *size = (size_t)n;
    *host_size = 0;
    return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnXpotrf(cusolverDnHandle_t handle, cusolverDnParams_t params, cublasFillMode_t fill,
                                  int64_t n, cudaDataType type, void *numbers, int64_t lda, cudaDataType compute,
                                  void *room, size_t size, void *host_room, size_t host_size, int *info)
{
    (void)handle, (void)params, (void)room, (void)size, (void)host_room, (void)host_size;
    if (fill != CUBLAS_FILL_MODE_UPPER || type != CUDA_R_64F || compute != CUDA_R_64F || wanted("potrf"))
        return CUSOLVER_STATUS_INTERNAL_ERROR;
    double *a = numbers;
    *info = 0;
    for (int64_t j = 0; j < n && *info == 0; j++)
        for (int64_t i = 0; i <= j; i++) {
            double sum = a[j * lda + i];
            for (int64_t l = 0; l < i; l++) sum -= a[i * lda + l] * a[j * lda + l];
            if (i < j) a[j * lda + i] = sum / a[i * lda + i];
            else if (sum > 0.0) a[j * lda + i] = sqrt(sum);
            else *info = (int)j + 1;
        }
    return CUSOLVER_STATUS_SUCCESS;
}
