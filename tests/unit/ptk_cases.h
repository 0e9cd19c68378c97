/* What the tests of the partial tree kernel share: its settings, and random trees whose leaves and inner nodes have the
 * same labels. */
#ifndef PTK_CASES_H
#define PTK_CASES_H

#include "cases.h"

typedef struct setting {
    double lambda, mu, terminal;
} setting;

static inline const char *expression_of(const setting *s, const char *algorithm)
{
    static char text[200];
    snprintf(text, sizeof text, "ptk(lambda=%.17g, mu=%.17g, terminal=%.17g, algorithm=%s)", s->lambda, s->mu,
             s->terminal, algorithm);
    return text;
}

/* Appends a tree of `nodes` nodes with at most `most` children each while that lasts. */
static inline char *write_tree(ref_random *random, char *at, size_t nodes, size_t most, size_t labels)
{
    const char label = (char)('a' + ref_random_below(random, labels));
    if (nodes == 1) return at + sprintf(at, "%c", label);
    at += sprintf(at, "(%c", label);
    size_t left = nodes - 1;
    for (size_t k = 1 + ref_random_below(random, most < left ? most : left); k > 0; k--) {
        const size_t size = k == 1 ? left : 1 + ref_random_below(random, left - k + 1);
        *at++ = ' ';
        at = write_tree(random, at, size, most, labels);
        left -= size;
    }
    return at + sprintf(at, ")");
}

/* The caller frees it. */
static inline char *random_tree(ref_random *random, size_t nodes, size_t most, size_t labels)
{
    char *text = malloc(nodes * 8 + 16);
    assert_non_null(text);
    if (nodes == 1) sprintf(text, "(%c)", (char)('a' + ref_random_below(random, labels)));
    else *write_tree(random, text, nodes, most, labels) = '\0';
    return text;
}

#endif
