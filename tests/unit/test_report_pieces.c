/* Pieces of reports: JSON that may stand in a page, and what is counted. */
#include "json_value.h"
#include "learning.h"
#include "report/report.h"

/* --------------------------------------------------------------------- JSON */

static void strings_survive(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *shown;
    } cases[] = {{"plain", "plain"},
                 {"</script><!--", "</script><!--"},
                 {"\"quoted\" \\ back", "\"quoted\" \\ back"},
                 {"tab\there\nline\x01", "tab\there\nline\x01"},
                 {"\xC3\xA9\xE6\xBC\xA2\xF0\x9F\x8C\xB3", "\xC3\xA9\xE6\xBC\xA2\xF0\x9F\x8C\xB3"},
                 {"a\xFF\xFE", "a\xEF\xBF\xBD\xEF\xBF\xBD"},
                 {"cut \xE6\xBC", "cut \xEF\xBF\xBD\xEF\xBF\xBD"},
                 {"half \xED\xA0\x80", "half \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
                 {"long \xC0\xAF \xE0\x80\xAF", "long \xEF\xBF\xBD\xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
                 {"far \xF4\x90\x80\x80", "far \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        espi_text json = {0}, page = {0};
        espi_json_string(&json, cases[i].bytes, strlen(cases[i].bytes));
        espi_drawn_embed(&page, json.bytes, json.size);
        assert_null(memchr(page.bytes, '<', page.size));
        json_value v = json_read(page.bytes, page.size);
        assert_string_equal(v.text, cases[i].shown);
        json_free(&v);
        espi_text_free(&json);
        espi_text_free(&page);
    }
}

static void values_are_separated(void **state)
{
    (void)state;
    espi_text t = {0};
    espi_json_open(&t, '{');
    espi_json_text_of(&t, "a", "x:");
    espi_json_key(&t, "b");
    espi_json_open(&t, '[');
    espi_drawn_number(&t, 0.1 + 0.2);
    espi_drawn_number(&t, -1234567.891);
    espi_drawn_number(&t, 1e-300);
    espi_drawn_number(&t, NAN);
    espi_json_open(&t, '[');
    espi_json_close(&t, ']');
    espi_json_count(&t, UINT64_MAX);
    espi_json_close(&t, ']');
    espi_json_flag_of(&t, "c", true);
    espi_json_key(&t, "d");
    espi_drawn_text(&t, "\xC3\xA9\xC3\xA9", 4, 3);
    espi_json_close(&t, '}');
    espi_text_add(&t, "", 1);
    assert_string_equal(t.bytes, "{\"a\": \"x:\", \"b\": [0.3, -1234567.891, 1e-300, null, [], 18446744073709551615], "
                                 "\"c\": true, \"d\": \"\xC3\xA9\xE2\x80\xA6\"}");
    espi_text_free(&t);
}

/* ----------------------------------------------------------------- counting */

static void duplicates_are_found(void **state)
{
    (void)state;
    /* Vectors whose features come in another order; a support example is known by its columns, whatever its target. */
    esp_dataset *train = dataset_of("{\"y\": 1, \"tree\": \"(S (A a) (B b))\", \"x\": {\"p\": 1, \"q\": 2}}\n"
                                    "{\"y\": -1, \"tree\": \"(S (A b))\", \"x\": {\"p\": 2}}\n");
    esp_dataset *data =
        dataset_of("{\"y\": 1, \"tree\": \"(S (A a) (B b))\", \"x\": {\"q\": 2, \"p\": 1}, \"more\": \"w\"}\n"
                   "{\"y\": 1, \"tree\": \"(S (A a) b)\", \"x\": {\"p\": 1, \"q\": 2}, \"more\": \"w\"}\n"
                   "{\"y\": 1, \"tree\": \"(S (A b))\", \"x\": {\"p\": 2, \"z\": 0}, \"more\": \"w\"}\n"
                   "{\"y\": 1, \"tree\": \"(S (A a) (B b))\", \"x\": {\"p\": 2, \"q\": 1}, \"more\": \"w\"}\n"
                   "{\"y\": -1, \"tree\": \"(S (A a) b)\", \"x\": {\"p\": 1, \"q\": 2}, \"more\": \"v\"}\n"
                   "{\"y\": 1, \"tree\": \"(S (A a) b)\", \"x\": {\"p\": 1, \"q\": 2}, \"more\": \"u\"}\n");
    esp_kernel *kernel = kernel_of("sst(tree) + linear(x)");
    esp_model *model = NULL;
    espi_duplicates d;
    esp_error err = {0};
    assert_ok(esp_train("svm", kernel, train, NULL, 0, NULL, &model, &err), "train", &err);
    assert_int_equal(model->support->rows, 2);
    assert_ok(espi_report_duplicates(model, data, &d, &err), "duplicates", &err);
    assert_int_equal(d.support, 2);
    assert_int_equal(d.within, 2);
    assert_int_equal(d.conflicting, 1);
    esp_model_free(model);
    esp_kernel_free(kernel);
    esp_dataset_free(train);
    esp_dataset_free(data);
}

static void intervals_cover(void **state)
{
    (void)state;
    /* Targets at 0.5, 1, 1.5, 2 and 3 standard deviations. */
    static const double target[] = {1, -2, 3, 4, -6}, mean[] = {0, 0, 0, 0, 0}, variance[] = {4, 4, 4, 4, 4};
    static const double expected[] = {0, 0, 0, 0.2, 0.2, 0.2, 0.4, 0.4, 0.6, 0.6, 0.8};
    espi_text t = {0};
    espi_report_coverage(&t, target, mean, variance, 5);
    json_value v = json_read(t.bytes, t.size);
    assert_int_equal(v.count, 11);
    for (size_t i = 0; i < 11; i++) assert_close(json_item(json_item(&v, i), 1)->number, expected[i], 1e-9, "coverage");
    json_free(&v);
    espi_text_free(&t);
}

static void histograms_hold_all(void **state)
{
    (void)state;
    static const double ends[][2] = {{0, 1}, {-1e308, 1e308}, {5, 5}, {0, 0}, {-3, 1e-9}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        espi_histogram h = espi_histogram_between(ends[i][0], ends[i][1], false);
        espi_histogram_add(&h, ends[i][0]);
        espi_histogram_add(&h, ends[i][1]);
        assert_true(h.low < h.high && h.count == 2);
        assert_int_equal(h.bin[h.bins == 1 ? 0 : h.bins - 1], h.bins == 1 ? 2 : 1);
    }
    espi_histogram h = espi_histogram_between(3, 7, true);
    for (int v = 3; v <= 7; v++) espi_histogram_add(&h, v);
    assert_int_equal(h.bins, 5);
    for (size_t i = 0; i < 5; i++) assert_int_equal(h.bin[i], 1);
    h = espi_histogram_between(1, 100, true); /* four of them in a bin */
    for (int v = 1; v <= 100; v++) espi_histogram_add(&h, v);
    assert_int_equal(h.bins, 25);
    for (size_t i = 0; i < 25; i++) assert_int_equal(h.bin[i], 4);
}

/* Of each class in turn: the surest errors, then the right ones that are least sure. */
static void choosing(void **state)
{
    (void)state;
    double column[] = {2, -3, 1, -1, 0.5, -0.1, 4, -2};
    uint32_t winner[] = {1, 0, 1, 0, 1, 0, 1, 0}, actual[] = {0, 1, 0, 0, 1, 0, ESPI_NO_CLASS, 0};
    esp_predictions p = {.count = 8, .classes = 2, .columns = 1, .column = column, .winner = winner};
    espi_report r = {.predictions = &p, .actual = actual};
    size_t example[8], count = 0;
    esp_error err = {0};
    static const size_t all[] = {0, 1, 6, 2, 5, 4, 3, 7}, four[] = {0, 1, 5, 4};
    assert_ok(espi_report_choose(&r, 8, example, &count, &err), "choose", &err);
    assert_int_equal(count, 8);
    assert_memory_equal(example, all, sizeof all);
    assert_ok(espi_report_choose(&r, 4, example, &count, &err), "choose", &err);
    assert_int_equal(count, 4);
    assert_memory_equal(example, four, sizeof four);
    /* Numbers: by their errors, from both ends; without targets by the values as they are, below 0 or above. */
    double target[] = {2, 0, 1.5, -1, 0, -0.1, -4, 0};
    static const size_t errors[] = {6, 1, 5, 3}, values[] = {6, 0, 1, 7};
    p = (esp_predictions){.count = 8, .columns = 1, .column = column};
    r = (espi_report){.predictions = &p, .target = target};
    assert_ok(espi_report_choose(&r, 4, example, &count, &err), "choose", &err);
    assert_memory_equal(example, errors, sizeof errors);
    r.target = NULL;
    assert_ok(espi_report_choose(&r, 4, example, &count, &err), "choose", &err);
    assert_memory_equal(example, values, sizeof values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_survive),      cmocka_unit_test(values_are_separated),
        cmocka_unit_test(duplicates_are_found), cmocka_unit_test(intervals_cover),
        cmocka_unit_test(histograms_hold_all),  cmocka_unit_test(choosing),
    };
    return cmocka_run_group_tests_name("report pieces", tests, NULL, NULL);
}
