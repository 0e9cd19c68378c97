/* What search costs: search KERNEL DATA QUERIES PAIRS SCRATCH prints one row of bench/results/search.md. Seconds are
 * those of the processor, on one thread; PAIRS is the least similarity of pairs, 0 for none. */
#include "espalier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static esp_error error;

static void must(esp_status status)
{
    if (status == ESP_OK) return;
    fprintf(stderr, "search: %s\n", error.message);
    exit(1);
}

static const esp_run one = {.threads = 1};
static const esp_search_options ten = {.top = 10};

/* Each query in a call of its own, as somebody who waits would ask: its own lines, parsed as well. */
static double alone(const esp_index *index, const char *path, size_t *asked)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    double total = 0.0;
    *asked = 0;
    while (file != NULL && *asked < 100 && (size = getline(&line, &room, file)) > 0) {
        esp_dataset *query = NULL;
        esp_hits *hits = NULL;
        const double began = seconds();
        must(esp_dataset_parse(line, (size_t)size, "query", NULL, &one, &query, &error));
        must(esp_search(index, query, &ten, &one, &hits, &error));
        total += seconds() - began;
        esp_hits_free(hits);
        esp_dataset_free(query);
        ++*asked;
    }
    free(line);
    if (file != NULL) fclose(file);
    return total;
}

/* Whole Gram rows, for as many queries: what a search without an index has to compute. */
static double rows(const esp_kernel *kernel, const esp_dataset *data, const esp_dataset *queries)
{
    double *gram = malloc(esp_dataset_count(data) * esp_dataset_count(queries) * sizeof *gram);
    if (gram == NULL) exit(1);
    const double began = seconds();
    must(esp_gram(kernel, queries, data, &one, gram, &error));
    const double gone = seconds() - began;
    free(gram);
    return gone;
}

int main(int count, char **argument)
{
    esp_kernel *kernel = NULL;
    esp_dataset *data = NULL, *queries = NULL;
    esp_index *made = NULL, *index = NULL;
    esp_hits *hits = NULL;
    struct stat st;
    struct rusage usage;
    uint64_t skipped;
    size_t asked;
    if (count != 6) return 2;
    const char *path = argument[5];
    const double above = strtod(argument[4], NULL);
    must(esp_kernel_parse(argument[1], &kernel, &error));
    must(esp_dataset_read(argument[3], NULL, &one, &queries, &error));
    must(esp_dataset_read(argument[2], NULL, &one, &data, &error));
    const double whole = rows(kernel, data, queries), began = seconds();
    must(esp_index_new(kernel, data, NULL, &one, &made, &error));
    const double indexed = seconds();
    must(esp_index_write(made, path, &error));
    esp_index_free(made);
    const size_t examples = esp_dataset_count(data);
    esp_dataset_free(data);
    if (stat(path, &st) != 0) return 1;
    double open = 1e9;
    for (int i = 0; i < 3; i++) { /* the best: the first one fills the cache of the system */
        esp_index_free(index);
        const double start = seconds();
        must(esp_index_read(path, &one, &index, &error));
        if (seconds() - start < open) open = seconds() - start;
    }
    const double single = alone(index, argument[3], &asked), start = seconds();
    must(esp_search(index, queries, &ten, &one, &hits, &error));
    const double batch = seconds() - start;
    const uint64_t computed = esp_hits_computed(hits, &skipped);
    const double n = (double)esp_dataset_count(queries);
    printf("`%s`\t%zu\t%.2f\t%.0f\t%.1f\t%.2f\t%.2f\t%.1f\t%.2f", argument[1], examples, indexed - began,
           (double)st.st_size / 1e6, 1e3 * open, 1e3 * single / (double)asked, 1e3 * batch / n, 1e3 * whole / n,
           100.0 * (double)skipped / (double)(computed + skipped));
    esp_hits_free(hits);
    if (above > 0.0) {
        esp_pairs *pairs = NULL;
        size_t found;
        const double from = seconds();
        must(esp_pairs_find(index, above, false, &one, &pairs, &error));
        (void)esp_pairs_list(pairs, &found);
        printf("\t%.1f\t%zu", seconds() - from, found);
        esp_pairs_free(pairs);
    } else {
        printf("\t–\t–");
    }
    getrusage(RUSAGE_SELF, &usage);
    printf("\t%.0f\n", (double)usage.ru_maxrss / 1e3);
    esp_index_free(index);
    esp_dataset_free(queries);
    esp_kernel_free(kernel);
    (void)remove(path);
    return 0;
}
