/* Shows what decides in a model of trees, and about the first example of some data: explain MODEL DATA CLASS */
#include <espalier.h>
#include <stdio.h>

static void print_features(const esp_explanation *explanation)
{
    for (size_t i = 0; i < esp_explanation_count(explanation); i++) {
        const esp_feature *feature = esp_explanation_feature(explanation, i);
        /* A weight belongs to the model; a contribution, weight times value, to an example. */
        printf("%8.3f %8.3f  %s\n", feature->weight, feature->contribution, feature->text);
    }
}

int main(int argc, char **argv)
{
    esp_model *model = NULL;
    esp_dataset *data = NULL;
    esp_explainer *explainer = NULL;
    esp_explanation *best = NULL, *example = NULL;
    esp_error error;
    if (argc != 4) return 2;
    const esp_explain_options options = {.class_name = argv[3], .top = 2};

    esp_status status = esp_model_read(argv[1], &model, &error);
    if (status == ESP_OK) status = esp_dataset_read(argv[2], NULL, NULL, &data, &error);
    if (status == ESP_OK) status = esp_explainer_new(model, NULL, &explainer, &error);
    if (status == ESP_OK) status = esp_explain(explainer, &options, NULL, &best, &error);
    if (status == ESP_OK) status = esp_explain_example(explainer, data, 0, &options, NULL, &example, &error);
    if (status == ESP_OK) {
        puts("in the model:");
        print_features(best);
        puts("in the first example:");
        print_features(example);
        printf("all others %.3f, bias %.3f; together %.3f\n", esp_explanation_rest(example, 0),
               esp_explanation_bias(example, 0), esp_explanation_score(example, 0));
    } else {
        fprintf(stderr, "%s\n", error.message);
    }

    esp_explanation_free(example);
    esp_explanation_free(best);
    esp_explainer_free(explainer); /* before the model, which it uses */
    esp_dataset_free(data);
    esp_model_free(model);
    return status != ESP_OK;
}
