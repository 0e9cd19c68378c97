#include "kernel/expression/hyper.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernel/expression/columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Learning may leave the range of first values by this factor, as far as the parameter's own range allows. */
static const double REACH = 1e4;
static const double WEIGHT_LOW = 0.1, WEIGHT_HIGH = 10.0; /* first values of weights */

/* ---------------------------------------------------------------- places */

size_t espi_leaf_place(const esp_kernel *kernel, size_t leaf)
{
    size_t place = 0;
    for (size_t i = 0; i < leaf; i++) place += espi_parameter_count(kernel->leaf[i].class) + kernel->leaf[i].symbols;
    return place;
}

size_t espi_op_place(const esp_kernel *kernel, size_t op) { return espi_leaf_place(kernel, kernel->leaves) + op; }

size_t espi_kernel_places(const esp_kernel *kernel) { return espi_op_place(kernel, kernel->ops); }

void espi_kernel_set(esp_kernel *kernel, size_t place, double value)
{
    for (size_t i = 0; i < kernel->leaves; i++) {
        espi_leaf *leaf = &kernel->leaf[i];
        const size_t parameters = espi_parameter_count(leaf->class), size = parameters + leaf->symbols;
        if (place < parameters) leaf->value[place] = value;
        else if (place < size) leaf->symbol[place - parameters].value = value;
        if (place < size) return;
        place -= size;
    }
    kernel->op[place].number = value;
}

/* ------------------------------------------------------------------ list */

typedef struct list {
    espi_hyper *hyper;
    size_t count, capacity;
    bool failed;
} list;

static void add(list *l, const espi_hyper *hyper)
{
    if (!l->failed)
        l->failed = hyper->name == NULL || !espi_reserve(&l->hyper, &l->capacity, l->count + 1, sizeof *l->hyper);
    if (l->failed) espi_free(hyper->name);
    else l->hyper[l->count++] = *hyper;
}

static char *join(const char *first, const char *second, const char *third)
{
    espi_text text = {0};
    espi_text_string(&text, first);
    espi_text_string(&text, second);
    espi_text_string(&text, third);
    return espi_text_take(&text);
}

static void add_parameter(list *l, const espi_parameter *p, const char *label, size_t place, double value)
{
    if (!(p->draw_low > 0.0) || !(value > 0.0)) return;
    espi_hyper h = {.place = place, .value = value, .draw_low = p->draw_low, .draw_high = p->draw_high};
    h.name = join(p->info.name, label != NULL ? "." : "", label != NULL ? label : "");
    h.low = fmax(p->low, p->draw_low / REACH);
    h.high = fmin(p->high, p->draw_high * REACH);
    add(l, &h);
}

/* Leaves whose column is not named cannot be told apart by it; then, and among equals, by their number. */
static char *leaf_name(const esp_kernel *kernel, size_t leaf)
{
    const espi_leaf *of = &kernel->leaf[leaf];
    size_t number = 1, same = 0;
    for (size_t i = 0; i < kernel->leaves; i++) {
        const espi_leaf *other = &kernel->leaf[i];
        const bool equal = other->class == of->class && (other->column == NULL) == (of->column == NULL) &&
                           (of->column == NULL || strcmp(other->column, of->column) == 0);
        same += equal;
        number += equal && i < leaf;
    }
    char behind[32] = "";
    if (same > 1) snprintf(behind, sizeof behind, "#%zu", number);
    espi_text text = {0};
    espi_text_string(&text, of->class->name);
    espi_text_string(&text, "(");
    if (of->column != NULL) espi_text_string(&text, of->column);
    espi_text_string(&text, ")");
    espi_text_string(&text, behind);
    espi_text_string(&text, ".");
    return espi_text_take(&text);
}

/* Whether another leaf has a parameter of the name that `name` has up to its label, whatever its value: names depend on
 * the form of an expression only. */
static bool is_shared(const esp_kernel *kernel, size_t leaf, const char *name)
{
    const size_t size = strcspn(name, ".");
    for (size_t i = 0; i < kernel->leaves; i++) {
        const espi_parameter *p = kernel->leaf[i].class->parameters;
        for (size_t k = 0; i != leaf && p[k].info.name != NULL; k++)
            if (strncmp(p[k].info.name, name, size) == 0 && p[k].info.name[size] == '\0') return true;
    }
    return false;
}

/* Puts the leaf in front of names that leaves have in common: of `lambda`, and of every `lambda.LABEL`. The places of
 * the hyperparameters rise, so that those of a leaf stand together. */
static void make_different(list *l, const esp_kernel *kernel)
{
    size_t leaf = 0;
    char *front = NULL;
    const char *last = "";
    bool shared = false;
    for (size_t i = 0; !l->failed && i < l->count; i++) {
        espi_hyper *h = &l->hyper[i];
        for (; h->place >= espi_leaf_place(kernel, leaf + 1); leaf++) {
            espi_free(front);
            front = NULL;
            last = "";
        }
        const size_t size = strcspn(h->name, ".");
        if (strncmp(last, h->name, size) != 0 || last[size] != '\0') { /* many labels may have one parameter */
            shared = is_shared(kernel, leaf, h->name);
            last = "";
            for (const espi_parameter *p = kernel->leaf[leaf].class->parameters; p->info.name != NULL; p++)
                if (strncmp(p->info.name, h->name, size) == 0 && p->info.name[size] == '\0') last = p->info.name;
        }
        if (!shared) continue;
        if (front == NULL) front = leaf_name(kernel, leaf);
        char *name = front != NULL ? join(front, h->name, "") : NULL;
        l->failed = name == NULL;
        if (l->failed) break;
        espi_free(h->name);
        h->name = name;
    }
    espi_free(front);
}

static void add_weights(list *l, const esp_kernel *kernel)
{
    size_t weights = 0, number = 0;
    for (size_t k = 0; k < kernel->ops; k++) weights += kernel->op[k].kind == ESPI_SCALE;
    for (size_t k = 0; k < kernel->ops; k++) {
        if (kernel->op[k].kind != ESPI_SCALE) continue;
        char behind[32] = "";
        if (weights > 1) snprintf(behind, sizeof behind, ".%zu", ++number);
        const espi_hyper h = {.name = join("weight", behind, ""),
                              .place = espi_op_place(kernel, k),
                              .value = kernel->op[k].number,
                              .low = WEIGHT_LOW / REACH,
                              .high = WEIGHT_HIGH * REACH,
                              .draw_low = WEIGHT_LOW,
                              .draw_high = WEIGHT_HIGH};
        add(l, &h);
    }
}

esp_status espi_hypers_new(const esp_kernel *kernel, espi_hyper **out, size_t *count, esp_error *err)
{
    list l = {0};
    *out = NULL;
    *count = 0;
    for (size_t i = 0; i < kernel->leaves; i++) {
        const espi_leaf *leaf = &kernel->leaf[i];
        const espi_parameter *p = leaf->class->parameters;
        const size_t place = espi_leaf_place(kernel, i), parameters = espi_parameter_count(leaf->class);
        if (leaf->class->gradient == NULL) continue;
        for (size_t k = 0; k < parameters; k++) add_parameter(&l, &p[k], NULL, place + k, leaf->value[k]);
        for (size_t k = 0; k < leaf->symbols; k++)
            add_parameter(&l, &p[leaf->symbol[k].parameter], leaf->symbol[k].label, place + parameters + k,
                          leaf->symbol[k].value);
    }
    make_different(&l, kernel);
    add_weights(&l, kernel);
    if (l.failed) {
        espi_hypers_free(l.hyper, l.count);
        return espi_no_memory(err);
    }
    *out = l.hyper;
    *count = l.count;
    return ESP_OK;
}

void espi_hypers_free(espi_hyper *hyper, size_t count)
{
    for (size_t i = 0; hyper != NULL && i < count; i++) espi_free(hyper[i].name);
    espi_free(hyper);
}

/* ---------------------------------------------------------------- public */

struct esp_hyperparameters {
    espi_hyper *hyper;
    size_t count;
};

esp_status esp_hyperparameters_new(const esp_kernel *kernel, esp_hyperparameters **out, esp_error *err)
{
    esp_hyperparameters *h = espi_alloc_zero(1, sizeof *h);
    *out = NULL;
    if (h == NULL) return espi_no_memory(err);
    const esp_status status = espi_hypers_new(kernel, &h->hyper, &h->count, err);
    if (status == ESP_OK) *out = h;
    else espi_free(h);
    return status;
}

void esp_hyperparameters_free(esp_hyperparameters *h)
{
    if (h == NULL) return;
    espi_hypers_free(h->hyper, h->count);
    espi_free(h);
}

size_t esp_hyperparameters_count(const esp_hyperparameters *h) { return h->count; }

const char *esp_hyperparameters_name(const esp_hyperparameters *h, size_t index) { return h->hyper[index].name; }

double esp_hyperparameters_value(const esp_hyperparameters *h, size_t index, double *low, double *high)
{
    if (low != NULL) *low = h->hyper[index].low;
    if (high != NULL) *high = h->hyper[index].high;
    return h->hyper[index].value;
}

esp_status esp_kernel_with_values(const esp_kernel *kernel, const double *value, esp_kernel **out, esp_error *err)
{
    esp_kernel *copy = NULL;
    espi_hyper *hyper = NULL;
    size_t count = 0;
    *out = NULL;
    esp_status status = espi_hypers_new(kernel, &hyper, &count, err);
    if (status == ESP_OK) status = espi_kernel_copy(kernel, &copy, err);
    for (size_t i = 0; status == ESP_OK && i < count; i++) {
        if (isfinite(value[i]) && value[i] > 0.0) espi_kernel_set(copy, hyper[i].place, value[i]);
        else status = espi_fail(err, ESP_ERR_PARAM, "%s is %g; allowed are numbers > 0", hyper[i].name, value[i]);
    }
    if (status == ESP_OK) status = espi_kernel_print(copy, err);
    if (status == ESP_OK) status = espi_kernel_check(copy, out, err);
    esp_kernel_free(copy);
    espi_hypers_free(hyper, count);
    return status;
}

/* ---------------------------------------------------------------- expand */

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Names that values can be given for: labels of inner nodes, or features; sorted, each once; the empty one cannot be
 * written. They belong to the data. */
static const char **names_of(const espi_column *column, size_t *count)
{
    const bool tree = column->type == ESP_COLUMN_TREE;
    const espi_symbols *symbols = tree ? &column->trees.symbols : &column->vectors.features;
    const size_t all = tree ? column->trees.productions : symbols->count;
    const char **name = espi_alloc(all, sizeof *name);
    if (name == NULL) return NULL;
    for (size_t i = 0; i < all; i++) name[i] = symbols->symbol[tree ? column->trees.production[i].label : i].text;
    qsort(name, all, sizeof *name, by_text);
    *count = 0;
    for (size_t i = 0; i < all; i++)
        if (*name[i] != '\0' && (*count == 0 || strcmp(name[i], name[*count - 1]) != 0)) name[(*count)++] = name[i];
    return name;
}

static esp_status expand_leaf(espi_leaf *leaf, const espi_column *column, esp_error *err)
{
    const espi_parameter *p = leaf->class->parameters;
    if (column->type == ESP_COLUMN_SEQUENCE)
        return espi_fail(err, ESP_ERR_PARAM,
                         "%s(%s): ard=1 needs a vector column; the words of a sequence are too many", leaf->class->name,
                         column->name);
    size_t count = 0;
    const char **name = names_of(column, &count);
    bool ok = name != NULL;
    for (size_t k = 0; p[k].info.name != NULL; k++)
        for (size_t i = 0; ok && p[k].per_symbol && i < count; i++) {
            ok = espi_reserve(&leaf->symbol, &leaf->symbol_capacity, leaf->symbols + 1, sizeof *leaf->symbol);
            if (!ok) break;
            espi_symbol_value s = {
                .parameter = k, .label = espi_copy_text(name[i], strlen(name[i])), .value = leaf->value[k]};
            ok = s.label != NULL;
            if (ok) leaf->symbol[leaf->symbols++] = s;
        }
    espi_free(name);
    return ok ? ESP_OK : espi_no_memory(err);
}

static bool expands(const espi_leaf *leaf)
{
    return leaf->symbols == 0 && leaf->class->learns_by_symbol != NULL && leaf->class->learns_by_symbol(leaf);
}

esp_status espi_kernel_expand(const esp_kernel *kernel, const esp_dataset *data, esp_kernel **out, esp_error *err)
{
    esp_kernel *copy;
    esp_status status = espi_kernel_bind_names(kernel, data, &copy, err);
    *out = NULL;
    if (status != ESP_OK) return status;
    for (size_t i = 0; status == ESP_OK && i < copy->leaves; i++) {
        const espi_column *column;
        if (!expands(&copy->leaf[i])) continue;
        status = espi_leaf_column(&copy->leaf[i], data, &column, err);
        if (status == ESP_OK) status = expand_leaf(&copy->leaf[i], column, err);
    }
    if (status == ESP_OK) status = espi_kernel_print(copy, err);
    if (status == ESP_OK) *out = copy;
    else esp_kernel_free(copy);
    return status;
}
