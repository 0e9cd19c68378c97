/* What the tests of semantic role labelling share: sentences in, examples back. */
#ifndef SRL_CASES_H
#define SRL_CASES_H

#include "files.h"

#define WORKED_SRL                                                                                                     \
    "T\td\t0\t(S (N Mary) (VP (V brought) (NP (D a) (N cat)) (PP (IN to) (N school))))\n"                              \
    "P\t1\tbring\tbring.01\tARG0:0-0 V:1-1 ARG1:2-3 ARG2:4-5\n"

static inline const char *write_file(const char *name, const char *text)
{
    const char *path = in_directory(name);
    spill(path, text, strlen(text));
    return path;
}

static inline int tear_down(void **state)
{
    static const char *const names[] = {"in.srl", "out", "features", "docs", "fifo"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(in_directory(names[i]));
    return remove_directory(state);
}

static inline esp_status try_write(const char *srl, const esp_srl_options *options, esp_srl_counts *counts,
                                   esp_error *err)
{
    const char *path = write_file("in.srl", srl);
    return esp_srl_write(&path, 1, options, NULL, in_directory("out"), counts, err);
}

static inline esp_dataset *read_back(void)
{
    esp_dataset *data = NULL;
    esp_error err = {0};
    assert_ok(esp_dataset_read(in_directory("out"), NULL, NULL, &data, &err), "what was written", &err);
    return data;
}

static inline esp_dataset *examples_of(const char *srl, const esp_srl_options *options, esp_srl_counts *counts)
{
    esp_error err = {0};
    assert_ok(try_write(srl, options, counts, &err), srl, &err);
    return read_back();
}

static inline char *text_of(const esp_dataset *data, size_t column, size_t example)
{
    char *text = NULL;
    esp_error err = {0};
    assert_ok(esp_dataset_text(data, column, example, &text, &err), "esp_dataset_text", &err);
    return text;
}

static inline void assert_example(const esp_dataset *data, size_t example, const char *target, const char *tree)
{
    char *text = text_of(data, 0, example);
    assert_string_equal(text, tree);
    assert_string_equal(esp_dataset_target(data, example), target);
    esp_text_free(text);
}

static inline void assert_split(const esp_dataset *data, size_t example, const char *path, const char *cs)
{
    char *text[] = {text_of(data, 1, example), text_of(data, 2, example)};
    assert_string_equal(text[0], path);
    assert_string_equal(text[1], cs);
    for (int i = 0; i < 2; i++) esp_text_free(text[i]);
}

#endif
