/* Mining: the patterns of a column of sequences or trees that tell two classes apart.
 *
 * Both searches go depth first. At a pattern they hold its projected database, the places where it occurs; every
 * pattern that is one step longer is counted there, kept if its statistic reaches the threshold, and grown further
 * unless no longer one can reach it (metric.h) or support and length forbid it. Every pattern is met once, by its only
 * shorter one. */
#ifndef ESPI_MINE_MINE_H
#define ESPI_MINE_MINE_H

#include "kernel/pattern/pattern.h"
#include "mine/metric.h"

typedef struct espi_mine_options {
    espi_metric metric;
    double tau;         /* >= 0; on the scale of chi2 (espi_metric_threshold) */
    size_t min_support; /* examples that must contain a pattern; 0 is 1 */
    size_t max_length;  /* tokens or productions; 0: any */
    size_t top;         /* keep only the best so many, ties by the bytes of their texts; 0: all */
    size_t gap;         /* sequences: tokens left out between neighbours at most; SIZE_MAX: any */
    bool paths;         /* trees: at most one child of a node is expanded */
    bool no_pruning;    /* grow whatever the bound says: to compare */
} espi_mine_options;

typedef struct espi_mine_stats { /* `visited` and `pruned` depend on the threads when `top` is given */
    uint64_t visited;            /* patterns that were counted */
    uint64_t pruned;             /* of these, not grown because of the bound */
    uint64_t kept;
} espi_mine_stats;

/* Mines rows 0 .. of the column, those with used[row] (NULL: all). What is kept does not depend on the threads.
 * `stats` may be NULL. Beyond the result, each thread holds at most the factors of the sequences (the nodes of the
 * trees) times the length of the longest pattern met. ESP_ERR_MEMORY if memory is out, or what is kept needs more than
 * run->memory; ESP_ERR_PARAM if one of the classes is empty. */
esp_status espi_mine_sequences(const espi_column *column, const uint8_t *positive, const bool *used,
                               const espi_mine_options *options, const esp_run *run, espi_trie *out,
                               espi_mine_stats *stats, esp_error *err);
esp_status espi_mine_trees(const espi_column *column, const uint8_t *positive, const bool *used,
                           const espi_mine_options *options, const esp_run *run, espi_fragments *out,
                           espi_mine_stats *stats, esp_error *err);

/* The one of the two that fits the column; espi_selection_free releases *out. */
esp_status espi_mine_column(const espi_mine_options *options, const espi_column *column, const uint8_t *positive,
                            const bool *used, const esp_run *run, espi_selection **out, espi_mine_stats *stats,
                            esp_error *err);

/* The options that a leaf which selects stands for (metric chi2). */
espi_mine_options espi_leaf_options(const espi_leaf *leaf);
/* For each leaf of the kernel that selects, what mining found in its column; NULL for other leaves. `selection` has
 * room for kernel->leaves and is all NULL on failure; each is released with espi_selection_free. */
esp_status espi_kernel_select(const esp_kernel *kernel, const esp_dataset *data, const uint8_t *positive,
                              const bool *used, const esp_run *run, espi_selection **selection, esp_error *err);

#endif
