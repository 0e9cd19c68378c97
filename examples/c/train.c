/* Learns the kinds of questions and says how well others are told: train TRAIN TEST */
#include <espalier.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    esp_dataset *train = NULL, *test = NULL;
    esp_kernel *kernel = NULL;
    esp_model *model = NULL;
    esp_predictions *predictions = NULL;
    esp_metrics *metrics = NULL;
    esp_error error;
    const esp_setting settings[] = {{"C", "10"}};
    if (argc != 3) return 2;

    esp_status status = esp_dataset_read(argv[1], NULL, NULL, &train, &error);
    if (status == ESP_OK) status = esp_dataset_read(argv[2], NULL, NULL, &test, &error);
    if (status == ESP_OK) status = esp_kernel_parse("norm(sst(tree, lambda=0.4))", &kernel, &error);
    if (status == ESP_OK) status = esp_train("svm", kernel, train, settings, 1, NULL, &model, &error);
    if (status == ESP_OK) status = esp_model_write(model, "kinds.model", &error);
    if (status == ESP_OK) status = esp_predict(model, test, NULL, &predictions, &error);
    if (status == ESP_OK) status = esp_metrics_new(predictions, test, &metrics, &error);
    if (status == ESP_OK) {
        for (size_t i = 0; i < 3; i++)
            printf("%s\t%.3f\n", esp_predictions_label(predictions, i), esp_predictions_score(predictions, i));
        printf("accuracy %.3f\n", esp_metrics_value(metrics, "accuracy"));
    } else {
        fprintf(stderr, "%s\n", error.message);
    }

    esp_metrics_free(metrics);
    esp_predictions_free(predictions);
    esp_model_free(model);
    esp_kernel_free(kernel);
    esp_dataset_free(test);
    esp_dataset_free(train);
    return status != ESP_OK;
}
