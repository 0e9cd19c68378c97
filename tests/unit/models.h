/* What the tests of model files share: models made by hand, and the bytes of their files. */
#ifndef MODELS_H
#define MODELS_H

#define XXH_INLINE_ALL
#include "files.h"
#include "kernel/expression/columns.h"
#include "kernel/pattern/pattern.h"
#include "learn/model/file.h"

#include <sys/stat.h>
#include <xxhash.h>

/* ------------------------------------------------------------------ recipes */

typedef struct recipe {
    const char *name, *learner, *settings, *summary, *kernel, *data;
    const char *class_name[4];
    size_t classes, outputs;
    bool one_vs_one, platt;
    bool history, vote, process;
    const char *patterns; /* per line a pattern of each column, which all outputs select */
    int version;          /* of the format; 0: 1 */
} recipe;

enum {
    TREE_SVM,
    VECTOR_SVR,
    MIXED,
    ONE_VS_REST,
    NO_SUPPORT,
    PERCEPTRON,
    VOTE,
    SELECTED,
    PROCESS,
    PROCESS_CLASSES,
    PROCESS_SEVERAL,
    RECIPES
};

static const recipe recipes[RECIPES] = {
    [TREE_SVM] = {.name = "tree-svm",
                  .learner = "svm",
                  .settings = "C=10 multiclass=ovr",
                  .summary = "iterations\t12\nconverged\tyes\n",
                  .kernel = "norm(sst(tree, lambda=0.4))",
                  .data = "{\"tree\": \"(S (NP (D the) (N cat)) (VP (V sat)))\"}\n"
                          "{\"tree\": \"(S (NP (D the) (N dog)) (VP (V saw) (NP (D the) (N cat))))\"}\n",
                  .class_name = {"-1", "+1"},
                  .classes = 2,
                  .outputs = 1},
    [VECTOR_SVR] = {.name = "vector-svr",
                    .learner = "svr",
                    .settings = "C=1 epsilon=0.1",
                    .summary = "",
                    .kernel = "rbf(x, gamma=0.5)",
                    .data = "{\"x\": {\"len\": 3, \"caps\": 0.1}}\n{\"x\": {}}\n{\"x\": {\"caps\": -1e-300}}\n",
                    .outputs = 1},
    [MIXED] =
        {.name = "mixed",
         .learner = "svm",
         .settings = "C=0.5 multiclass=ovo probability=1",
         .summary = "iterations\t3\n",
         .kernel = "norm(sst(tree, lambda=0.4)) + 0.3*poly(x, degree=3) + linear(words)*rbf(d, gamma=0.5) + "
                   "linear(n) + sasst(tree, lambda.NP=0.8)",
         .data = "{\"tree\": \"(S (NP (D the) w) (VP (V \\u00e9)))\", \"x\": {\"b\": 1, \"a\": 2}, \"words\": "
                 "\"the cat|N|x sat\", \"d\": [1, 0.5], \"n\": 3}\n"
                 "{\"tree\": \"(S)\", \"x\": {\"a\": 1, \"c\": 2}, \"words\": \"\", \"d\": [0, 2], \"n\": -1}\n"
                 "{\"tree\": \"(S (NP (D the) w) (NP (D the) w))\", \"x\": {}, \"words\": \"dog the\", \"d\": [1, 1], "
                 "\"n\": 0}\n"
                 "{\"tree\": \"(NP (D the) w)\", \"x\": {\"b\": 3}, \"words\": \"cat\", \"d\": [3, 1], \"n\": 9}\n",
         .class_name = {"a class", "", "\xFF\n"},
         .classes = 3,
         .outputs = 3,
         .one_vs_one = true,
         .platt = true},
    [ONE_VS_REST] = {.name = "one-vs-rest",
                     .learner = "svm",
                     .settings = "C=1 multiclass=ovr",
                     .summary = "",
                     .kernel = "linear(words)",
                     .data = "{\"words\": \"who is he\"}\n{\"words\": \"what is|VBZ it\"}\n",
                     .class_name = {"HUM", "DESC", "LOC", "NUM"},
                     .classes = 4,
                     .outputs = 4},
    [NO_SUPPORT] = {.name = "no-support",
                    .learner = "svr",
                    .settings = "C=1 epsilon=100",
                    .summary = "",
                    .kernel = "st(tree) + linear(words) + linear(x)",
                    .data = "",
                    .outputs = 1},
    [PERCEPTRON] = {.name = "perceptron",
                    .learner = "perceptron",
                    .settings = "seed=1 form=dag epochs=2 average=1 vote=0 margin=0 shuffle=0 class-weight=a b=2",
                    .summary = "trained-on\t15\n",
                    .kernel = "sst(tree, lambda=0.4) + linear(words)",
                    .data = "{\"tree\": \"(S (NP (D the) (N cat)) (VP (V sat)))\", \"words\": \"a\"}\n"
                            "{\"tree\": \"(S (NP (D a) (N cat)) (VP (V sat)))\", \"words\": \"b c\"}\n"
                            "{\"tree\": \"(NP (D a) (N dog))\", \"words\": \"\"}\n",
                    .class_name = {"a b", "c", "d"},
                    .classes = 3,
                    .outputs = 3,
                    .history = true,
                    .version = 2},
    [VOTE] = {.name = "vote",
              .learner = "perceptron",
              .settings = "seed=7 form=plain epochs=1 average=0 vote=1 margin=0.5 shuffle=1 class-weight=",
              .summary = "",
              .kernel = "norm(st(tree))",
              .data = "{\"tree\": \"(S (NP (D the) (N cat)))\"}\n{\"tree\": \"(S (NP (D the) (N dog)))\"}\n",
              .class_name = {"-1", "1"},
              .classes = 2,
              .outputs = 1,
              .history = true,
              .vote = true,
              .version = 2},
    [SELECTED] = {.name = "selected",
                  .learner = "svm",
                  .settings = "C=1 multiclass=ovr",
                  .summary = "",
                  .kernel = "norm(fseq(words, n=2)) + fsst(tree, n=3, lambda=0.5)",
                  .data = "{\"words\": \"who is he\", \"tree\": \"(S (NP (D the) (N cat)) (VP (V sat)))\"}\n"
                          "{\"words\": \"is|VBZ it\", \"tree\": \"(NP (D the) (N dog))\"}\n"
                          "{\"words\": \"\", \"tree\": \"(S (NP (D a) (N cat)) (VP ran))\"}\n",
                  .class_name = {"a", "b", "c"},
                  .classes = 3,
                  .outputs = 3,
                  .patterns = "{\"words\": \"who\", \"tree\": \"(NP (D ...) (N ...))\"}\n"
                              "{\"words\": \"who he\", \"tree\": \"(NP (D the) (N cat))\"}\n"
                              "{\"words\": \"VBZ it\", \"tree\": \"(S (NP (D the) (N ...)) (VP ...))\"}\n"
                              "{\"words\": \"he he\", \"tree\": \"(D the)\"}\n",
                  .version = 3},
    [PROCESS] = {.name = "process",
                 .learner = "gp",
                 .settings = "likelihood=gaussian noise=0.1 fix=",
                 .summary = "log likelihood\t-1.5\n",
                 .kernel = "0.5*norm(sasst(tree, lambda=0.4, lambda.NP=0.3, alpha.\"a b\"=2)) + 2*rbf(x, gamma=0.5)",
                 .data = "{\"tree\": \"(S (NP (D the) (N cat)) (VP (V sat)))\", \"x\": {\"len\": 1}}\n"
                         "{\"tree\": \"(NP (D a) (N dog))\", \"x\": {\"len\": 0.5}}\n"
                         "{\"tree\": \"(S (NP (D a) (N dog)))\", \"x\": {}}\n",
                 .outputs = 1,
                 .process = true,
                 .version = 4},
    [PROCESS_CLASSES] = {.name = "process-classes",
                         .learner = "gp",
                         .settings = "likelihood=bernoulli",
                         .summary = "",
                         .kernel = "linear(words)",
                         .data = "{\"words\": \"who is he\"}\n{\"words\": \"what is|VBZ it\"}\n",
                         .class_name = {"no", "yes"},
                         .classes = 2,
                         .outputs = 1,
                         .process = true,
                         .version = 4},
    [PROCESS_SEVERAL] = {.name = "process-several",
                         .learner = "gp",
                         .settings = "likelihood=bernoulli",
                         .summary = "log evidence\t-2.5\n",
                         .kernel = "2*norm(sst(tree, lambda=0.4))",
                         .data = "{\"tree\": \"(S (NP (D the) (N cat)) (VP (V sat)))\"}\n"
                                 "{\"tree\": \"(NP (D a) (N dog))\"}\n"
                                 "{\"tree\": \"(S (NP (D a) (N dog)))\"}\n",
                         .class_name = {"a", "b", "c"},
                         .classes = 3,
                         .outputs = 3,
                         .process = true,
                         .version = 5},
};

static inline char *copied(const char *text)
{
    char *copy = espi_copy_text(text, strlen(text));
    assert_non_null(copy);
    return copy;
}

/* Numbers that have no short decimal, and the odd ones. */
static inline double *numbers(size_t count, double start)
{
    static const double odd[] = {-0.0, 4.9e-324, 1.7976931348623157e308};
    double *value = espi_alloc(count, sizeof *value);
    assert_non_null(value);
    for (size_t i = 0; i < count; i++) value[i] = i % 5 < 3 ? (start + (double)i) / 3.0 : odd[i % 3];
    return value;
}

/* Steps 2, 4, 6, ...; each class has 2 hits, 3 misses and 1 false alarm. */
static inline espi_history *history_of(const esp_model *m)
{
    espi_history *h = espi_alloc_zero(1, sizeof *h);
    assert_non_null(h);
    h->step = espi_alloc(m->support->rows, sizeof *h->step);
    h->tally = espi_alloc(m->classes, sizeof *h->tally);
    h->change = numbers(m->support->rows * m->outputs, -2.0);
    assert_non_null(h->step);
    assert_non_null(h->tally);
    for (size_t i = 0; i < m->support->rows; i++) h->step[i] = 2 * (i + 1);
    for (size_t c = 0; c < m->classes; c++) h->tally[c] = (espi_tally){2, 3, 1};
    h->steps = 5 * m->classes;
    h->mistakes = 3 * m->classes;
    h->epochs = 1;
    h->at = 2;
    h->origin = UINT64_C(0x3FD5555555555555);
    return h;
}

/* Columns without an example: no reader makes them, but nothing says that there must be a support example. */
static inline esp_dataset *without_examples(void)
{
    esp_dataset *data = espi_dataset_new(ESP_FORMAT_JSONL);
    esp_error err = {0};
    espi_column *column;
    assert_non_null(data);
    assert_ok(espi_row_column(data, "tree", 4, ESP_COLUMN_TREE, &column, &err), "tree", &err);
    assert_ok(espi_row_column(data, "words", 5, ESP_COLUMN_SEQUENCE, &column, &err), "words", &err);
    assert_ok(espi_row_column(data, "x", 1, ESP_COLUMN_VECTOR, &column, &err), "x", &err);
    return data;
}

/* Counts and values as no mining would find them. */
static inline espi_selection *selection_of(const espi_column *column)
{
    espi_selection *s = espi_alloc_zero(1, sizeof *s);
    esp_error err = {0};
    assert_non_null(s);
    const bool trees = column->type == ESP_COLUMN_TREE;
    s->kind = trees ? ESPI_SELECTED_TREES : ESPI_SELECTED_SEQUENCES;
    assert_ok(trees ? espi_fragments_of(column, &s->fragments, &err) : espi_trie_of(column, &s->trie, &err), "patterns",
              &err);
    espi_patterns *set = trees ? &s->fragments.set : &s->trie.set;
    for (size_t i = 0; i < set->patterns; i++) {
        set->x[i] = (uint32_t)(3 * i + 2);
        set->y[i] = (uint32_t)(2 * i + 1);
        set->statistic[i] = (double)(7 * i % 4) / 3.0;
    }
    return s;
}

static inline void add_variants(esp_model *m, const recipe *r)
{
    esp_dataset *patterns = dataset_of(r->patterns);
    esp_error err = {0};
    m->variant = espi_alloc(m->outputs, sizeof *m->variant);
    assert_non_null(m->variant);
    for (size_t k = 0; k < m->outputs; k++) {
        m->variant[k] = kernel_of(r->kernel);
        for (size_t i = 0; i < m->kernel->leaves; i++) {
            const espi_column *column;
            assert_ok(espi_leaf_column(&m->kernel->leaf[i], patterns, &column, &err), "column", &err);
            m->variant[k]->leaf[i].selection = selection_of(column);
        }
    }
    esp_dataset_free(patterns);
}

static inline espi_gaussian *process_of(const esp_model *m)
{
    espi_gaussian *p = espi_alloc_zero(1, sizeof *p);
    assert_non_null(p);
    *p = (espi_gaussian){.scale = 1.0 / 3.0, .noise = m->classes == 0 ? 0.1 : 0.0, .jitter = 1e-10};
    if (m->classes == 0) return p;
    const size_t curvatures = m->support->rows * m->outputs;
    p->curvature = espi_alloc(curvatures, sizeof *p->curvature);
    assert_non_null(p->curvature);
    for (size_t i = 0; i < curvatures; i++) p->curvature[i] = (double)i / 3.0;
    return p;
}

static inline esp_model *made(const recipe *r)
{
    esp_model *m = espi_model_new();
    assert_non_null(m);
    m->learner = copied(r->learner);
    m->settings = copied(r->settings);
    m->summary = copied(r->summary);
    m->kernel = kernel_of(r->kernel);
    m->support = r->data[0] != '\0' ? dataset_of(r->data) : without_examples();
    m->classes = r->classes;
    m->one_vs_one = r->one_vs_one;
    m->outputs = r->outputs;
    if (m->classes > 0) m->class_name = espi_alloc(m->classes, sizeof *m->class_name);
    for (size_t i = 0; i < m->classes; i++) m->class_name[i] = copied(r->class_name[i]);
    m->coefficient = numbers(m->support->rows * m->outputs, -1.0);
    m->bias = numbers(m->outputs, 0.1);
    if (r->platt) m->platt = numbers(2 * m->outputs, -2.0);
    if (r->history) m->history = history_of(m);
    if (r->patterns != NULL) add_variants(m, r);
    if (r->process) m->gaussian = process_of(m);
    m->vote = r->vote;
    if (r == &recipes[MIXED]) m->support->column[0].trees.root[3] = ESPI_NO_NODE;
    return m;
}

/* -------------------------------------------------------------------- files */

static inline blob file_of(int number)
{
    esp_model *m = made(&recipes[number]);
    const blob b = bytes_of(m);
    esp_model_free(m);
    return b;
}

static inline void store(unsigned char *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> 8 * i);
}

static inline uint64_t fetch(const unsigned char *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) value |= (uint64_t)at[i] << 8 * i;
    return value;
}

/* Makes the length and the checksum right, as whoever means harm would. */
static inline void sign(blob b)
{
    XXH3_state_t state;
    store(b.bytes + 16, b.size, 8);
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, b.bytes, 24);
    XXH3_128bits_update(&state, b.bytes + 40, b.size - 40);
    const XXH128_hash_t sum = XXH3_128bits_digest(&state);
    store(b.bytes + 24, sum.low64, 8);
    store(b.bytes + 32, sum.high64, 8);
}

/* Refused as a fault of the file, which is named, with this clause (NULL: any), and nothing handed out. */
static inline void refused(const void *bytes, size_t size, const char *clause)
{
    esp_model *m = (esp_model *)(uintptr_t)1;
    esp_error err = {0};
    const esp_status status = esp_model_parse(bytes, size, "some.model", &m, &err);
    assert_null(m);
    if (status != ESP_ERR_PARSE) fail_msg("status %d instead of a parse error: %s", (int)status, err.message);
    if (strncmp(err.message, "some.model: ", 12) != 0) fail_msg("the file is not named: %s", err.message);
    if (clause != NULL && strstr(err.message, clause) == NULL) fail_msg("'%s' instead of '%s'", err.message, clause);
}

#endif
