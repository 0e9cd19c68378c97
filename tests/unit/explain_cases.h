/* What the tests of explanations share: models with any coefficients, and all their features with weights, enumerated
 * from the definition. */
#ifndef EXPLAIN_CASES_H
#define EXPLAIN_CASES_H

#include "base/alloc.h"
#include "cases.h"
#include "learn/model/model.h"

/* --------------------------------------------------------------------- models */

/* A model over the examples in `lines` with coefficients and biases drawn at random; every fifth coefficient is 0. */
static inline esp_model *random_model(const char *kernel, const char *lines, size_t classes, bool one_vs_one,
                                      ref_random *random)
{
    esp_model *m = espi_model_new();
    assert_non_null(m);
    m->kernel = kernel_of(kernel);
    m->support = dataset_of(lines);
    m->learner = espi_copy_text("svm", 3);
    m->settings = espi_copy_text("", 0);
    m->classes = classes;
    m->one_vs_one = one_vs_one;
    m->outputs = classes <= 2 ? 1 : one_vs_one ? classes * (classes - 1) / 2 : classes;
    m->class_name = classes > 0 ? espi_alloc_zero(classes, sizeof *m->class_name) : NULL;
    for (size_t c = 0; c < classes; c++) m->class_name[c] = espi_copy_text((const char[]){(char)('A' + c)}, 1);
    m->coefficient = espi_alloc(m->support->rows, m->outputs * sizeof *m->coefficient);
    m->bias = espi_alloc(m->outputs, sizeof *m->bias);
    assert_non_null(m->coefficient);
    assert_non_null(m->bias);
    for (size_t i = 0; i < m->support->rows * m->outputs; i++)
        m->coefficient[i] = ref_random_below(random, 5) == 0 ? 0.0 : ref_random_between(random, -2, 2);
    for (size_t k = 0; k < m->outputs; k++) m->bias[k] = ref_random_between(random, -1, 1);
    return m;
}

/* Brackets of a tree in which fragments come again and again, leaf and inner
 * children mixed; `extra` knows a word more. */
static inline void write_tree(ref_random *random, char symbol, size_t depth, bool extra, char **at)
{
    static const struct {
        char symbol;
        const char *label, *rule[4]; /* the first does not lead back */
    } grammar[] = {{'S', "S", {"NV", "NVN", "N", "SV"}},
                   {'N', "NP", {"X", "XX", "aXN", "XV"}},
                   {'V', "VP", {"XN", "X", "VN", "bV"}},
                   {'X', "X", {"a", "b", "c", "S"}}};
    size_t row = 0;
    while (row < 4 && grammar[row].symbol != symbol) row++;
    if (row == 4) {
        *at += sprintf(*at, " %c", symbol);
        return;
    }
    *at += sprintf(*at, " (%s", grammar[row].label);
    const size_t all = depth == 0 ? 1 : symbol == 'X' ? 3 : 4;
    const char *rule = grammar[row].rule[ref_random_below(random, all)];
    if (symbol == 'X' && extra && ref_random_below(random, 4) == 0) rule = "u";
    for (; *rule != '\0'; rule++) write_tree(random, *rule, depth == 0 ? 0 : depth - 1, extra, at);
    *at += sprintf(*at, ")");
}

/* Lines of `count` such trees, or now and then of any tree, whose brackets go to tree[]; the caller frees all. */
static inline char *random_trees(ref_random *random, size_t count, bool extra, char **tree)
{
    char *lines = calloc(1, 1), *longer;
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        tree[i] = NULL;
        if (ref_random_below(random, 6) == 0) tree[i] = ref_random_small_tree(random, 12, 400, extra);
        while (tree[i] == NULL) {
            char text[4096], *at = text;
            write_tree(random, 'S', 3, extra, &at);
            ref_tree *t = ref_tree_parse(text + 1);
            if (ref_tree_fragments(t) <= 500) tree[i] = strdup(text + 1);
            ref_tree_free(t);
        }
        longer = realloc(lines, size + strlen(tree[i]) + 20);
        assert_non_null(longer);
        lines = longer;
        size += (size_t)sprintf(lines + size, "{\"tree\": \"%s\"}\n", tree[i]);
    }
    return lines;
}

/* ------------------------------------------------------------------- features */

typedef struct known { /* a feature of the reference */
    char *text;
    double scale;  /* the factors of its productions and open nodes, or bow */
    double *count; /* per support example */
    double of_x;   /* in the example that is explained */
} known;

typedef struct knowledge {
    known *feature;
    size_t count, examples;
    uint32_t slot[1 << 15]; /* by hash, open addressing: 1 + the number of a feature */
    double *self;           /* per support example: K(x, x) */
    double self_x;
} knowledge;

static inline known *know(knowledge *k, const char *text, bool add)
{
    uint32_t hash = 2166136261u;
    for (const char *c = text; *c != '\0'; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
    uint32_t at = (hash ^ hash >> 15) & 0x7FFF;
    for (; k->slot[at] != 0; at = (at + 1) & 0x7FFF)
        if (strcmp(k->feature[k->slot[at] - 1].text, text) == 0) return &k->feature[k->slot[at] - 1];
    if (!add) return NULL;
    if (k->count % 1024 == 0) k->feature = realloc(k->feature, (k->count + 1024) * sizeof *k->feature);
    assert_non_null(k->feature);
    assert_true(k->count < 1 << 14);
    known *f = &k->feature[k->count++];
    *f = (known){.text = strdup(text), .count = calloc(k->examples, sizeof(double))};
    k->slot[at] = (uint32_t)k->count;
    return f;
}

static inline void knowledge_free(knowledge *k)
{
    for (size_t i = 0; i < k->count; i++) {
        free(k->feature[i].text);
        free(k->feature[i].count);
    }
    free(k->feature);
    free(k->self);
    free(k);
}

static inline knowledge *knowledge_of(size_t examples)
{
    knowledge *k = calloc(1, sizeof *k);
    assert_non_null(k);
    k->examples = examples;
    k->self = calloc(examples, sizeof *k->self);
    return k;
}

/* All fragments of the trees, and of the tree x (may be NULL). */
static inline knowledge *fragments_of(char *const *tree, size_t count, const char *x, const ref_weights *w)
{
    knowledge *k = knowledge_of(count);
    for (size_t i = 0; i <= count; i++) {
        if (i == count && x == NULL) break;
        ref_tree *t = ref_tree_parse(i < count ? tree[i] : x);
        ref_features f = ref_features_of(t, w);
        for (size_t j = 0; j < f.count; j++) {
            known *u = know(k, f.feature[j].text, true);
            u->scale = f.feature[j].weight;
            if (i < count) u->count[i] = f.feature[j].count;
            else u->of_x = f.feature[j].count;
        }
        *(i < count ? &k->self[i] : &k->self_x) = ref_features_dot(&f, &f);
        ref_features_free(&f);
        ref_tree_free(t);
    }
    return k;
}

/* The weight of a feature in an output; `scale` is in front of the term. */
static inline double weight_of(const esp_model *m, const knowledge *k, const known *u, size_t output, bool norm,
                               double scale)
{
    double sum = 0.0;
    for (size_t i = 0; i < k->examples; i++) {
        const double self = norm ? (k->self[i] > 0.0 ? 1.0 / sqrt(k->self[i]) : 0.0) : 1.0;
        sum += m->coefficient[i * m->outputs + output] * u->count[i] * self;
    }
    return scale * u->scale * sum;
}

/* ----------------------------------------------------------------------- texts */

static inline void write_known(const ref_tree *t, bool inside, char **at)
{
    if (t->children == 0) {
        *at += sprintf(*at, "'%s", t->label);
        return;
    }
    if (inside && t->children == 1 && t->child[0]->children == 0 && strcmp(t->child[0]->label, "...") == 0) {
        *at += sprintf(*at, "%s", t->label);
        return;
    }
    *at += sprintf(*at, "(%s", t->label);
    for (size_t i = 0; i < t->children; i++) {
        *at += sprintf(*at, " ");
        write_known(t->child[i], true, at);
    }
    *at += sprintf(*at, ")");
}

/* A fragment or word as the reference writes it: (NP (D ...) (N cat)) is (NP D (N 'cat)). The caller frees it. */
static inline char *as_known(const esp_feature *f)
{
    char *text = malloc(2 * strlen(f->text) + 8), *at = text;
    assert_non_null(text);
    if (f->kind == ESP_FEATURE_WORD) {
        sprintf(text, "'%s", f->text);
        return text;
    }
    ref_tree *t = ref_tree_parse(f->text);
    write_known(t, false, &at);
    ref_tree_free(t);
    return text;
}

/* ------------------------------------------------------------------------ calls */

static inline esp_explainer *explainer_of(const esp_model *model)
{
    esp_explainer *e = NULL;
    esp_error err = {0};
    assert_ok(esp_explainer_new(model, NULL, &e, &err), esp_model_kernel(model), &err);
    return e;
}

static inline esp_explanation *explained(const esp_explainer *e, const esp_explain_options *options)
{
    esp_explanation *x = NULL;
    esp_error err = {0};
    assert_ok(esp_explain(e, options, NULL, &x, &err), "explain", &err);
    return x;
}

static inline esp_explanation *explained_example(const esp_explainer *e, const esp_dataset *data, size_t example,
                                                 const esp_explain_options *options)
{
    esp_explanation *x = NULL;
    esp_error err = {0};
    assert_ok(esp_explain_example(e, data, example, options, NULL, &x, &err), "explain example", &err);
    return x;
}

/* score = bias + terms = bias + contributions + rest, and it is what the model predicts. */
static inline void assert_adds_up(const esp_explanation *x, double predicted, size_t output)
{
    double terms = esp_explanation_bias(x, output), listed = terms + esp_explanation_rest(x, output);
    const double score = esp_explanation_score(x, output);
    for (size_t t = 0; t < esp_explanation_terms(x); t++) terms += esp_explanation_term_score(x, output, t);
    for (size_t i = 0; i < esp_explanation_count(x); i++) {
        const esp_feature *f = esp_explanation_feature(x, i);
        if (f->output != output) continue;
        listed += f->contribution;
        assert_true(fabs(f->weight * f->value - f->contribution) <= 1e-12 * fabs(f->contribution));
    }
    const double tolerance = 1e-9 * fmax(1.0, fabs(score));
    if (fabs(terms - score) > tolerance || fabs(listed - score) > tolerance || fabs(predicted - score) > tolerance)
        fail_msg("score %.17g, terms %.17g, listed %.17g, predicted %.17g", score, terms, listed, predicted);
}

#endif
