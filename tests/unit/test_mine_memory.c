/* Memory runs out at every single place of mining and of kernels over what was mined; see test_alloc_failure.c. */
#include "cases.h"

#include "base/alloc.h"
#include "mine/mine.h"

static const char lines[] = "{\"y\": 1, \"t\": \"(S (NP (D the) (N cat)) (VP (V sat)))\", \"w\": \"the cat|N sat\"}\n"
                            "{\"y\": 0, \"t\": \"(S (NP (D the) (N dog)) (VP (V sat)))\", \"w\": \"the dog|N sat\"}\n"
                            "{\"y\": 1, \"t\": \"(S (NP (D a) (N cat)) (VP (V ran)))\", \"w\": \"a cat ran\"}\n"
                            "{\"y\": 0, \"t\": \"(S (N dogs) ...)\", \"w\": \"\"}\n";

static esp_dataset *data, *others; /* made with all memory that is wanted */
static const uint8_t positive[] = {1, 0, 1, 0};

typedef struct work {
    const char *expression;
    esp_mine_options options;
    int threads;
    const esp_kernel *kernel; /* of the expression */
} work;

static void without_memory(fallible call, const work *w)
{
    esp_kernel *kernel = kernel_of(w->expression);
    work own = *w;
    own.kernel = kernel;
    print_message("%s\n", w->expression);
    out_of_memory_everywhere(call, &own);
    esp_kernel_free(kernel);
}

static esp_status mine(const void *argument, esp_error *err)
{
    const work *w = argument;
    esp_patterns *p = (esp_patterns *)(uintptr_t)1;
    const esp_status status = esp_mine(w->kernel, data, &w->options, &(esp_run){.threads = w->threads}, &p, err);
    assert_true((status == ESP_OK) == (p != NULL));
    if (p != NULL) assert_true(esp_patterns_count(p) > 0);
    esp_patterns_free(p);
    return status;
}

static esp_status select_and_multiply(const void *argument, esp_error *err)
{
    const work *w = argument;
    const esp_kernel *kernel = w->kernel;
    espi_selection *selection[2];
    const esp_run run = {.threads = w->threads};
    esp_kernel copy = *kernel;
    espi_leaf leaf[2];
    assert_true(kernel->leaves <= 2);
    esp_status status = espi_kernel_select(kernel, data, positive, NULL, &run, selection, err);
    if (status != ESP_OK) {
        for (size_t i = 0; i < kernel->leaves; i++) assert_null(selection[i]);
        return status;
    }
    copy.leaf = leaf;
    for (size_t i = 0; i < kernel->leaves; i++) {
        leaf[i] = kernel->leaf[i];
        leaf[i].selection = selection[i];
    }
    double gram[16];
    status = esp_gram(&copy, others, data, &run, gram, err);
    for (size_t i = 0; i < kernel->leaves; i++) espi_selection_free(selection[i]);
    return status;
}

static void mining(void **state)
{
    (void)state;
    const work works[] = {
        {"fseq(n=inf, tau=0.5)", {0}, 1, NULL},
        {"fseq(gap=0, tau=0.1)", {.top = 3}, 2, NULL},
        {"fsst(n=inf, tau=0.5)", {0}, 1, NULL},
        {"fsst(n=3, tau=0, paths=1)", {.top = 4}, 2, NULL},
        {"fsst(tau=1) + fseq(tau=1)", {.top = 5, .metric = "mi", .positive = "0"}, 1, NULL},
    };
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) without_memory(mine, &works[i]);
}

static void multiplying(void **state)
{
    (void)state;
    const work works[] = {
        {"fseq(n=inf, tau=0.5)", {0}, 1, NULL},
        {"norm(fseq(tau=0.5, algorithm=recursion))", {0}, 2, NULL},
        {"norm(fsst(n=3, tau=0.5)) + fseq(tau=0)", {0}, 2, NULL},
        {"fsst(n=3, tau=0.5, algorithm=recursion)", {0}, 1, NULL},
    };
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) without_memory(select_and_multiply, &works[i]);
}

static esp_status read_back(const void *argument, esp_error *err)
{
    (void)argument;
    espi_trie trie;
    espi_fragments fragments;
    esp_status status = espi_trie_of(&data->column[1], &trie, err);
    if (status == ESP_OK) espi_trie_free(&trie);
    if (status == ESP_OK) status = espi_fragments_of(&data->column[0], &fragments, err);
    if (status == ESP_OK) espi_fragments_free(&fragments);
    return status;
}

static void reading_patterns(void **state)
{
    (void)state;
    out_of_memory_everywhere(read_back, NULL);
}

static int prepare(void **state)
{
    (void)state;
    data = dataset_of(lines);
    others = dataset_of(lines);
    return 0;
}

static int clear(void **state)
{
    (void)state;
    esp_dataset_free(data);
    esp_dataset_free(others);
    return espi_alloc_live() != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mining),
        cmocka_unit_test(multiplying),
        cmocka_unit_test(reading_patterns),
    };
    return cmocka_run_group_tests_name("mining without memory", tests, prepare, clear);
}
