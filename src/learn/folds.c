/* The order of examples: folds of a cross-validation, and epochs of online learners. */
#include "base/alloc.h"
#include "base/random.h"
#include "base/status.h"
#include "learn/online.h"

/* Shuffles the examples of each class (all of a regression) and deals them out in turn, going on from class to class,
 * so that folds have the same size to within one. */
esp_status espi_folds_make(const espi_targets *t, size_t folds, uint64_t seed, uint32_t *fold, esp_error *err)
{
    if (folds < 2 || folds > t->count)
        return espi_fail(err, ESP_ERR_PARAM, "%zu folds; allowed are 2 to the number of examples, %zu", folds,
                         t->count);
    uint32_t *order = espi_alloc(t->count, sizeof *order);
    if (order == NULL) return espi_no_memory(err);
    espi_random random;
    espi_random_seed(&random, seed);
    size_t dealt = 0;
    for (size_t c = 0; c <= t->classes; c++) { /* the last round is for those of no class, or for numbers */
        size_t n = 0;
        for (size_t i = 0; i < t->count; i++)
            if (t->classes == 0 || (c < t->classes ? t->class_of[i] == c : t->class_of[i] >= c))
                order[n++] = (uint32_t)i;
        espi_random_shuffle(&random, order, n);
        for (size_t i = 0; i < n; i++) fold[order[i]] = (uint32_t)(dealt++ % folds);
    }
    espi_free(order);
    return ESP_OK;
}

void espi_fold_split(const uint32_t *fold, size_t count, size_t number, uint32_t *train, size_t *trained,
                     uint32_t *test, size_t *tested)
{
    *trained = *tested = 0;
    for (size_t i = 0; i < count; i++) {
        if (fold[i] == number) test[(*tested)++] = (uint32_t)i;
        else train[(*trained)++] = (uint32_t)i;
    }
}

void espi_epoch_shuffle(uint64_t seed, uint64_t epoch, uint32_t *order, size_t count)
{
    espi_random random;
    uint64_t own = 0;
    espi_random_seed(&random, seed);
    for (uint64_t e = 0; e <= epoch; e++) own = espi_random_bits(&random);
    espi_random_seed(&random, own);
    espi_random_shuffle(&random, order, count);
}
