/* Kernel values between trees that a program has in memory. */
#include <espalier.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 3 };

int main(void)
{
    const char trees[] = "(NP (DT a) (JJ red) (NN car))\n"
                         "(NP (DT a) (NN car))\n"
                         "(NP (DT the) (NN sky))\n";
    esp_dataset *data = NULL;
    esp_kernel *kernel = NULL;
    esp_error error;
    double gram[COUNT * COUNT];

    esp_status status = esp_dataset_parse(trees, strlen(trees), "trees", NULL, NULL, &data, &error);
    if (status == ESP_OK) status = esp_kernel_parse("norm(sst(lambda=0.4))", &kernel, &error);
    if (status == ESP_OK) status = esp_gram(kernel, data, NULL, NULL, gram, &error);
    if (status != ESP_OK) fprintf(stderr, "%s\n", error.message);
    for (size_t i = 0; status == ESP_OK && i < COUNT; i++) {
        for (size_t j = 0; j < COUNT; j++) printf("%.3f%c", gram[i * COUNT + j], j + 1 < COUNT ? '\t' : '\n');
    }

    esp_kernel_free(kernel);
    esp_dataset_free(data);
    return status != ESP_OK;
}
