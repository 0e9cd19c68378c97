/* Files of grammar rules: what can be read is printed as an expression that parses to the same print, without the file,
 * and the kernel can be computed by it. */
#include "fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void compute(const esp_kernel *kernel)
{
    static const char trees[] = "(A (B b) (C c) (B b))\n(A (B c) (C (B b)) d)\n(S (A (B b) (C c)) (B x y))\n";
    esp_dataset *data = NULL;
    esp_error err = {0};
    double gram[9];
    const esp_read_options options = {.format = ESP_FORMAT_PENN};
    fuzz_require(esp_dataset_parse(trees, sizeof trees - 1, "trees", &options, NULL, &data, &err) == ESP_OK, "trees",
                 &err);
    fuzz_require(esp_gram(kernel, data, NULL, &(esp_run){.threads = 1}, gram, &err) == ESP_OK, "a matrix", &err);
    for (int i = 0; i < 9; i++) fuzz_require(isfinite(gram[i]) && gram[i] >= 0.0, "values are numbers", NULL);
    char *warning = NULL;
    fuzz_require(esp_kernel_warning(kernel, data, NULL, &warning, &err) == ESP_OK, "a warning or none", &err);
    esp_text_free(warning);
    esp_dataset_free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("rules");
    FILE *file = fopen(path, "wb");
    fuzz_require(file != NULL, "the scratch directory can be written", NULL);
    fwrite(data, 1, size, file);
    fclose(file);
    char expression[4200];
    snprintf(expression, sizeof expression, "gtk(grammar=\"%s\")", path);
    esp_kernel *kernel = NULL, *again = NULL;
    esp_error err = {0};
    const esp_status status = esp_kernel_parse(expression, &kernel, &err);
    fuzz_require((status == ESP_OK) == (kernel != NULL), "there is a kernel just when all went well", &err);
    unlink(path);
    if (status == ESP_OK) {
        fuzz_require(esp_kernel_parse(esp_kernel_text(kernel), &again, &err) == ESP_OK, "a print parses", &err);
        fuzz_require(strcmp(esp_kernel_text(kernel), esp_kernel_text(again)) == 0, "it prints the same", NULL);
        compute(kernel);
    } else if (status == ESP_ERR_PARSE) {
        fuzz_require(strncmp(err.message, path, strlen(path)) == 0, "a place is named", &err);
    } else {
        fuzz_require(err.message[0] != '\0', "a failure has a sentence", NULL);
    }
    esp_kernel_free(again);
    esp_kernel_free(kernel);
    return 0;
}
