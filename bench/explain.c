/* Measurements for bench/explain.sh: preparing a model to be explained, its features with the largest weights, and
 * examples. Times are medians of runs in one process. Results go to standard
 * output as lines of TAB-separated fields. */
#include "measure.h"

static esp_model *read_model(const char *path)
{
    esp_model *model;
    esp_error err;
    check(esp_model_read(path, &model, &err), &err);
    return model;
}

/* model MODEL TOP REPEATS: milliseconds to prepare and to find the best of every decision function, and whether all
 * lists are exact */
static void explain_model(char **argument)
{
    esp_model *model = read_model(argument[0]);
    const esp_explain_options options = {.top = (size_t)atol(argument[1])};
    const int repeats = repeats_of(argument[2]);
    double ready[MOST], found[MOST];
    size_t features = 0;
    bool exact = true;
    for (int i = 0; i < repeats; i++) {
        esp_explainer *explainer;
        esp_explanation *x;
        esp_error err;
        const double began = now();
        check(esp_explainer_new(model, &one_thread, &explainer, &err), &err);
        ready[i] = now() - began;
        check(esp_explain(explainer, &options, &one_thread, &x, &err), &err);
        found[i] = now() - began - ready[i];
        features = esp_explanation_count(x);
        for (size_t o = 0; o < esp_explanation_outputs(x); o++) exact = exact && esp_explanation_is_exact(x, o, NULL);
        esp_explanation_free(x);
        esp_explainer_free(explainer);
    }
    printf("%zu\t%s\t%.1f\t%.1f\n", features, exact ? "yes" : "no", 1e3 * median(ready, repeats),
           1e3 * median(found, repeats));
    esp_model_free(model);
}

/* example MODEL DATA TOP REPEATS: examples, milliseconds for each with the predicted class alone, and with the shares
 * of its nodes besides */
static void explain_examples(char **argument)
{
    esp_model *model = read_model(argument[0]);
    esp_dataset *data = load(argument[1], NULL);
    const size_t count = esp_dataset_count(data);
    const int repeats = repeats_of(argument[3]);
    double time[2][MOST];
    esp_explainer *explainer;
    esp_predictions *predicted;
    esp_error err;
    check(esp_explainer_new(model, &one_thread, &explainer, &err), &err);
    check(esp_predict(model, data, &one_thread, &predicted, &err), &err);
    for (int i = 0; i < repeats; i++)
        for (int shares = 0; shares < 2; shares++) {
            const double began = now();
            for (size_t k = 0; k < count; k++) {
                const esp_explain_options options = {.class_name = esp_predictions_label(predicted, k),
                                                     .top = (size_t)atol(argument[2]),
                                                     .shares = shares == 1};
                esp_explanation *x;
                check(esp_explain_example(explainer, data, k, &options, &one_thread, &x, &err), &err);
                esp_explanation_free(x);
            }
            time[shares][i] = (now() - began) / (double)count;
        }
    printf("%zu\t%.2f\t%.2f\n", count, 1e3 * median(time[0], repeats), 1e3 * median(time[1], repeats));
    esp_predictions_free(predicted);
    esp_explainer_free(explainer);
    esp_dataset_free(data);
    esp_model_free(model);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "model") == 0) explain_model(argv + 2);
    else if (argc == 6 && strcmp(argv[1], "example") == 0) explain_examples(argv + 2);
    else return 2;
    return 0;
}
