/* Uses the installed library: reads two trees and computes a kernel value. */
#include <espalier.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    const char text[] = "(S (A a) (B b))\n(S (A a) (B c))\n";
    esp_dataset *data = NULL;
    esp_kernel *kernel = NULL;
    esp_error err = {0};
    double gram[4] = {0};
    const int bad = esp_dataset_parse(text, strlen(text), "text", NULL, NULL, &data, &err) != ESP_OK ||
                    esp_kernel_parse("norm(sst(lambda=0.4))", &kernel, &err) != ESP_OK ||
                    esp_gram(kernel, data, NULL, NULL, gram, &err) != ESP_OK;
    printf("%s %s %.17g\n", esp_version(), bad ? err.message : "ok", gram[1]);
    esp_kernel_free(kernel);
    esp_dataset_free(data);
    return bad || strcmp(esp_version(), ESP_VERSION) != 0 || !(gram[1] > 0 && gram[1] < 1);
}
