/* Files of tests: in a directory that must be empty again at the end; and models as the bytes of theirs. */
#ifndef FILES_H
#define FILES_H

#include "cases.h"

#include <errno.h>
#include <unistd.h>

enum { PATH_SIZE = 128 };

static char directory[PATH_SIZE];

static inline void temporary_name(char path[PATH_SIZE])
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, PATH_SIZE, "%s/espalier-test.XXXXXX", folder != NULL ? folder : "/tmp");
}

static inline int make_directory(void **state)
{
    (void)state;
    temporary_name(directory);
    return mkdtemp(directory) == NULL;
}

/* Fails if a test left a file or a block. */
static inline int remove_directory(void **state)
{
    (void)state;
    return espi_alloc_live() != 0 || rmdir(directory) != 0;
}

/* The same name gets the same path, which holds as long as the program. */
static inline const char *in_directory(const char *name)
{
    static struct {
        char text[PATH_SIZE + 32];
    } path[16];
    static size_t count;
    size_t i = 0;
    snprintf(path[count].text, sizeof path[count].text, "%s/%s", directory, name);
    while (strcmp(path[i].text, path[count].text) != 0) i++;
    count += i == count;
    assert_true(count < sizeof path / sizeof *path);
    return path[i].text;
}

static inline void spill(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) fail_msg("%s: %s", path, strerror(errno));
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* A file of its own with this text, which the caller removes. */
static inline const char *temporary_file(const char *text, char path[PATH_SIZE])
{
    temporary_name(path);
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    spill(path, text, strlen(text));
    return path;
}

typedef struct blob { /* the caller frees the bytes */
    unsigned char *bytes;
    size_t size;
} blob;

/* A NUL stands behind the bytes. */
static inline blob slurp(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail_msg("%s: %s", path, strerror(errno));
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const long size = ftell(file);
    rewind(file);
    blob b = {.bytes = malloc((size_t)size + 1), .size = (size_t)size};
    assert_non_null(b.bytes);
    assert_int_equal(fread(b.bytes, 1, b.size, file), b.size);
    b.bytes[b.size] = '\0';
    fclose(file);
    return b;
}

static inline void same_bytes(blob a, blob b)
{
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.bytes, b.bytes, a.size);
}

/* The bytes of the model's file. */
static inline blob bytes_of(const esp_model *model)
{
    char path[PATH_SIZE];
    esp_error err = {0};
    temporary_file("", path);
    assert_ok(esp_model_write(model, path, &err), "esp_model_write", &err);
    const blob b = slurp(path);
    unlink(path);
    return b;
}

static inline esp_model *model_of_bytes(blob b)
{
    esp_model *model = NULL;
    esp_error err = {0};
    assert_ok(esp_model_parse(b.bytes, b.size, "bytes", &model, &err), "esp_model_parse", &err);
    return model;
}

/* Examples drawn from the text of a grammar. */
static inline esp_dataset *sample_of(const char *grammar, size_t count, uint64_t seed)
{
    char path[PATH_SIZE];
    esp_dataset *data = NULL;
    esp_error err = {0};
    const esp_status status = esp_dataset_sample(temporary_file(grammar, path), count, seed, NULL, &data, &err);
    unlink(path);
    assert_ok(status, grammar, &err);
    return data;
}

#endif
