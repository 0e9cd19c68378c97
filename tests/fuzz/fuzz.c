#define XXH_INLINE_ALL
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

void fuzz_require(bool kept, const char *promise, const esp_error *err)
{
    if (kept) return;
    fprintf(stderr, "broken: %s (%s)\n", promise, err != NULL ? err->message : "");
    abort();
}

const char *fuzz_file(const char *name)
{
    static char path[4096];
    const char *scratch = getenv("FUZZ_SCRATCH");
    snprintf(path, sizeof path, "%s/fuzz-%ld-%s", scratch != NULL ? scratch : "/tmp", (long)getpid(), name);
    return path;
}

static void require_status(esp_status status, const char *promise, const esp_error *err)
{
    fuzz_require(status == ESP_OK, promise, err);
}

/* Every failure comes with a sentence, and one of the input with its place in front. */
static void require_sentence(esp_status status, const esp_error *err)
{
    fuzz_require(err->message[0] != '\0', "a failure has a sentence", err);
    if (status == ESP_ERR_PARSE) fuzz_require(strncmp(err->message, "input:", 6) == 0, "a place is named", err);
}

static void describe(const esp_dataset *data)
{
    esp_error err = {0};
    const size_t rows = esp_dataset_count(data);
    for (size_t column = 0; column < esp_dataset_columns(data); column++) {
        esp_column_summary summary;
        require_status(esp_dataset_summarize(data, column, &summary, &err), "a column has a summary", &err);
        fuzz_require(esp_dataset_column_name(data, column) != NULL, "a column has a name", NULL);
        for (size_t row = 0; row < rows && row < 20; row++) {
            char *text = NULL;
            require_status(esp_dataset_text(data, column, row, &text, &err), "a value has a text", &err);
            fuzz_require(text != NULL, "a text is there", NULL);
            esp_text_free(text);
        }
    }
    for (size_t row = 0; row < rows && esp_dataset_target_name(data) != NULL; row++)
        fuzz_require(esp_dataset_target(data, row) != NULL, "an example has a target", NULL);
}

bool fuzz_same_file(const char *a, const char *b)
{
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    bool same = f != NULL && g != NULL;
    for (int c = 0; same && c != EOF;) same = (c = getc(f)) == getc(g);
    if (f != NULL) fclose(f);
    if (g != NULL) fclose(g);
    return same;
}

static void round_trip(const esp_dataset *data)
{
    esp_error err = {0};
    char first[4200], second[4200];
    strcpy(first, fuzz_file("first.jsonl"));
    strcpy(second, fuzz_file("second.jsonl"));
    require_status(esp_dataset_write(data, first, ESP_FORMAT_JSONL, &err), "a dataset can be written", &err);
    const esp_read_options options = {.format = ESP_FORMAT_JSONL, .target = esp_dataset_target_name(data)};
    esp_dataset *again = NULL;
    require_status(esp_dataset_read(first, &options, NULL, &again, &err), "what was written can be read", &err);
    fuzz_require(esp_dataset_count(again) == esp_dataset_count(data), "no example is lost", NULL);
    require_status(esp_dataset_write(again, second, ESP_FORMAT_JSONL, &err), "it can be written again", &err);
    fuzz_require(fuzz_same_file(first, second), "the second writing equals the first", NULL);
    esp_dataset_free(again);
    unlink(first);
    unlink(second);
}

void fuzz_reader(const uint8_t *data, size_t size, esp_format format)
{
    if (size == 0) return;
    const esp_read_options options = {.format = format, .clean = (data[0] & 1) != 0, .skip_bad = (data[0] & 2) != 0};
    esp_dataset *dataset = NULL;
    esp_error err = {0};
    const esp_status status = esp_dataset_parse(data + 1, size - 1, "input", &options, NULL, &dataset, &err);
    fuzz_require((status == ESP_OK) == (dataset != NULL), "there is a dataset just when all went well", &err);
    if (status == ESP_OK) {
        describe(dataset);
        round_trip(dataset);
    } else {
        require_sentence(status, &err);
    }
    esp_dataset_free(dataset);
}

/* ---------------------------------------------------------------- sections */

enum { VERSION = 8, SIZE = 16, CHECKSUM = 24, BEHIND = 40 };

static void store(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++) at[i] = (uint8_t)(value >> 8 * i);
}

uint8_t *fuzz_signed(const uint8_t *data, size_t size, const char *mark, uint8_t version)
{
    XXH3_state_t state;
    uint8_t *bytes = size < FUZZ_HEADER ? NULL : malloc(size);
    if (bytes == NULL) return NULL;
    memcpy(bytes, data, size);
    memcpy(bytes, mark, VERSION);
    memset(bytes + VERSION, 0, 4);
    bytes[VERSION] = version;
    memset(bytes + BEHIND, 0, FUZZ_HEADER - BEHIND);
    store(bytes + SIZE, size);
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, bytes, CHECKSUM);
    XXH3_128bits_update(&state, bytes + BEHIND, size - BEHIND);
    const XXH128_hash_t sum = XXH3_128bits_digest(&state);
    store(bytes + CHECKSUM, sum.low64);
    store(bytes + CHECKSUM + 8, sum.high64);
    return bytes;
}
