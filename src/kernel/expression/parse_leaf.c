/* A kernel of an expression: its name and its arguments, each checked against the table of its class. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "kernel/expression/parse.h"

#include <math.h>
#include <string.h>

static esp_status unknown_kernel(espi_scan *s, size_t at, const char *text)
{
    const char *names[64];
    char all[400] = "";
    size_t count = 0;
    for (; s->classes[count] != NULL && count + 1 < sizeof names / sizeof *names; count++) {
        names[count] = s->classes[count]->name;
        if (count > 0) espi_append(all, sizeof all, ", ");
        espi_append(all, sizeof all, names[count]);
    }
    names[count++] = "norm";
    const char *near = esp_nearest(text, names, count);
    char quoted[96];
    espi_quote(text, strlen(text), quoted);
    if (near != NULL) return espi_scan_wrong(s, at, "unknown kernel %s; did you mean '%s'?", quoted, near);
    return espi_scan_wrong(s, at, "unknown kernel %s; there are %s and norm(...)", quoted, all);
}

static esp_status unknown_parameter(espi_scan *s, size_t at, const espi_kernel_class *class, const char *text)
{
    const char *names[ESPI_MAX_PARAMETERS];
    char all[400] = "";
    size_t count = 0;
    for (; class->parameters[count].info.name != NULL; count++) {
        names[count] = class->parameters[count].info.name;
        if (count > 0) espi_append(all, sizeof all, ", ");
        espi_append(all, sizeof all, names[count]);
    }
    const char *near = esp_nearest(text, names, count);
    char quoted[96];
    espi_quote(text, strlen(text), quoted);
    if (near != NULL)
        return espi_scan_wrong(s, at, "%s has no parameter %s; did you mean '%s'?", class->name, quoted, near);
    if (count == 0) return espi_scan_wrong(s, at, "%s has no parameter %s; it has none", class->name, quoted);
    return espi_scan_wrong(s, at, "%s has no parameter %s; it has %s", class->name, quoted, all);
}

static esp_status take_value(espi_scan *s, const espi_kernel_class *class, const espi_parameter *parameter, double *out)
{
    const size_t at = espi_scan_place(s);
    char quoted[96];
    if (parameter->info.kind == ESP_KIND_CHOICE) {
        espi_name choice;
        const esp_status status = espi_scan_name(s, &choice);
        if (status != ESP_OK) return status;
        size_t i = 0;
        while (parameter->choices[i] != NULL && strcmp(parameter->choices[i], choice.text) != 0) i++;
        espi_quote(choice.text, choice.size, quoted);
        espi_free(choice.text);
        *out = (double)i;
        if (parameter->choices[i] != NULL) return ESP_OK;
        return espi_scan_wrong(s, at, "%s of %s is %s; allowed is %s", parameter->info.name, class->name, quoted,
                               parameter->info.range);
    }
    if (parameter->infinite && strncmp(s->at, "inf", 3) == 0 && !espi_is_name(s->at[3])) {
        s->at += 3;
        *out = HUGE_VAL;
        return ESP_OK;
    }
    const bool negative = *s->at == '-';
    if (negative) s->at++;
    const esp_status status = espi_scan_number(s, out);
    if (status != ESP_OK) return status;
    if (negative) *out = -*out;
    const bool inside =
        *out <= parameter->high && (parameter->low_open ? *out > parameter->low : *out >= parameter->low);
    const bool fraction = parameter->info.kind == ESP_KIND_NUMBER;
    if (inside && (fraction || floor(*out) == *out)) return ESP_OK;
    return espi_scan_wrong(s, at, "%s of %s is %s; allowed is %s", parameter->info.name, class->name,
                           espi_quote(s->text + at, espi_scan_place(s) - at, quoted), parameter->info.range);
}

/* In braces, or a file's name, in quotes or without blanks, brackets and commas. */
static esp_status take_argument_of(espi_scan *s, const espi_argument_class *class, espi_leaf *leaf)
{
    const size_t at = espi_scan_place(s);
    class->free(leaf->argument);
    leaf->argument = NULL;
    if (*s->at == '{') {
        size_t end;
        const esp_status status = class->parse(s->text, at + 1, &end, &leaf->argument, s->err);
        s->at = s->text + end;
        return status;
    }
    espi_name file = {0};
    const size_t size = strcspn(s->at, " \t\r\n,(){}\"");
    esp_status status = ESP_OK;
    if (*s->at == '"') {
        status = espi_scan_name(s, &file);
    } else {
        file.text = espi_copy_text(s->at, file.size = size);
        if (file.text == NULL) status = espi_no_memory(s->err);
        s->at += size;
    }
    if (status == ESP_OK && file.size == 0)
        status = espi_scan_wrong(s, at, "a file of %s is expected, or %s in braces, as in %s", class->name,
                                 class->short_name, class->example);
    if (status == ESP_OK && !s->files)
        status = espi_scan_wrong(s, at, "%s must stand in braces here, not in a file", class->name);
    if (status == ESP_OK) status = class->read(file.text, &leaf->argument, s->err);
    espi_free(file.text);
    return status;
}

/* name = value, or name.LABEL = value; the name is read already. */
static esp_status take_parameter(espi_scan *s, espi_leaf *leaf, const espi_name *key, size_t at, bool *given)
{
    const espi_parameter *all = leaf->class->parameters;
    size_t i = 0;
    while (all[i].info.name != NULL && strcmp(all[i].info.name, key->text) != 0) i++;
    if (all[i].info.name == NULL) return unknown_parameter(s, at, leaf->class, key->text);
    espi_name label = {0};
    esp_status status = ESP_OK;
    if (*s->at == '.') {
        if (!all[i].per_symbol)
            return espi_scan_wrong(s, espi_scan_place(s), "%s of %s cannot be given per symbol", key->text,
                                   leaf->class->name);
        s->at++;
        status = espi_scan_name(s, &label);
        if (status == ESP_OK && label.size == 0)
            status = espi_scan_wrong(s, espi_scan_place(s), "a symbol must follow '%s.'; quote odd ones: %s.\"PRP$\"",
                                     key->text, key->text);
    }
    espi_scan_blanks(s);
    if (status == ESP_OK && *s->at != '=')
        status = espi_scan_wrong(s, espi_scan_place(s), "'=' must follow the parameter %s", key->text);
    if (status == ESP_OK) {
        s->at++;
        espi_scan_blanks(s);
    }
    double number = 0.0;
    if (status == ESP_OK && all[i].argument != NULL) status = take_argument_of(s, all[i].argument, leaf);
    else if (status == ESP_OK) status = take_value(s, leaf->class, &all[i], &number);
    bool twice = status == ESP_OK && label.text == NULL && given[i];
    for (size_t k = 0; status == ESP_OK && label.text != NULL && k < leaf->symbols; k++)
        twice = twice || (leaf->symbol[k].parameter == i && strcmp(leaf->symbol[k].label, label.text) == 0);
    if (twice) status = espi_scan_wrong(s, at, "%s is given twice", key->text);
    if (status == ESP_OK && label.text != NULL) {
        if (!espi_reserve(&leaf->symbol, &leaf->symbol_capacity, leaf->symbols + 1, sizeof *leaf->symbol))
            status = espi_no_memory(s->err);
        else leaf->symbol[leaf->symbols++] = (espi_symbol_value){.parameter = i, .label = label.text, .value = number};
        if (status == ESP_OK) return ESP_OK;
    } else if (status == ESP_OK) {
        leaf->value[i] = number;
        given[i] = true;
    }
    espi_free(label.text);
    return status;
}

/* One argument: a parameter, or, as the first, a column. */
static esp_status take_argument(espi_scan *s, espi_leaf *leaf, bool first, bool *given)
{
    char text[96];
    const size_t at = espi_scan_place(s);
    const bool quoted = *s->at == '"';
    espi_name key;
    esp_status status = espi_scan_name(s, &key);
    if (status != ESP_OK) return status;
    espi_scan_blanks(s);
    const bool parameter = !quoted && (*s->at == '=' || *s->at == '.');
    if (key.size == 0) {
        status = espi_scan_wrong(s, at, "a column or a parameter is expected, not %s", espi_scan_shown(s, text));
    } else if (parameter) {
        status = take_parameter(s, leaf, &key, at, given);
    } else if (!first) {
        status = espi_scan_wrong(s, at, "only the first argument may be a column; write name=value for a parameter");
    } else {
        leaf->column = key.text;
        return ESP_OK;
    }
    espi_free(key.text);
    return status;
}

static esp_status take_arguments(espi_scan *s, espi_leaf *leaf)
{
    bool given[ESPI_MAX_PARAMETERS] = {false};
    char text[96];
    const size_t open = espi_scan_place(s);
    s->at++;
    espi_scan_blanks(s);
    if (*s->at == ')') {
        s->at++;
        return ESP_OK;
    }
    for (bool first = true;; first = false) {
        espi_scan_blanks(s);
        const esp_status status = take_argument(s, leaf, first, given);
        if (status != ESP_OK) return status;
        espi_scan_blanks(s);
        if (*s->at == ')') break;
        if (*s->at == '\0') return espi_scan_wrong(s, open, "this bracket is never closed");
        if (*s->at != ',')
            return espi_scan_wrong(s, espi_scan_place(s), "',' or ')' is expected, not %s", espi_scan_shown(s, text));
        s->at++;
    }
    s->at++;
    return ESP_OK;
}

static int by_symbol(const espi_symbol_value *a, const espi_symbol_value *b)
{
    return a->parameter != b->parameter ? (a->parameter > b->parameter ? 1 : -1) : strcmp(a->label, b->label);
}

esp_status espi_leaf_read(espi_scan *s, const char *text, size_t at, espi_leaf *leaf)
{
    size_t i = 0;
    while (s->classes[i] != NULL && strcmp(s->classes[i]->name, text) != 0) i++;
    if (s->classes[i] == NULL) return unknown_kernel(s, at, text);
    leaf->class = s->classes[i];
    for (size_t n = 0; leaf->class->parameters[n].info.name != NULL; n++) {
        const espi_parameter *parameter = &leaf->class->parameters[n];
        if (parameter->choices == NULL && parameter->argument == NULL) /* that of a choice is its first */
            espi_number_parse(parameter->info.default_value, strlen(parameter->info.default_value), &leaf->value[n]);
    }
    espi_scan_blanks(s);
    esp_status status = *s->at == '(' ? take_arguments(s, leaf) : ESP_OK;
    /* In one order, so that equal kernels print alike. */
    for (size_t a = 1; status == ESP_OK && a < leaf->symbols; a++)
        for (size_t b = a; b > 0 && by_symbol(&leaf->symbol[b - 1], &leaf->symbol[b]) > 0; b--) {
            const espi_symbol_value t = leaf->symbol[b];
            leaf->symbol[b] = leaf->symbol[b - 1];
            leaf->symbol[b - 1] = t;
        }
    return status;
}
