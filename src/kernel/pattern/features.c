/* Patterns as features: the sparse vectors over which fseq and fsst sum, for whoever wants them by themselves.
 *
 *     row S, column u:  phi_u(S),  with lambda = 1 the number of times that u occurs in S */
#include "base/alloc.h"
#include "base/status.h"
#include "data/bag.h"
#include "kernel/expression/columns.h"
#include "kernel/pattern/pattern.h"

#include <math.h>

struct esp_features {
    espi_bag bag;
    char **text; /* per pattern */
    size_t patterns;
};

void esp_features_free(esp_features *f)
{
    if (f == NULL) return;
    for (size_t i = 0; f->text != NULL && i < f->patterns; i++) espi_free(f->text[i]);
    espi_free(f->text);
    espi_bag_free(&f->bag);
    espi_free(f);
}

size_t esp_features_rows(const esp_features *f) { return f->bag.rows; }
size_t esp_features_columns(const esp_features *f) { return f->patterns; }
const char *esp_features_text(const esp_features *f, size_t column) { return f->text[column]; }

size_t esp_features_entries(const esp_features *f, const size_t **start, const uint32_t **column, const double **value)
{
    *start = f->bag.row;
    *column = f->bag.feature;
    *value = f->bag.value;
    return f->bag.row[f->bag.rows];
}

/* The texts as a selection of patterns. */
static esp_status read_patterns(const espi_leaf *leaf, const esp_dataset *patterns, espi_selection **out,
                                esp_error *err)
{
    const bool trees = leaf->class->selects->kind == ESPI_SELECTED_TREES;
    if (patterns->columns != 1 || patterns->column[0].type != (trees ? ESP_COLUMN_TREE : ESP_COLUMN_SEQUENCE))
        return espi_fail(err, ESP_ERR_PARAM, "the patterns of %s are one column of %s", leaf->class->name,
                         trees ? "fragments" : "sequences");
    *out = espi_alloc_zero(1, sizeof **out);
    if (*out == NULL) return espi_no_memory(err);
    (*out)->kind = leaf->class->selects->kind;
    return trees ? espi_fragments_of(&patterns->column[0], &(*out)->fragments, err)
                 : espi_trie_of(&patterns->column[0], &(*out)->trie, err);
}

static bool take_texts(esp_features *f, const espi_selection *selection)
{
    const size_t patterns = espi_selection_set(selection)->patterns;
    f->text = espi_alloc(patterns, sizeof *f->text);
    for (; f->text != NULL && f->patterns < patterns; f->patterns++) {
        espi_text text = {0};
        espi_selection_text(selection, f->patterns, &text);
        if ((f->text[f->patterns] = espi_text_take(&text)) == NULL) return false;
    }
    return f->text != NULL;
}

static esp_status check_values(const esp_features *f, esp_error *err)
{
    for (size_t i = 0; i < f->bag.rows; i++)
        for (size_t k = f->bag.row[i]; k < f->bag.row[i + 1]; k++)
            if (!isfinite(f->bag.value[k]))
                return espi_fail(err, ESP_ERR_RANGE, "the feature '%s' of example %zu is too large for a number",
                                 f->text[f->bag.feature[k]], i + 1);
    return ESP_OK;
}

esp_status esp_features_new(const esp_kernel *kernel, const esp_dataset *patterns, const esp_dataset *data,
                            const esp_run *run, esp_features **out, esp_error *err)
{
    espi_leaf leaf = kernel->leaf[0]; /* with a selection that belongs to this call, not to the kernel */
    const espi_column *column;
    *out = NULL;
    if (kernel->ops != 1 || !espi_leaf_selects(&leaf))
        return espi_fail(err, ESP_ERR_PARAM, "%s has no patterns of its own; features need one fseq(...) or fsst(...)",
                         kernel->text);
    esp_features *f = espi_alloc_zero(1, sizeof *f);
    leaf.selection = NULL;
    esp_status status = f != NULL ? espi_leaf_column(&leaf, data, &column, err) : espi_no_memory(err);
    if (status == ESP_OK) status = read_patterns(&leaf, patterns, &leaf.selection, err);
    if (status == ESP_OK) status = espi_selection_bag(&leaf, column, run, &f->bag, err);
    if (status == ESP_OK && !take_texts(f, leaf.selection)) status = espi_no_memory(err);
    if (status == ESP_OK) status = check_values(f, err);
    espi_selection_free(leaf.selection);
    if (status == ESP_OK) *out = f;
    else esp_features_free(f);
    return status;
}
