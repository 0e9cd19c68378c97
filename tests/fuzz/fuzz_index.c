/* Index files with a right length and checksum: what is taken for an index can be written and read again and is then
 * written the same, and every search in it, plain or with bounds, ends with a result or a sentence. The seeds are made
 * by `espalier index` from a few examples. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

static const esp_run run = {.threads = 1, .memory = 1 << 26};

static esp_index *parse(const void *bytes, size_t size)
{
    esp_index *index = NULL;
    esp_error err = {0};
    const esp_status status = esp_index_parse(bytes, size, "input", &run, &index, &err);
    fuzz_require((status == ESP_OK) == (index != NULL), "there is an index just when all went well", &err);
    if (status != ESP_OK) {
        fuzz_require(status == ESP_ERR_PARSE || status == ESP_ERR_MEMORY, "it is the file's fault", &err);
        fuzz_require(status != ESP_ERR_PARSE || strncmp(err.message, "input: ", 7) == 0, "the file is named", &err);
    }
    return index;
}

static void round_trip(const esp_index *index)
{
    char *first = NULL, *second = NULL, *text = NULL;
    size_t first_size, second_size;
    esp_error err = {0};
    fuzz_require(esp_index_summary(index, &text, &err) == ESP_OK, "an index has a summary", &err);
    fuzz_require(esp_index_bytes(index, &first, &first_size, &err) == ESP_OK, "an index can be written", &err);
    esp_index *again = parse(first, first_size);
    fuzz_require(again != NULL, "what was written can be read", NULL);
    fuzz_require(esp_index_bytes(again, &second, &second_size, &err) == ESP_OK, "it can be written again", &err);
    fuzz_require(first_size == second_size && memcmp(first, second, first_size) == 0,
                 "the second writing equals the first", NULL);
    esp_index_free(again);
    esp_text_free(first);
    esp_text_free(second);
    esp_text_free(text);
}

static void ask(const esp_index *index)
{
    static const char lines[] = "{\"id\": \"q\", \"tree\": \"(S (NP (D the) w) (VP (V saw) (NP (D the) w)))\", \"x\": "
                                "{\"a\": 1}, \"words\": \"the cat sat\"}\n"
                                "{\"id\": \"r\", \"tree\": \"(S (X y))\", \"x\": {}, \"words\": \"\"}\n";
    const esp_read_options options = {.format = ESP_FORMAT_JSONL};
    esp_dataset *data = NULL;
    esp_index *more = NULL;
    esp_hits *hits = NULL;
    esp_pairs *pairs = NULL;
    esp_clusters *clusters = NULL;
    esp_error err = {0};
    fuzz_require(esp_dataset_parse(lines, sizeof lines - 1, "lines", &options, NULL, &data, &err) == ESP_OK,
                 "the queries can be read", &err);
    for (size_t i = 0; i < esp_index_count(index); i++)
        fuzz_require((esp_index_id(index, i) != NULL) == (esp_index_id_field(index) != NULL), "names are there", NULL);
    for (int every = 0; every < 2; every++) {
        const esp_search_options how = {.top = 2, .no_bounds = every == 1};
        const esp_status status = esp_search(index, data, &how, &run, &hits, &err);
        fuzz_require((status == ESP_OK) == (hits != NULL), "there are hits just when all went well", &err);
        fuzz_require(status == ESP_OK || err.message[0] != '\0', "a failure has a sentence", &err);
        esp_hits_free(hits);
    }
    fuzz_require(esp_pairs_find(index, 0.5, false, &run, &pairs, &err) == ESP_OK || err.message[0] != '\0',
                 "a failure has a sentence", &err);
    fuzz_require(esp_clusters_find(index, 0.5, false, &run, &clusters, &err) == ESP_OK || err.message[0] != '\0',
                 "a failure has a sentence", &err);
    fuzz_require(esp_index_add(index, data, &run, &more, &err) == ESP_OK || err.message[0] != '\0',
                 "a failure has a sentence", &err);
    esp_pairs_free(pairs);
    esp_clusters_free(clusters);
    esp_index_free(more);
    esp_dataset_free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    esp_index *index = parse(data, size);
    esp_index_free(index);
    uint8_t *bytes = fuzz_signed(data, size,
                                 "\x89"
                                 "EIX\r\n\x1A\n",
                                 1);
    if (bytes == NULL) return 0;
    index = parse(bytes, size);
    if (index != NULL) {
        round_trip(index);
        ask(index);
    }
    esp_index_free(index);
    free(bytes);
    return 0;
}
