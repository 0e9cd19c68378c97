/* Writers: one file per format (write_*.c), and the helpers they share (writer.c). A writer first says whether the
 * format can hold the dataset. The table of formats (format.h) lists them; dataset_write.c chooses one. */
#ifndef ESPI_DATA_WRITER_H
#define ESPI_DATA_WRITER_H

#include "base/output.h"
#include "base/text.h"
#include "data/dataset.h"

/* Writes all rows, or refuses with ESP_ERR_PARAM before the first byte. `format` is its name, for messages. */
typedef esp_status espi_writer(const esp_dataset *data, const char *format, espi_output *output, esp_error *err);
espi_writer espi_write_jsonl, espi_write_svmtk, espi_write_kelp, espi_write_libsvm, espi_write_penn;

/* The format in which `path` is to be written: AUTO becomes the one of its ending. ESP_ERR_PARAM if there is none. */
esp_status espi_write_format(const char *path, esp_format *format, esp_error *err);
/* Writes all rows in such a format. */
esp_status espi_write_rows(const esp_dataset *data, esp_format format, espi_output *output, esp_error *err);

/* Moves the text to the output if it is large, or in any case with `all`. False if memory was out before. */
bool espi_text_flush(espi_text *text, espi_output *output, bool all);

/* A tree as brackets, labels escaped so that the parser reads them back; nothing for the empty tree. */
void espi_text_tree(espi_text *text, const espi_forest *forest, espi_ref root);
/* The same in parts: after _start, each _more appends some kilobytes; false once the tree is complete.
 * `bracket_leaves` writes (A(b)), as KeLP does, for (A b). A zeroed printer may be started again and again. */
typedef struct espi_tree_printer {
    espi_walk walk;
    espi_ref root; /* if that is not yet done */
    bool bracket_leaves;
} espi_tree_printer;
void espi_tree_print_start(espi_tree_printer *printer, const espi_forest *forest, espi_ref root, bool bracket_leaves);
bool espi_tree_print_more(espi_tree_printer *printer, espi_text *text);
void espi_tree_printer_free(espi_tree_printer *printer);
/* A label of a tree, escaped. */
void espi_text_label(espi_text *text, const espi_symbol *label);
/* A sequence as tokens separated by single blanks, factors by '|', escaped so that they read back. */
void espi_text_sequence(espi_text *text, const espi_sequences *sequences, size_t row);
/* A vector as JSON: an object, an array or a number. */
void espi_text_vector(espi_text *text, const espi_vectors *vectors, size_t row);

/* A vector as "name:value ...", by increasing number where all names are whole numbers. */
typedef struct espi_features {
    const espi_vectors *vectors;
    uint64_t *number;            /* per feature; NULL: some name is no whole number */
    struct espi_feature *sorted; /* the row at hand */
    size_t sorted_capacity;
} espi_features;
bool espi_features_start(espi_features *features, const espi_vectors *vectors); /* false: memory is out */
void espi_features_text(espi_features *features, size_t row, espi_text *text);
void espi_features_free(espi_features *features);

/* ESP_ERR_PARAM: "column 'x' <reason>, which the format libsvm cannot hold". */
esp_status espi_refuse(const espi_column *column, const char *format, const char *reason, esp_error *err);
/* Refuses strings that hold a byte of `forbidden` or start with one of `forbidden_first`, as they would not be
 * read back; `what` says what they are. */
esp_status espi_check_symbols(const espi_symbols *symbols, const char *format, const char *what, const char *forbidden,
                              const char *forbidden_first, esp_error *err);
/* The same for the targets of all rows, if there are any. */
esp_status espi_check_targets(const esp_dataset *data, const char *format, const char *forbidden,
                              const char *forbidden_first, esp_error *err);

#endif
