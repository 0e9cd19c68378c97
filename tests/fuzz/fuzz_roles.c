/* Sentences with predicates; the bits of the first byte are the options. Examples that are written can be read, and are
 * as many as was told. */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void write_input(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    fuzz_require(file != NULL, "the scratch directory can be written", NULL);
    fwrite(data, 1, size, file);
    fclose(file);
}

static void require_readable(const char *path, const esp_srl_counts *counts, size_t trees)
{
    esp_error err = {0};
    esp_dataset *data = NULL;
    if (counts->examples == 0) return;
    fuzz_require(esp_dataset_read(path, NULL, NULL, &data, &err) == ESP_OK, "examples can be read", &err);
    fuzz_require(esp_dataset_count(data) == counts->examples, "the examples were counted", NULL);
    fuzz_require(esp_dataset_columns(data) == trees + 1, "an example has its trees and a vector", NULL);
    esp_dataset_free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > 4096) return 0; /* deep trees give long examples, and many of them */
    char input[4200], output[4200];
    strcpy(input, fuzz_file("roles.srl"));
    strcpy(output, fuzz_file("roles.out"));
    write_input(input, data + 1, size - 1);
    const uint8_t bits = data[0];
    const esp_srl_options options = {.task = (bits & 1) != 0 ? ESP_SRL_ROLE : ESP_SRL_BOUNDARY,
                                     .unary_all = (bits & 2) != 0,
                                     .no_mark = (bits & 4) != 0,
                                     .full_roles = (bits & 8) != 0,
                                     .skip_bad = (bits & 16) != 0,
                                     .split = (bits & 64) != 0,
                                     .to = (bits & 32) != 0 ? ESP_FORMAT_SVMTK : ESP_FORMAT_JSONL,
                                     .limit = 1000};
    const char *path = input;
    esp_srl_counts counts;
    esp_error err = {0};
    const esp_status status = esp_srl_write(&path, 1, &options, NULL, output, &counts, &err);
    if (status == ESP_OK) require_readable(output, &counts, options.split ? 3 : 1);
    else fuzz_require(err.message[0] != '\0', "a failure has a sentence", NULL);
    if (status == ESP_ERR_PARSE)
        fuzz_require(strncmp(err.message, input, strlen(input)) == 0, "a place is named", &err);
    fuzz_require((status == ESP_OK) == (access(output, F_OK) == 0), "a file appears just when all went well", &err);
    unlink(input);
    unlink(output);
    return 0;
}
