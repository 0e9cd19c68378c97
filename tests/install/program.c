/* Uses the installed library: reads two trees, computes a kernel value, and trains
 * what needs the libraries below it. */
#include <espalier.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    const char text[] = "(S (A a) (B b))\n(S (A a) (B c))\n";
    esp_dataset *data = NULL;
    const char numbers[] = "1 1:1\n2 1:2\n4 1:3\n";
    esp_dataset *targets = NULL;
    esp_kernel *kernel = NULL, *rbf = NULL;
    esp_model *model = NULL;
    esp_error err = {0};
    double gram[4] = {0};
    const int bad = esp_dataset_parse(text, strlen(text), "text", NULL, NULL, &data, &err) != ESP_OK ||
                    esp_kernel_parse("norm(sst(lambda=0.4))", &kernel, &err) != ESP_OK ||
                    esp_gram(kernel, data, NULL, NULL, gram, &err) != ESP_OK ||
                    esp_dataset_parse(numbers, strlen(numbers), "numbers", NULL, NULL, &targets, &err) != ESP_OK ||
                    esp_kernel_parse("1*rbf(x)", &rbf, &err) != ESP_OK ||
                    esp_train("gp", rbf, targets, NULL, 0, NULL, &model, &err) != ESP_OK;
    printf("%s %s %.17g\n", esp_version(), bad ? err.message : "ok", gram[1]);
    esp_model_free(model);
    esp_kernel_free(rbf);
    esp_kernel_free(kernel);
    esp_dataset_free(targets);
    esp_dataset_free(data);
    return bad || strcmp(esp_version(), ESP_VERSION) != 0 || !(gram[1] > 0 && gram[1] < 1);
}
