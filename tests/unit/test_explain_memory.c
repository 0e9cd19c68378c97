/* Explanations within run->memory: a search that would hold more ends with a bound that is true, shares that would are
 * refused before anything is searched, and both can be interrupted. */
#include "explain_cases.h"

enum { TREES = 12 };

/* Fragments that weigh much the same, so that many wait: lambda is 1. */
static esp_model *model_of(ref_random *random, char **tree, size_t classes)
{
    char *lines = random_trees(random, TREES, false, tree);
    esp_model *m = random_model("sst(tree, lambda=1)", lines, classes, false, random);
    free(lines);
    return m;
}

static esp_explanation *within(const esp_explainer *e, size_t memory, int threads)
{
    esp_explanation *x = NULL;
    esp_error err = {0};
    const esp_run run = {.threads = threads, .memory = memory};
    assert_ok(esp_explain(e, &(esp_explain_options){.top = 2}, &run, &x, &err), "explain", &err);
    return x;
}

/* No fragment that is not listed weighs more than the bound. */
static void check_bound(const esp_model *m, const knowledge *k, const esp_explanation *x, size_t output)
{
    double bound;
    if (esp_explanation_is_exact(x, output, &bound)) return;
    assert_true(isfinite(bound) && bound > 0.0);
    for (size_t i = 0; i < k->count; i++) {
        const double weight = fabs(weight_of(m, k, &k->feature[i], output, false, 1.0));
        bool listed = false;
        for (size_t f = 0; weight > bound * (1.0 + 1e-9) && f < esp_explanation_count(x); f++) {
            const esp_feature *u = esp_explanation_feature(x, f);
            char *text = as_known(u);
            listed = listed || (u->output == output && strcmp(text, k->feature[i].text) == 0);
            free(text);
        }
        if (weight > bound * (1.0 + 1e-9) && !listed)
            fail_msg("%s weighs %g, but the bound is %g", k->feature[i].text, weight, bound);
    }
}

static void searches(void **state)
{
    (void)state;
    ref_random random = {5};
    size_t early = 0;
    for (size_t round = 0; round < 10; round++) {
        char *tree[TREES];
        esp_model *m = model_of(&random, tree, round % 2 == 0 ? 2 : 3);
        knowledge *k = fragments_of(tree, TREES, NULL, &(ref_weights){.lambda = 1.0, .alpha = 1.0});
        esp_explainer *e = explainer_of(m);
        for (size_t memory = 1; memory < 100000; memory *= 8) {
            esp_explanation *x = within(e, memory, 1), *y = within(e, memory, 2);
            assert_true(esp_explanation_count(x) > 0);
            assert_int_equal(esp_explanation_count(x), esp_explanation_count(y));
            for (size_t i = 0; i < esp_explanation_count(x); i++)
                assert_string_equal(esp_explanation_feature(x, i)->text, esp_explanation_feature(y, i)->text);
            for (size_t o = 0; o < esp_explanation_outputs(x); o++) {
                double one, two;
                early += !esp_explanation_is_exact(x, o, &one);
                esp_explanation_is_exact(y, o, &two);
                assert_true(one == two);
                check_bound(m, k, x, o);
            }
            esp_explanation_free(x);
            esp_explanation_free(y);
        }
        esp_explanation *x = within(e, (size_t)1 << 30, 1);
        for (size_t o = 0; o < esp_explanation_outputs(x); o++) assert_true(esp_explanation_is_exact(x, o, NULL));
        esp_explanation_free(x);
        esp_explainer_free(e);
        esp_model_free(m);
        knowledge_free(k);
        for (size_t i = 0; i < TREES; i++) free(tree[i]);
    }
    assert_true(early > 20); /* or else nothing was tested */
}

/* {"tree": "(A (A ... (A b)))"}; the caller frees it. */
static char *deep_line(size_t depth)
{
    char *tree = chain("(A ", "b", depth), *line = malloc(strlen(tree) + 40);
    assert_non_null(line);
    sprintf(line, "{\"tree\": \"%s\"}\n", tree);
    free(tree);
    return line;
}

typedef struct patience {
    size_t asked, left;
    double fraction;
} patience;

static int lose_patience(void *user, const char *stage, double fraction)
{
    patience *p = user;
    if (strcmp(stage, "sharing") != 0) return 0;
    p->asked++;
    p->fraction = fraction;
    return p->left-- == 0;
}

/* Two chains of n nodes have (n - 1)^2 + 1 pairs of equal productions; of a chain two columns are open at a time. */
static void shares(void **state)
{
    (void)state;
    enum { DEEP = 300 };
    ref_random random = {7};
    char *line = deep_line(DEEP);
    esp_model *m = random_model("norm(sst(tree, lambda=0.4))", line, 0, false, &random);
    m->coefficient[0] = 1.0;
    esp_dataset *data = dataset_of(line);
    esp_explainer *e = explainer_of(m);
    const size_t need = ((DEEP - 1) * (DEEP - 1) + 1 + 2 * (DEEP - 1)) * sizeof(double);
    for (size_t more = 0; more < 2; more++) {
        esp_explanation *x = NULL;
        esp_error err = {0};
        const esp_run run = {.threads = 1, .memory = need - 1 + more};
        const esp_explain_options options = {.shares = true, .effort = 10};
        const esp_status status = esp_explain_example(e, data, 0, &options, &run, &x, &err);
        assert_int_equal(status, more == 0 ? ESP_ERR_MEMORY : ESP_OK);
        if (more == 0)
            assert_string_equal(err.message,
                                "the shares of the nodes of example 1 take 720.0 kB; the limit is 720.0 kB; "
                                "without them it can be explained");
        else assert_int_equal(esp_explanation_nodes(x, 0), DEEP + 1);
        esp_explanation_free(x);
        const esp_explain_options none = {.effort = 10};
        assert_ok(esp_explain_example(e, data, 0, &none, &run, &x, &err), "without shares", &err);
        esp_explanation_free(x);
    }
    esp_explainer_free(e);
    esp_dataset_free(data);
    esp_model_free(m);
    free(line);
}

/* Of a long tree, one point of the quadrature takes a while: there are questions in between. */
static void interrupted(void **state)
{
    (void)state;
    enum { DEEP = 3000 };
    ref_random random = {7};
    char *line = deep_line(DEEP);
    esp_model *m = random_model("norm(sst(tree, lambda=0.4))", line, 0, false, &random);
    m->coefficient[0] = 1.0;
    esp_dataset *data = dataset_of(line);
    esp_explainer *e = explainer_of(m);
    patience p = {.left = 3};
    const esp_run run = {.threads = 1, .progress = lose_patience, .user = &p};
    esp_explanation *x = (esp_explanation *)(uintptr_t)1;
    esp_error err = {0};
    const long live = espi_alloc_live();
    assert_int_equal(
        esp_explain_example(e, data, 0, &(esp_explain_options){.shares = true, .effort = 10}, &run, &x, &err),
        ESP_ERR_CANCELLED);
    assert_null(x);
    assert_int_equal(p.asked, 4);
    assert_true(p.fraction == 0.0); /* still the first point */
    assert_int_equal(espi_alloc_live(), live);
    esp_explainer_free(e);
    esp_dataset_free(data);
    esp_model_free(m);
    free(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(searches),
        cmocka_unit_test(shares),
        cmocka_unit_test(interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
