/* Datasets: named columns of equal length and a target, filled row by row.
 *
 * A reader calls espi_row_begin, sets every column of the row once, and calls espi_row_end, which refuses a row
 * that lacks a column or brings a new one ("ragged"). espi_row_drop forgets a row begun. */
#ifndef ESPI_DATA_DATASET_H
#define ESPI_DATA_DATASET_H

#include "data/forest.h"

typedef struct espi_sequences { /* row r: tokens row[r] .. row[r+1]; token t: factors token[t] .. token[t+1] */
    espi_symbols symbols;
    size_t *row, *token;
    uint32_t *factor;
    size_t tokens, factors;
    bool lowercase, digits; /* what is done to a factor that is added */
    char *scratch;
    size_t scratch_capacity;
    size_t row_capacity, token_capacity, factor_capacity;
} espi_sequences;

typedef struct espi_vectors { /* row r: entries row[r] .. row[r+1], features increasing */
    espi_symbols features;
    size_t *row;
    uint32_t *feature;
    double *value;
    size_t entries;
    size_t row_capacity, feature_capacity, value_capacity;
    bool dense;  /* written as an array; all rows have the same features "0", "1", ... */
    bool scalar; /* written as one number */
} espi_vectors;

typedef struct espi_column {
    char *name;
    esp_column_type type;
    size_t rows;    /* complete ones, and the one at hand once it is set */
    size_t decided; /* JSON Lines: the line whose string, the first that is not empty, makes trees of it; else 0 */
    espi_forest trees;
    espi_sequences sequences;
    espi_vectors vectors;
    size_t kept_symbols; /* words or features before the row at hand; what a dropped row brought is forgotten */
    espi_forest_mark kept_trees;
} espi_column;

struct esp_dataset {
    esp_format format;
    size_t rows;
    espi_column *column;
    size_t columns, column_capacity;
    char *target_name; /* NULL: no target */
    espi_symbols target_texts;
    uint32_t *target; /* symbol per row */
    size_t target_rows, target_capacity;
    size_t target_numbers;  /* rows whose target came as a number */
    bool row_target_number; /* of the row at hand */
    size_t kept_targets;    /* texts of the complete rows */
    size_t bad_rows;
    char *first_bad;
    bool lowercase, digits; /* for the sequences to come */
};

esp_dataset *espi_dataset_new(esp_format format); /* NULL: memory is out */

/* The column of this name and type for the row at hand, made if this is the first row. Refuses (ESP_ERR_PARSE
 * with a clause, no place) a column that is new in a later row, of another type, or already set in this row.
 * NAME need not be NUL-terminated. */
esp_status espi_row_column(esp_dataset *data, const char *name, size_t size, esp_column_type type, espi_column **out,
                           esp_error *err);
/* Whether there is a column of this name, and which. */
bool espi_find_column(const esp_dataset *data, const char *name, size_t size, size_t *index);

/* Setting a value: each returns ESP_OK or fails with a clause without a place. */
esp_status espi_set_tree(espi_column *column, espi_ref root, esp_error *err);
/* Makes trees, all empty, of a column of sequences that were all empty so far. */
esp_status espi_become_trees(espi_column *column, esp_error *err);
/* Splits text at blanks into tokens and tokens at '|' into factors (docs/formats.md). A backslash before a
 * blank, '|', '(' or a backslash makes it an ordinary byte; a token of nothing but '|' is one factor. */
esp_status espi_set_sequence(espi_column *column, const char *text, size_t size, esp_error *err);
/* One factor at a time, whatever it contains; a token is finished by espi_end_token, the row by espi_end_sequence. */
esp_status espi_add_factor(espi_column *column, const char *text, size_t size, esp_error *err);
esp_status espi_end_token(espi_column *column, esp_error *err);
/* A token of one factor. */
esp_status espi_add_token(espi_column *column, const char *text, size_t size, esp_error *err);
esp_status espi_end_sequence(espi_column *column, esp_error *err);
/* One feature at a time; finished by espi_end_vector, which sorts and refuses a feature given twice. */
esp_status espi_add_feature(espi_column *column, const char *name, size_t size, double value, esp_error *err);
esp_status espi_end_vector(espi_column *column, esp_error *err);
/* The target of the row. `number`: the text is a number (in JSON: it was not given as a string). */
esp_status espi_set_target(esp_dataset *data, const char *name, const char *text, size_t size, bool number,
                           esp_error *err);

/* A copy of the columns and rows that are wanted, without the target. */
esp_status espi_dataset_select(const esp_dataset *data, const bool *column, const bool *row, esp_dataset **out,
                               esp_error *err);

/* Copies rows of one dataset, one at a time, to the end of another that has the wanted ones of its columns. Rows of
 * either may go away again in between. */
typedef struct espi_copier espi_copier;
/* `column` says per column of `from` whether it is wanted. Both datasets must outlive the copier. */
esp_status espi_copier_new(const esp_dataset *from, const bool *column, esp_dataset *to, espi_copier **out,
                           esp_error *err);
esp_status espi_copier_row(espi_copier *copier, size_t row, esp_error *err);
void espi_copier_free(espi_copier *copier);
/* A dataset of the wanted columns of rows row[at[i]], or row[i] where `at` is NULL, i < count. *copier, NULL at first,
 * is made, and serves further calls for the same data and columns; what it copied to before is left alone. *out is the
 * caller's, also after a failure. */
esp_status espi_copier_dataset(espi_copier **copier, const esp_dataset *from, const bool *column, const uint32_t *row,
                               const uint32_t *at, size_t count, esp_dataset **out, esp_error *err);

/* Leaves only the columns that are wanted, and no target. */
void espi_dataset_strip(esp_dataset *data, const bool *column);

/* Some examples, with all columns, or the targets of all, as bytes that the caller owns; and back, behind what `to` has
 * (parcel.c). `to` must have no target, or nothing but targets. */
esp_status espi_parcel_examples(const esp_dataset *data, const uint32_t *row, size_t count, char **bytes, size_t *size,
                                esp_error *err);
esp_status espi_parcel_append(const void *bytes, size_t size, esp_dataset *to, esp_error *err);
esp_status espi_parcel_targets(const esp_dataset *data, char **bytes, size_t *size, esp_error *err);
esp_status espi_parcel_append_targets(const void *bytes, size_t size, esp_dataset *to, esp_error *err);

/* Memory held by a column. */
size_t espi_column_bytes(const espi_column *column);

void espi_row_begin(esp_dataset *data);
esp_status espi_row_end(esp_dataset *data, esp_error *err);
void espi_row_drop(esp_dataset *data);
/* Takes the last row, which was the last begun, out again with all that it brought; it is not the first. */
void espi_row_undo(esp_dataset *data);

/* Reads a data file row by row, holding the first row and the present one: `task` is called with each, row number 0 and
 * then always 1. A dataset without a target is refused by the task. *bad: rows left out by skip_bad. */
typedef esp_status (*espi_row_task)(void *context, const esp_dataset *data, size_t row, esp_error *err);
esp_status espi_dataset_stream(const char *path, const esp_read_options *options, const esp_run *run,
                               espi_row_task task, void *context, uint64_t *bad, esp_error *err);

/* A number that tells data apart: of their columns, but for the names of labels, features and targets. */
uint64_t espi_dataset_digest(const esp_dataset *data, uint64_t seed);
/* The same with all names and targets. */
uint64_t espi_dataset_digest_all(const esp_dataset *data);

/* A sum over the examples of what these columns hold, by their numbers from `first` on. However a dataset is divided,
 * the parts add up to the same. False if memory is out. */
bool espi_dataset_digest_rows(const esp_dataset *data, const bool *column, size_t first, uint64_t *digest);

/* Fails because the data have no target. Returns `status`. */
esp_status espi_no_target(esp_status status, esp_error *err);

#endif
