/* Measurements of sums of vector kernels that grow, for bench/vectors.sh: microseconds per score
 *
 *     f(x) = sum_e c(e) (x.e + 1)^3
 *
 * Times are medians over rounds in which the forms compared take turns, in one process. Results go to standard output
 * as lines of TAB-separated fields. Besides the library's own there are three forms to compare with, on inverted lists
 * that are ready:
 *
 *   heap   merges the lists of x's features by a heap (Aiolli et al. 2007, sec. IV): each example with something in
 *          common comes up once, and the others add 1 each
 *   array  adds the lists into an array of doubles with a place per example; one pass over it follows
 *   bytes  adds into an array of bytes; features that one example in 32 has are added as vectors of bytes. For values
 *          of 1 only */
#include "base/alloc.h"
#include "data/bag.h"
#include "base/hot.h"
#include "kernel/evaluate/growing.h"
#include "measure.h"

#include <math.h>

enum { FORMS = 5, HEAP = 0, ARRAY, BYTES, PAIRS, DEFAULT };

/* ------------------------------------------------------------------ inverted lists */

typedef struct stage {
    const espi_bag *bag; /* examples, then queries */
    size_t examples;
    const double *coefficient;
    double total;     /* of the coefficients */
    espi_lists lists; /* of the examples */
    uint8_t **dense;  /* per feature, or NULL */
    bool ones;
    double *sum; /* scratch: per example */
    uint8_t *number;
    struct head { /* of a list */
        uint32_t row;
        size_t at, end; /* rows decrease from `at` down to `end` */
        double value;
    } * heap;
} stage;

static void set_up(stage *s, const espi_bag *bag, size_t features, size_t examples, const double *coefficient)
{
    const espi_bag part = {.rows = examples, .row = bag->row, .feature = bag->feature, .value = bag->value};
    *s = (stage){.bag = bag, .examples = examples, .coefficient = coefficient, .ones = true};
    if (!espi_lists_make(&s->lists, &part, features)) need(NULL);
    s->dense = need(calloc(features, sizeof *s->dense));
    s->sum = need(malloc(examples * sizeof *s->sum));
    s->number = need(malloc(examples));
    s->heap = need(malloc((features + 1) * sizeof *s->heap));
    for (size_t e = 0; e < examples; e++) s->total += coefficient[e];
    for (size_t i = 0; i < bag->row[bag->rows]; i++) s->ones = s->ones && bag->value[i] == 1.0;
    for (size_t f = 0; f < features && s->ones; f++) {
        const size_t from = s->lists.start[f], to = s->lists.start[f + 1];
        if ((to - from) * 32 < examples) continue;
        s->dense[f] = need(calloc(examples, 1));
        for (size_t i = from; i < to; i++) s->dense[f][s->lists.row[i]] = 1;
    }
}

static void take_down(stage *s)
{
    for (size_t f = 0; f < s->lists.features; f++) free(s->dense[f]);
    espi_lists_free(&s->lists);
    free(s->dense);
    free(s->sum);
    free(s->number);
    free(s->heap);
}

static void sift(struct head *heap, size_t count, size_t at)
{
    const struct head moved = heap[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child + 1].row > heap[child].row) child++;
        if (heap[child].row <= moved.row) break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

static double score_heap(stage *s, size_t x)
{
    size_t count = 0;
    for (size_t i = s->bag->row[x]; i < s->bag->row[x + 1]; i++) {
        const uint32_t f = s->bag->feature[i];
        const size_t start = s->lists.start[f], end = s->lists.start[f + 1];
        if (start < end) s->heap[count++] = (struct head){s->lists.row[end - 1], end - 1, start, s->bag->value[i]};
    }
    for (size_t at = count / 2; at-- > 0;) sift(s->heap, count, at);
    double score = s->total;
    while (count > 0) {
        const uint32_t e = s->heap[0].row;
        double dot = 0.0;
        while (count > 0 && s->heap[0].row == e) {
            struct head *top = &s->heap[0];
            dot += top->value * s->lists.value[top->at];
            if (top->at == top->end) *top = s->heap[--count];
            else top->row = s->lists.row[--top->at];
            if (count > 0) sift(s->heap, count, 0);
        }
        const double base = dot + 1.0;
        score += s->coefficient[e] * (base * base * base - 1.0);
    }
    return score;
}

HOT static double sum_of_cubes(const double *restrict dot, const double *restrict coefficient, size_t count)
{
    enum { LANES = 8 };
    double lane[LANES] = {0.0}, total = 0.0;
    size_t e = 0;
    for (; e + LANES <= count; e += LANES)
        for (size_t l = 0; l < LANES; l++) {
            const double base = dot[e + l] + 1.0;
            lane[l] += coefficient[e + l] * (base * base * base);
        }
    for (; e < count; e++) total += coefficient[e] * ((dot[e] + 1.0) * (dot[e] + 1.0) * (dot[e] + 1.0));
    for (size_t l = 0; l < LANES; l++) total += lane[l];
    return total;
}

static double score_array(stage *s, size_t x)
{
    memset(s->sum, 0, s->examples * sizeof *s->sum);
    espi_lists_row(&s->lists, s->bag, x, 0, s->examples, 1.0, s->sum);
    return sum_of_cubes(s->sum, s->coefficient, s->examples);
}

HOT static void add_bytes(uint8_t *restrict number, const uint8_t *restrict dense, size_t count)
{
    for (size_t e = 0; e < count; e++) number[e] = (uint8_t)(number[e] + dense[e]);
}

HOT static double sum_of_number_cubes(const uint8_t *restrict number, const double *restrict coefficient, size_t count)
{
    enum { LANES = 8 };
    double lane[LANES] = {0.0}, total = 0.0;
    size_t e = 0;
    for (; e + LANES <= count; e += LANES)
        for (size_t l = 0; l < LANES; l++) {
            const double base = (double)number[e + l] + 1.0;
            lane[l] += coefficient[e + l] * (base * base * base);
        }
    for (; e < count; e++) total += coefficient[e] * pow((double)number[e] + 1.0, 3.0);
    for (size_t l = 0; l < LANES; l++) total += lane[l];
    return total;
}

static double score_bytes(stage *s, size_t x)
{
    enum { BLOCK = 16384 }; /* examples whose numbers stay in the nearest cache */
    memset(s->number, 0, s->examples);
    for (size_t from = 0; from < s->examples; from += BLOCK) {
        const size_t count = s->examples - from < BLOCK ? s->examples - from : BLOCK;
        for (size_t i = s->bag->row[x]; i < s->bag->row[x + 1]; i++) {
            const uint8_t *dense = s->dense[s->bag->feature[i]];
            if (dense != NULL) add_bytes(s->number + from, dense + from, count);
        }
    }
    for (size_t i = s->bag->row[x]; i < s->bag->row[x + 1]; i++) {
        const uint32_t f = s->bag->feature[i];
        for (size_t k = s->lists.start[f]; s->dense[f] == NULL && k < s->lists.start[f + 1]; k++)
            s->number[s->lists.row[k]]++;
    }
    return sum_of_number_cubes(s->number, s->coefficient, s->examples);
}

/* ---------------------------------------------------------------- the library's forms */

static espi_growing_part *grow(const esp_kernel *kernel, const espi_column *column, espi_form form, size_t outputs,
                               size_t examples, const double *coefficient)
{
    espi_growing_part *part;
    esp_error err;
    const espi_leaf *leaf = &kernel->leaf[0];
    check(leaf->class->growing->open(leaf, column, form, outputs, false, &one_thread, &part, &err), &err);
    for (size_t e = 0; e < examples; e++) {
        check(leaf->class->growing->look(part, e, &err), &err);
        check(leaf->class->growing->keep(part, coefficient + e * outputs, &err), &err);
    }
    return part;
}

static void score_part(espi_growing_part *part, size_t row, double *score)
{
    esp_error err;
    double magnitude;
    check(part->class->growing->look(part, row, &err), &err);
    check(part->class->growing->score(part, score, &magnitude, &err), &err);
}

/* ------------------------------------------------------------------------- jobs */

static const espi_column *column_of(const esp_dataset *data, const char *name)
{
    size_t index;
    if (!espi_find_column(data, name, strlen(name), &index)) need(NULL);
    return &data->column[index];
}

/* The bag of a column as a dataset with one column of vectors, so that no form has words to read. */
static esp_dataset *vectors_of(const espi_bag *bag, const espi_symbols *names)
{
    esp_dataset *data = need(espi_dataset_new(ESP_FORMAT_JSONL));
    espi_column *column;
    esp_error err;
    for (size_t r = 0; r < bag->rows; r++) {
        espi_row_begin(data);
        check(espi_row_column(data, "x", 1, ESP_COLUMN_VECTOR, &column, &err), &err);
        for (size_t i = bag->row[r]; i < bag->row[r + 1]; i++) {
            const espi_symbol *name = &names->symbol[bag->feature[i]];
            check(espi_add_feature(column, name->text, name->size, bag->value[i], &err), &err);
        }
        check(espi_end_vector(column, &err), &err);
        check(espi_row_end(data, &err), &err);
    }
    return data;
}

static double *signs_of(const esp_dataset *data)
{
    double *sign = need(malloc(data->rows * sizeof *sign));
    for (size_t i = 0; i < data->rows; i++)
        sign[i] = strcmp(esp_dataset_target(data, i), esp_dataset_target(data, 0)) == 0 ? 1.0 : -1.0;
    return sign;
}

/* forms DATA TARGET COLUMN EXAMPLES QUERIES REPEATS: the last QUERIES rows against the first EXAMPLES. */
static void compare_forms(char **argument)
{
    esp_dataset *data = load(argument[0], argument[1]);
    const espi_column *column = column_of(data, argument[2]);
    const size_t examples = strtoul(argument[3], NULL, 10), queries = strtoul(argument[4], NULL, 10);
    const int repeats = repeats_of(argument[5]);
    esp_kernel *kernel = parse("poly");
    double *sign = signs_of(data), time[FORMS][MOST], largest = 0.0, lists = 0.0;
    espi_bag bag;
    espi_symbols names = {0};
    stage s;
    if (!espi_bag_make(&bag, column, &names, true)) need(NULL);
    set_up(&s, &bag, names.count, examples, sign);
    esp_dataset *vectors = vectors_of(&bag, &names);
    espi_growing_part *part[2] = {grow(kernel, vectors->column, ESPI_FORM_PLAIN, 1, examples, sign),
                                  grow(kernel, vectors->column, ESPI_FORM_DAG, 1, examples, sign)};
    double *first = need(malloc(queries * sizeof *first));
    for (int round = 0; round < repeats; round++)
        for (int form = 0; form < FORMS; form++) {
            if (form == BYTES && !s.ones) continue;
            const double start = now();
            for (size_t q = 0; q < queries; q++) {
                const size_t x = data->rows - queries + q;
                double score;
                if (form == HEAP) score = score_heap(&s, x);
                else if (form == ARRAY) score = score_array(&s, x);
                else if (form == BYTES) score = score_bytes(&s, x);
                else score_part(part[form - PAIRS], x, &score);
                if (form == HEAP) first[q] = score;
                largest = fmax(largest, fabs(score - first[q]) / fmax(1.0, fabs(first[q])));
            }
            time[form][round] = (now() - start) * 1e6 / (double)queries;
        }
    for (size_t q = 0; q < queries; q++)
        for (size_t i = bag.row[data->rows - queries + q]; i < bag.row[data->rows - queries + q + 1]; i++)
            lists += (double)(s.lists.start[bag.feature[i] + 1] - s.lists.start[bag.feature[i]]);
    espi_growing_size size = {0};
    part[1]->class->growing->measure(part[1], &size);
    printf("%zu\t%.0f", examples, lists / (double)queries);
    for (int form = 0; form < FORMS; form++) {
        if (form == BYTES && !s.ones) printf("\t–");
        else printf("\t%.1f", median(time[form], repeats));
    }
    printf("\t%.1f\t%.0e\n", (double)size.bytes / 1e6, largest);
    for (int i = 0; i < 2; i++) part[i]->class->growing->close(part[i]);
    free(first);
    free(sign);
    take_down(&s);
    espi_bag_free(&bag);
    espi_symbols_free(&names);
    esp_kernel_free(kernel);
    esp_dataset_free(vectors);
    esp_dataset_free(data);
}

/* outputs DATA TARGET COLUMN EXAMPLES QUERIES REPEATS OUTPUTS: each example has a coefficient of 1 for one output and
 * -1 for another, as one against the rest leaves it; and the same with coefficients that all differ. */
static void compare_outputs(char **argument)
{
    esp_dataset *data = load(argument[0], argument[1]);
    const espi_column *column = column_of(data, argument[2]);
    const size_t examples = strtoul(argument[3], NULL, 10), queries = strtoul(argument[4], NULL, 10);
    const int repeats = repeats_of(argument[5]);
    const size_t outputs = strtoul(argument[6], NULL, 10);
    esp_kernel *kernel = parse("poly");
    double *sign = signs_of(data), time[2][MOST];
    espi_growing_part *part[2];
    espi_growing_size size[2] = {{0}};
    double *coefficient = need(calloc(examples * outputs, sizeof *coefficient));
    double *score = need(malloc(outputs * sizeof *score));
    for (int different = 0; different < 2; different++) {
        for (size_t e = 0; e < examples; e++) {
            const double c = different ? 1.0 + (double)e / (double)examples : 1.0;
            coefficient[e * outputs + e % outputs] = outputs == 1 ? c * sign[e] : c;
            if (outputs > 1) coefficient[e * outputs + (e + 1 + e / outputs % (outputs - 1)) % outputs] = -c;
        }
        part[different] = grow(kernel, column, ESPI_FORM_DAG, outputs, examples, coefficient);
        part[different]->class->growing->measure(part[different], &size[different]);
    }
    for (int round = 0; round < repeats; round++)
        for (int different = 0; different < 2; different++) {
            const double start = now();
            for (size_t q = 0; q < queries; q++) score_part(part[different], data->rows - queries + q, score);
            time[different][round] = (now() - start) * 1e6 / (double)queries;
        }
    printf("%zu\t%zu\t%.1f\t%.1f\t%.1f\t%.1f\n", examples, outputs, median(time[0], repeats),
           (double)size[0].bytes / 1e6, median(time[1], repeats), (double)size[1].bytes / 1e6);
    for (int i = 0; i < 2; i++) part[i]->class->growing->close(part[i]);
    free(coefficient);
    free(score);
    free(sign);
    esp_kernel_free(kernel);
    esp_dataset_free(data);
}

int main(int count, char **argument)
{
    if (count == 8 && strcmp(argument[1], "forms") == 0) compare_forms(argument + 2);
    else if (count == 9 && strcmp(argument[1], "outputs") == 0) compare_outputs(argument + 2);
    else {
        fprintf(stderr, "bench: unknown job or wrong number of arguments; see bench/vectors.sh\n");
        return 2;
    }
    return 0;
}
