/* Grammar files for sampling; the first byte is the seed. */
#include "fuzz.h"

#include <stdio.h>
#include <unistd.h>

/* Stops what takes long, as a user would. */
static int impatient(void *user, const char *stage, double fraction)
{
    (void)stage;
    (void)fraction;
    return --*(int *)user < 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const char *path = fuzz_file("grammar");
    FILE *file = fopen(path, "wb");
    fuzz_require(file != NULL, "the scratch directory can be written", NULL);
    fwrite(data + 1, 1, size - 1, file);
    fclose(file);
    int patience = 1000;
    const esp_run run = {.threads = 1, .memory = (size_t)64 << 20, .progress = impatient, .user = &patience};
    esp_dataset *sample = NULL;
    esp_error err = {0};
    const esp_status status = esp_dataset_sample(path, 3, data[0], &run, &sample, &err);
    fuzz_require((status == ESP_OK) == (sample != NULL), "there is a sample just when all went well", &err);
    if (status == ESP_OK) fuzz_require(esp_dataset_count(sample) == 3, "the sample is complete", NULL);
    else fuzz_require(err.message[0] != '\0', "a failure has a sentence", NULL);
    esp_dataset_free(sample);
    unlink(path);
    return 0;
}
