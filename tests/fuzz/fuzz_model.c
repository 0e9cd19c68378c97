/* Model files with a right length and checksum: what is taken for a model has a summary, can be written and read again,
 * is then written the same, and predicts and goes on learning or says why not. The seeds are made by
 * tests/unit/test_model_file.c. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static esp_model *parse(const uint8_t *bytes, size_t size)
{
    esp_model *model = NULL;
    esp_error err = {0};
    const esp_status status = esp_model_parse(bytes, size, "input", &model, &err);
    fuzz_require((status == ESP_OK) == (model != NULL), "there is a model just when all went well", &err);
    if (status != ESP_OK) {
        fuzz_require(status == ESP_ERR_PARSE || status == ESP_ERR_MEMORY, "it is the file's fault", &err);
        fuzz_require(status != ESP_ERR_PARSE || strncmp(err.message, "input: ", 7) == 0, "the file is named", &err);
    }
    return model;
}

static void round_trip(const esp_model *model)
{
    esp_error err = {0};
    esp_model *again = NULL;
    char first[4200], second[4200], *text = NULL;
    strcpy(first, fuzz_file("first.model"));
    strcpy(second, fuzz_file("second.model"));
    fuzz_require(esp_model_summary(model, &text, &err) == ESP_OK, "a model has a summary", &err);
    esp_text_free(text);
    fuzz_require(esp_model_kernel(model) != NULL && esp_model_learner(model) != NULL, "it has a kernel", NULL);
    for (size_t i = 0; i < esp_model_classes(model); i++)
        fuzz_require(esp_model_class(model, i) != NULL, "a class has a name", NULL);
    fuzz_require(esp_model_write(model, first, &err) == ESP_OK, "a model can be written", &err);
    fuzz_require(esp_model_read(first, &again, &err) == ESP_OK, "what was written can be read", &err);
    fuzz_require(esp_model_write(again, second, &err) == ESP_OK, "it can be written again", &err);
    fuzz_require(fuzz_same_file(first, second), "the second writing equals the first", NULL);
    esp_model_free(again);
    unlink(first);
    unlink(second);
}

enum { SMALL = 1 << 14 }; /* bytes of a file: larger models may take their time */

/* Every class has a column, and a failure a sentence: columns that do not fit, or numbers that are too large. */
static void predict(const esp_model *model)
{
    static const char lines[] = "{\"tree\": \"(S (NP (D the) w) (VP (V saw) (NP (D the) w)))\", \"x\": {\"a\": 1, "
                                "\"len\": 2}, \"words\": \"the cat "
                                "sat\", \"d\": [1, 2], \"n\": 1}\n"
                                "{\"tree\": \"(S (X y))\", \"x\": {}, \"words\": \"\", \"d\": [0, 1], \"n\": 0}\n";
    const esp_read_options options = {.format = ESP_FORMAT_JSONL};
    const esp_run run = {.threads = 1};
    esp_dataset *data = NULL;
    esp_predictions *p = NULL;
    esp_error err = {0};
    fuzz_require(esp_dataset_parse(lines, sizeof lines - 1, "lines", &options, NULL, &data, &err) == ESP_OK,
                 "the examples can be read", &err);
    const esp_status status = esp_predict(model, data, &run, &p, &err);
    fuzz_require((status == ESP_OK) == (p != NULL), "there are predictions just when all went well", &err);
    fuzz_require(status == ESP_OK || err.message[0] != '\0', "a failure has a sentence", &err);
    for (size_t i = 0; p != NULL && i < esp_predictions_count(p); i++) {
        fuzz_require((esp_predictions_label(p, i) != NULL) == esp_predictions_are_classes(p), "a class has a name",
                     NULL);
        (void)esp_predictions_score(p, i);
        for (size_t c = 0; c < esp_predictions_classes(p); c++)
            fuzz_require(!(esp_predictions_probability(p, i, c) > 1.0), "a probability is at most 1", NULL);
    }
    esp_predictions_free(p);
    esp_dataset_free(data);
}

/* A model that was learned example by example goes on, or says why not. */
static void resume(const esp_model *model)
{
    esp_online *online = NULL;
    esp_error err = {0};
    const esp_status status = esp_online_resume(model, NULL, 0, NULL, &online, &err);
    fuzz_require((status == ESP_OK) == (online != NULL), "there is a learner just when all went well", &err);
    fuzz_require(status == ESP_OK || err.message[0] != '\0', "a failure has a sentence", &err);
    esp_online_free(online);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    esp_model *model = parse(data, size);
    esp_model_free(model);
    enum { VERSION = 8, VERSIONS = 5 }; /* where it stands; how many there are */
    const uint8_t given = size > VERSION ? data[VERSION] : 0;
    uint8_t *bytes = fuzz_signed(data, size,
                                 "\x89"
                                 "ESP\r\n\x1A\n",
                                 given > 0 && given <= VERSIONS ? given : VERSIONS);
    if (bytes == NULL) return 0;
    model = parse(bytes, size);
    if (model != NULL) round_trip(model);
    if (model != NULL && size <= SMALL) {
        predict(model);
        resume(model);
    }
    esp_model_free(model);
    free(bytes);
    return 0;
}
