/* Model files, versions 1 to 5: what the writer and the reader share. docs/model-format.md describes the format. */
#ifndef ESPI_LEARN_MODEL_FILE_H
#define ESPI_LEARN_MODEL_FILE_H

#include "data/section.h"
#include "learn/model/model.h"

/* Not valid UTF-8, and broken by whatever changes line ends. */
#define ESPI_MODEL_MAGIC                                                                                               \
    "\x89"                                                                                                             \
    "ESP\r\n\x1A\n"

enum {
    ESPI_MODEL_VERSION = 5 /* the latest; what an earlier one can hold is written in that */
};
extern const espi_file_kind espi_model_kind;

enum { /* flags of the section "shape" */
       ESPI_MODEL_ONE_VS_ONE = 1,
       ESPI_MODEL_PLATT = 2,
       ESPI_MODEL_VOTE = 4,
       ESPI_MODEL_INDUCING = 8
};

/* Leaves of a kernel, its labels and columns are found by going through all of them, which takes the square of these:
 * bounds that no one meets keep a hostile file from taking minutes. Grammar rules take their own size only, and are not
 * part of the first bound. */
enum {
    ESPI_MODEL_KERNEL = 1 << 18,     /* bytes of the kernel expression without its grammar rules */
    ESPI_MODEL_EXPRESSION = 1 << 24, /* bytes of the whole */
    ESPI_MODEL_VARIANTS = 1 << 22,   /* a kernel that selects is there once per output: bytes of all of them together */
    ESPI_MODEL_COLUMNS = 1 << 12
};

/* Whether a model can hold a kernel of this text; ESP_ERR_PARAM with a sentence if not. O(its size). */
esp_status espi_model_check_kernel(const char *text, esp_error *err);

/* Whether the fields of the model fit together as model.h says; ESP_ERR_PARAM with a clause if not. What passes can
 * be written, and what was written can be read. */
esp_status espi_model_check(const esp_model *model, esp_error *err);

/* Whether the kernel may have variants, before any is made: it selects, and there are not too many. */
esp_status espi_check_variants(const esp_model *model, esp_error *err);

/* The version that the file of a model has. */
static inline uint32_t espi_model_version(const esp_model *model)
{
    if (model->gaussian != NULL) return model->classes > 2 ? 5 : 4;
    return model->variant != NULL ? 3 : model->history != NULL ? 2 : 1;
}

/* Bytes of the file that esp_model_write would write. */
esp_status espi_model_size(const esp_model *model, uint64_t *bytes, esp_error *err);

/* What the kernel of a model selects: fills m->variant, whose outputs and kernel are read already. */
esp_status espi_selections_read(espi_section_file *f, esp_model *m);

#endif
