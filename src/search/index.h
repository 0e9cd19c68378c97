/* A collection prepared for search. Over one tree kernel (st, sst, sasst; also normalised or with a weight) it holds
 * the trees laid out for bounds (tree_index.h); over any other expression the examples, bound to the kernel. */
#ifndef ESPI_SEARCH_INDEX_H
#define ESPI_SEARCH_INDEX_H

#include "kernel/evaluate/bound.h"
#include "search/tree_index.h"

extern const espi_file_kind espi_index_kind;

struct esp_index {
    esp_kernel *kernel;     /* its leaves name their columns */
    size_t count;           /* examples */
    char *id_field;         /* NULL: examples have no names */
    const uint64_t *id_end; /* name i ends there, with a NUL; NULL: none */
    const char *id_text;
    size_t id_bytes;
    bool by_trees; /* which of the two it is: */
    espi_tree_index trees;
    esp_dataset *data; /* NULL where it is by trees */
    espi_bound *bound; /* symmetric */
    bool norm;         /* by trees: what is normalised ... */
    double weight;     /* ... and multiplied */
    char *file;        /* where it comes from, for messages; NULL: memory */
    void *map;         /* the file */
    size_t map_size;
    char *bytes; /* or its bytes, or those of the names alone */
    uint64_t *ends;
};

/* Sets the fields that follow from the kernel: whether the index is by trees. */
esp_status espi_index_shape(esp_index *index, esp_error *err);
/* Checks that it can hold a kernel of this text. */
esp_status espi_index_check_kernel(const char *text, esp_error *err);

/* Of the bytes of its file. */
esp_status espi_index_digest(const esp_index *index, uint64_t *digest, esp_error *err);

/* The similarity as it is told: 41 binary digits, so that what differs by rounding errors alone is equal. */
double espi_similarity(double value);

/* Names of examples: the texts of a column or of the target, each followed by a NUL; ESP_ERR_PARAM if there is no such
 * field, ESP_ERR_PARSE if a name occurs twice. The caller frees both, also after a failure. */
esp_status espi_ids_make(const esp_dataset *data, const char *field, uint64_t **end, char **text, esp_error *err);

/* lambda and alpha of all groups of the index, and of the leaf's bow; the caller frees them. */
esp_status espi_index_decay(const esp_index *index, double **lambda, double **alpha, esp_error *err);

#endif
