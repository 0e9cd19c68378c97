/* Vector kernels in sums that grow, against sum_e c_k(e) K(x, e) from the definition, in long double. */
#include "cases.h"

#include "data/dataset.h"
#include "kernel/evaluate/growing.h"

enum { MOST_EXAMPLES = 20100, MOST_ENTRIES = 320, MOST_OUTPUTS = 50, FORMS = 3 };

static const char *const form_name[FORMS] = {"dag", "forest", "plain"};

/* ------------------------------------------------------------------ reference */

typedef struct item { /* a feature by its number in this test, and its value */
    size_t feature;
    double value;
} item;

typedef struct example {
    item *item; /* features increasing */
    size_t items;
    double coefficient[MOST_OUTPUTS];
} example;

typedef struct definition {
    const char *expression;
    enum { LINEAR, POLY, RBF } kind;
    double gamma, coef0;
    int degree;
} definition;

static const definition definitions[] = {
    {"linear(x)", LINEAR, 1.0, 0.0, 1},
    {"poly(x)", POLY, 1.0, 1.0, 3},
    {"poly(x, degree=2, gamma=0.3, coef0=0)", POLY, 0.3, 0.0, 2},
    {"poly(x, degree=5, gamma=0.125, coef0=0.5)", POLY, 0.125, 0.5, 5},
    {"rbf(x, gamma=0.05)", RBF, 0.05, 0.0, 1},
};

/* *size is the same from absolute values: what rounding errors are measured by. */
static long double kernel_value(const definition *d, const example *a, const example *b, long double *size)
{
    long double dot = 0.0L, distance = 0.0L, large = 0.0L;
    for (size_t i = 0, j = 0; i < a->items || j < b->items;) {
        const bool left = j == b->items || (i < a->items && a->item[i].feature <= b->item[j].feature);
        const bool right = i == a->items || (j < b->items && b->item[j].feature <= a->item[i].feature);
        const long double x = left ? a->item[i].value : 0.0, y = right ? b->item[j].value : 0.0;
        dot += x * y;
        large += fabsl(x * y);
        distance += (x - y) * (x - y);
        i += left;
        j += right;
    }
    if (d->kind == RBF) return *size = expl(-d->gamma * distance);
    *size = d->kind == LINEAR ? large : powl(d->gamma * large + d->coef0, d->degree);
    return d->kind == LINEAR ? dot : powl(d->gamma * dot + d->coef0, d->degree);
}

static int by_feature(const void *x, const void *y)
{
    const item *a = x, *b = y;
    return (a->feature > b->feature) - (a->feature < b->feature);
}

/* Sorts, and adds up the values of equal features. */
static void tidy(example *e)
{
    qsort(e->item, e->items, sizeof *e->item, by_feature);
    size_t n = 0;
    for (size_t i = 0; i < e->items; i++) {
        if (n > 0 && e->item[n - 1].feature == e->item[i].feature) e->item[n - 1].value += e->item[i].value;
        else e->item[n++] = e->item[i];
    }
    e->items = n;
}

/* ------------------------------------------------------------------ datasets */

/* One feature per number; upper case for every second, which bags of words must not tell from lower case. */
static size_t name_of(size_t feature, bool upper, char name[32])
{
    return (size_t)sprintf(name, "%s%zu", upper ? "F" : "f", feature);
}

/* Appends e as a vector, or as a sequence whose words occur as often as the values say. */
static void append(esp_dataset *data, const example *e, esp_column_type type)
{
    esp_error err = {0};
    espi_column *column = NULL;
    char name[32];
    espi_row_begin(data);
    assert_ok(espi_row_column(data, "x", 1, type, &column, &err), "column", &err);
    for (size_t i = 0; i < e->items; i++) {
        const size_t at = e->items - 1 - i;
        if (type == ESP_COLUMN_VECTOR) {
            const size_t size = name_of(e->item[at].feature, false, name);
            assert_ok(espi_add_feature(column, name, size, e->item[at].value, &err), "feature", &err);
        }
        for (double n = 0.0; type == ESP_COLUMN_SEQUENCE && n < e->item[at].value; n++) {
            const size_t size = name_of(e->item[at].feature, (i + (size_t)n) % 2 == 1, name);
            assert_ok(espi_add_token(column, name, size, &err), "word", &err);
        }
    }
    assert_ok(type == ESP_COLUMN_VECTOR ? espi_end_vector(column, &err) : espi_end_sequence(column, &err), "row", &err);
    assert_ok(espi_row_end(data, &err), "row", &err);
}

/* ------------------------------------------------------------------- a history */

typedef enum flavour { BINARY, REAL, COUNTS, LATE_REAL, WIDE, WITH_ZEROS } flavour;
typedef enum weighting { SIGNS, SOME, ALL_DIFFERENT } weighting;

typedef struct history {
    const definition *definition;
    esp_column_type type;
    flavour flavour;
    weighting weighting;
    size_t outputs, examples;
    size_t every; /* scores are checked after so many */
    esp_kernel *kernel;
    esp_dataset *data;
    example kept[MOST_EXAMPLES];
    size_t count;
    size_t fresh; /* features that came once */
    ref_random random;
} history;

static double value_of_item(history *h)
{
    switch (h->flavour) {
    case REAL: return ref_random_between(&h->random, -2, 2);
    case COUNTS: return (double)(1 + ref_random_below(&h->random, 3));
    case LATE_REAL: return h->count > h->examples / 2 ? ref_random_between(&h->random, -2, 2) : 1.0;
    case WITH_ZEROS: return (double)ref_random_below(&h->random, 2);
    default: return 1.0;
    }
}

/* Frequent, less frequent and new features; now and then nothing at all. */
static example draw(history *h)
{
    example e = {.item = malloc(MOST_ENTRIES * sizeof(item))};
    assert_non_null(e.item);
    size_t wanted = ref_random_below(&h->random, 20) == 0 ? 0 : 1 + ref_random_below(&h->random, 20);
    if (h->flavour == WIDE) wanted = 253 + ref_random_below(&h->random, 5);
    for (size_t i = 0; i < wanted; i++) {
        const double u = ref_random_between(&h->random, 0, 1);
        size_t feature = h->flavour == WIDE ? i + (u < 0.1 ? 300u : 0u) : (size_t)(400.0 * u * u * u * u);
        if (u > 0.95) feature = 1000 + h->fresh++;
        const double value = value_of_item(h);
        e.item[e.items++] = (item){feature, value};
    }
    tidy(&e);
    for (size_t i = 0; i < e.items && h->type == ESP_COLUMN_VECTOR && h->flavour != REAL; i++)
        if (e.item[i].value > 1.0 && h->flavour != COUNTS) e.item[i].value = 1.0;
    for (size_t k = 0; k < h->outputs; k++) {
        const size_t r = ref_random_below(&h->random, h->outputs > 1 ? 6 : 2);
        e.coefficient[k] = h->weighting == ALL_DIFFERENT ? ref_random_between(&h->random, -1, 1)
                           : r > 1                       ? 0.0
                           : r == 0                      ? -1.0
                           : h->weighting == SOME        ? 1.5 + (double)ref_random_below(&h->random, 3)
                                                         : 1.0;
    }
    return e;
}

static espi_growing_part *open_part(const history *h, espi_form form, bool rows)
{
    espi_growing_part *part = NULL;
    esp_error err = {0};
    const espi_leaf *leaf = &h->kernel->leaf[0];
    assert_non_null(leaf->class->growing);
    assert_ok(leaf->class->growing->open(leaf, &h->data->column[0], form, h->outputs, rows, NULL, &part, &err), "open",
              &err);
    return part;
}

static const espi_growing_class *calls(const espi_growing_part *part) { return part->class->growing; }

static void check_scores(const history *h, espi_growing_part *part, const char *form, const example *x)
{
    double score[MOST_OUTPUTS], value;
    esp_error err = {0};
    assert_ok(calls(part)->score(part, score, &(double){0.0}, &err), form, &err);
    for (size_t k = 0; k < h->outputs; k++) {
        long double sum = 0.0L, size = 0.0L;
        for (size_t e = 0; e < h->count; e++) {
            if (h->kept[e].coefficient[k] == 0.0) continue;
            long double one;
            sum += h->kept[e].coefficient[k] * kernel_value(h->definition, x, &h->kept[e], &one);
            size += fabs(h->kept[e].coefficient[k]) * one;
        }
        if (!(fabsl(score[k] - sum) <= 1e-12L * size))
            fail_msg("%s, %s, %zu examples: score %zu is %.17g instead of %.17Lg", h->definition->expression, form,
                     h->count, k, score[k], sum);
    }
    assert_ok(calls(part)->self(part, &value, &err), form, &err);
    long double size;
    assert_close(value, (double)kernel_value(h->definition, x, x, &size), 1e-13, "self");
}

static void check_row(const history *h, espi_growing_part *part, const char *form, const example *x)
{
    double *row = malloc((h->count + 1) * sizeof *row);
    esp_error err = {0};
    assert_non_null(row);
    row[h->count] = 42.0;
    assert_ok(calls(part)->row(part, row, &err), form, &err);
    assert_true(row[h->count] == 42.0);
    for (size_t e = 0; e < h->count; e++) {
        long double size;
        const long double value = kernel_value(h->definition, x, &h->kept[e], &size);
        if (!(fabsl(row[e] - value) <= 1e-12L * size))
            fail_msg("%s, %s: value %zu is %.17g instead of %.17Lg", h->definition->expression, form, e, row[e], value);
    }
    free(row);
}

/* The same examples kept by a new part give the same scores to the last bit. */
static void check_replay(const history *h, espi_growing_part *part, espi_form form)
{
    double score[MOST_OUTPUTS], again[MOST_OUTPUTS];
    esp_error err = {0};
    espi_growing_part *other = open_part(h, form, false);
    for (size_t e = 0; e < h->count; e++) {
        assert_ok(calls(other)->look(other, e, &err), "look", &err);
        assert_ok(calls(other)->keep(other, h->kept[e].coefficient, &err), "keep", &err);
    }
    for (size_t e = 0; e < h->count; e += h->count / 5 + 1) {
        assert_ok(calls(part)->look(part, e, &err), "look", &err);
        assert_ok(calls(other)->look(other, e, &err), "look", &err);
        assert_ok(calls(part)->score(part, score, &(double){0.0}, &err), "score", &err);
        assert_ok(calls(other)->score(other, again, &(double){0.0}, &err), "score", &err);
        assert_memory_equal(score, again, h->outputs * sizeof *score);
    }
    espi_growing_size size = {0}, other_size = {0};
    calls(part)->measure(part, &size);
    calls(other)->measure(other, &other_size);
    assert_true(size.bytes > 0 && other_size.bytes > 0);
    calls(other)->close(other);
}

/* One example: looked at, checked, and kept or taken out again. */
static void step(history *h, espi_growing_part *(*part)[2], example x, bool keep, bool check)
{
    esp_error err = {0};
    append(h->data, &x, h->type);
    for (size_t form = 0; form < FORMS; form++) {
        for (int rows = 0; rows < 2 && part[form][rows] != NULL; rows++) {
            espi_growing_part *p = part[form][rows];
            assert_ok(calls(p)->look(p, h->count, &err), "look", &err);
            if (check && rows) check_row(h, p, form_name[form], &x);
            else if (check) check_scores(h, p, form_name[form], &x);
            if (keep) assert_ok(calls(p)->keep(p, rows ? NULL : x.coefficient, &err), "keep", &err);
        }
    }
    if (keep) {
        h->kept[h->count++] = x;
        return;
    }
    espi_row_undo(h->data);
    free(x.item);
}

static history *begin(const definition *d, esp_column_type type, flavour kind, weighting weights, size_t outputs,
                      size_t examples)
{
    history *h = calloc(1, sizeof *h);
    assert_non_null(h);
    h->definition = d;
    h->type = type;
    h->flavour = kind;
    h->weighting = weights;
    h->outputs = outputs;
    h->examples = examples;
    h->every = 1 + examples / 20;
    h->random.state = 7 + outputs;
    h->kernel = kernel_of(d->expression);
    h->data = espi_dataset_new(ESP_FORMAT_JSONL);
    assert_non_null(h->data);
    example first = draw(h); /* the column is there before parts are opened */
    append(h->data, &first, type);
    h->kept[h->count++] = first;
    return h;
}

static void open_parts(const history *h, espi_growing_part *(*part)[2], size_t forms, bool with_rows)
{
    esp_error err = {0};
    for (size_t form = 0; form < forms; form++)
        for (int rows = 0; rows < 1 + with_rows; rows++) {
            espi_growing_part *p = part[form][rows] = open_part(h, (espi_form)form, rows);
            assert_ok(calls(p)->look(p, 0, &err), "look", &err);
            assert_ok(calls(p)->keep(p, rows ? NULL : h->kept[0].coefficient, &err), "keep", &err);
        }
}

static void end(history *h, espi_growing_part *(*part)[2])
{
    for (size_t form = 0; form < FORMS; form++)
        for (int rows = 0; rows < 2; rows++)
            if (part[form][rows] != NULL) calls(part[form][rows])->close(part[form][rows]);
    for (size_t e = 0; e < h->count; e++) free(h->kept[e].item);
    esp_dataset_free(h->data);
    esp_kernel_free(h->kernel);
    free(h);
}

static void run_history(const definition *d, esp_column_type type, flavour kind, weighting weights, size_t outputs,
                        size_t examples)
{
    history *h = begin(d, type, kind, weights, outputs, examples);
    espi_growing_part *part[FORMS][2] = {{NULL}};
    open_parts(h, part, FORMS, true);
    for (size_t i = 0; h->count < examples; i++)
        step(h, part, draw(h), ref_random_below(&h->random, 3) > 0, i % h->every == 0);
    for (size_t form = 0; form < FORMS; form++) check_replay(h, part[form][0], (espi_form)form);
    end(h, part);
}

/* --------------------------------------------------------------------- tests */

enum { DEFINITIONS = sizeof definitions / sizeof *definitions };

static void test_vectors(void **state)
{
    (void)state;
    for (size_t d = 0; d < DEFINITIONS; d++)
        for (flavour f = BINARY; f <= WITH_ZEROS; f++) {
            run_history(&definitions[d], ESP_COLUMN_VECTOR, f, SIGNS, 1, f == WIDE ? 150 : REPEATS(1300));
            run_history(&definitions[d], ESP_COLUMN_VECTOR, f, SOME, 3, f == WIDE ? 60 : 400);
        }
}

static void test_sequences(void **state)
{
    (void)state;
    for (size_t d = 0; d < DEFINITIONS; d++) {
        run_history(&definitions[d], ESP_COLUMN_SEQUENCE, BINARY, SIGNS, 1, 700);
        run_history(&definitions[d], ESP_COLUMN_SEQUENCE, COUNTS, SOME, 3, 300);
    }
}

static void test_many_outputs(void **state)
{
    (void)state;
    for (size_t d = 0; d < DEFINITIONS; d++) {
        run_history(&definitions[d], ESP_COLUMN_VECTOR, BINARY, SIGNS, MOST_OUTPUTS, 300);
        run_history(&definitions[d], ESP_COLUMN_VECTOR, LATE_REAL, SOME, MOST_OUTPUTS, 150);
    }
}

/* Too many different coefficients for banks. */
static void test_different_coefficients(void **state)
{
    (void)state;
    for (size_t d = 0; d < DEFINITIONS; d++) {
        run_history(&definitions[d], ESP_COLUMN_VECTOR, BINARY, ALL_DIFFERENT, 1, 700);
        run_history(&definitions[d], ESP_COLUMN_VECTOR, BINARY, ALL_DIFFERENT, MOST_OUTPUTS, 120);
        run_history(&definitions[d], ESP_COLUMN_VECTOR, REAL, ALL_DIFFERENT, 3, 200);
    }
}

/* Every output errs on every example: banks would hold each of them many times. */
static void test_full_coefficients(void **state)
{
    (void)state;
    history *h = begin(&definitions[1], ESP_COLUMN_VECTOR, BINARY, SIGNS, MOST_OUTPUTS, 400);
    espi_growing_part *part[FORMS][2] = {{NULL}};
    open_parts(h, part, FORMS, false);
    for (size_t i = 0; i < 250; i++) {
        example x = draw(h);
        for (size_t k = 0; k < h->outputs; k++) x.coefficient[k] = (i + k) % 3 == 0 ? -1.0 : 1.0;
        step(h, part, x, true, i % 40 == 0);
    }
    check_replay(h, part[0][0], ESPI_FORM_DAG);
    end(h, part);
}

/* Features that are frequent at first, rare later, and come back; and some in between. */
static void test_features_that_become_rare(void **state)
{
    (void)state;
    history *h = begin(&definitions[1], ESP_COLUMN_VECTOR, BINARY, SIGNS, 1, MOST_EXAMPLES);
    espi_growing_part *part[FORMS][2] = {{NULL}};
    open_parts(h, part, 1, true);
    for (size_t i = 0; i < 20000; i++) {
        example x = draw(h);
        if (x.items > 6) x.items = 6;
        const bool check = i % 4000 == 3999 && i > 10000;
        if (i < 33 || i > 19900 || check) x.item[x.items++] = (item){777, 1.0};
        if (i % 100 < 2 || check) x.item[x.items++] = (item){888, 1.0};
        tidy(&x);
        step(h, part, x, true, check);
    }
    example x = draw(h);
    x.item[x.items++] = (item){777, 1.0};
    x.item[x.items++] = (item){888, 1.0};
    tidy(&x);
    step(h, part, x, false, true);
    check_replay(h, part[0][0], ESPI_FORM_DAG);
    end(h, part);
}

/* Many blocks in each bank, and numbers of features in common from few to as many as can be counted. */
static void test_many_examples(void **state)
{
    (void)state;
    static const size_t most[] = {5, 30, 70, 255, 256};
    for (size_t m = 0; m < sizeof most / sizeof *most; m++) {
        history *h = begin(&definitions[1], ESP_COLUMN_VECTOR, BINARY, SIGNS, 1, MOST_EXAMPLES);
        espi_growing_part *part[FORMS][2] = {{NULL}};
        open_parts(h, part, 1, true);
        for (size_t i = 0; i < 9000; i++) {
            example x = {.item = malloc((most[m] + 1) * sizeof(item)), .coefficient = {i % 7 < 3 ? -1.0 : 1.0}};
            assert_non_null(x.item);
            const bool full = i % 1000 == 0; /* the longest, and the one that has most in common with others */
            const size_t rate = 2 + ref_random_below(&h->random, 5);
            for (size_t f = 0; f < most[m]; f++)
                if (full || ref_random_below(&h->random, rate) == 0) x.item[x.items++] = (item){f, 1.0};
            step(h, part, x, true, i % 3000 == 2999 || i == 8000);
        }
        check_replay(h, part[0][0], ESPI_FORM_DAG);
        end(h, part);
    }
}

/* What a dropped example brought is forgotten, words in lower case included. */
static void test_dropped_examples_leave_nothing(void **state)
{
    (void)state;
    for (esp_column_type type = ESP_COLUMN_SEQUENCE; type <= ESP_COLUMN_VECTOR; type++) {
        history *h = begin(&definitions[1], type, BINARY, SIGNS, 1, 10);
        espi_growing_part *part[FORMS][2] = {{NULL}};
        open_parts(h, part, FORMS, false);
        espi_growing_size before = {0}, after = {0};
        for (size_t i = 0; i < 2000; i++) {
            example x = draw(h);
            for (size_t k = 0; k < x.items; k++) x.item[k].feature += 100000 + 50 * i;
            step(h, part, x, false, false);
            if (i == 1000) calls(part[0][0])->measure(part[0][0], &before);
        }
        calls(part[0][0])->measure(part[0][0], &after);
        assert_true(after.bytes < before.bytes + 2000); /* room for a longer example, perhaps */
        end(h, part);
    }
}

/* Too large for a number: not finite, and never because of a coefficient of 0. */
static void test_overflow(void **state)
{
    (void)state;
    static const definition high = {"poly(x, degree=100, gamma=1e10)", POLY, 1e10, 1.0, 100};
    for (size_t form = 0; form < FORMS; form++) {
        history *h = begin(&high, ESP_COLUMN_VECTOR, BINARY, SIGNS, 3, 10);
        double score[3];
        esp_error err = {0};
        espi_growing_part *part = open_part(h, (espi_form)form, false);
        example x = {.item = malloc(sizeof(item)), .items = 1};
        x.item[0] = (item){5, 1.0};
        append(h->data, &x, h->type);
        h->kept[h->count++] = x;
        assert_ok(calls(part)->look(part, 0, &err), "look", &err);
        assert_ok(calls(part)->keep(part, (double[]){0.0, 0.0, 0.0}, &err), "keep", &err);
        assert_ok(calls(part)->look(part, 1, &err), "look", &err);
        assert_ok(calls(part)->keep(part, (double[]){1.0, 0.0, -1.0}, &err), "keep", &err);
        assert_ok(calls(part)->look(part, 1, &err), "look", &err);
        assert_ok(calls(part)->score(part, score, &(double){0.0}, &err), "score", &err);
        assert_true(score[0] == HUGE_VAL && score[1] == 0.0 && score[2] == -HUGE_VAL);
        calls(part)->close(part);
        end(h, (espi_growing_part *[FORMS][2]){{NULL}});
    }
}

typedef struct work {
    const history *history;
    espi_form form;
    bool rows;
} work;

/* What was opened can be closed, whatever failed. */
static esp_status learn(const void *argument, esp_error *err)
{
    const work *w = argument;
    const history *h = w->history;
    espi_growing_part *part = NULL;
    const espi_leaf *leaf = &h->kernel->leaf[0];
    double out[200];
    esp_status status =
        leaf->class->growing->open(leaf, &h->data->column[0], w->form, h->outputs, w->rows, NULL, &part, err);
    if (status != ESP_OK) assert_null(part);
    for (size_t e = 0; status == ESP_OK && e < h->count; e++) {
        status = calls(part)->look(part, e, err);
        if (status == ESP_OK)
            status = w->rows ? calls(part)->row(part, out, err) : calls(part)->score(part, out, &(double){0.0}, err);
        if (status == ESP_OK) status = calls(part)->keep(part, h->kept[e].coefficient, err);
    }
    if (part != NULL) calls(part)->close(part);
    return status;
}

static void test_no_memory(void **state)
{
    (void)state;
    for (size_t d = 0; d < DEFINITIONS; d++) {
        for (int kind = 0; kind < 3; kind++) {
            const esp_column_type type = kind == 2 ? ESP_COLUMN_SEQUENCE : ESP_COLUMN_VECTOR;
            history *h = begin(&definitions[d], type, kind == 1 ? LATE_REAL : BINARY, SIGNS, 2, 90);
            while (h->count < 90) step(h, (espi_growing_part *[FORMS][2]){{NULL}}, draw(h), true, false);
            for (int form = 0; form < FORMS; form++)
                for (int rows = 0; rows < 2; rows++)
                    assert_int_equal(out_of_memory_everywhere(learn, &(work){h, (espi_form)form, rows == 1}), 0);
            end(h, (espi_growing_part *[FORMS][2]){{NULL}});
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),           cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_many_outputs),      cmocka_unit_test(test_different_coefficients),
        cmocka_unit_test(test_full_coefficients), cmocka_unit_test(test_features_that_become_rare),
        cmocka_unit_test(test_many_examples),     cmocka_unit_test(test_dropped_examples_leave_nothing),
        cmocka_unit_test(test_overflow),          cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests_name("vectors online", tests, NULL, NULL);
}
