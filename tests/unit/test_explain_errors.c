/* Explanations that are refused, and values at the ends of what numbers can be. */
#include "explain_cases.h"

static void refusals(void **state)
{
    (void)state;
    ref_random random = {12};
    esp_model *m = random_model("sst(tree)", "{\"tree\": \"(S (A a))\"}\n", 2, false, &random);
    esp_dataset *data = dataset_of("{\"tree\": \"(S (A a))\"}\n"), *other = dataset_of("{\"x\": {\"p\": 1}}\n");
    esp_explainer *e = explainer_of(m), *none = (esp_explainer *)(uintptr_t)1;
    esp_explanation *x = (esp_explanation *)(uintptr_t)1;
    esp_error err = {0};
    assert_int_equal(esp_explain(e, &(esp_explain_options){.class_name = "C"}, NULL, &x, &err), ESP_ERR_PARAM);
    assert_non_null(strstr(err.message, "no class 'C'"));
    assert_null(x);
    assert_int_equal(esp_explain_example(e, data, 1, NULL, NULL, &x, &err), ESP_ERR_PARAM);
    assert_string_equal(err.message, "there is no example 2; there are 1");
    assert_int_equal(esp_explain_example(e, other, 0, NULL, NULL, &x, &err), ESP_ERR_PARAM);
    assert_non_null(strstr(err.message, "no column 'tree'"));
    m->vote = true;
    assert_int_equal(esp_explainer_new(m, NULL, &none, &err), ESP_ERR_PARAM);
    assert_non_null(strstr(err.message, "votes"));
    assert_null(none);
    m->vote = false;
    m->classes = 0;
    assert_int_equal(esp_explain(e, &(esp_explain_options){.class_name = "A"}, NULL, &x, &err), ESP_ERR_PARAM);
    assert_non_null(strstr(err.message, "predicts numbers"));
    m->classes = 2;
    esp_explainer_free(e);
    esp_dataset_free(data);
    esp_dataset_free(other);
    esp_model_free(m);
}

static void weights_too_large(void **state)
{
    (void)state;
    char line[4000] = "{\"tree\": \"", *at = line + strlen(line);
    for (size_t i = 0; i < 600; i++) at += sprintf(at, "(A ");
    at += sprintf(at, "a");
    for (size_t i = 0; i < 600; i++) at += sprintf(at, ")");
    sprintf(at, "\"}\n");
    static const char *const kernels[] = {"sst(tree, lambda=1000)", "st(tree, lambda=1000)",
                                          "norm(sst(tree, lambda=1e5))"};
    for (size_t i = 0; i < 3; i++) {
        ref_random random = {2};
        esp_model *m = random_model(kernels[i], line, 0, false, &random);
        m->coefficient[0] = 1.0;
        esp_explainer *e = NULL;
        esp_explanation *x = NULL;
        esp_error err = {0};
        esp_status status = esp_explainer_new(m, NULL, &e, &err);
        if (status == ESP_OK) status = esp_explain(e, NULL, NULL, &x, &err);
        assert_int_equal(status, ESP_ERR_RANGE);
        assert_non_null(strstr(err.message, "too large for a number"));
        assert_null(x);
        esp_explainer_free(e);
        esp_model_free(m);
    }
}

/* A self-value of an example that is beyond all numbers is none of the model's, and nothing is NaN. */
static void example_too_large(void **state)
{
    (void)state;
    char line[9000] = "{\"tree\": \"", *at = line + strlen(line);
    for (size_t i = 0; i < 1200; i++) at += sprintf(at, "(A ");
    at += sprintf(at, "a");
    for (size_t i = 0; i < 1200; i++) at += sprintf(at, ")");
    sprintf(at, "\"}\n");
    ref_random random = {2};
    esp_model *m = random_model("norm(sst(tree, lambda=3))", "{\"tree\": \"(A (A a))\"}\n", 0, false, &random);
    m->coefficient[0] = 1.0;
    esp_dataset *data = dataset_of(line);
    esp_explainer *e = explainer_of(m);
    esp_explanation *x = explained_example(e, data, 0, &(esp_explain_options){.shares = true});
    assert_adds_up(x, esp_explanation_score(x, 0), 0);
    for (size_t n = 0; n < 1201; n++) assert_true(isfinite(esp_explanation_share(x, 0, n, 0)));
    esp_explanation_free(x);
    esp_explainer_free(e);
    esp_dataset_free(data);
    esp_model_free(m);
}

static void no_support(void **state)
{
    (void)state;
    ref_random random = {12};
    esp_model *m = random_model("norm(sst(tree, bow=1)) + linear(w) + linear(x) + rbf(x)",
                                "{\"tree\": \"(S a)\", \"w\": \"a\", \"x\": {\"p\": 1}}\n", 0, false, &random);
    esp_dataset *data = dataset_of("{\"tree\": \"(S a)\", \"w\": \"a b\", \"x\": {\"p\": 1}}\n"), *empty = NULL;
    esp_error err = {0};
    assert_ok(espi_dataset_select(m->support, (const bool[]){true, true, true}, (const bool[]){false}, &empty, &err),
              "select", &err);
    esp_dataset_free(m->support);
    m->support = empty;
    esp_explainer *e = explainer_of(m);
    esp_explanation *x = explained(e, NULL), *y = explained_example(e, data, 0, &(esp_explain_options){.shares = true});
    assert_int_equal(esp_explanation_count(x), 0);
    assert_int_equal(esp_explanation_count(y), 0);
    assert_true(esp_explanation_score(y, 0) == m->bias[0]);
    assert_int_equal(esp_explanation_nodes(y, 0), 2);
    char *json = NULL;
    assert_ok(esp_explanation_json(x, &json, &err), "json", &err);
    assert_string_equal(json, "");
    esp_text_free(json);
    esp_explanation_free(x);
    esp_explanation_free(y);
    esp_explainer_free(e);
    esp_dataset_free(data);
    esp_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals),
        cmocka_unit_test(weights_too_large),
        cmocka_unit_test(example_too_large),
        cmocka_unit_test(no_support),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
