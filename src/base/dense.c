/* LAPACK stores column by column, so that our lower triangle is its upper one, and our L its transpose. Its Fortran
 * names are declared here: they are the same in every LAPACK.
 *
 * We link the OpenBLAS that runs in one thread, so that no result depends on the number of threads. That one hands out
 * its buffers without a lock, hence the one here: it guards state that OpenBLAS has, not any of ours. */
#include "base/dense.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/hot.h"

#include <math.h>
#include <pthread.h>

void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info);
void dpotri_(const char *uplo, const int *n, double *a, const int *lda, int *info);
void dtrsv_(const char *uplo, const char *trans, const char *diag, const int *n, const double *a, const int *lda,
            double *x, const int *incx);
void dtrsm_(const char *side, const char *uplo, const char *trans, const char *diag, const int *m, const int *n,
            const double *alpha, const double *a, const int *lda, double *b, const int *ldb);
void dgemm_(const char *turn_a, const char *turn_b, const int *m, const int *n, const int *k, const double *alpha,
            const double *a, const int *lda, const double *b, const int *ldb, const double *beta, double *c,
            const int *ldc);
void dsyrk_(const char *uplo, const char *trans, const int *n, const int *k, const double *alpha, const double *a,
            const int *lda, const double *beta, double *c, const int *ldc);
void dsymv_(const char *uplo, const int *n, const double *alpha, const double *a, const int *lda, const double *x,
            const int *incx, const double *beta, double *y, const int *incy);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const int one = 1;
static const double unit = 1.0, zero = 0.0;

bool espi_dense_ready(void)
{
    enum { ROOM = 192 << 20 }; /* what it takes depends on the processor: up to 128 MiB */
    return espi_alloc_possible(ROOM);
}

size_t espi_dense_factor(double *a, size_t n)
{
    const int size = (int)n;
    int info = 0;
    pthread_mutex_lock(&lock);
    if (n > 0) dpotrf_("U", &size, a, &size, &info);
    pthread_mutex_unlock(&lock);
    return info > 0 ? (size_t)info : 0;
}

esp_status espi_dense_factor_jitter(double *a, size_t n, double add, double least, const esp_run *run, double *diagonal,
                                    double *jitter, size_t *failed, esp_error *err)
{
    double mean = 0.0;
    for (size_t i = 0; i < n; i++) diagonal[i] = a[i * n + i];
    for (size_t i = 0; i < n; i++) mean += diagonal[i] / (double)n;
    for (double part = 0.0;; part = part > 0.0 ? 10.0 * part : least) {
        *jitter = part * mean;
        for (size_t i = 0; i < n; i++) a[i * n + i] = diagonal[i] + add + *jitter;
        const esp_status status = espi_progress(run, "factoring", -1.0, err);
        if (status != ESP_OK) return status;
        *failed = espi_dense_factor(a, n);
        if (*failed == 0 || !(mean > 0.0) || part > 0.5e6 * least) return ESP_OK;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < i; j++) a[i * n + j] = a[j * n + i];
    }
}

double espi_dense_half_log(const double *l, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += log(l[i * n + i]);
    return sum;
}

void espi_dense_invert(double *l, size_t n)
{
    const int size = (int)n;
    int info = 0;
    pthread_mutex_lock(&lock);
    if (n > 0) dpotri_("U", &size, l, &size, &info);
    pthread_mutex_unlock(&lock);
}

void espi_dense_half_solve(const double *l, size_t n, size_t stride, bool transposed, double *x)
{
    const int size = (int)n, lead = (int)stride;
    pthread_mutex_lock(&lock);
    if (n > 0) dtrsv_("U", transposed ? "N" : "T", "N", &size, l, &lead, x, &one);
    pthread_mutex_unlock(&lock);
}

void espi_dense_solve(const double *l, size_t n, double *x)
{
    espi_dense_half_solve(l, n, n, false, x);
    espi_dense_half_solve(l, n, n, true, x);
}

void espi_dense_half_solve_all(const double *l, size_t n, double *x, size_t count)
{
    const int size = (int)n, columns = (int)count;
    pthread_mutex_lock(&lock);
    if (n > 0 && count > 0) dtrsm_("L", "U", "T", "N", &size, &columns, &unit, l, &size, x, &size);
    pthread_mutex_unlock(&lock);
}

void espi_dense_times(const double *a, size_t n, const double *x, double *y)
{
    const int size = (int)n;
    pthread_mutex_lock(&lock);
    if (n > 0) dsymv_("U", &size, &unit, a, &size, x, &one, &zero, y, &one);
    pthread_mutex_unlock(&lock);
}

/* Column by column, C^T = B^T A^T. */
void espi_dense_product(bool turn_a, bool turn_b, int rows, int columns, int inner, double scale, const double *a,
                        int a_stride, const double *b, int b_stride, double keep, double *c, int c_stride)
{
    if (rows == 0 || columns == 0) return;
    pthread_mutex_lock(&lock);
    dgemm_(turn_b ? "T" : "N", turn_a ? "T" : "N", &columns, &rows, &inner, &scale, b, &b_stride, a, &a_stride, &keep,
           c, &c_stride);
    pthread_mutex_unlock(&lock);
}

void espi_dense_outer(int rows, int inner, const double *a, int a_stride, double keep, double *c, int c_stride)
{
    pthread_mutex_lock(&lock);
    dsyrk_("U", "T", &rows, &inner, &unit, a, &a_stride, &keep, c, &c_stride);
    pthread_mutex_unlock(&lock);
}

void espi_dense_triangle(bool left, bool upper, bool turn, int rows, int columns, const double *t, int t_stride,
                         double *x, int x_stride)
{
    if (rows == 0 || columns == 0) return;
    pthread_mutex_lock(&lock);
    dtrsm_(left ? "R" : "L", upper ? "L" : "U", turn ? "T" : "N", "N", &columns, &rows, &unit, t, &t_stride, x,
           &x_stride);
    pthread_mutex_unlock(&lock);
}

enum { LANES = 8 }; /* partial sums: a fixed order that vector units of every width can keep */

HOT static double dense_dot(const double *restrict x, const double *restrict y, size_t n)
{
    double part[LANES] = {0.0}, sum = 0.0;
    size_t j = 0;
    for (; j + LANES <= n; j += LANES)
        for (size_t k = 0; k < LANES; k++) part[k] += x[j + k] * y[j + k];
    for (; j < n; j++) sum += x[j] * y[j];
    for (size_t k = 0; k < LANES; k++) sum += part[k];
    return sum;
}

void espi_dense_lengths(const double *l, size_t n, double *x, size_t count, double *length)
{
    for (size_t i = 0; i < n; i++) /* a row of L serves all vectors while it is in the cache */
        for (size_t c = 0; c < count; c++) {
            double *v = x + c * n;
            v[i] = (v[i] - dense_dot(l + i * n, v, i)) / l[i * n + i];
        }
    for (size_t c = 0; c < count; c++) length[c] = dense_dot(x + c * n, x + c * n, n);
}
