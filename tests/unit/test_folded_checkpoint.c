/* Checkpoints of the folded solver: a training that is cancelled, at any moment, goes on from the file and ends with
 * the same bytes; no damaged byte goes unnoticed; and memory that runs out leaves nothing behind. */
#include "files.h"
#include "learning.h"

typedef struct stopping { /* cancels at the n-th question */
    size_t asked, at;
} stopping;

static int stop_at(void *user, const char *stage, double fraction)
{
    stopping *s = user;
    (void)stage;
    (void)fraction;
    return ++s->asked >= s->at;
}

typedef struct trained_case {
    const char *learner, *settings, *kernel;
    size_t classes;
} trained_case;

static const trained_case cases[] = {
    {"svm", "C=5 solver=folded", "norm(sst(tree, lambda=0.4))", 2},
    {"svm", "C=5 solver=folded", "norm(sst(tree, lambda=0.4)) + linear(x)", 4},
    {"svm", "C=5 solver=folded multiclass=ovo", "norm(sst(tree, lambda=0.4))", 4},
    {"svr", "C=0.5 solver=folded", "norm(seq(words)) + poly(x, degree=2)", 0},
    {"oneclass", "nu=0.2", "norm(ptk(tree))", 2}, /* auto takes folded where a checkpoint is wanted */
};
enum { CASES = sizeof cases / sizeof *cases };

static const char *checkpoint(void) { return in_directory("checkpoint"); }

static blob undisturbed(const trained_case *c, const esp_dataset *data)
{
    esp_model *m =
        trained(c->learner, c->kernel, data, c->settings, &(esp_run){.threads = 1, .checkpoint = checkpoint()});
    const blob b = bytes_of(m);
    esp_model_free(m);
    assert_int_equal(unlink(checkpoint()), 0); /* it stays there, for the caller to remove */
    return b;
}

/* Cancelled again and again, each time a little later, until it comes to its end. */
static size_t in_pieces(const trained_case *c, const esp_dataset *data, size_t step, int threads, blob expected)
{
    for (size_t times = 0;; times++) {
        stopping s = {.at = step * (times + 1)};
        const esp_run run = {.threads = threads, .checkpoint = checkpoint(), .progress = stop_at, .user = &s};
        esp_model *m;
        esp_error err = {0};
        const esp_status status = train(c->learner, c->kernel, data, c->settings, &run, &m, &err);
        if (status == ESP_ERR_CANCELLED) continue;
        assert_ok(status, c->settings, &err);
        const blob b = bytes_of(m);
        same_bytes(b, expected);
        free(b.bytes);
        esp_model_free(m);
        unlink(checkpoint());
        return times;
    }
}

static void test_goes_on_with_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        esp_dataset *data = labelled(i + 3, 80, cases[i].classes, false);
        const blob expected = undisturbed(&cases[i], data);
        assert_true(in_pieces(&cases[i], data, 25, 1, expected) > 0);
        assert_true(in_pieces(&cases[i], data, 3, 2, expected) > 0);
        free(expected.bytes);
        esp_dataset_free(data);
    }
}

/* A file as a training leaves it that was cancelled. */
static blob left_behind(const trained_case *c, const esp_dataset *data)
{
    for (size_t at = 1;; at++) {
        stopping s = {.at = at};
        const esp_run run = {.threads = 1, .checkpoint = checkpoint(), .progress = stop_at, .user = &s};
        esp_model *m;
        esp_error err = {0};
        assert_int_equal(train(c->learner, c->kernel, data, c->settings, &run, &m, &err), ESP_ERR_CANCELLED);
        if (access(checkpoint(), F_OK) == 0) return slurp(checkpoint());
    }
}

/* Refused with a sentence that names the file, which is left as it is. */
static void refuses(const trained_case *c, const esp_dataset *data, const void *bytes, size_t size, esp_status expected)
{
    const esp_run run = {.threads = 1, .checkpoint = checkpoint()};
    esp_model *m;
    esp_error err = {0};
    spill(checkpoint(), bytes, size);
    const esp_status status = train(c->learner, c->kernel, data, c->settings, &run, &m, &err);
    if (status != expected) fail_msg("status %d instead of %d: %s", (int)status, (int)expected, err.message);
    if (strncmp(err.message, checkpoint(), strlen(checkpoint())) != 0) fail_msg("no file is named: %s", err.message);
    const blob after = slurp(checkpoint());
    assert_int_equal(after.size, size);
    assert_memory_equal(after.bytes, bytes, size);
    free(after.bytes);
}

static void test_damaged_is_refused(void **state)
{
    (void)state;
    const trained_case *c = &cases[0];
    esp_dataset *data = labelled(3, 30, 2, false);
    const blob b = left_behind(c, data);
    for (size_t size = 0; size < b.size; size += 1 + size / 20) refuses(c, data, b.bytes, size, ESP_ERR_PARSE);
    for (size_t at = 0; at < b.size; at += SANITIZED ? 11 : 3) {
        b.bytes[at] ^= 1;
        refuses(c, data, b.bytes, b.size, ESP_ERR_PARSE);
        b.bytes[at] ^= 1;
    }
    esp_dataset *other = labelled(4, 30, 2, false);
    refuses(c, other, b.bytes, b.size, ESP_ERR_PARAM);
    refuses(&(trained_case){"svm", "C=6 solver=folded", c->kernel, 2}, data, b.bytes, b.size, ESP_ERR_PARAM);
    refuses(&(trained_case){"svm", c->settings, "norm(sst(tree, lambda=0.5))", 2}, data, b.bytes, b.size,
            ESP_ERR_PARAM);
    unlink(checkpoint());
    free(b.bytes);
    esp_dataset_free(other);
    esp_dataset_free(data);
}

static void test_only_the_folded_solver(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *kernel, *clause;
    } without[] = {
        {"solver=rows", "linear(x)", "the solver rows keeps no checkpoint"},
        {"inducing=5", "linear(x)", "inducing examples take the solver rows"},
        {"C=1", "linear(x) + rbf(x)", "the sums of rbf(x"},
        {"solver=folded", "linear(x) + rbf(x)", "the sums of rbf(x"},
        {"solver=folded inducing=5", "linear(x)", "inducing examples take the solver rows"},
    };
    esp_dataset *data = labelled(3, 30, 2, false);
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        const esp_run run = {.threads = 1, .checkpoint = checkpoint()};
        esp_model *m;
        esp_error err = {0};
        const esp_status status = train("svm", without[i].kernel, data, without[i].settings, &run, &m, &err);
        assert_int_equal(status, ESP_ERR_PARAM);
        assert_refused(status, &err, without[i].clause);
        assert_int_not_equal(access(checkpoint(), F_OK), 0);
    }
    esp_dataset_free(data);
}

/* ------------------------------------------------------------------ memory */

typedef struct failing {
    const trained_case *c;
    const esp_dataset *data;
    const blob *file; /* a checkpoint to go on from; NULL: none */
} failing;

static esp_status train_once(const void *argument, esp_error *err)
{
    const failing *f = argument;
    options o;
    esp_model *m = NULL;
    esp_kernel *kernel = NULL;
    options_of(&o, f->c->settings);
    if (f->file != NULL) spill(checkpoint(), f->file->bytes, f->file->size);
    const esp_run run = {.threads = 1, .checkpoint = f->file != NULL ? checkpoint() : NULL};
    esp_status status = esp_kernel_parse(f->c->kernel, &kernel, err);
    if (status == ESP_OK) status = esp_train(f->c->learner, kernel, f->data, o.setting, o.count, &run, &m, err);
    esp_model_free(m);
    esp_kernel_free(kernel);
    if (f->file != NULL) unlink(checkpoint());
    return status;
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES - 1; i++) {
        esp_dataset *data = labelled(i + 3, 12, cases[i].classes, false);
        out_of_memory_everywhere(train_once, &(failing){.c = &cases[i], .data = data});
        esp_dataset_free(data);
    }
    esp_dataset *data = labelled(3, 12, 2, false);
    const blob b = left_behind(&cases[0], data);
    out_of_memory_everywhere(train_once, &(failing){.c = &cases[0], .data = data, .file = &b});
    free(b.bytes);
    esp_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goes_on_with_threads),
        cmocka_unit_test(test_damaged_is_refused),
        cmocka_unit_test(test_only_the_folded_solver),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
