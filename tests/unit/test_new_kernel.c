/* A kernel that nobody listed, described as CONTRIBUTING.md says and no more: it can be parsed, combined, computed,
 * learned with, predicted with and explained, as far as a kernel without features can be.
 *
 *     K(S, T) = bias + [the roots of S and T have the same label] */
#include "kernel/evaluate/registry.h"
#include "kernel/expression/columns.h"
#include "learning.h"

typedef struct toy_part {
    espi_part part;
    const espi_column *side[2];
    double bias;
} toy_part;

static esp_status bind(const espi_leaf *leaf, const espi_column *rows, const espi_column *cols, const espi_part *base,
                       const esp_run *run, espi_part **out, esp_error *err)
{
    (void)base, (void)run, (void)err;
    toy_part *p = calloc(1, sizeof *p);
    assert_non_null(p);
    *p = (toy_part){{leaf->class}, {rows, cols}, espi_leaf_value(leaf, "bias")};
    *out = &p->part;
    return ESP_OK;
}

static void release(espi_part *part) { free(part); }

static double toy_value(const toy_part *p, espi_side a, size_t i, espi_side b, size_t j)
{
    const espi_forest *f = &p->side[a]->trees, *g = &p->side[b]->trees;
    const char *left = f->symbols.symbol[espi_production_of(f, f->root[i])->label].text;
    const char *right = g->symbols.symbol[espi_production_of(g, g->root[j])->label].text;
    return p->bias + (strcmp(left, right) == 0 ? 1.0 : 0.0);
}

static esp_status row(const espi_part *part, void *workspace, size_t i, size_t from, size_t to, double *out,
                      esp_error *err)
{
    (void)workspace, (void)err;
    const toy_part *p = (const toy_part *)(const void *)part;
    for (size_t j = from; j < to; j++) out[j - from] = toy_value(p, ESPI_ROWS, i, ESPI_COLS, j);
    return ESP_OK;
}

static esp_status diagonal(const espi_part *part, espi_side side, const esp_run *run, double *out, esp_error *err)
{
    (void)run, (void)err;
    const toy_part *p = (const toy_part *)(const void *)part;
    for (size_t i = 0; i < p->side[side]->rows; i++) out[i] = toy_value(p, side, i, side, i);
    return ESP_OK;
}

static esp_status pair(const espi_part *part, espi_side a, size_t i, espi_side b, size_t j, espi_wide *value,
                       esp_error *err)
{
    (void)err;
    *value = espi_wide_of(toy_value((const toy_part *)(const void *)part, a, i, b, j));
    return ESP_OK;
}

static const espi_kernel_class toy = {
    .name = "toy",
    .help = "equal roots",
    .parameters =
        (const espi_parameter[]){{.info = {"bias", "added", "0.5", "a number >= 0", ESP_KIND_NUMBER}, .high = HUGE_VAL},
                                 {.info = {0}}},
    .takes = {[ESP_COLUMN_TREE] = true},
    .bind = bind,
    .free = release,
    .row = row,
    .diagonal = diagonal,
    .pair = pair};

#define DATA                                                                                                           \
    "{\"y\": \"a\", \"tree\": \"(A x)\"}\n{\"y\": \"a\", \"tree\": \"(A y)\"}\n{\"y\": \"b\", \"tree\": \"(B x)\"}\n"  \
    "{\"y\": \"b\", \"tree\": \"(B y)\"}\n"

static esp_kernel *toy_kernel(const char *expression)
{
    const espi_kernel_class *const classes[] = {&toy, NULL};
    esp_kernel *kernel = NULL;
    esp_error err = {0};
    assert_ok(espi_expression_parse(expression, classes, false, &kernel, &err), expression, &err);
    return kernel;
}

static void test_values(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of(DATA);
    esp_kernel *kernel = toy_kernel("2*toy(bias=1) + norm(toy)^2");
    double gram[16];
    esp_error err = {0};
    assert_string_equal(esp_kernel_text(kernel), "2*toy(bias=1) + norm(toy(bias=0.5))^2");
    assert_ok(esp_gram(kernel, data, NULL, NULL, gram, &err), "gram", &err);
    assert_close(gram[1], 2.0 * 2.0 + 1.0, 1e-12, "equal roots");
    assert_close(gram[2], 2.0 * 1.0 + 1.0 / 9.0, 1e-12, "other roots");
    esp_kernel_free(kernel);
    esp_dataset_free(data);
}

static void test_learning_and_explaining(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of(DATA);
    esp_kernel *kernel = toy_kernel("0.5*norm(toy)");
    esp_model *model = NULL;
    esp_explainer *explainer = NULL;
    esp_explanation *explanation = NULL;
    esp_error err = {0};
    assert_ok(esp_train("svm", kernel, data, NULL, 0, NULL, &model, &err), "train", &err);
    esp_predictions *p = predicted(model, data, 2);
    for (size_t i = 0; i < 4; i++) assert_string_equal(esp_predictions_label(p, i), i < 2 ? "a" : "b");
    assert_ok(esp_explainer_new(model, NULL, &explainer, &err), "explainer", &err);
    assert_string_equal(
        esp_explainer_reason(explainer, 0),
        "0.5*norm(toy(tree, bias=0.5)) has no features that could be weighed; given examples, it can be "
        "told which support examples push their scores");
    assert_ok(esp_explain_example(explainer, data, 0, NULL, NULL, &explanation, &err), "explain", &err);
    assert_true(esp_explanation_count(explanation) > 0);
    assert_int_equal(esp_explanation_feature(explanation, 0)->kind, ESP_FEATURE_EXAMPLE);
    esp_explanation_free(explanation);
    esp_explainer_free(explainer);
    esp_predictions_free(p);
    esp_model_free(model);
    esp_kernel_free(kernel);
    esp_dataset_free(data);
}

/* Learners that need more than it has say so. */
static void test_what_it_lacks(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of(DATA);
    esp_kernel *kernel = toy_kernel("toy");
    esp_model *model = NULL;
    esp_error err = {0};
    assert_refused(esp_train("perceptron", kernel, data, NULL, 0, NULL, &model, &err), &err,
                   "the kernel toy cannot be learned example by example");
    esp_kernel_free(kernel);
    esp_dataset_free(data);
}

/* The tables of all kernels and learners are whole: kinds have what belongs to them. */
static void test_tables(void **state)
{
    (void)state;
    for (size_t k = 0; espi_kernels[k] != NULL; k++)
        for (const espi_parameter *p = espi_kernels[k]->parameters; p->info.name != NULL; p++) {
            assert_non_null(p->info.help);
            assert_non_null(p->info.range);
            assert_true((p->info.kind == ESP_KIND_CHOICE) == (p->choices != NULL));
            assert_true((p->info.kind == ESP_KIND_RULES) == (p->argument != NULL));
            assert_true(p->info.kind == ESP_KIND_NUMBER || p->draw_low == 0.0);
        }
    for (size_t l = 0; esp_learner_name(l, NULL) != NULL; l++) {
        esp_error err = {0};
        const espi_learner *learner = espi_learner_find(esp_learner_name(l, NULL), &err);
        assert_true(learner->train != NULL || learner->online != NULL);
        assert_non_null(learner->targets);
        assert_non_null(learner->outputs);
        assert_non_null(learner->out_of_fold);
        assert_int_equal((learner->capabilities & ESP_LEARNS_ONLINE) != 0, learner->online != NULL);
        assert_true(learner->capabilities != 0);
        size_t count = 0;
        for (const espi_setting *s = learner->settings; s->info.name != NULL; s++) {
            assert_true(++count <= 64); /* the bits of espi_settings.given */
            assert_true((s->info.kind == ESP_KIND_CHOICE) == (s->choices != NULL));
            assert_true(s->offset >= sizeof(espi_settings) && s->offset < learner->settings_size);
        }
        espi_settings *settings = settings_of(learner->name, "");
        assert_int_equal(espi_capabilities(settings) & ~learner->capabilities, 0);
        espi_settings_free(settings);
    }
    assert_int_equal(esp_learner_capabilities("nobody", NULL, 0), 0);
    assert_int_equal(esp_learner_capabilities("gp", (esp_setting[]){{"likelihood", "bernoulli"}}, 1) &
                         (ESP_LEARNS_CLASSES | ESP_LEARNS_NUMBERS),
                     ESP_LEARNS_CLASSES);
    const esp_setting few[] = {{"inducing", "5"}, {"likelihood", "bernoulli"}, {"noise", "little"}, {"nothing", "1"}};
    assert_int_equal(esp_learner_capabilities("gp", few, 1) & ESP_NEEDS_MATRIX, 0);
    assert_int_equal(esp_learner_capabilities("gp", few + 1, 3), esp_learner_capabilities("gp", few + 1, 1));
}

#define TEST(name) cmocka_unit_test_teardown(name, no_blocks_left)
int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_values), TEST(test_learning_and_explaining), TEST(test_what_it_lacks),
                                       TEST(test_tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
