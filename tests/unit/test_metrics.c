/* Metrics against numbers worked out by hand and from the definitions. */
#include "learning.h"

/* ---------------------------------------------------------------------- JSON */

static const char *json_value(const char *at);

static const char *json_string(const char *at)
{
    if (at == NULL || *at++ != '"') return NULL;
    for (; *at != '"'; at++) {
        if ((unsigned char)*at < 0x20) return NULL; /* the end, too */
        if (*at == '\\' && strchr("\"\\/bfnrtu", *++at) == NULL) return NULL;
    }
    return at + 1;
}

static const char *json_list(const char *at, bool object)
{
    const char end = object ? '}' : ']';
    at += 1 + strspn(at + 1, " ");
    if (*at == end) return at + 1;
    for (;;) {
        if (object && ((at = json_string(at)) == NULL || *at++ != ':')) return NULL;
        at = json_value(at + strspn(at, " "));
        if (at == NULL || (*at != ',' && *at != end)) return NULL;
        if (*at++ == end) return at;
        at += strspn(at, " ");
    }
}

/* Behind a value; NULL: there is none. */
static const char *json_value(const char *at)
{
    char *end;
    if (*at == '"') return json_string(at);
    if (*at == '{' || *at == '[') return json_list(at, *at == '{');
    if (strspn(at, "-0123456789") == 0) return NULL; /* NaN, inf */
    const double value = strtod(at, &end);
    return isfinite(value) && end > at ? end : NULL;
}

static void assert_json(const char *text)
{
    const char *end = json_value(text);
    if (end == NULL || strcmp(end, "\n") != 0) fail_msg("no JSON: %s", text);
}

/* The number behind `"name": `, after the place `from`. */
static double member(const char *from, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *found = strstr(from, key);
    if (found == NULL) fail_msg("no %s in %s", name, from);
    return strtod(found + strlen(key), NULL);
}

/* ------------------------------------------------------------------- metrics */

static esp_metrics *metrics_of(const esp_predictions *p, const esp_dataset *data)
{
    esp_metrics *m = NULL;
    esp_error err = {0};
    assert_ok(esp_metrics_new(p, data, &m, &err), "esp_metrics_new", &err);
    return m;
}

static char *json_of(const esp_metrics *m)
{
    char *text = NULL;
    esp_error err = {0};
    assert_ok(esp_metrics_json(m, &text, &err), "esp_metrics_json", &err);
    assert_json(text);
    return text;
}

static char *text_of(const esp_metrics *m)
{
    char *text = NULL;
    esp_error err = {0};
    assert_ok(esp_metrics_text(m, &text, &err), "esp_metrics_text", &err);
    return text;
}

/* Predictions of these classes, one per example, given by their numbers. */
static esp_predictions *predictions_of(const char *const *name, size_t classes, const size_t *winner, size_t count)
{
    double score[16 * 8] = {0};
    esp_predictions *p = NULL;
    esp_error err = {0};
    const size_t outputs = classes == 2 ? 1 : classes;
    for (size_t i = 0; i < count && classes == 2; i++) score[i] = winner[i] == 1 ? 0.5 : -0.5;
    for (size_t i = 0; i < count && classes > 2; i++) score[i * outputs + winner[i]] = 1.0;
    assert_ok(espi_predictions_make(count, score, classes, name, false, NULL, &p, &err), "predictions", &err);
    return p;
}

static esp_predictions *values_of(const double *value, size_t count)
{
    esp_predictions *p = NULL;
    esp_error err = {0};
    assert_ok(espi_predictions_make(count, value, 0, NULL, false, NULL, &p, &err), "predictions", &err);
    return p;
}

static esp_dataset *targets_of(const char *const *target, size_t count)
{
    char lines[1024] = "";
    for (size_t i = 0; i < count; i++) sprintf(lines + strlen(lines), "{\"y\": %s, \"x\": [1]}\n", target[i]);
    return dataset_of(lines);
}

/* Actual A: A A B, B: B C B, D (not a class of the model): C A. C is only predicted, E is nowhere. */
static void test_classes(void **state)
{
    (void)state;
    static const char *const name[] = {"A", "B", "C", "E"};
    static const char *const actual[] = {"\"A\"", "\"A\"", "\"A\"", "\"B\"", "\"B\"", "\"D\"", "\"D\"", "\"B\""};
    static const size_t winner[] = {0, 0, 1, 1, 2, 2, 0, 1};
    esp_dataset *data = targets_of(actual, 8);
    esp_predictions *p = predictions_of(name, 4, winner, 8);
    esp_metrics *m = metrics_of(p, data);
    assert_close(esp_metrics_value(m, "accuracy"), 0.5, 1e-15, "accuracy");
    assert_close(esp_metrics_value(m, "micro-f1"), 0.5, 1e-15, "micro-f1");
    assert_close(esp_metrics_value(m, "macro-f1"), 1.0 / 3.0, 1e-15, "macro-f1"); /* A, B: 2/3, C, D: 0 */
    static const char *const none[] = {"rmse", "mae", "pearson", "nothing", ""};
    for (size_t i = 0; i < 5; i++) assert_true(esp_metrics_value(m, none[i]) == -1.0);

    char *json = json_of(m);
    assert_true(member(json, "examples") == 8.0);
    assert_close(member(json, "macro-precision"), 1.0 / 3.0, 1e-15, "macro-precision");
    assert_close(member(json, "macro-recall"), 1.0 / 3.0, 1e-15, "macro-recall");
    static const struct {
        const char *label;
        double each, support; /* precision, recall and F1 are the same here */
    } expected[] = {{"\"label\": \"A\"", 2.0 / 3.0, 3.0},
                    {"\"label\": \"B\"", 2.0 / 3.0, 3.0},
                    {"\"label\": \"C\"", 0.0, 0.0},
                    {"\"label\": \"E\"", 0.0, 0.0},
                    {"\"label\": \"D\"", 0.0, 2.0}};
    const char *at = json;
    for (size_t c = 0; c < 5; c++) {
        at = strstr(at, expected[c].label);
        assert_non_null(at);
        assert_close(member(at, "precision"), expected[c].each, 1e-15, "precision");
        assert_close(member(at, "recall"), expected[c].each, 1e-15, "recall");
        assert_close(member(at, "f1"), expected[c].each, 1e-15, "f1");
        assert_true(member(at, "examples") == expected[c].support);
    }
    assert_non_null(strstr(json, "\"confusion\": [[2, 1, 0, 0, 0], [0, 2, 1, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0], "
                                 "[1, 0, 1, 0, 0]]"));
    esp_text_free(json);

    char *text = text_of(m), *line = text;
    const size_t width = strcspn(text, "\n");
    for (int c = 0; c < 7; c++) { /* the head, five classes, macro */
        assert_int_equal(strcspn(line, "\n"), width);
        line += width + 1;
    }
    char label[8];
    double precision, recall, f1, support;
    assert_int_equal(sscanf(text + width + 1, "%7s %lf %lf %lf %lf", label, &precision, &recall, &f1, &support), 5);
    assert_string_equal(label, "A");
    assert_true(precision == 0.6667 && recall == 0.6667 && f1 == 0.6667 && support == 3.0);
    static const char *const lines[] = {"\naccuracy 0.5000\n",
                                        "\nmacro ",
                                        " 0.3333 ",
                                        "\nmicro ",
                                        "\nconfusion",
                                        "\nD           1       0       1       0       0\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (strstr(text, lines[i]) == NULL) fail_msg("no '%s' in\n%s", lines[i], text);
    esp_text_free(text);
    esp_metrics_free(m);
    esp_metrics_free(NULL);
    esp_predictions_free(p);
    esp_dataset_free(data);
}

/* Two classes: counts of the definition, for every way to be right or wrong. */
static void test_two_classes(void **state)
{
    (void)state;
    static const char *const name[] = {"-1", "1"};
    static const char *const actual[] = {"1", "1.0", "-1", "-1", "1", "-1e0", "1"};
    static const size_t winner[] = {1, 1, 1, 0, 0, 0, 1};
    esp_dataset *data = targets_of(actual, 7);
    esp_predictions *p = predictions_of(name, 2, winner, 7);
    esp_metrics *m = metrics_of(p, data);
    assert_close(esp_metrics_value(m, "accuracy"), 5.0 / 7.0, 1e-15, "accuracy");
    assert_close(esp_metrics_value(m, "macro-f1"), (0.75 + 2.0 / 3.0) / 2.0, 1e-15, "macro-f1");
    char *json = json_of(m);
    assert_non_null(strstr(json, "\"confusion\": [[2, 1], [1, 3]]"));
    esp_text_free(json);
    esp_metrics_free(m);
    esp_predictions_free(p);
    esp_dataset_free(data);
}

/* Strings are classes of their own even where they look like the same number. */
static void test_names_that_look_like_numbers(void **state)
{
    (void)state;
    static const char *const name[] = {"01", "1", "1.0"};
    static const char *const actual[] = {"\"01\"", "\"1\"", "\"1.0\"", "\"1\""};
    static const size_t winner[] = {0, 1, 2, 1};
    esp_dataset *data = targets_of(actual, 4);
    esp_predictions *p = predictions_of(name, 3, winner, 4);
    esp_metrics *m = metrics_of(p, data);
    assert_close(esp_metrics_value(m, "accuracy"), 1.0, 1e-15, "accuracy");
    esp_metrics_free(m);
    esp_predictions_free(p);
    esp_dataset_free(data);
}

/* Names with all kinds of bytes, and long ones, and so many that no matrix is printed. */
static void test_odd_names(void **state)
{
    (void)state;
    static const char *const name[] = {"?", "\"\\\n\t", "\xFF\x01", "a class whose name is longer than thirty bytes"};
    static const char *const actual[] = {"\"?\"", "\"\\\"\\\\\\n\\t\"", "\"z\"", "\"\\u00e9\\u0007\""};
    static const size_t winner[] = {0, 1, 2, 3};
    esp_dataset *data = targets_of(actual, 4);
    esp_predictions *p = predictions_of(name, 4, winner, 4);
    esp_metrics *m = metrics_of(p, data);
    assert_close(esp_metrics_value(m, "accuracy"), 0.5, 1e-15, "accuracy");
    assert_close(esp_metrics_value(m, "known"), 0.5, 1e-15, "known");
    esp_text_free(json_of(m));
    esp_text_free(text_of(m));
    esp_metrics_free(m);
    esp_predictions_free(p);
    esp_dataset_free(data);

    const char *many[14];
    char letter[14][2];
    double score[14] = {[3] = 1.0};
    esp_error err = {0};
    for (size_t c = 0; c < 14; c++) many[c] = strcpy(letter[c], (char[]){(char)('a' + c), '\0'});
    data = dataset_of("{\"y\": \"d\", \"x\": [1]}\n");
    assert_ok(espi_predictions_make(1, score, 14, many, false, NULL, &p, &err), "predictions", &err);
    m = metrics_of(p, data);
    char *text = text_of(m), *json = json_of(m);
    assert_null(strstr(text, "confusion"));
    assert_non_null(strstr(json, "confusion"));
    assert_close(esp_metrics_value(m, "macro-f1"), 1.0, 1e-15, "macro-f1");
    esp_text_free(text);
    esp_text_free(json);
    esp_metrics_free(m);
    esp_predictions_free(p);
    esp_dataset_free(data);
}

static void test_values(void **state)
{
    (void)state;
    enum { N = 6 };
    static const char *const actual[] = {"1", "-2.5", "3e0", "0", "7", "2"};
    static const double y[N] = {1.0, -2.5, 3.0, 0.0, 7.0, 2.0}, x[N] = {1.5, -2.0, 2.0, 0.25, 5.0, 2.0};
    double sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0, square = 0, absolute = 0;
    for (size_t i = 0; i < N; i++) {
        sx += x[i], sy += y[i], sxx += x[i] * x[i], syy += y[i] * y[i], sxy += x[i] * y[i];
        square += (x[i] - y[i]) * (x[i] - y[i]);
        absolute += fabs(x[i] - y[i]);
    }
    const double rmse = sqrt(square / N), mae = absolute / N;
    const double pearson = (N * sxy - sx * sy) / sqrt((N * sxx - sx * sx) * (N * syy - sy * sy));
    esp_dataset *data = targets_of(actual, N);
    esp_predictions *p = values_of(x, N);
    esp_metrics *m = metrics_of(p, data);
    assert_close(esp_metrics_value(m, "rmse"), rmse, 1e-12, "rmse");
    assert_close(esp_metrics_value(m, "mae"), mae, 1e-12, "mae");
    assert_close(esp_metrics_value(m, "pearson"), pearson, 1e-12, "pearson");
    assert_true(esp_metrics_value(m, "accuracy") == -1.0 && esp_metrics_value(m, "macro-f1") == -1.0);
    char *json = json_of(m), *text = text_of(m), line[40];
    assert_close(member(json, "rmse"), rmse, 1e-12, "rmse");
    assert_close(member(json, "pearson"), pearson, 1e-12, "pearson");
    sprintf(line, "MAE      %8.4f\n", mae);
    assert_non_null(strstr(text, line));
    esp_text_free(json);
    esp_text_free(text);
    esp_metrics_free(m);
    esp_predictions_free(p);

    esp_dataset_free(data);
}

/* No variance, no correlation: told as such, also where the mean of equal numbers is not that number. */
static void test_no_correlation(void **state)
{
    (void)state;
    enum { N = 7 };
    static const char *const actual[2][N] = {{"1", "2", "3", "4", "5", "6", "8"},
                                             {"0.1", "0.1", "0.1", "0.1", "0.1", "0.1", "0.1"}};
    static const double x[2][N] = {{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, {1, 2, 3, 4, 5, 6, 8}};
    static const char *const line[] = {"Pearson  undefined: all predictions are the same\n",
                                       "Pearson  undefined: all targets are the same\n"};
    for (size_t i = 0; i < 2; i++) {
        esp_dataset *data = targets_of(actual[i], N);
        esp_predictions *p = values_of(x[i], N);
        esp_metrics *m = metrics_of(p, data);
        esp_error err = {0};
        char *text = NULL;
        assert_true(esp_metrics_value(m, "pearson") == 0.0);
        assert_ok(esp_metrics_text(m, &text, &err), "esp_metrics_text", &err);
        assert_non_null(strstr(text, line[i]));
        esp_text_free(text);
        assert_ok(esp_metrics_json(m, &text, &err), "esp_metrics_json", &err);
        assert_non_null(strstr(text, "\"pearson\": null"));
        esp_text_free(text);
        esp_metrics_free(m);
        esp_predictions_free(p);
        esp_dataset_free(data);
    }
}

/* Squares that no number can hold: still no NaN, and JSON. */
static void test_huge_values(void **state)
{
    (void)state;
    static const char *const actual[] = {"1e200", "-2e200", "3e200"};
    static const double x[] = {1e200, -2e200, 2e200};
    esp_dataset *data = targets_of(actual, 3);
    esp_predictions *p = values_of(x, 3);
    esp_metrics *m = metrics_of(p, data);
    assert_true(isfinite(esp_metrics_value(m, "rmse")));
    assert_close(esp_metrics_value(m, "rmse"), 1e200 / sqrt(3.0), 1e-12, "rmse");
    assert_close(esp_metrics_value(m, "pearson"), 0.9862413826124555, 1e-12, "pearson");
    esp_text_free(json_of(m));
    esp_metrics_free(m);
    esp_predictions_free(p);
    esp_dataset_free(data);
}

static void test_wrong_calls(void **state)
{
    (void)state;
    static const char *const name[] = {"A", "B"};
    static const size_t winner[] = {0, 1};
    static const double value[] = {0.0, 1.0};
    esp_predictions *p = predictions_of(name, 2, winner, 2), *v = values_of(value, 2);
    esp_dataset *bare = dataset_of("{\"x\": [1]}\n{\"x\": [2]}\n"), *one = dataset_of("{\"y\": \"A\", \"x\": [1]}\n");
    esp_dataset *names = dataset_of("{\"y\": \"A\", \"x\": [1]}\n{\"y\": \"B\", \"x\": [1]}\n");
    const struct {
        const esp_predictions *p;
        const esp_dataset *data;
        const char *clause;
    } wrong[] = {{p, bare, "no target"},
                 {p, one, "2 predictions cannot be judged by 1 examples"},
                 {v, names, "the predictions are numbers, but the target of example 1 is "}};
    for (size_t i = 0; i < 3; i++) {
        esp_metrics *m = (esp_metrics *)(uintptr_t)1;
        esp_error err = {0};
        assert_refused(esp_metrics_new(wrong[i].p, wrong[i].data, &m, &err), &err, wrong[i].clause);
        assert_null(m);
    }
    esp_predictions_free(p);
    esp_predictions_free(v);
    esp_dataset_free(bare);
    esp_dataset_free(one);
    esp_dataset_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_two_classes),
        cmocka_unit_test(test_names_that_look_like_numbers),
        cmocka_unit_test(test_odd_names),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_no_correlation),
        cmocka_unit_test(test_huge_values),
        cmocka_unit_test(test_wrong_calls),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, no_blocks_left);
}
