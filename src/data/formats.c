/* The table of data formats, and how they are found: by number, name and ending. */
#include "data/format.h"

#include <string.h>

#define ENDINGS(...)                                                                                                   \
    (const char *const[]) { __VA_ARGS__, NULL }

const espi_format espi_formats[] = {
    {.number = ESP_FORMAT_JSONL,
     .name = "jsonl",
     .help = "JSON Lines: an object per example",
     .start = "{...}",
     .endings = ENDINGS(".jsonl", ".json"),
     .reader = &espi_read_jsonl,
     .writer = espi_write_jsonl},
    {.number = ESP_FORMAT_PENN,
     .name = "penn",
     .help = "bracketed trees: one per line, or over several as in treebanks",
     .start = "(...)",
     .endings = ENDINGS(".mrg", ".ptb", ".penn", ".trees"),
     .reader = &espi_read_penn,
     .writer = espi_write_penn},
    {.number = ESP_FORMAT_SVMTK,
     .name = "svmtk",
     .help = "SVM-light-TK: a label, trees and vectors",
     .start = "1 |BT| ...",
     .endings = ENDINGS(".svmtk", ".tk"),
     .reader = &espi_read_svmtk,
     .writer = espi_write_svmtk},
    {.number = ESP_FORMAT_KELP,
     .name = "kelp",
     .help = "KeLP: a label and named trees, sequences and vectors",
     .start = "LABEL |BT:name| ...",
     .endings = ENDINGS(".klp", ".kelp"),
     .reader = &espi_read_kelp,
     .writer = espi_write_kelp},
    {.number = ESP_FORMAT_LIBSVM,
     .name = "libsvm",
     .help = "LIBSVM: a label and a vector",
     .start = "1 3:0.5 ...",
     .endings = ENDINGS(".libsvm", ".svm"),
     .reader = &espi_read_libsvm,
     .writer = espi_write_libsvm},
    {.number = ESP_FORMAT_CONLLU,
     .name = "conllu",
     .help = "CoNLL-U: dependency trees, a word per line",
     .start = "ten fields between TABs",
     .endings = ENDINGS(".conllu"),
     .reader = &espi_read_conllu},
    {.number = ESP_FORMAT_SRL,
     .name = "srl",
     .help = "trees with their predicates and arguments",
     .start = "T, TAB, ...",
     .endings = ENDINGS(".srl"),
     .reader = &espi_read_srl},
    {.name = NULL},
};

static const char automatic[] = "auto"; /* the name of ESP_FORMAT_AUTO, which is no format */

const espi_format *espi_format_of(esp_format number)
{
    for (const espi_format *f = espi_formats; f->name != NULL; f++)
        if (f->number == number) return f;
    return NULL;
}

const espi_format *espi_format_of_path(const char *path)
{
    const size_t size = strlen(path);
    for (const espi_format *f = espi_formats; f->name != NULL; f++)
        for (const char *const *ending = f->endings; *ending != NULL; ending++) {
            const size_t tail = strlen(*ending);
            if (size >= tail && strcmp(path + size - tail, *ending) == 0) return f;
        }
    return NULL;
}

bool esp_format_find(const char *name, esp_format *format)
{
    const espi_format *f = espi_formats;
    while (f->name != NULL && strcmp(f->name, name) != 0) f++;
    if (f->name == NULL && strcmp(name, automatic) != 0) return false;
    *format = f->name != NULL ? f->number : ESP_FORMAT_AUTO;
    return true;
}

const char *esp_format_at(size_t index, esp_format_info *info)
{
    const espi_format *f = espi_formats;
    while (f->name != NULL && (size_t)f->number != index + 1) f++; /* AUTO has number 0 */
    if (f->name != NULL && info != NULL)
        *info = (esp_format_info){
            .format = f->number, .help = f->help, .endings = f->endings, .written = f->writer != NULL};
    return f->name;
}

const char *esp_format_name(esp_format format)
{
    if (format == ESP_FORMAT_AUTO) return automatic;
    const espi_format *f = espi_format_of(format);
    return f != NULL ? f->name : NULL;
}
