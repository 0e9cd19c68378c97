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

/* Appends a call as in programs: its name and the names in it are words, of which most are rare. */
static inline char *write_call(ref_random *random, char *at, size_t depth)
{
    const size_t words = ref_random_below(random, 3) == 0 ? 4 : 400;
    at += sprintf(at, "(Call ");
    if (ref_random_below(random, 3) > 0) at += sprintf(at, "(Of w%zu) ", ref_random_below(random, words));
    at += sprintf(at, "m%zu", ref_random_below(random, words));
    for (size_t k = ref_random_below(random, 3); k > 0; k--) {
        *at++ = ' ';
        if (depth > 0 && ref_random_below(random, 2) == 0) at = write_call(random, at, depth - 1);
        else at += sprintf(at, "w%zu", ref_random_below(random, words));
    }
    return at + sprintf(at, ")");
}

/* A list of statements, so long that no other is like it. A leaf can have the label of an inner node. */
static inline char *random_program(ref_random *random, size_t statements)
{
    static const char *const kinds[] = {"Do", "Do", "Do", "Set", "If", "Return"};
    char *text = malloc(statements * 400 + 16), *at = text;
    assert_non_null(text);
    at += sprintf(at, "(Block");
    for (size_t k = 0; k < statements; k++) {
        const char *kind = kinds[ref_random_below(random, sizeof kinds / sizeof *kinds)];
        if (ref_random_below(random, 8) == 0) {
            at += sprintf(at, " %s", kind);
            continue;
        }
        at += sprintf(at, " (%s ", kind);
        at = write_call(random, at, 2);
        at += sprintf(at, ")");
    }
    sprintf(at, ")");
    return text;
}

static inline esp_dataset *random_programs(ref_random *random, size_t count, size_t statements)
{
    char **text = malloc(count * sizeof *text);
    assert_non_null(text);
    for (size_t i = 0; i < count; i++) text[i] = random_program(random, 1 + ref_random_below(random, statements));
    esp_dataset *data = dataset_of_trees(text, count);
    for (size_t i = 0; i < count; i++) free(text[i]);
    free(text);
    return data;
}

#endif
