/* Readers: one file per format (read_*.c), each a class of functions over one shared state, and the helpers they share
 * (reader.c). The table of formats (format.h) lists them; dataset_read.c opens the stream, recognises the format and
 * drives its reader row by row.
 *
 * Every failure of a reader carries its place in the file. A reader that fails leaves the stream inside the bad
 * example: the line end behind it is not taken. */
#ifndef ESPI_DATA_READER_H
#define ESPI_DATA_READER_H

#include "data/dataset.h"
#include "data/stream.h"
#include "data/tree_parser.h"

typedef struct espi_reader {
    espi_stream stream;
    esp_dataset *data;
    esp_read_options options;
    espi_tree_parser trees;
    char *scratch; /* for decoded text, reused from row to row */
    size_t scratch_size, scratch_capacity;
    size_t row_line, row_column; /* where the row at hand starts */
    void *state;                 /* what one format needs between rows */
    espi_row_task task;          /* of a stream; NULL: rows are kept */
    void *context;
} espi_reader;

typedef enum espi_target_kind {
    ESPI_TARGET_FIELD, /* any field, chosen by options.target */
    ESPI_TARGET_LABEL, /* the one label in front of each row */
    ESPI_TARGET_NONE
} espi_target_kind;

/* How strong a claim a format has to the first line of a file. The strongest wins, and of equals the first of the
 * table, so that recognition does not depend on the order of the table as long as equal claims exclude each other. */
typedef enum espi_claim {
    ESPI_CLAIM_NONE,
    ESPI_CLAIM_LOOSE,     /* its words could be meant so: "1 3:0.5" */
    ESPI_CLAIM_MARKER,    /* a marker of the format is somewhere inside: "... |BT| ..." */
    ESPI_CLAIM_SHAPE,     /* its fields are those of the format */
    ESPI_CLAIM_FIRST_BYTE /* no other format starts with this byte */
} espi_claim;

typedef struct espi_reader_class {
    espi_target_kind target;
    bool lines; /* every example is a line, so that a file can be cut between any two */
    /* Looks at the first line that is neither blank nor a comment, from its first byte that is no blank on and without
     * its end; of a very long line, at its beginning. There is at least one byte. */
    espi_claim (*recognise)(const char *line, size_t size);
    /* For a stream that no format claims: fails with what to do if a file of this one was meant; may be NULL. */
    esp_status (*advise)(const espi_stream *stream, esp_error *err);
    /* Fills one row (the driver calls espi_row_begin before and espi_row_end after). Sets *end instead when the
     * input is over. */
    esp_status (*next)(espi_reader *reader, bool *end, esp_error *err);
    /* Moves the stream behind the bad example, for skip_bad; NULL: behind the line. */
    void (*recover)(espi_reader *reader);
    void (*close)(espi_reader *reader); /* releases reader->state; may be NULL */
} espi_reader_class;

/* Part of a file: its bytes from .. to-1, which begin a line. */
typedef struct espi_piece {
    const char *path;
    uint64_t from, to; /* from 0 to UINT64_MAX: all of it, packed or not */
} espi_piece;
/* Reads pieces one after the other; they may have no examples. */
esp_status espi_dataset_read_pieces(const espi_piece *piece, size_t count, const esp_read_options *options,
                                    const esp_run *run, esp_dataset **out, esp_error *err);
/* Whether the file can be read in pieces; *format is what it is recognised as. */
esp_status espi_file_has_pieces(const char *path, const esp_read_options *options, const esp_run *run, bool *pieces,
                                esp_format *format, esp_error *err);

extern const espi_reader_class espi_read_jsonl, espi_read_svmtk, espi_read_kelp, espi_read_libsvm, espi_read_penn,
    espi_read_conllu, espi_read_srl;

/* For espi_stream_token: blanks and line ends. */
extern const bool espi_stop_blank[256];

/* Takes blank lines and lines that start with '#' and notes where the row starts. False at the end of input. */
bool espi_reader_start(espi_reader *reader);
/* Makes at least n bytes lie at stream->at. False if the input ends before. */
bool espi_reader_ahead(espi_reader *reader, size_t n);
/* Takes blanks and the line end; `what` says in the message what the line holds. */
esp_status espi_reader_line_end(espi_reader *reader, const char *what, esp_error *err);
/* Like espi_stream_token, but refuses NUL bytes. */
esp_status espi_reader_token(espi_reader *reader, const bool stop[256], size_t *size, esp_error *err);
/* Appends to reader->scratch. False if memory is out. */
bool espi_reader_gather(espi_reader *reader, const char *bytes, size_t size);

/* espi_row_column with the present place of the stream in the error. */
esp_status espi_reader_column(espi_reader *reader, const char *name, size_t size, esp_column_type type,
                              espi_column **out, esp_error *err);
/* The same for a vector, which must have the shape it has in the first row. */
typedef enum espi_vector_shape { ESPI_SPARSE, ESPI_DENSE, ESPI_SCALAR } espi_vector_shape;
esp_status espi_reader_vector(espi_reader *reader, const char *name, size_t size, espi_vector_shape shape,
                              espi_column **out, esp_error *err);

/* Reads one bracketed tree from the stream, blanks (and with `lines`, line ends) before it skipped, into the row
 * at hand of `column`. Without `lines` the tree must end before the line does. */
esp_status espi_reader_tree(espi_reader *reader, espi_column *column, bool lines, esp_error *err);

/* Takes the token (of bytes not in `stop`) at the stream as the target "y" of the row. "+1" is the label 1. */
esp_status espi_reader_label(espi_reader *reader, const bool stop[256], esp_error *err);
/* Takes the token "name:value" of `size` bytes at the stream, split at its last colon. */
esp_status espi_reader_feature(espi_reader *reader, espi_column *column, size_t size, esp_error *err);
/* Element `index` of a dense vector becomes feature "index". Refuses more elements than the first row has. */
esp_status espi_reader_element(espi_reader *reader, espi_column *column, size_t index, double value, esp_error *err);
/* Ends a dense vector of `count` elements. Refuses fewer elements than the first row has. */
esp_status espi_reader_end_elements(espi_reader *reader, espi_column *column, size_t count, esp_error *err);

/* Gives an ESP_ERR_PARSE error that has no place yet (err->line == 0) the present place of the stream, or the
 * given one. Passes other statuses through. */
esp_status espi_reader_place(const espi_reader *reader, esp_status status, esp_error *err);
esp_status espi_reader_place_at(const espi_reader *reader, size_t line, size_t column, esp_status status,
                                esp_error *err);

#endif
