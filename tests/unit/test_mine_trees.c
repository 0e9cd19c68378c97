/* Mining tree fragments against all fragments written out as texts (reference.c), and the kernels over what is kept:
 * both evaluations against the reference, and with nothing left out against the kernels that sum over everything. */
#include "cases.h"

#include "kernel/evaluate/bound.h"
#include "mine/mine.h"

enum { EXAMPLES = 12, OTHERS = 5 };

typedef struct listed {
    char *text;      /* in the notation of espi_fragments_text */
    char *reference; /* in that of reference.c */
    uint32_t x, y;
    size_t productions, last;
    bool path;
    double value;
} listed;

typedef struct list {
    listed *item;
    size_t count, capacity;
} list;

typedef struct world { /* random labelled trees */
    char *tree[EXAMPLES + OTHERS];
    ref_tree *parsed[EXAMPLES + OTHERS];
    bool positive[EXAMPLES];
    esp_dataset *data, *others;
    list all;
} world;

/* (S 'a NP (VP 'b)) -> (S a (NP ...) (VP b)) */
static char *notation(const char *from)
{
    char *out = malloc(8 * strlen(from) + 1), *to = out;
    assert_non_null(out);
    while (*from != '\0') {
        const bool word = *from == '\'', open = *from != '(' && *from != ')' && *from != ' ' && !word;
        if (*from == ' ' || *from == ')') {
            *to++ = *from++;
            continue;
        }
        if (open) to += sprintf(to, "(");
        if (word) from++;
        while (*from != '\0' && *from != ' ' && *from != ')') *to++ = *from++;
        if (open) to += sprintf(to, " ...)");
    }
    *to = '\0';
    return out;
}

/* Whether no node has two children that are expanded. */
static bool is_path(const char *reference)
{
    int expanded[256] = {0}, depth = 0;
    for (; *reference != '\0'; reference++) {
        if (*reference == ')') depth--;
        if (*reference != '(') continue;
        if (++expanded[depth] > 1 && depth > 0) return false;
        expanded[++depth] = 0;
    }
    return true;
}

static void note(list *l, const ref_feature *f, size_t example, bool positive)
{
    size_t i = 0;
    while (i < l->count && strcmp(l->item[i].reference, f->text) != 0) i++;
    if (i == l->count) {
        if (l->count == l->capacity) l->item = realloc(l->item, (l->capacity += 1024) * sizeof *l->item);
        assert_non_null(l->item);
        listed *made = &l->item[l->count++];
        *made = (listed){.text = notation(f->text), .reference = strdup(f->text), .path = is_path(f->text)};
        for (const char *c = f->text; *c != '\0'; c++) made->productions += *c == '(';
    }
    if (l->item[i].last == example) return;
    l->item[i].last = example;
    l->item[i].x++;
    l->item[i].y += positive;
}

static int best_first(const void *x, const void *y)
{
    const listed *a = x, *b = y;
    return a->value != b->value ? (a->value < b->value) - (a->value > b->value) : strcmp(a->text, b->text);
}

static void world_make(world *w, ref_random *random)
{
    char lines[8192], *at = lines;
    espi_margins margins = {.metric = ESPI_CHI2, .examples = EXAMPLES};
    *w = (world){0};
    for (size_t i = 0; i < EXAMPLES + OTHERS; i++) {
        w->tree[i] = ref_random_small_tree(random, 14, 120.0, i >= EXAMPLES && i % 2 == 0);
        w->parsed[i] = ref_tree_parse(w->tree[i]);
        if (i >= EXAMPLES) continue;
        w->positive[i] = i < 2 ? i == 0 : ref_random_below(random, 3) == 0;
        margins.positive += w->positive[i];
        at += sprintf(at, "{\"y\": %d, \"tree\": \"%s\"}\n", w->positive[i] ? 1 : -1, w->tree[i]);
        ref_features f = ref_features_of(w->parsed[i], &(ref_weights){.lambda = 1.0, .alpha = 1.0});
        for (size_t k = 0; k < f.count; k++)
            if (f.feature[k].text[0] == '(') note(&w->all, &f.feature[k], i + 1, w->positive[i]);
        ref_features_free(&f);
    }
    w->data = dataset_of(lines);
    w->others = dataset_of_trees(w->tree + EXAMPLES, OTHERS);
    for (size_t i = 0; i < w->all.count; i++)
        w->all.item[i].value = espi_metric_value(&margins, w->all.item[i].x, w->all.item[i].y);
    qsort(w->all.item, w->all.count, sizeof *w->all.item, best_first);
}

static void world_free(world *w)
{
    for (size_t i = 0; i < EXAMPLES + OTHERS; i++) {
        free(w->tree[i]);
        ref_tree_free(w->parsed[i]);
    }
    for (size_t i = 0; i < w->all.count; i++) {
        free(w->all.item[i].text);
        free(w->all.item[i].reference);
    }
    free(w->all.item);
    esp_dataset_free(w->data);
    esp_dataset_free(w->others);
}

static bool wanted(const listed *f, double tau, size_t support, size_t length, bool paths)
{
    return f->value >= tau && f->x >= support && (length == 0 || f->productions <= length) && (!paths || f->path);
}

static void pruning_loses_nothing(void **state)
{
    (void)state;
    ref_random random = {21};
    for (int round = 0; round < 40; round++) {
        world w;
        world_make(&w, &random);
        const bool paths = round % 3 == 2;
        for (int half = 0; half <= 10; half++) {
            char expression[96];
            const esp_mine_options o = {.min_support = ref_random_below(&random, 3),
                                        .max_length = half % 3 == 0 ? 1 + ref_random_below(&random, 4) : 0,
                                        .top = half % 4 == 3 ? 1 + ref_random_below(&random, 30) : 0,
                                        .no_pruning = half % 2 == 1};
            snprintf(expression, sizeof expression, "fsst(n=inf, tau=%g, paths=%d)", half * 0.5, paths);
            esp_kernel *kernel = kernel_of(expression);
            esp_patterns *p;
            esp_error err = {0};
            const esp_run run = {.threads = 1 + half % 3};
            assert_ok(esp_mine(kernel, w.data, &o, &run, &p, &err), expression, &err);
            size_t at = 0, y;
            for (size_t i = 0; i < w.all.count && (o.top == 0 || at < o.top); i++) {
                const listed *f = &w.all.item[i];
                if (!wanted(f, half * 0.5, o.min_support, o.max_length, paths)) continue;
                if (at == esp_patterns_count(p)) fail_msg("%s: %s is missing", expression, f->text);
                assert_string_equal(esp_patterns_text(p, at), f->text);
                assert_int_equal(esp_patterns_examples(p, at, &y), f->x);
                assert_int_equal(y, f->y);
                assert_true(esp_patterns_value(p, at++) == f->value);
            }
            assert_int_equal(at, esp_patterns_count(p));
            esp_patterns_free(p);
            esp_kernel_free(kernel);
        }
        world_free(&w);
    }
}

/* ------------------------------------------------------------------ kernels */

/* A Gram matrix over the patterns mined from `data`; the caller frees it. */
static double *selected_gram(const char *expression, const esp_dataset *data, const uint8_t *positive,
                             const esp_dataset *rows, int threads)
{
    esp_kernel *kernel = kernel_of(expression);
    espi_selection *selection[4];
    esp_error err = {0};
    const esp_run run = {.threads = threads};
    assert_ok(espi_kernel_select(kernel, data, positive, NULL, &run, selection, &err), expression, &err);
    for (size_t i = 0; i < kernel->leaves; i++) kernel->leaf[i].selection = selection[i];
    double *gram = malloc(esp_dataset_count(rows) * esp_dataset_count(data) * sizeof *gram);
    assert_non_null(gram);
    assert_ok(esp_gram(kernel, rows, data, &run, gram, &err), expression, &err);
    esp_kernel_free(kernel); /* with its selections */
    return gram;
}

/* sum over the wanted fragments of lambda^productions c(a) c(b) */
static double expected_value(const world *w, size_t a, size_t b, double lambda, double tau)
{
    const ref_weights weights = {.lambda = 1.0, .alpha = 1.0};
    ref_features f = ref_features_of(w->parsed[a], &weights), g = ref_features_of(w->parsed[b], &weights);
    double sum = 0.0;
    for (size_t i = 0; i < w->all.count; i++) {
        const listed *l = &w->all.item[i];
        double in_f = 0.0, in_g = 0.0;
        if (!wanted(l, tau, 1, 0, false)) continue;
        for (size_t k = 0; k < f.count; k++)
            if (strcmp(f.feature[k].text, l->reference) == 0) in_f = f.feature[k].count;
        for (size_t k = 0; k < g.count; k++)
            if (strcmp(g.feature[k].text, l->reference) == 0) in_g = g.feature[k].count;
        sum += pow(lambda, (double)l->productions) * in_f * in_g;
    }
    ref_features_free(&f);
    ref_features_free(&g);
    return sum;
}

static void fragment_kernels_are_those_of_the_definition(void **state)
{
    (void)state;
    ref_random random = {22};
    for (int round = 0; round < 6; round++) {
        world w;
        world_make(&w, &random);
        uint8_t positive[EXAMPLES];
        for (size_t i = 0; i < EXAMPLES; i++) positive[i] = w.positive[i];
        const double lambda = round % 3 == 0 ? 1.0 : 0.4, tau = round % 2 == 0 ? 1.0 : 0.0;
        for (int algorithm = 0; algorithm < 2; algorithm++) {
            char expression[128];
            snprintf(expression, sizeof expression, "fsst(n=inf, lambda=%g, tau=%g, algorithm=%s)", lambda, tau,
                     algorithm == 0 ? "features" : "recursion");
            double *self = selected_gram(expression, w.data, positive, w.data, 1 + round % 2);
            double *other = selected_gram(expression, w.data, positive, w.others, 1 + round % 2);
            for (size_t j = 0; j < EXAMPLES; j++) {
                for (size_t i = 0; i < EXAMPLES; i++)
                    assert_close(self[i * EXAMPLES + j], expected_value(&w, i, j, lambda, tau), 1e-10, expression);
                for (size_t i = 0; i < OTHERS; i++)
                    assert_close(other[i * EXAMPLES + j], expected_value(&w, EXAMPLES + i, j, lambda, tau), 1e-10,
                                 expression);
            }
            free(self);
            free(other);
        }
        world_free(&w);
    }
}

/* With nothing left out, the sum is the subset-tree kernel of the reference. */
static void all_fragments_make_the_subset_tree_kernel(void **state)
{
    (void)state;
    ref_random random = {23};
    for (int round = 0; round < 10; round++) {
        world w;
        world_make(&w, &random);
        uint8_t positive[EXAMPLES];
        for (size_t i = 0; i < EXAMPLES; i++) positive[i] = w.positive[i];
        const ref_weights weights = {.lambda = 1.0, .alpha = 1.0};
        double *gram = selected_gram("fsst(n=inf, lambda=1, tau=0)", w.data, positive, w.others, 2);
        for (size_t i = 0; i < OTHERS; i++)
            for (size_t j = 0; j < EXAMPLES; j++) {
                ref_features a = ref_features_of(w.parsed[EXAMPLES + i], &weights);
                ref_features b = ref_features_of(w.parsed[j], &weights);
                assert_close(gram[i * EXAMPLES + j], ref_features_dot(&a, &b), 1e-10, "sst");
                ref_features_free(&a);
                ref_features_free(&b);
            }
        free(gram);
        world_free(&w);
    }
}

static esp_dataset *random_sequences(ref_random *random, size_t count)
{
    char lines[4096], *at = lines;
    for (size_t i = 0; i < count; i++) {
        at += sprintf(at, "{\"y\": %zu, \"w\": \"", i % 2);
        for (size_t k = ref_random_below(random, 8); k > 0; k--) {
            at += sprintf(at, "%c", (int)('a' + (int)ref_random_below(random, 3)));
            if (ref_random_below(random, 2) == 0)
                at += sprintf(at, "|%c", (int)('a' + (int)ref_random_below(random, 5)));
            if (k > 1) *at++ = ' ';
        }
        at += sprintf(at, "\"}\n");
    }
    return dataset_of(lines);
}

/* With nothing left out, the sum is the sequence kernel, which is computed by a recursion of its own. */
static void all_sequences_make_the_sequence_kernel(void **state)
{
    (void)state;
    enum { COUNT = 9 };
    ref_random random = {24};
    const uint8_t positive[COUNT] = {0, 1, 0, 1, 0, 1, 0, 1, 0};
    for (int round = 0; round < 20; round++) {
        esp_dataset *data = random_sequences(&random, COUNT), *rows = random_sequences(&random, COUNT);
        char lambda[64], some[128], all[128];
        snprintf(lambda, sizeof lambda, "n=%s, lambda=%g, gap=%s", round % 2 == 0 ? "inf" : "3",
                 round % 5 == 0 ? 1.0 : ref_random_between(&random, 0.1, 1.0), round % 3 == 0 ? "0" : "inf");
        snprintf(all, sizeof all, "seq(%s, algorithm=pair)", lambda);
        double *expected = gram_of(all, rows, data, 1);
        for (int algorithm = 0; algorithm < 2; algorithm++) {
            snprintf(some, sizeof some, "fseq(%s, tau=0, algorithm=%s)", lambda,
                     algorithm == 0 ? "features" : "recursion");
            double *gram = selected_gram(some, data, positive, rows, 1 + round % 2);
            for (size_t i = 0; i < COUNT * COUNT; i++) assert_close(gram[i], expected[i], 1e-10, some);
            free(gram);
        }
        free(expected);
        esp_dataset_free(rows);
        esp_dataset_free(data);
    }
    /* 5 + 3 lambda + lambda^3 */
    esp_dataset *data = dataset_of("{\"w\": \"a b c\"}\n{\"w\": \"a b a c\"}\n");
    double *gram = selected_gram("fseq(n=4, lambda=0.5, tau=0)", data, positive, data, 1);
    assert_close(gram[1], 6.625, 1e-12, "5 + 3 lambda + lambda^3");
    free(gram);
    esp_dataset_free(data);
}

/* Norms, sums and scorers work on selections as on other kernels. */
static void selections_take_part_in_expressions(void **state)
{
    (void)state;
    ref_random random = {25};
    world w;
    world_make(&w, &random);
    uint8_t positive[EXAMPLES];
    for (size_t i = 0; i < EXAMPLES; i++) positive[i] = w.positive[i];
    static const char *const algorithms[] = {"features", "recursion"};
    for (int a = 0; a < 2; a++) {
        char expression[160];
        snprintf(expression, sizeof expression, "norm(fsst(tree, n=3, tau=0.5, algorithm=%s)) + 0.5*sst(tree)",
                 algorithms[a]);
        esp_kernel *kernel = kernel_of(expression);
        espi_selection *selection[2];
        espi_scorer *folded;
        esp_error err = {0};
        assert_ok(espi_kernel_select(kernel, w.data, positive, NULL, NULL, selection, &err), expression, &err);
        assert_null(selection[1]);
        kernel->leaf[0].selection = selection[0];
        double gram[OTHERS * EXAMPLES], score[OTHERS], coefficient[EXAMPLES];
        assert_ok(esp_gram(kernel, w.others, w.data, NULL, gram, &err), expression, &err);
        for (size_t j = 0; j < EXAMPLES; j++) coefficient[j] = (double)j - 4.5;
        assert_ok(espi_scorer_new(kernel, w.data, coefficient, 1, NULL, &folded, &err), expression, &err);
        assert_ok(espi_scorer_score(folded, w.others, NULL, score, &err), expression, &err);
        for (size_t i = 0; i < OTHERS; i++) {
            double sum = 0.0;
            for (size_t j = 0; j < EXAMPLES; j++) sum += coefficient[j] * gram[i * EXAMPLES + j];
            if (fabs(sum - score[i]) > 1e-9 * (1.0 + fabs(sum))) fail_msg("%s: %g, %g", expression, sum, score[i]);
        }
        espi_scorer_free(folded);
        esp_kernel_free(kernel);
    }
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pruning_loses_nothing),
        cmocka_unit_test(fragment_kernels_are_those_of_the_definition),
        cmocka_unit_test(all_fragments_make_the_subset_tree_kernel),
        cmocka_unit_test(all_sequences_make_the_sequence_kernel),
        cmocka_unit_test(selections_take_part_in_expressions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
