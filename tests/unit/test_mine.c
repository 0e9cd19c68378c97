/* Mining sequences against the definition: every subsequence of every example, written out and counted. */
#include "cases.h"

#include "mine/mine.h"

static const char five[] = "{\"y\": \"+\", \"w\": \"a b c c\"}\n{\"y\": \"-\", \"w\": \"d b c a\"}\n"
                           "{\"y\": \"+\", \"w\": \"b a c\"}\n{\"y\": \"-\", \"w\": \"a c\"}\n"
                           "{\"y\": \"-\", \"w\": \"d a b d\"}\n";

static esp_patterns *mined(const char *expression, const esp_dataset *data, const esp_mine_options *options,
                           const esp_run *run)
{
    esp_kernel *kernel = kernel_of(expression);
    esp_patterns *patterns = NULL;
    esp_error err = {0};
    assert_ok(esp_mine(kernel, data, options, run, &patterns, &err), expression, &err);
    esp_kernel_free(kernel);
    return patterns;
}

/* ------------------------------------------------------------------ metrics */

/* By the formulas of the four cells, spelled out. */
static double by_hand(espi_metric metric, double n, double m, double x, double y)
{
    const double cell[2][2] = {{y, x - y}, {m - y, n - m - x + y}};
    const double row[2] = {x, n - x}, column[2] = {m, n - m};
    double chi2 = 0.0, g = 0.0;
    if (x == 0.0 || x == n || m == 0.0 || m == n) return 0.0;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            const double expected = row[i] * column[k] / n, d = cell[i][k] - expected;
            chi2 += d * d / expected;
            if (cell[i][k] > 0.0) g += 2.0 * cell[i][k] * log(cell[i][k] / expected);
        }
    return metric == ESPI_CHI2 ? chi2 : metric == ESPI_GTEST ? g : g / (2.0 * n * log(2.0));
}

/* Every table of up to 11 examples: the value, and that nothing with smaller cells exceeds the bound. */
static void values_and_bounds_of_all_small_tables(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 11; n++)
        for (uint32_t m = 0; m <= n; m++)
            for (uint32_t y = 0; y <= m; y++)
                for (uint32_t b = 0; b <= n - m; b++)
                    for (int k = ESPI_CHI2; k <= ESPI_MI; k++) {
                        const espi_margins t = {(espi_metric)k, n, m};
                        const double value = espi_metric_value(&t, y + b, y), bound = espi_metric_bound(&t, y + b, y);
                        if (fabs(value - by_hand(t.metric, n, m, y + b, y)) > 1e-12 * n)
                            fail_msg("metric %d, N %u, M %u, x %u, y %u: %.17g", k, n, m, y + b, y, value);
                        for (uint32_t less = 0; less <= y; less++)
                            for (uint32_t other = 0; other <= b; other++)
                                if (espi_metric_value(&t, less + other, less) > bound + 1e-12)
                                    fail_msg("metric %d, N %u, M %u: bound of (%u, %u) is exceeded at (%u, %u)", k, n,
                                             m, y + b, y, less + other, less);
                    }
    const espi_margins mi = {ESPI_MI, 4, 2};
    assert_close(espi_metric_value(&mi, 2, 2), 1.0, 1e-14, "one bit");
}

/* ----------------------------------------------------------------- the paper */

static const struct {
    const char *text;
    double value;
    size_t x, y;
} known[] = {{"a", 0.0, 5, 2},     {"b", 0.833, 4, 2},   {"c", 0.833, 4, 2},   {"d", 2.222, 2, 0},
             {"a b", 0.139, 2, 1}, {"a c", 2.222, 3, 2}, {"a d", 0.833, 1, 0}, {"a b c", 1.875, 1, 1}};

static void five_sequences(void **state)
{
    (void)state;
    static const char *const kept[] = {"a c",     "b c",   "d",     "d a",   "d b", "a b c",
                                       "a b c c", "a c c", "b a c", "b c c", "c c"};
    esp_dataset *data = dataset_of(five);
    const esp_mine_options plus = {.positive = "+"};
    esp_patterns *p = mined("fseq(n=inf, tau=1)", data, &plus, NULL);
    assert_int_equal(esp_patterns_count(p), 11);
    for (size_t i = 0; i < 11; i++) {
        assert_string_equal(esp_patterns_text(p, i), kept[i]);
        assert_close(esp_patterns_value(p, i), i < 5 ? 20.0 / 9.0 : 1.875, 1e-14, kept[i]);
    }
    assert_string_equal(esp_patterns_positive(p), "+");
    esp_patterns_free(p);
    p = mined("fseq(n=inf, tau=0)", data, &plus, NULL);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        size_t i = 0, y;
        while (i < esp_patterns_count(p) && strcmp(esp_patterns_text(p, i), known[k].text) != 0) i++;
        assert_true(i < esp_patterns_count(p));
        if (fabs(esp_patterns_value(p, i) - known[k].value) > 5e-4) fail_msg("%s", known[k].text);
        assert_int_equal(esp_patterns_examples(p, i, &y), known[k].x);
        assert_int_equal(y, known[k].y);
    }
    esp_patterns_free(p);
    const espi_margins margins = {ESPI_CHI2, 5.0, 2.0};
    assert_close(espi_metric_bound(&margins, 5, 2), 5.0, 1e-14, "the bound of a");
    esp_dataset_free(data);
}

/* --------------------------------------------------------------- enumeration */

enum { EXAMPLES = 14, LONGEST = 6 };

typedef struct example {
    char factor[LONGEST][2]; /* the second may be missing: 0 */
    size_t length;
    bool positive;
} example;

typedef struct listed {
    char text[LONGEST + 1];
    uint32_t x, y;
    size_t last; /* the example that was counted last, from 1 */
    double value;
} listed;

typedef struct list {
    listed *item;
    size_t count, capacity;
} list;

static void note(list *l, const char *text, size_t example_number, bool positive)
{
    size_t i = 0;
    while (i < l->count && strcmp(l->item[i].text, text) != 0) i++;
    if (i == l->count) {
        if (l->count == l->capacity) l->item = realloc(l->item, (l->capacity += 256) * sizeof *l->item);
        assert_non_null(l->item);
        l->item[l->count] = (listed){0};
        strcpy(l->item[l->count++].text, text);
    }
    if (l->item[i].last == example_number) return;
    l->item[i].last = example_number;
    l->item[i].x++;
    l->item[i].y += positive;
}

/* All that can be chosen from position `from` on, behind what `text` holds already. */
static void choose(list *l, const example *e, size_t number, char *text, size_t chosen, size_t from, bool gaps)
{
    for (size_t i = from; i < e->length; i++)
        for (int f = 0; f < 2; f++) {
            if (e->factor[i][f] == 0 || (!gaps && chosen > 0 && i > from)) continue;
            text[chosen] = e->factor[i][f];
            text[chosen + 1] = '\0';
            note(l, text, number, e->positive);
            choose(l, e, number, text, chosen + 1, i + 1, gaps);
        }
}

static esp_dataset *random_examples(ref_random *random, bool factors, example *e)
{
    char lines[EXAMPLES * 64], *at = lines;
    for (size_t i = 0; i < EXAMPLES; i++) {
        e[i] = (example){.length = ref_random_below(random, LONGEST + 1),
                         .positive = i < 2 ? i == 0 : ref_random_below(random, 3) == 0};
        at += sprintf(at, "{\"y\": %d, \"w\": \"", e[i].positive ? 1 : -1);
        for (size_t k = 0; k < e[i].length; k++) {
            e[i].factor[k][0] = (char)('a' + ref_random_below(random, e[i].positive ? 2 : 4));
            at += sprintf(at, "%s%c", k > 0 ? " " : "", e[i].factor[k][0]);
            if (!factors || ref_random_below(random, 2) == 0) continue;
            e[i].factor[k][1] = (char)('c' + ref_random_below(random, 3));
            at += sprintf(at, "|%c", e[i].factor[k][1]);
        }
        at += sprintf(at, "\"}\n");
    }
    return dataset_of(lines);
}

static int best_first(const void *x, const void *y)
{
    const listed *a = x, *b = y;
    return a->value != b->value ? (a->value < b->value) - (a->value > b->value) : strcmp(a->text, b->text);
}

static void enumerate(list *l, const example *e, bool gaps)
{
    char text[LONGEST + 1];
    *l = (list){0};
    for (size_t i = 0; i < EXAMPLES; i++) choose(l, &e[i], i + 1, text, 0, 0, gaps);
}

static void evaluate(list *l, const example *e, espi_metric metric)
{
    espi_margins t = {metric, EXAMPLES, 0.0};
    for (size_t i = 0; i < EXAMPLES; i++) t.positive += e[i].positive;
    /* The value itself has its own test; here equal bits keep the order of ties. */
    for (size_t i = 0; i < l->count; i++) l->item[i].value = espi_metric_value(&t, l->item[i].x, l->item[i].y);
    qsort(l->item, l->count, sizeof *l->item, best_first);
}

/* What was mined is what the list holds at this threshold, in its order. */
static void compare(const esp_patterns *p, const list *l, double tau, const esp_mine_options *o)
{
    size_t at = 0;
    for (size_t i = 0; i < l->count && (o->top == 0 || at < o->top); i++) {
        const listed *e = &l->item[i];
        char text[LONGEST + 1];
        size_t y;
        if (e->value < tau || e->x < o->min_support || (o->max_length > 0 && strlen(e->text) > o->max_length)) continue;
        if (at == esp_patterns_count(p)) fail_msg("%s is missing at tau %g", e->text, tau);
        assert_string_equal(letters(esp_patterns_text(p, at), text), e->text);
        assert_int_equal(esp_patterns_examples(p, at, &y), e->x);
        assert_int_equal(y, e->y);
        assert_true(esp_patterns_value(p, at) == e->value);
        at++;
    }
    assert_int_equal(at, esp_patterns_count(p));
}

static void pruning_loses_nothing(void **state)
{
    (void)state;
    ref_random random = {11};
    for (int round = 0; round < 40; round++) {
        example e[EXAMPLES];
        esp_dataset *data = random_examples(&random, round % 2 == 1, e);
        list l;
        const bool gaps = round % 4 != 3;
        const char *expression = gaps ? "fseq(n=inf)" : "fseq(n=inf, gap=0)";
        enumerate(&l, e, gaps);
        for (int k = ESPI_CHI2; k <= ESPI_MI; k++) {
            evaluate(&l, e, (espi_metric)k);
            for (int half = 0; half <= 10; half++) {
                char tau[16];
                snprintf(tau, sizeof tau, "%g", half * 0.5);
                const double scaled = half * 0.5 / (k == ESPI_MI ? 2.0 * EXAMPLES * log(2.0) : 1.0);
                esp_mine_options o = {.metric = espi_metric_names[k], .tau = tau};
                esp_patterns *p = mined(expression, data, &o, NULL);
                compare(p, &l, scaled, &o);
                const uint64_t visited = esp_patterns_visited(p, NULL);
                esp_patterns_free(p);
                o.no_pruning = true;
                p = mined(expression, data, &o, NULL);
                compare(p, &l, scaled, &o);
                assert_true(visited <= esp_patterns_visited(p, NULL));
                esp_patterns_free(p);
            }
        }
        free(l.item);
        esp_dataset_free(data);
    }
}

static void limits_do_what_they_say(void **state)
{
    (void)state;
    ref_random random = {12};
    for (int round = 0; round < 60; round++) {
        example e[EXAMPLES];
        esp_dataset *data = random_examples(&random, round % 2 == 1, e);
        list l;
        enumerate(&l, e, true);
        evaluate(&l, e, ESPI_CHI2);
        const esp_mine_options o = {.tau = "0.5",
                                    .min_support = ref_random_below(&random, 4),
                                    .max_length = ref_random_below(&random, 4),
                                    .top = ref_random_below(&random, 3) * ref_random_below(&random, 40)};
        for (int threads = 1; threads <= 3; threads++) {
            esp_patterns *p = mined("fseq(n=inf)", data, &o, &(esp_run){.threads = threads});
            compare(p, &l, 0.5, &o);
            esp_patterns_free(p);
        }
        free(l.item);
        esp_dataset_free(data);
    }
}

/* Rows that are not used neither count nor are looked at. */
static void only_the_used_rows_count(void **state)
{
    (void)state;
    ref_random random = {13};
    example e[EXAMPLES];
    esp_dataset *data = random_examples(&random, true, e);
    bool used[EXAMPLES];
    uint8_t positive[EXAMPLES];
    char lines[EXAMPLES * 64] = "", *at = lines;
    for (size_t i = 0; i < EXAMPLES; i++) {
        positive[i] = e[i].positive;
        used[i] = i < 2 || i % 3 != 0;
        char *text;
        esp_error err = {0};
        assert_ok(esp_dataset_text(data, 0, i, &text, &err), "text", &err);
        if (used[i]) at += sprintf(at, "{\"y\": %d, \"w\": \"%s\"}\n", e[i].positive ? 1 : -1, text);
        esp_text_free(text);
    }
    esp_dataset *part = dataset_of(lines);
    esp_kernel *kernel = kernel_of("fseq(n=inf, tau=0.5) + linear");
    espi_selection *some[2];
    esp_error err = {0};
    assert_ok(espi_kernel_select(kernel, data, positive, used, NULL, some, &err), "select", &err);
    assert_null(some[1]);
    esp_patterns *all = mined("fseq(n=inf, tau=0.5)", part, NULL, NULL);
    espi_rank *rank = espi_selection_rank(some[0]);
    assert_non_null(rank);
    assert_int_equal(esp_patterns_count(all), espi_selection_set(some[0])->patterns);
    assert_true(esp_patterns_count(all) > 10);
    for (size_t i = 0; i < esp_patterns_count(all); i++) {
        assert_string_equal(rank[i].text, esp_patterns_text(all, i));
        assert_true(rank[i].statistic == esp_patterns_value(all, i));
    }
    espi_ranks_free(rank, esp_patterns_count(all));
    esp_patterns_free(all);
    espi_selection_free(some[0]);
    esp_kernel_free(kernel);
    esp_dataset_free(part);
    esp_dataset_free(data);
}

/* ------------------------------------------------------------------ failures */

static void bad_wishes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *expression, *data, *part;
        esp_mine_options options;
    } wrong[] = {
        {"fseq", five, "no example is of class 'x'; the classes are", {.positive = "x"}},
        {"fseq", five, "tau is '-1'", {.tau = "-1"}},
        {"fseq", five, "tau is 'much'", {.tau = "much"}},
        {"fseq", five, "unknown metric 'chi3'", {.metric = "chi3"}},
        {"linear", five, "selects no patterns", {0}},
        {"fsst", five, "no column that it takes", {0}},
        {"fseq", "{\"w\": \"a\"}\n", "no target", {0}},
        {"fseq", "{\"y\": 1, \"w\": \"a\"}\n{\"y\": 1.0, \"w\": \"b\"}\n", "all 2 examples are of class '1'", {0}},
        {"fseq",
         "{\"y\": 1.5, \"w\": \"a\"}\n{\"y\": 2, \"w\": \"b\"}\n{\"y\": 0, \"w\": \"\"}\n",
         "3 different numbers",
         {0}},
        {"fseq",
         "{\"y\": \"A\", \"w\": \"a\"}\n{\"y\": \"B\", \"w\": \"b\"}\n{\"y\": \"C\", \"w\": \"\"}\n",
         "3 different classes",
         {0}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        esp_dataset *data = dataset_of(wrong[i].data);
        esp_kernel *kernel = kernel_of(wrong[i].expression);
        esp_patterns *p = (esp_patterns *)(uintptr_t)1;
        esp_error err = {0};
        assert_int_equal(esp_mine(kernel, data, &wrong[i].options, NULL, &p, &err), ESP_ERR_PARAM);
        assert_null(p);
        if (strstr(err.message, wrong[i].part) == NULL) fail_msg("case %zu: %s", i, err.message);
        esp_kernel_free(kernel);
        esp_dataset_free(data);
    }
    static const char *const refused[] = {"fseq(n=0)",   "fseq(tau=-1)",  "fseq(lambda=0)", "fseq(lambda=1.5)",
                                          "fsst(n=0.5)", "fsst(paths=2)", "fseq(support=0)"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        esp_kernel *kernel;
        esp_error err = {0};
        assert_int_equal(esp_kernel_parse(refused[i], &kernel, &err), ESP_ERR_PARAM);
        assert_non_null(strstr(err.message, "allowed is"));
    }
}

/* Numbers that are equal are one class; the second of two is positive. */
static void classes_are_those_of_learners(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of("{\"y\": 1, \"w\": \"a\"}\n{\"y\": 1.0, \"w\": \"a\"}\n{\"y\": -1, \"w\": \"b\"}\n");
    esp_patterns *p = mined("fseq(tau=3)", data, NULL, NULL);
    size_t y;
    assert_string_equal(esp_patterns_positive(p), "1");
    assert_int_equal(esp_patterns_count(p), 2);
    assert_int_equal(esp_patterns_examples(p, 0, &y), 2);
    assert_int_equal(y, 2);
    esp_patterns_free(p);
    p = mined("fseq(tau=3)", data, &(esp_mine_options){.positive = "-1.0"}, NULL);
    assert_int_equal(esp_patterns_examples(p, 0, &y), 2);
    assert_int_equal(y, 0);
    esp_patterns_free(p);
    esp_dataset_free(data);
}

static int stop_at_once(void *user, const char *stage, double fraction)
{
    (void)stage, (void)fraction;
    return ++*(int *)user > 2;
}

/* A sequence of many tokens has more subsequences than any memory: a limit or Ctrl-C ends the search. */
static void a_search_without_end_is_ended(void **state)
{
    (void)state;
    char lines[1024], *at = lines;
    at += sprintf(at, "{\"y\": \"A\", \"w\": \"");
    for (int i = 0; i < 60; i++) at += sprintf(at, "%s%d", i > 0 ? " " : "", i);
    sprintf(at, "\"}\n{\"y\": \"B\", \"w\": \"\"}\n");
    esp_dataset *data = dataset_of(lines);
    esp_kernel *kernel = kernel_of("fseq(n=inf, tau=1)");
    for (int threads = 1; threads <= 2; threads++) {
        esp_patterns *p;
        esp_error err = {0};
        int asked = 0;
        const esp_run small = {.threads = threads, .memory = 1 << 20};
        const esp_run stopped = {.threads = threads, .progress = stop_at_once, .user = &asked};
        assert_int_equal(esp_mine(kernel, data, NULL, &small, &p, &err), ESP_ERR_MEMORY);
        assert_non_null(strstr(err.message, "limit of 1.0 MB"));
        assert_int_equal(esp_mine(kernel, data, NULL, &stopped, &p, &err), ESP_ERR_CANCELLED);
        assert_null(p);
    }
    esp_kernel_free(kernel);
    esp_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_bounds_of_all_small_tables),
        cmocka_unit_test(five_sequences),
        cmocka_unit_test(pruning_loses_nothing),
        cmocka_unit_test(limits_do_what_they_say),
        cmocka_unit_test(only_the_used_rows_count),
        cmocka_unit_test(bad_wishes_are_refused),
        cmocka_unit_test(classes_are_those_of_learners),
        cmocka_unit_test(a_search_without_end_is_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
