/* What the writers of all formats share: values as text, and checks of what a format can hold. */
#include "data/writer.h"

#include "base/alloc.h"
#include "base/status.h"

#include <string.h>

enum { PART = 1 << 14 /* bytes of a tree that are printed at once */, LARGE = 1 << 15 };

/* ------------------------------------------------------------------- text */

bool espi_text_flush(espi_text *t, espi_output *output, bool all)
{
    if (t->failed) return false;
    if (t->size < LARGE && !all) return true;
    espi_output_write(output, t->bytes, t->size);
    t->size = 0;
    return true;
}

/* Adds bytes[0..size) with a backslash before each byte that is `special`, and before a backslash where a reader
 * would take it for an escape: before a special byte or `also`, or at the end. */
static void add_escaped(espi_text *t, const char *bytes, size_t size, const bool special[256], char also)
{
    size_t done = 0;
    if (size == 0) return;
    for (size_t i = 0; i < size; i++) {
        bool escape = special[(unsigned char)bytes[i]];
        if (bytes[i] == '\\')
            escape =
                i + 1 == size || bytes[i + 1] == '\\' || bytes[i + 1] == also || special[(unsigned char)bytes[i + 1]];
        if (!escape) continue;
        espi_text_add(t, bytes + done, i - done);
        espi_text_add(t, "\\", 1);
        done = i;
    }
    espi_text_add(t, bytes + done, size - done);
}

void espi_text_label(espi_text *t, const espi_symbol *label)
{
    static const bool special[256] = {['('] = true,  [')'] = true,  [' '] = true,  ['\t'] = true,
                                      ['\n'] = true, ['\r'] = true, ['\v'] = true, ['\f'] = true};
    add_escaped(t, label->text, label->size, special, '(');
}

void espi_text_sequence(espi_text *t, const espi_sequences *s, size_t row)
{
    static const bool special[256] = {
        ['|'] = true, [' '] = true, ['\t'] = true, ['\n'] = true, ['\r'] = true, ['\v'] = true, ['\f'] = true};
    for (size_t k = s->row[row]; k < s->row[row + 1]; k++) {
        if (k > s->row[row]) espi_text_add(t, " ", 1);
        for (size_t f = s->token[k]; f < s->token[k + 1]; f++) {
            const espi_symbol *factor = &s->symbols.symbol[s->factor[f]];
            if (f > s->token[k]) espi_text_add(t, "|", 1);
            /* The very first byte of a column decides whether it is read as trees. */
            else if (k == 0 && factor->text[0] == '(') espi_text_add(t, "\\", 1);
            add_escaped(t, factor->text, factor->size, special, '(');
        }
    }
}

/* ------------------------------------------------------------------ trees */

static void open_node(espi_tree_printer *p, espi_text *t, espi_ref vertex)
{
    const espi_forest *f = p->walk.forest;
    if (!espi_reserve(&p->walk.frame, &p->walk.capacity, p->walk.depth + 1, sizeof *p->walk.frame)) t->failed = true;
    if (t->failed) return;
    p->walk.frame[p->walk.depth].vertex = vertex;
    p->walk.frame[p->walk.depth++].next = 0;
    espi_text_add(t, "(", 1);
    espi_text_label(t, &f->symbols.symbol[espi_production_of(f, vertex)->label]);
}

static void add_leaf(const espi_tree_printer *p, espi_text *t, espi_ref leaf, bool brackets)
{
    espi_text_add(t, brackets ? "(" : " ", 1);
    espi_text_label(t, &p->walk.forest->symbols.symbol[espi_leaf_symbol(leaf)]);
    if (brackets) espi_text_add(t, ")", 1);
}

void espi_tree_print_start(espi_tree_printer *p, const espi_forest *forest, espi_ref root, bool bracket_leaves)
{
    p->walk.forest = forest;
    p->walk.depth = 0;
    p->root = root;
    p->bracket_leaves = bracket_leaves;
}

bool espi_tree_print_more(espi_tree_printer *p, espi_text *t)
{
    const espi_forest *f = p->walk.forest;
    const size_t enough = t->size + PART;
    if (p->root != ESPI_NO_NODE && espi_is_leaf(p->root)) add_leaf(p, t, p->root, true);
    else if (p->root != ESPI_NO_NODE) open_node(p, t, p->root);
    p->root = ESPI_NO_NODE;
    while (p->walk.depth > 0 && t->size < enough && !t->failed) {
        struct espi_walk_frame *top = &p->walk.frame[p->walk.depth - 1];
        const espi_vertex *v = &f->vertex[top->vertex];
        if (top->next == f->production[v->production].arity) {
            espi_text_add(t, ")", 1);
            p->walk.depth--;
            continue;
        }
        const espi_ref child = f->child[v->children + top->next++];
        if (espi_is_leaf(child)) {
            add_leaf(p, t, child, p->bracket_leaves);
        } else {
            if (!p->bracket_leaves) espi_text_add(t, " ", 1);
            open_node(p, t, child);
        }
    }
    return p->walk.depth > 0 && !t->failed;
}

void espi_tree_printer_free(espi_tree_printer *p)
{
    espi_walk_free(&p->walk);
    *p = (espi_tree_printer){0};
}

void espi_text_tree(espi_text *t, const espi_forest *forest, espi_ref root)
{
    espi_tree_printer p = {0};
    espi_tree_print_start(&p, forest, root, false);
    while (espi_tree_print_more(&p, t)) continue;
    espi_tree_printer_free(&p);
}

/* ----------------------------------------------------------------- checks */

esp_status espi_refuse(const espi_column *column, const char *format, const char *reason, esp_error *err)
{
    char quoted[96];
    return espi_fail(err, ESP_ERR_PARAM, "column %s %s, which the format %s cannot hold",
                     espi_quote(column->name, strlen(column->name), quoted), reason, format);
}

static esp_status check_text(const espi_symbol *s, const char *format, const char *what, const char *forbidden,
                             const char *forbidden_first, esp_error *err)
{
    char quoted[96];
    if (s->size > 0 && strpbrk(s->text, forbidden) == NULL && strchr(forbidden_first, s->text[0]) == NULL)
        return ESP_OK;
    return espi_fail(err, ESP_ERR_PARAM, "the %s %s cannot be written in the format %s", what,
                     espi_quote(s->text, s->size, quoted), format);
}

esp_status espi_check_symbols(const espi_symbols *symbols, const char *format, const char *what, const char *forbidden,
                              const char *forbidden_first, esp_error *err)
{
    esp_status status = ESP_OK;
    for (size_t i = 0; i < symbols->count && status == ESP_OK; i++)
        status = check_text(&symbols->symbol[i], format, what, forbidden, forbidden_first, err);
    return status;
}

esp_status espi_check_targets(const esp_dataset *data, const char *format, const char *forbidden,
                              const char *forbidden_first, esp_error *err)
{
    esp_status status = ESP_OK;
    for (size_t i = 0; data->target_name != NULL && i < data->rows && status == ESP_OK; i++)
        status =
            check_text(&data->target_texts.symbol[data->target[i]], format, "target", forbidden, forbidden_first, err);
    return status;
}
