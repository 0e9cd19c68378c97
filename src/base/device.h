/* A device that does dense algebra instead of the processor's cores: a GPU, behind the table of a plugin (plugin.h).
 *
 * The plugin knows matrices and nothing else of Espalier. It holds the lower triangle of an n x n matrix, row by row,
 * in the device's memory; rows are sent there and fetched by several threads at a time, each by a lane of its own. All
 * else is asked of one matrix at a time. */
#ifndef ESPI_BASE_DEVICE_H
#define ESPI_BASE_DEVICE_H

#include "base/algebra.h"
#include "base/plugin.h"

enum { ESPI_DEVICE_VERSION = 1, ESPI_DEVICE_LANES = 16, ESPI_DEVICE_WORDS = 512 };

/* What a function of the table gives. All but OK leave a sentence (ESPI_DEVICE_WORDS bytes at most) in `why`. */
typedef enum espi_device_result {
    ESPI_DEVICE_OK,
    ESPI_DEVICE_STOPPED, /* `go_on` said so */
    ESPI_DEVICE_FULL,    /* its memory is too small */
    ESPI_DEVICE_BROKEN   /* anything else */
} espi_device_result;

typedef struct espi_device_table {
    espi_plugin_head head;
    /* `name` gets what the device calls itself (ESPI_DEVICE_WORDS bytes), *memory the bytes that are free there. */
    espi_device_result (*open)(void **device, char *name, size_t *memory, char *why);
    void (*close)(void *device);
    /* Zeros. */
    espi_device_result (*matrix_new)(void *device, size_t n, void **matrix, char *why);
    void (*matrix_free)(void *matrix);
    /* Most rows of n numbers that one call of put or get takes. */
    size_t (*rows_most)(const void *matrix);
    /* Rows first .. first + rows - 1, up to the last one's diagonal, from or to a matrix whose row `first` begins at
     * `numbers` and whose rows are n numbers apart; of what is fetched, nothing is written right of the diagonal.
     * `lane` is 0 .. ESPI_DEVICE_LANES - 1 and in use by one thread at a time. */
    espi_device_result (*put)(void *matrix, unsigned lane, size_t first, size_t rows, const double *numbers, char *why);
    espi_device_result (*get)(void *matrix, unsigned lane, size_t first, size_t rows, double *numbers, char *why);
    /* The functions below take long, and ask now and then whether to go on.
     * A becomes L; *failed is 0, or the number (from 1) of a row at or behind the one whose pivot is not positive. */
    espi_device_result (*factor)(void *matrix, size_t *failed, bool (*go_on)(void *user), void *user, char *why);
    espi_device_result (*diagonal)(void *matrix, double *out, char *why);
    /* L becomes A^-1. */
    espi_device_result (*invert)(void *matrix, bool (*go_on)(void *user), void *user, char *why);
    /* x = L^-1 x, or L^-T x if `turn`, for `count` vectors, one behind the other. */
    espi_device_result (*solve)(void *matrix, bool turn, double *x, size_t count, char *why);
} espi_device_table;

/* esp_device_open, with the plugin from this folder. */
esp_status espi_device_open(const char *folder, const char *name, esp_device **out, esp_error *err);

extern const espi_algebra espi_algebra_device;
/* Whether the run has a device, and the matrix is large enough for it. */
bool espi_device_takes(const esp_run *run, size_t n);

#endif
