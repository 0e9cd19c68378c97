/* Measurements for bench/mining.sh: mining with and without the bound, and features through what was found. Times are
 * medians of runs in one process; peak memory is that of a child process of its own. Results go to standard output as
 * lines of TAB-separated fields. */
#include "base/alloc.h"
#include "kernel/evaluate/bound.h"
#include "measure.h"
#include "kernel/expression/columns.h"
#include "mine/mine.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct task {
    esp_dataset *data;
    esp_kernel *kernel;
    esp_mine_options options;
    esp_run run;
} task;

static task prepare(const char *path, const char *target, const char *positive, const char *kernel)
{
    return (task){
        .data = load(path, target), .kernel = parse(kernel), .options = {.positive = positive}, .run = one_thread};
}

static esp_patterns *mine(const task *t)
{
    esp_patterns *patterns;
    esp_error err;
    check(esp_mine(t->kernel, t->data, &t->options, &t->run, &patterns, &err), &err);
    return patterns;
}

/* Peak memory of a child that mines, less that of one that only holds the data. */
static double peak_memory(const task *t)
{
    double peak[2];
    fflush(stdout);
    for (int mines = 0; mines < 2; mines++) {
        const pid_t child = fork();
        if (child == 0) {
            if (mines) (void)mine(t);
            _exit(0);
        }
        struct rusage usage;
        int status;
        if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0) exit(1);
        peak[mines] = (double)usage.ru_maxrss * 1024.0;
    }
    return peak[1] - peak[0];
}

/* mine DATA TARGET CLASS KERNEL REPEATS: patterns kept, then for pruning and no pruning patterns counted, seconds and
 * MB, and both ratios */
static void compare(char **argument)
{
    task t = prepare(argument[0], argument[1], argument[2], argument[3]);
    const int repeats = repeats_of(argument[4]);
    double time[2][MOST], ratio[MOST], memory[2];
    uint64_t visited[2] = {0};
    size_t kept = 0;
    for (int k = 0; k < 2; k++) {
        t.options.no_pruning = k == 1;
        memory[k] = peak_memory(&t);
    }
    for (int i = 0; i < repeats; i++) {
        for (int k = 0; k < 2; k++) {
            t.options.no_pruning = k == 1;
            const double start = now();
            esp_patterns *p = mine(&t);
            time[k][i] = now() - start;
            visited[k] = esp_patterns_visited(p, NULL);
            kept = esp_patterns_count(p);
            esp_patterns_free(p);
        }
        ratio[i] = time[1][i] / time[0][i];
    }
    printf("%zu\t%llu\t%.3f\t%.1f\t%llu\t%.3f\t%.1f\t%.1f\t%.2f\n", kept, (unsigned long long)visited[0],
           median(time[0], repeats), memory[0] / 1e6, (unsigned long long)visited[1], median(time[1], repeats),
           memory[1] / 1e6, (double)visited[1] / (double)visited[0], median(ratio, repeats));
    esp_kernel_free(t.kernel);
    esp_dataset_free(t.data);
}

/* Patterns of the training data with the class as positive: they belong to the kernel's leaves. */
static void select_patterns(task *t, const char *positive, espi_selection **selection)
{
    const size_t n = esp_dataset_count(t->data);
    uint8_t *is = need(malloc(n));
    esp_error err;
    for (size_t i = 0; i < n; i++) is[i] = strcmp(esp_dataset_target(t->data, i), positive) == 0;
    check(espi_kernel_select(t->kernel, t->data, is, NULL, &t->run, selection, &err), &err);
    for (size_t i = 0; i < t->kernel->leaves; i++) t->kernel->leaf[i].selection = selection[i];
    free(is);
}

/* How many features the test examples have in the first leaf. */
static double count_features(const task *t, const espi_selection *s, const esp_dataset *test)
{
    const espi_column *column;
    espi_trie_walker trie = {0};
    espi_fragment_walker fragment = {0};
    espi_matched tree = {0};
    uint32_t *map;
    double features = 0.0;
    bool ok = true;
    esp_error err;
    check(espi_leaf_column(&t->kernel->leaf[0], test, &column, &err), &err);
    if (s->kind == ESPI_SELECTED_SEQUENCES) map = espi_symbols_map(&column->sequences.symbols, &s->trie.symbols);
    else map = espi_fragments_map(&s->fragments, &column->trees);
    tree.forest = &column->trees;
    tree.map = need(map);
    for (size_t i = 0; ok && i < column->rows; i++) {
        if (s->kind == ESPI_SELECTED_SEQUENCES)
            ok = espi_token_places_make(&trie.places[0], &column->sequences, map, i) &&
                 espi_trie_features(&s->trie, (espi_weighing){0.5, SIZE_MAX}, &trie);
        else
            ok = espi_vertices_make(&tree.vertices, tree.forest, tree.forest->root[i], &fragment) &&
                 espi_fragments_features(&s->fragments, 0.5, &tree, &fragment);
        features += (double)(trie.features + fragment.features);
    }
    if (!ok) need(NULL);
    espi_trie_walker_free(&trie);
    espi_fragment_walker_free(&fragment);
    espi_vertices_free(&tree.vertices);
    espi_free(map);
    return features;
}

/* predict TRAIN TEST TARGET CLASS KERNEL REPEATS: patterns, examples, features per example, seconds from tokens or
 * trees to scores, examples and million features per second */
static void predict(char **argument)
{
    task t = prepare(argument[0], argument[2], argument[3], argument[4]);
    const int repeats = repeats_of(argument[5]);
    esp_dataset *test;
    espi_selection **selection = need(calloc(t.kernel->leaves, sizeof *selection));
    espi_scorer *folded;
    esp_error err;
    check(esp_dataset_read(argument[1], &(esp_read_options){.target = argument[2]}, NULL, &test, &err), &err);
    select_patterns(&t, argument[3], selection);
    const size_t n = esp_dataset_count(t.data), m = esp_dataset_count(test);
    double *coefficient = need(malloc(n * sizeof *coefficient)), *score = need(malloc(m * sizeof *score)), time[MOST];
    for (size_t i = 0; i < n; i++) coefficient[i] = i % 2 == 0 ? 1.0 : -1.0;
    check(espi_scorer_new(t.kernel, t.data, coefficient, 1, &t.run, &folded, &err), &err);
    for (int i = 0; i < repeats; i++) {
        const double start = now();
        check(espi_scorer_score(folded, test, &t.run, score, &err), &err);
        time[i] = now() - start;
    }
    const double seconds = median(time, repeats), features = count_features(&t, selection[0], test);
    printf("%zu\t%zu\t%.1f\t%.4f\t%.0f\t%.1f\n", espi_selection_set(selection[0])->patterns, m, features / (double)m,
           seconds, (double)m / seconds, features / seconds / 1e6);
    espi_scorer_free(folded);
    free(selection);
    free(coefficient);
    free(score);
    esp_kernel_free(t.kernel);
    esp_dataset_free(t.data);
    esp_dataset_free(test);
}

int main(int count, char **argument)
{
    if (count == 7 && strcmp(argument[1], "mine") == 0) compare(argument + 2);
    else if (count == 8 && strcmp(argument[1], "predict") == 0) predict(argument + 2);
    else return fprintf(stderr, "bench: unknown job or wrong number of arguments; see bench/mining.sh\n"), 2;
    return 0;
}
