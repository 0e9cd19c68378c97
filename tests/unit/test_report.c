/* Reports: the data block is JSON that ends nothing early, whatever the labels are; its numbers are those of
 * predictions, metrics and explanations; what is counted is right. That a browser
 * shows it is tested in tests/report. */
#include "files.h"
#include "json_value.h"
#include "learning.h"
#include "report/report.h"

/* ------------------------------------------------------------------- pages */

static char path[PATH_SIZE];

static char *page_of(const esp_model *model, const esp_dataset *data, const esp_report_options *wanted, int threads)
{
    esp_error err = {0};
    assert_ok(esp_report_write(model, data, wanted, path, &(esp_run){.threads = threads}, &err), "report", &err);
    const blob page = slurp(path);
    assert_int_equal(strlen((char *)page.bytes), page.size); /* no NUL byte, whatever the labels have */
    return (char *)page.bytes;
}

static size_t count_of(const char *text, const char *piece)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, piece)) != NULL; at += strlen(piece)) count++;
    return count;
}

/* The data block of a page: all up to the next </script>, as a browser sees it. */
static json_value block_of(const char *page)
{
    static const char mark[] = "<script type=\"application/json\" id=\"data\">";
    const char *start = strstr(page, mark);
    assert_non_null(start);
    start += strlen(mark);
    const char *end = strstr(start, "</script>");
    assert_non_null(end);
    assert_null(memchr(start, '<', (size_t)(end - start)));
    return json_read(start, (size_t)(end - start));
}

static json_value report_of(const esp_model *model, const esp_dataset *data, const esp_report_options *wanted)
{
    char *page = page_of(model, data, wanted, 1);
    const json_value block = block_of(page);
    free(page);
    return block;
}

static esp_model *model_of(const char *learner, const char *kernel, const esp_dataset *data, const esp_setting *setting,
                           size_t settings)
{
    esp_kernel *k = kernel_of(kernel);
    esp_model *model = NULL;
    esp_error err = {0};
    assert_ok(esp_train(learner, k, data, setting, settings, NULL, &model, &err), kernel, &err);
    esp_kernel_free(k);
    return model;
}

static const char *text_at(const json_value *v, const char *key)
{
    const json_value *found = json_get(v, key);
    assert_int_equal(found->kind, 's');
    return found->text;
}
static double number_at(const json_value *v, const char *key)
{
    const json_value *found = json_get(v, key);
    assert_int_equal(found->kind, 'n');
    return found->number;
}

/* --------------------------------------------------------------- escaping */

static const char nasty[] =
    "{\"y\": \"</script>\", \"tree\": \"(S (\\\"q\\\" <b>&amp;) (A x))\", \"words\": \"</script> <!-- a\"}\n"
    "{\"y\": \"\\u0001\\n'\\\"\", \"tree\": \"(S (\xFF\xED\xA0\x80 \\u0002y) (A x))\", \"words\": \"]]> \xC3\xA9 "
    "\xF0\x9F\"}\n"
    "{\"y\": \"</script>\", \"tree\": \"(S (\\\"q\\\" <b>&amp;) (A \\\\\\\\\\\\(x))\", \"words\": \"b\"}\n"
    "{\"y\": \"\\u0001\\n'\\\"\", \"tree\": \"(S (\xFF\xED\xA0\x80 \\u0002y) (A z))\", \"words\": \"\"}\n";

static void nothing_gets_out(void **state)
{
    (void)state;
    static const esp_report_options wanted = {.title = "</title><script>alert(1)</script>\xFF", .data_name = "<i>\"'"};
    esp_dataset *data = dataset_of(nasty);
    esp_model *model = model_of("svm", "norm(sst(tree)) + linear(words)", data, NULL, 0);
    char *page = page_of(model, data, &wanted, 1);
    assert_int_equal(count_of(page, "<script"), 2);
    assert_int_equal(count_of(page, "</script"), 2);
    assert_null(strstr(page, "alert(1)</"));
    json_value block = block_of(page);
    assert_string_equal(text_at(&block, "title"), "</title><script>alert(1)</script>\xEF\xBF\xBD");
    assert_string_equal(text_at(json_get(&block, "profile"), "name"), "<i>\"'");
    const json_value *classes = json_get(json_get(&block, "model"), "classes");
    assert_string_equal(json_item(classes, 0)->text, "\x01\n'\"");
    assert_string_equal(json_item(classes, 1)->text, "</script>");
    json_free(&block);
    free(page);
    esp_model_free(model);
    esp_dataset_free(data);
}

/* ----------------------------------------------------- numbers of a report */

static void examples_add_up(const json_value *block)
{
    const json_value *list = json_get(block, "examples");
    assert_true(list->count > 0);
    for (size_t i = 0; i < list->count; i++) {
        const json_value *e = json_item(list, i), *functions = json_get(e, "functions"), *trees = json_get(e, "trees");
        assert_true(functions->count >= 1);
        for (size_t k = 0; k < functions->count; k++) {
            const json_value *f = json_item(functions, k), *up = json_get(f, "up"), *down = json_get(f, "down");
            double sum = number_at(f, "bias") + number_at(f, "rest");
            for (size_t j = 0; j < up->count; j++) sum += number_at(json_item(up, j), "contribution");
            for (size_t j = 0; j < down->count; j++) sum += number_at(json_item(down, j), "contribution");
            if (fabs(sum - number_at(f, "score")) > 1e-4) fail_msg("contributions of %zu add up to %g", i, sum);
            for (size_t t = 0; t < trees->count; t++) {
                const json_value *tree = json_item(trees, t), *nodes = json_get(tree, "nodes");
                double shares = 0.0;
                assert_int_equal(nodes->count, (size_t)number_at(tree, "count"));
                for (size_t n = 0; n < nodes->count; n++) shares += json_item(json_item(nodes, n), 4 + k)->number;
                const double score = json_item(json_get(f, "terms"), (size_t)number_at(tree, "term"))->number;
                if (fabs(shares - score) > 1e-4) fail_msg("shares of %zu add up to %g, not %g", i, shares, score);
            }
        }
    }
}

static void histograms_are_complete(const json_value *block, size_t rows)
{
    const json_value *scores = json_get(block, "scores");
    for (size_t i = 0; i < scores->count; i++) {
        const json_value *own = json_get(json_item(scores, i), "own"), *other = json_get(json_item(scores, i), "other");
        double sum = 0.0;
        assert_int_equal(own->count, other->count);
        for (size_t k = 0; k < own->count; k++) sum += json_item(own, k)->number + json_item(other, k)->number;
        assert_int_equal((size_t)sum, rows);
    }
}

static void tells_what_the_model_says(void **state)
{
    (void)state;
    static const esp_setting ovo[] = {{"multiclass", "ovo"}}, probability[] = {{"probability", "1"}};
    static const struct {
        size_t classes;
        const esp_setting *setting;
        size_t settings;
    } cases[] = {{2, NULL, 0}, {3, NULL, 0}, {3, ovo, 1}, {3, probability, 1}, {2, probability, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        examples train = examples_of(11, 60, cases[i].classes, false),
                 test = examples_of(12, 40, cases[i].classes, true);
        esp_dataset *data = part_of(&train, NULL, 0, true), *other = part_of(&test, NULL, 0, true);
        esp_model *model = model_of("svm", "norm(sst(tree, lambda=0.4)) + 0.5*norm(linear(words))", data,
                                    cases[i].setting, cases[i].settings);
        json_value block = report_of(model, other, &(esp_report_options){.examples = 10, .top = 5});
        examples_add_up(&block);
        histograms_are_complete(&block, 40);
        assert_int_equal(json_get(&block, "examples")->count, 10);
        assert_int_equal(number_at(json_get(&block, "quality"), "examples"), 40);
        assert_int_equal(json_find(&block, "calibration") != NULL, cases[i].setting == probability);
        assert_int_equal(json_get(&block, "margins")->count, 10);
        json_free(&block);
        esp_model_free(model);
        esp_dataset_free(data);
        esp_dataset_free(other);
        examples_free(&train);
        examples_free(&test);
    }
}

static void does_not_depend_on_threads(void **state)
{
    (void)state;
    examples some = examples_of(5, 50, 3, true);
    esp_dataset *data = part_of(&some, NULL, 0, true);
    esp_model *model = model_of("svm", "norm(sst(tree))", data, NULL, 0);
    char *one = page_of(model, data, NULL, 1), *three = page_of(model, data, NULL, 3);
    assert_string_equal(one, three);
    free(one);
    free(three);
    esp_model_free(model);
    esp_dataset_free(data);
    examples_free(&some);
}

/* ------------------------------------------------------ parts that are absent */

static void model_alone(void **state)
{
    (void)state;
    examples some = examples_of(5, 30, 3, false);
    esp_dataset *data = part_of(&some, NULL, 0, true);
    esp_model *model = model_of("svm", "norm(sst(tree))", data, NULL, 0);
    json_value block = report_of(model, NULL, NULL);
    assert_non_null(json_find(&block, "features"));
    assert_null(json_find(&block, "quality"));
    assert_null(json_find(&block, "scores"));
    assert_null(json_find(&block, "examples"));
    assert_int_equal(json_get(json_get(&block, "profile"), "support")->kind, 't');
    json_free(&block);
    esp_model_free(model);
    esp_dataset_free(data);
    examples_free(&some);
}

static void data_without_targets(void **state)
{
    (void)state;
    static const char lines[] = "{\"tree\": \"(S (A a) (B b))\"}\n{\"tree\": \"\"}\n{\"tree\": \"(S (A a))\"}\n";
    examples some = examples_of(5, 30, 3, false);
    esp_dataset *train = part_of(&some, NULL, 0, true), *data = dataset_of(lines);
    esp_model *model = model_of("svm", "sst(tree)", train, NULL, 0);
    json_value block = report_of(model, data, NULL);
    assert_null(json_find(&block, "quality"));
    assert_null(json_find(&block, "margins"));
    histograms_are_complete(&block, 3);
    assert_int_equal(json_get(&block, "examples")->count, 3);
    json_free(&block);
    esp_model_free(model);
    esp_dataset_free(train);
    esp_dataset_free(data);
    examples_free(&some);
}

static void decisions_without_features(void **state)
{
    (void)state;
    static const esp_setting vote[] = {{"vote", "1"}};
    examples some = examples_of(5, 30, 2, false);
    esp_dataset *data = part_of(&some, NULL, 0, true);
    esp_model *model = model_of("perceptron", "sst(tree)", data, vote, 1);
    json_value block = report_of(model, data, NULL);
    assert_non_null(strstr(text_at(&block, "unexplained"), "vot"));
    assert_null(json_find(&block, "features"));
    const json_value *first = json_item(json_get(&block, "examples"), 0),
                     *curve = json_get(json_get(&block, "model"), "curve");
    assert_int_equal(json_get(first, "functions")->count, 0);
    assert_int_equal(json_get(first, "trees")->count, 1);
    double updates = 0.0;
    for (size_t i = 0; i < json_get(curve, "updates")->count; i++)
        updates += json_item(json_get(curve, "updates"), i)->number;
    assert_int_equal((size_t)updates, (size_t)number_at(json_get(&block, "model"), "support"));
    assert_int_equal((size_t)number_at(curve, "steps"), 30);
    json_free(&block);
    esp_model_free(model);
    model = model_of("svm", "norm(ptk(tree))*linear(words)", data, NULL, 0);
    block = report_of(model, data, NULL);
    assert_null(json_find(json_get(&block, "features"), "lists"));
    assert_non_null(json_find(json_item(json_get(json_get(&block, "features"), "terms"), 0), "reason"));
    json_free(&block);
    esp_model_free(model);
    esp_dataset_free(data);
    examples_free(&some);
}

static void numbers(void **state)
{
    (void)state;
    examples some = examples_of(5, 40, 0, false);
    esp_dataset *data = part_of(&some, NULL, 0, true);
    esp_model *model = model_of("svr", "norm(sst(tree)) + linear(x)", data, NULL, 0);
    json_value block = report_of(model, data, &(esp_report_options){.examples = 7});
    examples_add_up(&block);
    const json_value *list = json_get(&block, "examples");
    assert_int_equal(json_get(&block, "points")->count, 40);
    assert_int_equal(list->count, 7);
    double last = INFINITY; /* the four largest errors, then the three smallest */
    for (size_t i = 0; i < 4; i++) {
        const double error = fabs(number_at(json_item(list, i), "value") - number_at(json_item(list, i), "target"));
        assert_true(error <= last + 1e-4);
        last = error;
    }
    assert_true(fabs(number_at(json_item(list, 4), "value") - number_at(json_item(list, 4), "target")) <= last);
    json_free(&block);
    /* Targets that are no numbers: a reason in place of the quality. */
    esp_dataset *words = dataset_of("{\"y\": \"red\", \"tree\": \"(S (A a))\", \"words\": \"a\", \"x\": {\"p\": 1}}\n");
    block = report_of(model, words, NULL);
    assert_null(json_find(&block, "quality"));
    assert_non_null(strstr(text_at(&block, "unjudged"), "red"));
    json_free(&block);
    esp_dataset_free(words);
    esp_model_free(model);
    esp_dataset_free(data);
    examples_free(&some);
}

static void data_that_do_not_fit(void **state)
{
    (void)state;
    examples some = examples_of(5, 30, 2, false);
    esp_dataset *train = part_of(&some, NULL, 0, true), *data = dataset_of("{\"z\": {\"a\": 1}}\n");
    esp_model *model = model_of("svm", "sst(tree)", train, NULL, 0);
    esp_error err = {0};
    remove(path);
    assert_int_equal(esp_report_write(model, data, NULL, path, NULL, &err), ESP_ERR_PARAM);
    assert_true(strlen(err.message) > 0);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(esp_report_write(model, train, NULL, "/nowhere/at/all.html", NULL, &err), ESP_ERR_IO);
    esp_model_free(model);
    esp_dataset_free(train);
    esp_dataset_free(data);
    examples_free(&some);
}

/* --------------------------------------------------------------- large trees */

static void large_trees_are_cut(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    char *lines = malloc(3 * DEPTH + DEPTH + 200), *at = lines;
    assert_non_null(lines);
    at += sprintf(at, "{\"y\": 1, \"tree\": \"(S (A x) (B y))\"}\n{\"y\": -1, \"tree\": \"");
    for (size_t i = 0; i < DEPTH; i++) at += sprintf(at, "(A ");
    at += sprintf(at, "x");
    for (size_t i = 0; i < DEPTH; i++) *at++ = ')';
    sprintf(at, "\"}\n");
    esp_dataset *data = dataset_of(lines);
    esp_model *model = model_of("svm", "sst(tree, lambda=0.001)", data, NULL, 0);
    json_value block = report_of(model, data, NULL);
    const json_value *list = json_get(&block, "examples");
    size_t seen = 0;
    for (size_t i = 0; i < list->count; i++) {
        const json_value *tree = json_item(json_get(json_item(list, i), "trees"), 0), *nodes = json_get(tree, "nodes");
        if ((size_t)number_at(tree, "count") != DEPTH + 1) continue;
        assert_int_equal(nodes->count, 1500);
        assert_int_equal(json_item(json_item(nodes, 1499), 3)->number, DEPTH - 1499);
        assert_int_equal(json_item(json_item(nodes, 1499), 1)->number, 1498);
        seen++;
    }
    assert_int_equal(seen, 1);
    json_free(&block);
    esp_model_free(model);
    esp_dataset_free(data);
    free(lines);
}

/* -------------------------------------------------------------------- memory */

typedef struct work {
    const esp_model *model;
    const esp_dataset *data;
} work;

static esp_status write_report(const void *argument, esp_error *err)
{
    const work *w = argument;
    const esp_report_options wanted = {.examples = 2, .top = 2};
    return esp_report_write(w->model, w->data, &wanted, path, &(esp_run){.threads = 1}, err);
}

static void memory_runs_out(void **state)
{
    (void)state;
    esp_dataset *data = labelled(3, 8, 2, false);
    esp_model *model = model_of("svm", "norm(sst(tree)) + 0.3*poly(x)", data, NULL, 0);
    const work w = {model, data};
    esp_error err = {0};
    assert_ok(write_report(&w, &err), "report", &err); /* the first prediction keeps what it prepares */
    out_of_memory_everywhere(write_report, &w);
    esp_model_free(model);
    esp_dataset_free(data);
}

static esp_status write_pairs(const void *argument, esp_error *err)
{
    const char *const *file = argument;
    esp_dataset *data = NULL;
    esp_status status = esp_dataset_read(file[0], NULL, NULL, &data, err);
    if (status == ESP_OK) status = esp_report_pairs(file[1], data, NULL, "id", NULL, path, NULL, err);
    esp_dataset_free(data);
    return status;
}

/* Names and trees that look like markup stay inside of the data block. */
static void pairs_of_trees(void **state)
{
    (void)state;
    static char trees[PATH_SIZE], lines[PATH_SIZE];
    temporary_file("{\"id\": \"</script>\", \"tree\": \"(S (A <b>))\"}\n{\"id\": \"b\", \"tree\": \"(S (A c))\"}\n",
                   trees);
    temporary_file("</script>\tb\t0.5\nb\t</script>\t0.25\n", lines);
    const char *const file[] = {trees, lines};
    esp_error err = {0};
    assert_ok(write_pairs(file, &err), "pairs", &err);
    const blob page = slurp(path);
    json_value block = block_of((char *)page.bytes);
    json_free(&block);
    free(page.bytes);
    out_of_memory_everywhere(write_pairs, file);
    remove(trees);
    remove(lines);
}

static int stop(void *user, const char *stage, double fraction)
{
    (void)fraction;
    return strcmp(user, stage) == 0;
}

static void can_be_cancelled(void **state)
{
    (void)state;
    static char stages[][32] = {"looking for features", "explaining examples"};
    examples some = examples_of(3, 20, 3, false);
    esp_dataset *data = part_of(&some, NULL, 0, true);
    esp_model *model = model_of("svm", "sst(tree)", data, NULL, 0);
    remove(path);
    for (size_t i = 0; i < 2; i++) {
        const esp_run run = {.threads = 1, .progress = stop, .user = stages[i]};
        esp_error err = {0};
        assert_int_equal(esp_report_write(model, data, NULL, path, &run, &err), ESP_ERR_CANCELLED);
        assert_int_not_equal(access(path, F_OK), 0);
    }
    esp_model_free(model);
    esp_dataset_free(data);
    examples_free(&some);
}

static int begin(void **state)
{
    (void)state;
    temporary_file("", path);
    return 0;
}

static int end(void **state)
{
    remove(path);
    return no_blocks_left(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_gets_out),
        cmocka_unit_test(tells_what_the_model_says),
        cmocka_unit_test(does_not_depend_on_threads),
        cmocka_unit_test(model_alone),
        cmocka_unit_test(data_without_targets),
        cmocka_unit_test(decisions_without_features),
        cmocka_unit_test(numbers),
        cmocka_unit_test(data_that_do_not_fit),
        cmocka_unit_test(large_trees_are_cut),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(pairs_of_trees),
        cmocka_unit_test(can_be_cancelled),
    };
    return cmocka_run_group_tests_name("report", tests, begin, end);
}
