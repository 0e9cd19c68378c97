/* Kernel expressions: what parses is printed as an expression that parses to the same print. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *file = text; (file = strstr(file, "grammar")) != NULL;) { /* rules in braces only: no file is opened */
        file += strlen("grammar");
        const size_t to = strspn(file, " \t\r\n=");
        if (to > 0 && file[to] != '\0') file[to] = '{';
    }
    esp_kernel *kernel = NULL, *again = NULL;
    esp_error err = {0};
    const esp_status status = esp_kernel_parse(text, &kernel, &err);
    fuzz_require((status == ESP_OK) == (kernel != NULL), "there is a kernel just when all went well", &err);
    if (status == ESP_OK) {
        fuzz_require(esp_kernel_parse(esp_kernel_text(kernel), &again, &err) == ESP_OK, "a print parses", &err);
        fuzz_require(strcmp(esp_kernel_text(kernel), esp_kernel_text(again)) == 0, "it prints the same", NULL);
    } else {
        fuzz_require(err.message[0] != '\0', "a failure has a sentence", NULL);
    }
    esp_kernel_free(again);
    esp_kernel_free(kernel);
    free(text);
    return 0;
}
