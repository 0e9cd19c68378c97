/* Random sequences for the tests of the sequence kernel. */
#ifndef SEQ_CASES_H
#define SEQ_CASES_H

#include "cases.h"

enum { LONGEST = 7, FACTORS = 2 };

typedef struct tokens { /* factors are small numbers */
    size_t length;
    int factor[64][FACTORS];
    size_t factors[64];
} tokens;

/* Letters from `shift` on. */
static inline tokens random_tokens(ref_random *random, size_t length, size_t letters, size_t shift, size_t factors)
{
    tokens t = {.length = length};
    for (size_t i = 0; i < length; i++) {
        t.factors[i] = 1 + ref_random_below(random, factors);
        for (size_t k = 0; k < t.factors[i]; k++) t.factor[i][k] = (int)(shift + ref_random_below(random, letters));
    }
    return t;
}

static inline esp_dataset *dataset_of_tokens(const tokens *t, size_t count)
{
    size_t room = 1;
    for (size_t i = 0; i < count; i++) room += 16 + t[i].length * 2 * FACTORS;
    char *lines = malloc(room), *at = lines;
    assert_non_null(lines);
    for (size_t i = 0; i < count; i++) {
        at += sprintf(at, "{\"w\": \"");
        for (size_t k = 0; k < t[i].length; k++)
            for (size_t f = 0; f < t[i].factors[k]; f++)
                at += sprintf(at, "%s%c", f > 0 ? "|" : k > 0 ? " " : "", 'a' + t[i].factor[k][f]);
        at += sprintf(at, "\"}\n");
    }
    esp_dataset *data = dataset_of(lines);
    free(lines);
    return data;
}

/* `count` sequences of up to `most` tokens; the caller frees it. */
static inline esp_dataset *random_data(uint64_t seed, size_t count, size_t most, size_t letters, size_t factors)
{
    ref_random random = {seed};
    tokens *t = malloc(count * sizeof *t);
    assert_non_null(t);
    for (size_t i = 0; i < count; i++)
        t[i] = random_tokens(&random, ref_random_below(&random, most + 1), letters, 0, factors);
    esp_dataset *data = dataset_of_tokens(t, count);
    free(t);
    return data;
}

#endif
