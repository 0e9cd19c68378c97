/* Model files with a right checksum and wrong contents, as somebody would make them who means harm: each is refused
 * with a sentence, or is a model that can be used. */
#include "models.h"

#include "kernel/expression/kernel.h"

static unsigned char *entry_of(blob b, const char *tag, size_t nth)
{
    for (size_t i = 0; i < fetch(b.bytes + 12, 4); i++) {
        unsigned char *entry = b.bytes + 64 + 24 * i;
        if (strncmp((char *)entry, tag, 8) == 0 && nth-- == 0) return entry;
    }
    fail_msg("there is no section '%s'", tag);
    return NULL;
}

typedef struct forgery { /* a number put into a section, and what must be said of it */
    int recipe;
    const char *tag;
    size_t nth, offset, bytes;
    uint64_t value;
    const char *clause;
} forgery;

#define NAN_BITS UINT64_C(0x7FF8000000000000)

static const forgery forgeries[] = {
    {TREE_SVM, "kernel", 0, 0, 1, '\0', "there is a NUL byte in a text"},
    {TREE_SVM, "kernel", 0, 0, 1, 'x', "unknown kernel"},
    {TREE_SVM, "kernel", 0, 9, 1, 'x', "there is no column 'xree'"},
    {TREE_SVM, "shape", 0, 0, 8, 3, "there are 2 numbers instead of 3"},
    {TREE_SVM, "shape", 0, 0, 8, UINT64_MAX, "a number is too large"},
    {TREE_SVM, "shape", 0, 8, 8, 0, "it holds too much"},
    {TREE_SVM, "shape", 0, 8, 8, 2, "section 'column' is missing"},
    {TREE_SVM, "shape", 0, 8, 8, UINT64_MAX, "a number is too large"},
    {TREE_SVM, "shape", 0, 16, 8, 0, "a number is too large"},
    {TREE_SVM, "shape", 0, 16, 8, UINT64_MAX / 8 + 2, "a number is too large"},
    {TREE_SVM, "shape", 0, 24, 8, 2, "there are 0 numbers instead of 2"},
    {VECTOR_SVR, "shape", 0, 24, 8, 1, "a regression cannot be one-vs-one"},
    {MIXED, "shape", 0, 24, 8, 1, "it is not empty"},
    {ONE_VS_REST, "shape", 0, 24, 8, 1, "4 classes need 6 outputs, but there are 4"},
    {TREE_SVM, "classes", 0, 0, 8, UINT64_MAX, "it has not room for its strings"},
    {TREE_SVM, "classes", 0, 0, 8, 1, "there are bytes behind the strings"},
    {TREE_SVM, "classes", 0, 8, 8, 5, "a string ends where it cannot"},
    {TREE_SVM, "classes", 0, 24, 1, '+', "a string is given twice"},
    {TREE_SVM, "classes", 0, 24, 1, '\0', "there is a NUL byte in a text"},
    {TREE_SVM, "classes", 0, 16, 8, 3, "there are bytes behind the strings"},
    {TREE_SVM, "bias", 0, 0, 8, NAN_BITS, "a bias is not finite"},
    {TREE_SVM, "coef", 0, 8, 8, NAN_BITS, "a coefficient is not finite"},
    {MIXED, "platt", 0, 8, 8, NAN_BITS, "a coefficient of the probabilities is not finite"},
    {TREE_SVM, "column", 0, 0, 4, 3, "its type is unknown"},
    {TREE_SVM, "column", 0, 0, 4, 1, "section 'rows' is not where it belongs"},
    {TREE_SVM, "column", 0, 4, 4, 1, "its flags are unknown"},
    {VECTOR_SVR, "column", 0, 4, 4, 3, "its flags are unknown"},
    {VECTOR_SVR, "column", 0, 4, 4, 1, "a dense vector has not the length of the others"},
    {VECTOR_SVR, "column", 0, 4, 4, 2, "a number has not the length of the others"},
    {VECTOR_SVR, "column", 0, 8, 1, 'z', "there is no column 'x'"},
    {MIXED, "column", 1, 8, 1, 'd', "two columns have the name 'd'"},
    {TREE_SVM, "rules", 0, 0, 4, 1000, "a rule has an unknown label"},
    {TREE_SVM, "rules", 0, 4, 4, 0, "a rule has no children"},
    {TREE_SVM, "rules", 0, 4, 4, UINT32_MAX, "there are too few children"},
    {TREE_SVM, "rulekids", 0, 0, 4, 1, "these are not the labels of the nodes' children"},
    {TREE_SVM, "nodes", 0, 0, 4, 1, "a node has the rule of another"},
    {TREE_SVM, "nodes", 0, 0, 4, 100, "a node has an unknown rule"},
    {TREE_SVM, "nodekids", 0, 0, 4, 0, "a child is unknown or comes too late"},
    {TREE_SVM, "nodekids", 0, 0, 4, ESPI_NO_NODE, "a child is unknown or comes too late"},
    {TREE_SVM, "roots", 0, 0, 4, 100, "tree 1 has an unknown root"},
    {TREE_SVM, "roots", 0, 4, 4, ESPI_LEAF | 100, "tree 2 has an unknown root"},
    {MIXED, "rows", 1, 0, 8, 100000, "a piece ends where it cannot"},
    {MIXED, "rows", 1, 24, 8, 4, "a piece ends where it cannot"},
    {MIXED, "rows", 1, 24, 8, 7, "sequences, tokens and factors do not fit together"},
    {MIXED, "tokens", 0, 0, 8, 0, "a piece ends where it cannot"},
    {MIXED, "factors", 0, 0, 4, 100, "a factor is an unknown word"},
    {MIXED, "rows", 0, 24, 8, 6, "vectors and features do not fit together"},
    {MIXED, "features", 0, 0, 4, 1, "the features of a vector are not in order"},
    {MIXED, "features", 0, 4, 4, 3, "a vector has an unknown feature"},
    {MIXED, "values", 0, 0, 8, NAN_BITS, "a feature's value is not finite"},
    {TREE_SVM, "shape", 0, 24, 8, 4, "its flags are unknown"}, /* votes came with version 2 */
    {PERCEPTRON, "shape", 0, 24, 8, 8, "its flags are unknown"},
    {PERCEPTRON, "shape", 0, 24, 8, 1, "only one-vs-rest classes are learned example by example"},
    {PERCEPTRON, "history", 0, 0, 8, 5, "the step of support example 3 is not between those around it"},
    {PERCEPTRON, "history", 0, 0, 8, 16, "do not add up to the examples seen"},
    {PERCEPTRON, "history", 0, 0, 8, 14, "more than the examples seen"},
    {PERCEPTRON, "history", 0, 8, 8, 8, "do not add up to the examples seen"},
    {PERCEPTRON, "history", 0, 24, 8, 16, "do not add up to the examples seen"},
    {PERCEPTRON, "tally", 0, 0, 8, UINT64_MAX, "more than the examples seen"},
    {PERCEPTRON, "tally", 0, 8, 8, UINT64_MAX - 1, "more than the examples seen"},
    {PERCEPTRON, "tally", 0, 16, 8, UINT64_MAX, "more than the examples seen"},
    {PERCEPTRON, "tally", 0, 16, 8, 8, "do not add up to the examples seen"},
    {PERCEPTRON, "steps", 0, 0, 8, 0, "the step of support example 1 is not between those around it"},
    {PERCEPTRON, "steps", 0, 8, 8, 2, "the step of support example 2 is not between those around it"},
    {PERCEPTRON, "steps", 0, 16, 8, UINT64_MAX, "the step of support example 3 is not between those around it"},
    {PERCEPTRON, "changes", 0, 8, 8, NAN_BITS, "a change is not finite"},
    {PROCESS, "shape", 0, 24, 8, 4, "its flags are unknown"},
    {PROCESS, "process", 0, 0, 8, 0, "the scale of the targets is not positive"},
    {PROCESS, "process", 0, 0, 8, NAN_BITS, "the scale of the targets is not positive"},
    {PROCESS, "process", 0, 8, 8, NAN_BITS, "the noise or the jitter is negative or not finite"},
    {PROCESS, "process", 0, 15, 1, 0xBF, "the noise or the jitter is negative or not finite"},
    {PROCESS, "process", 0, 16, 8, NAN_BITS, "the noise or the jitter is negative or not finite"},
    {PROCESS_CLASSES, "curve", 0, 8, 8, NAN_BITS, "a curvature is negative or not finite"},
    {PROCESS_CLASSES, "curve", 0, 15, 1, 0xBF, "a curvature is negative or not finite"},
    {PROCESS_SEVERAL, "shape", 0, 24, 8, 1, "a Gaussian process is not one-vs-one"},
    {PROCESS_SEVERAL, "shape", 0, 24, 8, 8, "its flags are unknown"},
    {PROCESS_SEVERAL, "curve", 0, 64, 8, NAN_BITS, "a curvature is negative or not finite"},
    {PROCESS_SEVERAL, "curve", 0, 71, 1, 0xBF, "a curvature is negative or not finite"},
    {SELECTED, "shape", 0, 24, 8, 4, "its flags are unknown"},
    {SELECTED, "kernel", 0, 10, 1, 'x', "there is no column 'xords'"},
    {SELECTED, "parents", 0, 0, 4, 1, "a node comes before its parent"},
    {SELECTED, "parents", 0, 8, 4, 2, "a node comes before its parent"},
    {SELECTED, "parents", 1, 4, 4, UINT32_MAX, "a node comes before its parent"},
    {SELECTED, "labels", 0, 4, 4, 100, "a node has an unknown label"},
    {SELECTED, "labels", 0, 4, 4, 3, "children are not in order"},
    {SELECTED, "skips", 0, 4, 4, 1, "children are not in order"},
    {SELECTED, "skips", 2, 8, 4, UINT32_MAX, "children are not in order"},
    {SELECTED, "patterns", 0, 0, 4, UINT32_MAX, "a pattern has an unknown node"},
    {SELECTED, "patterns", 0, 0, 4, 0, "the empty pattern is kept"},
    {SELECTED, "patterns", 3, 12, 4, 1, "a pattern is numbered wrongly"},
    {SELECTED, "patterns", 0, 8, 4, 100, "the counts of a pattern are wrong"},
    {SELECTED, "values", 1, 0, 8, NAN_BITS, "the counts of a pattern are wrong"},
    {SELECTED, "rules", 0, 0, 4, 100, "a production has an unknown label"},
    {SELECTED, "rules", 0, 4, 4, 0, "there are too many children"},
    {SELECTED, "rules", 0, 4, 4, UINT32_MAX, "there are too few children"},
    {SELECTED, "rulekids", 0, 0, 4, 1000, "a production has an unknown child"},
    {SELECTED, "rulekids", 0, 0, 4, 0, "a step expands a node that is not there"},
};

static void forged_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++) {
        const forgery *g = &forgeries[i];
        const blob b = file_of(g->recipe);
        print_message("%s %zu\n", g->tag, g->offset);
        store(b.bytes + fetch(entry_of(b, g->tag, g->nth) + 8, 8) + g->offset, g->value, g->bytes);
        sign(b);
        refused(b.bytes, b.size, g->clause);
        free(b.bytes);
    }
}

static void forged_tables(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0, 1, 7, 65, 4096, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 63};
    for (int r = 0; r < RECIPES; r++) {
        const blob b = file_of(r);
        for (size_t i = 0; i < fetch(b.bytes + 12, 4); i++)
            for (size_t k = 0; k < 3 * sizeof sizes / sizeof *sizes; k++) {
                unsigned char *at = b.bytes + 64 + 24 * i + 8 * (k % 3);
                const uint64_t was = fetch(at, 8), value = sizes[k / 3];
                if (was == value) continue;
                store(at, value, 8);
                sign(b);
                refused(b.bytes, b.size, "the model file is wrong");
                store(at, was, 8);
            }
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            store(b.bytes + 12, sizes[i], 4);
            sign(b);
            refused(b.bytes, b.size, "the model file is wrong");
        }
        free(b.bytes);
    }
}

/* A tree of which each level is twice the one below: small as a forest, too large for anything that goes through it. */
static void tree_without_end(void **state)
{
    (void)state;
    esp_error err = {0};
    esp_model *m = made(&recipes[TREE_SVM]);
    espi_forest *f = &m->support->column[0].trees;
    espi_ref node = f->root[0];
    for (int level = 0; level < 80; level++) node = espi_forest_node(f, 0, (espi_ref[]){node, node}, 2);
    f->root[0] = node;
    assert_int_equal(esp_model_write(m, in_directory("model"), &err), ESP_ERR_PARAM);
    assert_non_null(strstr(err.message, "a tree has more than 2147483648 nodes"));
    assert_int_equal(access(in_directory("model"), F_OK), -1);
    esp_model_free(m);
}

/* An expression of about this size: almost all of it in the grammar of its one kernel, or almost all of it kernels. */
static char *long_expression(size_t size, bool grammar)
{
    char *text = malloc(size + 100), *at = text;
    assert_non_null(text);
    at += sprintf(at, grammar ? "gtk(tree, grammar={A -> [B] C" : "st(tree)");
    for (size_t i = 0; at < text + size; i++)
        at += grammar ? sprintf(at, "; X%zu -> [Y\\}\\;] Z", i) : sprintf(at, " + st(tree)");
    sprintf(at, grammar ? "})" : "");
    return text;
}

/* Long grammars travel with a model; long sums of kernels do not, nor does what only looks like a grammar. */
static void long_kernels(void **state)
{
    (void)state;
    static const struct {
        size_t size;
        bool grammar;
        const char *clause;
    } table[] = {
        {600000, true, NULL},
        {100000, false, "bytes besides its grammar rules; a model can hold 262144"},
        {17000000, true, "bytes; a model can hold 16777216"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char *text = long_expression(table[i].size, table[i].grammar);
        esp_model *m = made(&recipes[TREE_SVM]), *again = NULL;
        esp_error err = {0};
        esp_kernel_free(m->kernel);
        m->kernel = kernel_of(text); /* which writes st(tree) out with its parameters */
        free(text);
        if (table[i].clause != NULL) {
            assert_int_equal(esp_model_write(m, in_directory("model"), &err), ESP_ERR_PARAM);
            if (strstr(err.message, table[i].clause) == NULL) fail_msg("%s", err.message);
            esp_model_free(m);
            continue;
        }
        const blob b = bytes_of(m);
        assert_ok(esp_model_parse(b.bytes, b.size, "some.model", &again, &err), "a long grammar", &err);
        assert_string_equal(esp_model_kernel(again), esp_model_kernel(m));
        unsigned char *kernel = b.bytes + fetch(entry_of(b, "kernel", 0) + 8, 8);
        char *brace = strchr((char *)kernel, '{');
        assert_non_null(brace);
        *brace = '(';
        sign(b);
        refused(b.bytes, b.size, "bytes besides its grammar rules");
        free(b.bytes);
        esp_model_free(again);
        esp_model_free(m);
    }
}

static void sizes_without_grammars(void **state)
{
    (void)state;
    static const struct {
        const char *expression;
        size_t size;
    } table[] = {
        {"", 0},
        {"sst", 3},
        {"gtk(grammar={})", 14},
        {"gtk(grammar={A -> [B] C; = D E})", 14},
        {"gtk(grammar={A\\} -> [B\"]})+gtk(grammar={A -> [B]})", 29},
        {"sst(\"a{b\")", 10},
        {"sst(\"a\\\"{b\") + gtk(c,grammar={= \" \\\\})", 31},
        {"gtk(grammar={A -> [B", 13},
        {"gtk(grammar={A -> [B\\", 13},
        {"sst(\"a\\", 7},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (espi_kernel_plain_size(table[i].expression) != table[i].size)
            fail_msg("%s: %zu bytes instead of %zu", table[i].expression, espi_kernel_plain_size(table[i].expression),
                     table[i].size);
}

/* What passes for a model must be usable as one. */
static void use(const esp_model *m)
{
    esp_error err = {0};
    char *text = NULL;
    assert_ok(esp_model_summary(m, &text, &err), "summary", &err);
    esp_text_free(text);
    double gram[64];
    assert_true(m->support->rows <= 8);
    const esp_kernel *kernel = m->variant != NULL ? m->variant[0] : m->kernel;
    esp_status status = esp_gram(kernel, m->support, NULL, &(esp_run){.threads = 1}, gram, &err);
    assert_true(status == ESP_OK || status == ESP_ERR_RANGE);
    if (m->history == NULL && m->variant == NULL && m->gaussian == NULL) return;
    esp_online *online = NULL;
    esp_predictions *p = NULL;
    if (m->history != NULL) status = esp_online_resume(m, NULL, 0, NULL, &online, &err);
    assert_true(status == ESP_OK || status == ESP_ERR_RANGE || status == ESP_ERR_PARAM);
    esp_online_free(online);
    status = esp_predict(m, m->support, &(esp_run){.threads = 1}, &p, &err);
    assert_true(status == ESP_OK || status == ESP_ERR_RANGE);
    esp_predictions_free(p);
}

static void mutate(blob b, ref_random *random)
{
    static const uint64_t special[] = {0,          1,          2,          0x7F,      0xFF,      0x7FFFFFFF,
                                       0x80000000, 0x80000001, UINT32_MAX, INT64_MAX, UINT64_MAX};
    const size_t width = (size_t)1 << ref_random_below(random, 4);
    size_t at = 64 + ref_random_below(random, b.size - 64 - 8);
    /* Most of a file is padding: rather a byte that says something. */
    for (int i = 0; i < 20 && b.bytes[at] == 0; i++) at = 64 + ref_random_below(random, b.size - 64 - 8);
    at -= at % width;
    const uint64_t was = fetch(b.bytes + at, width);
    switch (ref_random_below(random, 4)) {
    case 0: store(b.bytes + at, special[ref_random_below(random, sizeof special / sizeof *special)], width); break;
    case 1: store(b.bytes + at, was + ref_random_below(random, 5) - 2, width); break;
    case 2: store(b.bytes + at, was ^ (uint64_t)1 << ref_random_below(random, 8 * width), width); break;
    default: {
        const size_t from = 64 + ref_random_below(random, b.size - 64 - 8);
        memmove(b.bytes + at, b.bytes + (from - from % width), width);
    }
    }
}

static void random_forgeries(void **state)
{
    (void)state;
    enum { TRIALS = REPEATS(20000) };
    ref_random random = {.state = 20240611};
    for (int r = 0; r < RECIPES; r++) {
        const blob good = file_of(r);
        blob b = {.bytes = malloc(good.size), .size = good.size};
        size_t taken = 0;
        assert_non_null(b.bytes);
        for (int trial = 0; trial < TRIALS; trial++) {
            esp_model *m = NULL;
            esp_error err = {0};
            memcpy(b.bytes, good.bytes, good.size);
            for (size_t n = 1 + ref_random_below(&random, 3); n > 0; n--) mutate(b, &random);
            sign(b);
            const esp_status status = esp_model_parse(b.bytes, b.size, "some.model", &m, &err);
            if (status == ESP_OK) {
                taken++;
                use(m);
            } else if (status != ESP_ERR_PARSE || strncmp(err.message, "some.model: ", 12) != 0) {
                fail_msg("status %d, '%s'", (int)status, err.message);
            }
            esp_model_free(m);
        }
        print_message("%s: %zu of %d are models still\n", recipes[r].name, taken, TRIALS);
        free(b.bytes);
        free(good.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forged_numbers), cmocka_unit_test(forged_tables),          cmocka_unit_test(tree_without_end),
        cmocka_unit_test(long_kernels),   cmocka_unit_test(sizes_without_grammars), cmocka_unit_test(random_forgeries),
    };
    return cmocka_run_group_tests_name("hostile model files", tests, make_directory, remove_directory);
}
