/* Runs of online learners: what is interrupted, stored and taken up again ends with the same bytes; streams learn what
 * datasets do. */
#include "perceptrons.h"

#include <fcntl.h>

/* -------------------------------------------------------------- checkpoints */

typedef struct diary { /* the model after every example, where there is one */
    blob page[4 * WORLD];
    size_t pages, calls;
} diary;

static esp_status write_page(void *user, const esp_online *online, esp_error *err)
{
    diary *d = user;
    esp_model *model = NULL;
    esp_online_stats stats;
    esp_online_measure(online, &stats);
    assert_int_equal(stats.examples, ++d->calls);
    const esp_status status = esp_online_model(online, &model, err);
    assert_true((status == ESP_OK) == (stats.classes > 1));
    if (status == ESP_OK) d->page[d->pages++] = bytes_of(model);
    esp_model_free(model);
    return ESP_OK;
}

typedef struct course {
    const char *kernel, *settings, *labels;
    bool stream;
} course;

static const course courses[] = {
    {"sst(tree) + poly(x)", "epochs=2", "1 -1", false},
    {"norm(sst(tree)) + poly(x)", "epochs=2 average=1 margin=0.2", "B A C", true},
    {"sst(tree)*linear(x)", "epochs=2 shuffle=1 seed=5", "7 10 z", false},
    {"st(tree) + linear(x)", "epochs=2 vote=1 class-weight=A=2", "B A", true},
    {"sst(tree, bow=0.5)", "epochs=2 shuffle=1 form=forest", "1 -1", true},
    {"sasst(tree, lambda.NP=0.9) + rbf(x)", "epochs=1 form=plain", "1 -1", false},
};

static void run_course(const course *c, esp_online *online, const world *w, const char *path)
{
    esp_error err = {0};
    assert_ok(c->stream ? esp_online_read(online, path, NULL, NULL, &err)
                        : esp_online_learn(online, w->data, NULL, &err),
              c->settings, &err);
}

static void checkpoints_everywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof courses / sizeof *courses; i++) {
        const course *c = &courses[i];
        static diary d;
        world w;
        esp_error err = {0};
        esp_online *online = online_of(c->kernel, c->settings), *again;
        const char *path = in_directory("data");
        print_message("%s, %s\n", c->kernel, c->settings);
        world_make(&w, 40 + i, 24, c->labels);
        spill(path, w.lines, strlen(w.lines));
        d.pages = d.calls = 0;
        esp_online_watch(online, 1, write_page, &d);
        run_course(c, online, &w, path);
        assert_int_equal(d.calls, strstr(c->settings, "epochs=2") ? 48 : 24);
        const blob all = bytes_of_online(online);
        esp_online_free(online);
        for (size_t k = 0; k < d.pages; k++) {
            esp_model *checkpoint = model_of_bytes(d.page[k]);
            assert_ok(go_on(checkpoint, c->kernel, c->settings, &again, &err), "continue", &err);
            esp_model_free(checkpoint);
            const blob same = bytes_of_online(again);
            same_bytes(d.page[k], same);
            run_course(c, again, &w, path);
            const blob end = bytes_of_online(again);
            same_bytes(all, end);
            esp_online_free(again);
            free(end.bytes);
            free(same.bytes);
            free(d.page[k].bytes);
        }
        free(all.bytes);
        unlink(path);
        world_free(&w);
    }
}

/* Learning from one dataset and then from another, with a model file in between or without. */
static void resuming(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof courses / sizeof *courses; i++) {
        const course *c = &courses[i];
        world first, second;
        esp_error err = {0};
        esp_online *one = online_of(c->kernel, c->settings), *two = online_of(c->kernel, c->settings), *again;
        world_make(&first, 1, 30, c->labels);
        world_make(&second, 2, 30, "-1 q 3 A");
        assert_ok(esp_online_learn(one, first.data, NULL, &err), "first", &err);
        assert_ok(esp_online_learn(one, second.data, NULL, &err), "second", &err);
        assert_ok(esp_online_learn(two, first.data, NULL, &err), "first", &err);
        const blob between = bytes_of_online(two);
        esp_model *model = model_of_bytes(between);
        assert_ok(resume(model, "", &again, &err), "resume", &err);
        assert_ok(esp_online_learn(again, second.data, NULL, &err), "second", &err);
        const blob a = bytes_of_online(one), b = bytes_of_online(again);
        same_bytes(a, b);
        esp_model_free(model);
        esp_online_free(one);
        esp_online_free(two);
        esp_online_free(again);
        world_free(&first);
        world_free(&second);
        free(between.bytes);
        free(a.bytes);
        free(b.bytes);
    }
}

/* Vectors as arrays, of another length, as objects and as numbers: what is learned of all can be stored. */
static void resuming_with_other_vectors(void **state)
{
    (void)state;
    static const char *const lines[] = {"{\"y\": 1, \"x\": [1, 2]}\n{\"y\": 2, \"x\": [3, 4]}\n",
                                        "{\"y\": 2, \"x\": [1, 2, 3]}\n", "{\"y\": 1, \"x\": {\"0\": 3, \"a\": 4}}\n",
                                        "{\"y\": 2, \"x\": 7}\n"};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++) {
            esp_error err = {0};
            esp_dataset *first = dataset_of(lines[i]), *second = dataset_of(lines[k]), *third = dataset_of(lines[0]);
            esp_online *online = online_of("poly(x)", "margin=1000000");
            assert_ok(esp_online_learn(online, first, NULL, &err), lines[i], &err);
            assert_ok(esp_online_learn(online, second, NULL, &err), lines[k], &err);
            assert_ok(esp_online_learn(online, third, NULL, &err), lines[0], &err);
            const blob b = bytes_of_online(online);
            esp_model_free(model_of_bytes(b));
            free(b.bytes);
            esp_online_free(online);
            esp_dataset_free(first);
            esp_dataset_free(second);
            esp_dataset_free(third);
        }
}

/* No epochs: the same updates, predicting in another way. */
static void other_ways_to_predict(void **state)
{
    (void)state;
    world w;
    esp_error err = {0};
    esp_online *plain = online_of("sst(tree)", "epochs=2"), *average = online_of("sst(tree)", "epochs=2 average=1"),
               *again;
    world_make(&w, 3, 40, "1 -1");
    assert_ok(esp_online_learn(plain, w.data, NULL, &err), "plain", &err);
    assert_ok(esp_online_learn(average, w.data, NULL, &err), "average", &err);
    esp_model *from = model_of(plain), *wanted = model_of(average);
    assert_ok(resume(from, "epochs=0 average=1", &again, &err), "resume", &err);
    assert_ok(esp_online_learn(again, w.data, NULL, &err), "nothing", &err);
    esp_model *is = model_of(again);
    assert_memory_equal(is->coefficient, wanted->coefficient, is->support->rows * sizeof *is->coefficient);
    assert_true(memcmp(is->coefficient, from->coefficient, is->support->rows * sizeof *is->coefficient) != 0);
    esp_online_free(again);
    assert_refused(resume(from, "average=1 vote=1", &again, &err), &err, "average and vote exclude each other");
    assert_refused(resume(from, "C=1", &again, &err), &err, "perceptron has no setting 'C'");
    esp_model_free(from);
    esp_model_free(wanted);
    esp_model_free(is);
    esp_online_free(plain);
    esp_online_free(average);
    world_free(&w);
}

/* ------------------------------------------------------------------ streams */

static void same_state(const esp_online *a, const esp_online *b, const esp_dataset *data)
{
    esp_model *m = model_of(a), *n = model_of(b);
    assert_int_equal(m->support->rows, n->support->rows);
    assert_int_equal(m->outputs, n->outputs);
    assert_memory_equal(m->history->step, n->history->step, m->support->rows * sizeof *m->history->step);
    assert_memory_equal(m->coefficient, n->coefficient, m->support->rows * m->outputs * sizeof *m->coefficient);
    assert_memory_equal(m->history->tally, n->history->tally, m->classes * sizeof *m->history->tally);
    esp_predictions *p = predicted(m, data, 1), *q = predicted(n, data, 1);
    for (size_t i = 0; i < p->count * p->columns; i++) assert_close(p->column[i], q->column[i], 1e-12, "score");
    esp_predictions_free(p);
    esp_predictions_free(q);
    esp_model_free(m);
    esp_model_free(n);
}

static void a_stream_learns_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof courses / sizeof *courses; i++) {
        const course *c = &courses[i];
        world w;
        esp_error err = {0};
        const char *path = in_directory("data");
        esp_online *memory = online_of(c->kernel, c->settings), *stream = online_of(c->kernel, c->settings);
        world_make(&w, 60 + i, WORLD, c->labels);
        spill(path, w.lines, strlen(w.lines));
        assert_ok(esp_online_learn(memory, w.data, NULL, &err), "learn", &err);
        assert_ok(esp_online_read(stream, path, NULL, NULL, &err), "read", &err);
        same_state(memory, stream, w.data);
        esp_online_free(memory);
        esp_online_free(stream);
        unlink(path);
        world_free(&w);
    }
}

static void standard_input(void **state)
{
    (void)state;
    world w;
    esp_error err = {0};
    const char *path = in_directory("data");
    esp_online *twice = online_of("sst(tree)", "epochs=2"), *once = online_of("sst(tree)", ""),
               *memory = online_of("sst(tree)", "");
    world_make(&w, 5, WORLD, "1 -1");
    spill(path, w.lines, strlen(w.lines));
    assert_refused(esp_online_read(twice, "-", NULL, NULL, &err), &err,
                   "standard input can be read once, but epochs is 2");
    const int kept = dup(STDIN_FILENO), fd = open(path, O_RDONLY);
    assert_true(dup2(fd, STDIN_FILENO) >= 0);
    close(fd);
    assert_ok(esp_online_read(once, "-", NULL, NULL, &err), "standard input", &err);
    dup2(kept, STDIN_FILENO);
    close(kept);
    assert_ok(esp_online_learn(memory, w.data, NULL, &err), "learn", &err);
    same_state(memory, once, w.data);
    esp_online_free(once);
    esp_online_free(twice);
    esp_online_free(memory);
    unlink(path);
    world_free(&w);
}

/* A file that is shorter than what the checkpoint has seen of it; bad lines; none at all. */
static void other_inputs(void **state)
{
    (void)state;
    world w;
    esp_error err = {0};
    esp_online_stats stats;
    static diary d;
    const char *path = in_directory("data");
    esp_online *online = online_of("sst(tree)", "epochs=1"), *again;
    world_make(&w, 6, 20, "1 -1");
    esp_online_watch(online, 1, write_page, &d);
    assert_ok(esp_online_learn(online, w.data, NULL, &err), "learn", &err);
    esp_model *checkpoint = model_of_bytes(d.page[d.pages - 3]); /* after 18 of 20 */
    char *line = w.lines;
    for (int i = 0; i < 7; i++) line = strchr(line, '\n') + 1;
    *line = '\0';
    spill(path, w.lines, strlen(w.lines));
    assert_ok(go_on(checkpoint, "sst(tree)", "epochs=1", &again, &err), "continue", &err);
    assert_refused(esp_online_read(again, path, NULL, NULL, &err), &err,
                   "the checkpoint has seen 18 examples, but the input has only 7");
    esp_online_free(again);
    esp_model_free(checkpoint);
    for (size_t k = 0; k < d.pages; k++) free(d.page[k].bytes);
    esp_online_free(online);

    strcpy(line, "{\"y\": 1, \"tree\": \"(S\", \"x\": {}}\n");
    spill(path, w.lines, strlen(w.lines));
    online = online_of("sst(tree)", "epochs=2");
    const esp_read_options skip = {.skip_bad = true};
    assert_ok(esp_online_read(online, path, &skip, NULL, &err), "bad lines", &err);
    esp_online_measure(online, &stats);
    assert_int_equal(stats.bad, 1);
    assert_int_equal(stats.examples, 14);
    assert_int_equal(stats.epoch, 2);
    assert_int_equal(esp_online_read(online, path, NULL, NULL, &err), ESP_ERR_PARSE);
    assert_int_equal(esp_online_read(online, in_directory("none"), NULL, NULL, &err), ESP_ERR_IO);
    esp_online_free(online);
    unlink(path);
    world_free(&w);
}

static void shuffling(void **state)
{
    (void)state;
    world w;
    esp_error err = {0};
    static const char *const settings[] = {"epochs=2 shuffle=1", "epochs=2 shuffle=1", "epochs=2 shuffle=1 seed=2",
                                           "epochs=2"};
    blob b[4];
    world_make(&w, 7, WORLD, "1 -1");
    for (size_t i = 0; i < 4; i++) {
        esp_online *online = online_of("sst(tree)", settings[i]);
        assert_ok(esp_online_learn(online, w.data, NULL, &err), "learn", &err);
        b[i] = bytes_of_online(online);
        esp_online_free(online);
    }
    same_bytes(b[0], b[1]);
    assert_true(b[0].size != b[2].size || memcmp(b[0].bytes, b[2].bytes, b[0].size) != 0);
    for (size_t i = 0; i < 4; i++) free(b[i].bytes);
    uint32_t order[3][100]; /* a permutation, another one in each epoch and for each seed */
    for (size_t i = 0; i < 3; i++) {
        bool seen[100] = {false};
        for (uint32_t k = 0; k < 100; k++) order[i][k] = k;
        espi_epoch_shuffle(i < 2 ? 1 : 2, i % 2, order[i], 100);
        for (size_t k = 0; k < 100; k++) {
            assert_false(seen[order[i][k]]);
            seen[order[i][k]] = true;
        }
    }
    assert_true(memcmp(order[0], order[1], sizeof order[0]) != 0 && memcmp(order[0], order[2], sizeof order[0]) != 0);
    world_free(&w);
}

/* ------------------------------------------------------------- interruptions */

static int after_some(void *user, const char *stage, double fraction)
{
    int *left = user;
    (void)stage;
    assert_true(fraction <= 1.0);
    return (*left)-- <= 0;
}

static esp_status enough(void *user, const esp_online *online, esp_error *err)
{
    (void)user;
    (void)online;
    if (err != NULL) strcpy(err->message, "enough");
    return ESP_ERR_IO;
}

/* The lines of a world again and again, so that there is time to be interrupted. */
static char *repeated(const world *w, size_t times)
{
    const size_t size = strlen(w->lines);
    char *text = malloc(size * times + 1);
    assert_non_null(text);
    for (size_t i = 0; i < times; i++) memcpy(text + i * size, w->lines, size);
    text[size * times] = '\0';
    return text;
}

static void cancellation(void **state)
{
    (void)state;
    static const char kernel[] = "sst(tree) + linear(x)", settings[] = "epochs=2 margin=0.3";
    world w;
    esp_error err = {0};
    const char *path = in_directory("data");
    world_make(&w, 8, WORLD, "B A C");
    char *lines = repeated(&w, 20);
    spill(path, lines, strlen(lines));
    esp_dataset *data = dataset_of(lines);
    for (int stream = 0; stream < 2; stream++) {
        esp_online *whole = online_of(kernel, settings), *again;
        assert_ok(stream ? esp_online_read(whole, path, NULL, NULL, &err) : esp_online_learn(whole, data, NULL, &err),
                  "whole", &err);
        const blob all = bytes_of_online(whole);
        for (int calls = 1; calls < 12; calls += 3) {
            int left = calls;
            const esp_run run = {.threads = 1, .progress = after_some, .user = &left};
            esp_online *online = online_of(kernel, settings);
            const esp_status status =
                stream ? esp_online_read(online, path, NULL, &run, &err) : esp_online_learn(online, data, &run, &err);
            assert_int_equal(status, ESP_ERR_CANCELLED);
            esp_online_stats stats;
            esp_online_measure(online, &stats);
            if (stats.classes > 1) {
                assert_true(stats.examples > 0 && stats.examples < 2 * data->rows);
                esp_model *model = model_of(online);
                assert_ok(go_on(model, kernel, settings, &again, &err), "continue", &err);
                assert_ok(stream ? esp_online_read(again, path, NULL, NULL, &err)
                                 : esp_online_learn(again, data, NULL, &err),
                          "the rest", &err);
                const blob end = bytes_of_online(again);
                same_bytes(all, end);
                free(end.bytes);
                esp_online_free(again);
                esp_model_free(model);
            }
            esp_online_free(online);
        }
        free(all.bytes);
        esp_online_free(whole);
    }
    esp_model *model = (esp_model *)(uintptr_t)1;
    int left = 3;
    assert_int_equal(
        train("perceptron", kernel, data, settings, &(esp_run){.progress = after_some, .user = &left}, &model, &err),
        ESP_ERR_CANCELLED);
    esp_online *online = online_of(kernel, settings);
    esp_online_watch(online, 7, enough, NULL);
    assert_int_equal(esp_online_learn(online, data, NULL, &err), ESP_ERR_IO);
    assert_string_equal(err.message, "enough");
    esp_online_free(online);
    online = online_of(kernel, settings);
    assert_int_equal(esp_online_learn(online, data, &(esp_run){.memory = 100}, &err),
                     ESP_OK); /* looked at now and then */
    esp_online_free(online);
    esp_dataset_free(data);
    free(lines);
    unlink(path);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_everywhere),
        cmocka_unit_test(resuming),
        cmocka_unit_test(resuming_with_other_vectors),
        cmocka_unit_test(other_ways_to_predict),
        cmocka_unit_test(a_stream_learns_the_same),
        cmocka_unit_test(standard_input),
        cmocka_unit_test(other_inputs),
        cmocka_unit_test(shuffling),
        cmocka_unit_test(cancellation),
    };
    return cmocka_run_group_tests_name("online runs", tests, make_directory, remove_directory);
}
