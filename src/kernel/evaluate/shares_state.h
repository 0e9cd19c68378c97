/* Inside shares: what is divided, and how far everybody is; shared by what opens them (shares_open.c) and what is done
 * with them (shares.c). */
#ifndef ESPI_KERNEL_EVALUATE_SHARES_STATE_H
#define ESPI_KERNEL_EVALUATE_SHARES_STATE_H

#include "base/group.h"
#include "kernel/evaluate/shares.h"

#define ESPI_NOT_HELD UINT32_MAX

typedef struct espi_shares_work { /* of a rank */
    uint64_t looks, values;       /* examples scored, and kernel values */
    double seconds;               /* that took */
    espi_group_traffic traffic;   /* when they were opened; in the end, since then */
    uint64_t examples, held;
} espi_shares_work;

struct espi_shares {
    const esp_run *run;
    esp_run here; /* without the group */
    esp_kernel *kernel;
    esp_dataset *data;
    size_t ranks, *start; /* rank r has examples start[r] .. start[r + 1] - 1 */
    esp_dataset *targets; /* at rank 0 */
    uint64_t digest;
    uint32_t *held_row; /* per held example, in the order in which they came: its row of the data */
    size_t held, held_capacity;
    uint32_t *place; /* at rank 0, per example: its number among the held; ESPI_NOT_HELD: it is not */
    espi_folded_sum *sum;
    size_t outputs;
    bool cleared; /* at rank 0: which the others are not yet told */
    bool broken;  /* at rank 0: something failed, and ranks may wait for different things */
    espi_shares_work work;
};

/* What all ranks do (shares_alike.c); what `block` and `out` ask for is filled at rank 0. numbers: how many blocks, the
 * rows of each, and these as held numbers; or how many pivots and rows, and these. */
esp_status espi_shares_do_grams(espi_shares *shares, const uint32_t *numbers, espi_gram_block *block, esp_error *err);
esp_status espi_shares_do_alike(espi_shares *shares, const uint32_t *numbers, const espi_alike *out, esp_error *err);

/* Rank 0 says in messages what each rank did. */
esp_status espi_shares_tell_work(espi_shares *shares, esp_error *err);

#endif
