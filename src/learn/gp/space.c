/* What a Gaussian process can move: the hyperparameters of its kernel and the noise, by name, and what the settings
 * fix, tie, group and believe of them. Values are searched by their logarithms, hence a value of 0 stays. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"
#include "learn/gp/gp.h"
#include "learn/model/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The noise, of the variance of the targets: where it is drawn, and where it may go. */
static const double NOISE_DRAW_LOW = 1e-3, NOISE_DRAW_HIGH = 1.0, NOISE_LOW = 1e-7, NOISE_HIGH = 1e4;

/* --------------------------------------------------------------- patterns */

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool espi_pattern_next(const char **text, char separator, const char **piece, size_t *size)
{
    const char *at = *text, *end;
    if (at == NULL) return false;
    while (is_blank(*at)) at++;
    *piece = end = at;
    while (*at != '\0' && *at != separator) {
        const bool blank = is_blank(*at);
        at += at[0] == '\\' && at[1] != '\0' ? 2 : 1;
        if (!blank) end = at;
    }
    *size = (size_t)(end - *piece);
    *text = *at == separator ? at + 1 : NULL;
    return true;
}

/* Goes back to the last * only, which is enough: what an earlier one took can as well be taken by a later one. */
bool espi_pattern_match(const char *pattern, size_t size, const char *name)
{
    const char *p = pattern, *end = pattern + size, *star = NULL, *from = NULL;
    while (*name != '\0') {
        const bool escaped = p < end && *p == '\\' && p + 1 < end;
        if (p < end && *p == '*') {
            star = ++p;
            from = name;
        } else if (p < end && (escaped ? p[1] == *name : *p == '?' || *p == *name)) {
            p += escaped ? 2 : 1;
            name++;
        } else if (star != NULL) {
            p = star;
            name = ++from;
        } else {
            return false;
        }
    }
    while (p < end && *p == '*') p++;
    return p == end;
}

static esp_status no_match(const espi_gp_space *s, const char *setting, const char *piece, size_t size, esp_error *err)
{
    char list[400] = "", quoted[96];
    for (size_t i = 0; i < s->hypers; i++) {
        if (i > 0) espi_append(list, sizeof list, ", ");
        espi_append(list, sizeof list, s->hyper[i].name);
    }
    espi_quote(piece, size, quoted);
    if (s->hypers == 0)
        return espi_fail(err, ESP_ERR_PARAM, "%s names %s, but there are no hyperparameters", setting, quoted);
    return espi_fail(err, ESP_ERR_PARAM, "%s names %s, which is no hyperparameter; there are %s", setting, quoted,
                     list);
}

/* ------------------------------------------------------------------- sets */

/* Hyperparameters that share a value point to the first of them; `set` is its own for one that is alone. */
typedef struct sets {
    espi_gp_space *space;
    size_t *set;
    bool *taken; /* by a group or a tie: the first that names it has it */
    bool *fixed;
} sets;

static esp_status fix(sets *s, const char *text, esp_error *err)
{
    const char *piece;
    size_t size;
    while (espi_pattern_next(&text, ',', &piece, &size)) {
        bool any = false;
        for (size_t i = 0; i < s->space->hypers; i++)
            if (espi_pattern_match(piece, size, s->space->hyper[i].name)) any = s->fixed[i] = true;
        if (!any) return no_match(s->space, "fix", piece, size, err);
    }
    return ESP_OK;
}

/* Puts hyperparameter `i` into the set of `first` (hypers: none yet), unless it has one. */
static void join(sets *s, size_t i, size_t *first)
{
    if (s->taken[i] || s->fixed[i]) return;
    if (*first == s->space->hypers) *first = i;
    s->set[i] = *first;
    s->taken[i] = true;
}

static esp_status tie(sets *s, const char *text, esp_error *err)
{
    const char *piece;
    size_t size;
    while (espi_pattern_next(&text, ',', &piece, &size)) {
        size_t first = s->space->hypers;
        bool any = false;
        for (size_t i = 0; i < s->space->hypers; i++) {
            if (!espi_pattern_match(piece, size, s->space->hyper[i].name)) continue;
            any = true;
            join(s, i, &first);
        }
        if (!any) return no_match(s->space, "tie", piece, size, err);
    }
    return ESP_OK;
}

/* The label that a hyperparameter is for, and its leaf and parameter; NULL if it is for none. */
static const char *label_of(const esp_kernel *kernel, const espi_hyper *hyper, size_t *leaf, size_t *parameter)
{
    for (size_t l = 0; l < kernel->leaves; l++) {
        const espi_leaf *of = &kernel->leaf[l];
        const size_t end = espi_leaf_place(kernel, l + 1);
        if (hyper->place >= end) continue;
        if (hyper->place < end - of->symbols) return NULL;
        const espi_symbol_value *value = &of->symbol[hyper->place - (end - of->symbols)];
        *leaf = l;
        *parameter = value->parameter;
        return value->label;
    }
    return NULL;
}

/* A piece without its escapes; NULL if memory is out. */
static char *plain(const char *piece, size_t size)
{
    char *copy = espi_copy_text(piece, size);
    size_t n = 0;
    for (size_t i = 0; copy != NULL && i < size; i++) {
        if (copy[i] == '\\' && i + 1 < size) i++;
        copy[n++] = copy[i];
    }
    if (copy != NULL) copy[n] = '\0';
    return copy;
}

static esp_status unknown_label(const espi_gp_space *s, const char *label, esp_error *err)
{
    char quoted[96], list[300] = "";
    size_t leaf, parameter, count = 0;
    const char **name = espi_alloc(s->hypers, sizeof *name);
    if (name == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < s->hypers; i++) {
        const char *other = label_of(s->kernel, &s->hyper[i], &leaf, &parameter);
        bool known = other == NULL;
        for (size_t k = 0; !known && k < count; k++) known = strcmp(name[k], other) == 0;
        if (!known) name[count++] = other;
    }
    const char *near = count > 0 ? esp_nearest(label, name, count) : NULL;
    for (size_t k = 0; k < count; k++) {
        if (k > 0) espi_append(list, sizeof list, ", ");
        espi_append(list, sizeof list, name[k]);
    }
    espi_quote(label, strlen(label), quoted);
    const esp_status status =
        count == 0 ? espi_fail(err, ESP_ERR_PARAM, "group names %s, but the kernel has no values by label", quoted)
        : near != NULL
            ? espi_fail(err, ESP_ERR_PARAM, "group names the unknown label %s; did you mean '%s'?", quoted, near)
            : espi_fail(err, ESP_ERR_PARAM, "group names the unknown label %s; there are %s", quoted, list);
    espi_free(name);
    return status;
}

/* One label of a group: its values join those of the labels before it, leaf by leaf and parameter by parameter. `first`
 * has a place for each. */
static esp_status add_label(sets *s, const char *label, size_t *first, esp_error *err)
{
    const espi_gp_space *space = s->space;
    size_t leaf = 0, parameter = 0;
    bool any = false;
    for (size_t i = 0; i < space->hypers; i++) {
        const char *own = label_of(space->kernel, &space->hyper[i], &leaf, &parameter);
        if (own == NULL || strcmp(own, label) != 0) continue;
        any = true;
        join(s, i, &first[leaf * ESPI_MAX_PARAMETERS + parameter]);
    }
    return any ? ESP_OK : unknown_label(space, label, err);
}

static esp_status group(sets *s, const char *text, esp_error *err)
{
    const espi_gp_space *space = s->space;
    const size_t places = space->kernel->leaves * ESPI_MAX_PARAMETERS;
    const char *labels, *piece;
    size_t size;
    esp_status status = ESP_OK;
    size_t *first = espi_alloc(places, sizeof *first);
    if (first == NULL) return espi_no_memory(err);
    while (status == ESP_OK && espi_pattern_next(&text, ';', &labels, &size)) {
        char *own = espi_copy_text(labels, size);
        const char *rest = own;
        if (own == NULL) status = espi_no_memory(err);
        for (size_t i = 0; i < places; i++) first[i] = space->hypers;
        while (status == ESP_OK && espi_pattern_next(&rest, ',', &piece, &size)) {
            char *label = plain(piece, size);
            status = label == NULL ? espi_no_memory(err) : add_label(s, label, first, err);
            espi_free(label);
        }
        espi_free(own);
    }
    espi_free(first);
    return status;
}

/* ----------------------------------------------------------------- priors */

static esp_status wrong_prior(const char *piece, size_t size, esp_error *err)
{
    char quoted[96];
    return espi_fail(err, ESP_ERR_PARAM, "prior has %s; allowed is name=median,sd;... with numbers > 0",
                     espi_quote(piece, size, quoted));
}

static bool read_number(const char *text, size_t size, double *value)
{
    while (size > 0 && is_blank(*text)) text++, size--;
    while (size > 0 && is_blank(text[size - 1])) size--;
    return espi_number_parse(text, size, value) && *value > 0.0;
}

/* The prior of one piece: name[0 .. size) is a pattern. */
static esp_status set_prior(espi_gp_space *s, const char *name, size_t size, double median, double deviation,
                            esp_error *err)
{
    bool any = false, moves = false;
    char quoted[96];
    for (size_t i = 0; i < s->hypers; i++) {
        if (!espi_pattern_match(name, size, s->hyper[i].name)) continue;
        any = true;
        if (s->variable[i] == ESPI_GP_FIXED) continue;
        moves = true;
        if (s->moving[s->variable[i]].deviation > 0.0)
            return espi_fail(err, ESP_ERR_PARAM, "prior names %s, but %s has a prior already",
                             espi_quote(name, size, quoted), s->hyper[i].name);
    }
    if (!any) return no_match(s, "prior", name, size, err);
    if (!moves) return espi_fail(err, ESP_ERR_PARAM, "prior names %s, which is fixed", espi_quote(name, size, quoted));
    for (size_t i = 0; i < s->hypers; i++) {
        if (s->variable[i] == ESPI_GP_FIXED || !espi_pattern_match(name, size, s->hyper[i].name)) continue;
        s->moving[s->variable[i]].median = median;
        s->moving[s->variable[i]].deviation = deviation;
    }
    return ESP_OK;
}

static esp_status set_priors(espi_gp_space *s, const char *text, esp_error *err)
{
    const char *piece;
    size_t size;
    esp_status status = ESP_OK;
    while (status == ESP_OK && espi_pattern_next(&text, ';', &piece, &size)) {
        size_t equal = size;
        while (equal > 0 && piece[equal - 1] != '=') equal--;
        const char *comma = equal > 0 ? memchr(piece + equal, ',', size - equal) : NULL;
        double median, deviation;
        if (comma == NULL || !read_number(piece + equal, (size_t)(comma - piece) - equal, &median) ||
            !read_number(comma + 1, (size_t)(piece + size - comma) - 1, &deviation))
            return wrong_prior(piece, size, err);
        equal--;
        while (equal > 1 && is_blank(piece[equal - 1]) && piece[equal - 2] != '\\') equal--;
        status = set_prior(s, piece, equal, median, deviation, err);
    }
    return status;
}

/* ------------------------------------------------------------------ space */

/* The noise as one more hyperparameter, behind those of the kernel. */
static bool add_noise(espi_gp_space *s, double noise, double spread)
{
    espi_hyper *more = espi_realloc(s->hyper, s->hypers + 1, sizeof *more);
    char *name = espi_copy_text("noise", 5);
    if (more != NULL) s->hyper = more;
    if (more == NULL || name == NULL) {
        espi_free(name);
        return false;
    }
    s->hyper[s->hypers++] = (espi_hyper){.name = name,
                                         .place = espi_kernel_places(s->kernel),
                                         .value = noise,
                                         .low = NOISE_LOW * spread,
                                         .high = NOISE_HIGH * spread,
                                         .draw_low = NOISE_DRAW_LOW * spread,
                                         .draw_high = NOISE_DRAW_HIGH * spread};
    s->noisy = true;
    return true;
}

/* No step of a logarithm leads away from 0. Kernels have no such hyperparameters, but the noise may be 0. */
static void fix_zeros(sets *s, const esp_run *run)
{
    for (size_t i = 0; i < s->space->hypers; i++) {
        char line[200];
        if (s->fixed[i] || s->space->hyper[i].value != 0.0) continue;
        s->fixed[i] = true;
        snprintf(line, sizeof line, "%.160s is 0 and stays so", s->space->hyper[i].name);
        espi_message(run, line);
    }
}

/* Numbers the sets that move; the first of a set may stand behind others of it. */
static esp_status make_variables(const sets *s, esp_error *err)
{
    espi_gp_space *space = s->space;
    for (size_t i = 0; i < space->hypers; i++) space->variable[i] = ESPI_GP_FIXED;
    for (size_t i = 0; i < space->hypers; i++) {
        const espi_hyper *h = &space->hyper[i], *first = &space->hyper[s->set[i]];
        if (s->fixed[i]) continue;
        if (space->variable[s->set[i]] == ESPI_GP_FIXED) {
            space->moving[space->variables] = (espi_gp_variable){.name = first->name,
                                                                 .low = fmin(first->low, first->value),
                                                                 .high = fmax(first->high, first->value),
                                                                 .draw_low = first->draw_low,
                                                                 .draw_high = first->draw_high,
                                                                 .start = first->value};
            space->variable[s->set[i]] = space->variables++;
        }
        espi_gp_variable *v = &space->moving[space->variable[s->set[i]]];
        space->variable[i] = space->variable[s->set[i]];
        v->low = fmax(v->low, fmin(h->low, h->value)); /* a value that is given is allowed */
        v->high = fmin(v->high, fmax(h->high, h->value));
        if (v->low > v->high)
            return espi_fail(err, ESP_ERR_PARAM, "%s and %s are tied, but no value is in the range of both", v->name,
                             h->name);
        v->start = fmin(fmax(v->start, v->low), v->high);
    }
    return ESP_OK;
}

static esp_status make_sets(espi_gp_space *space, const espi_gp_settings *settings, const esp_run *run, esp_error *err)
{
    const size_t n = space->hypers;
    sets s = {.space = space};
    s.set = espi_alloc(n, sizeof *s.set);
    s.taken = espi_alloc_zero(n, sizeof *s.taken);
    s.fixed = espi_alloc_zero(n, sizeof *s.fixed);
    space->variable = espi_alloc(n, sizeof *space->variable);
    space->moving = espi_alloc_zero(n, sizeof *space->moving);
    esp_status status = ESP_OK;
    if (s.set == NULL || s.taken == NULL || s.fixed == NULL || space->variable == NULL || space->moving == NULL)
        status = espi_no_memory(err);
    for (size_t i = 0; status == ESP_OK && i < n; i++) s.set[i] = i;
    if (status == ESP_OK) status = fix(&s, settings->fix, err);
    if (status == ESP_OK) fix_zeros(&s, run);
    if (status == ESP_OK) status = group(&s, settings->group, err);
    if (status == ESP_OK) status = tie(&s, settings->tie, err);
    if (status == ESP_OK) status = make_variables(&s, err);
    if (status == ESP_OK) status = set_priors(space, settings->prior, err);
    espi_free(s.set);
    espi_free(s.taken);
    espi_free(s.fixed);
    return status;
}

esp_status espi_gp_space_new(espi_gp_space *space, const espi_gp_settings *settings, const esp_kernel *kernel,
                             const esp_dataset *data, bool noisy, double spread, const esp_run *run, esp_error *err)
{
    *space = (espi_gp_space){0};
    esp_status status = espi_kernel_expand(kernel, data, &space->kernel, err);
    if (status == ESP_OK) status = espi_model_check_kernel(esp_kernel_text(space->kernel), err);
    if (status == ESP_OK) status = espi_hypers_new(space->kernel, &space->hyper, &space->hypers, err);
    if (status == ESP_OK && noisy && !add_noise(space, settings->noise, spread)) status = espi_no_memory(err);
    if (status == ESP_OK) status = make_sets(space, settings, run, err);
    if (status != ESP_OK) espi_gp_space_free(space);
    return status;
}

void espi_gp_space_free(espi_gp_space *space)
{
    espi_hypers_free(space->hyper, space->hypers);
    esp_kernel_free(space->kernel);
    espi_free(space->variable);
    espi_free(space->moving);
    *space = (espi_gp_space){0};
}

void espi_gp_space_set(espi_gp_space *space, const double *value)
{
    for (size_t i = 0; i < space->hypers; i++) {
        if (space->variable[i] == ESPI_GP_FIXED) continue;
        space->hyper[i].value = value[space->variable[i]];
        if (!space->noisy || i + 1 < space->hypers)
            espi_kernel_set(space->kernel, space->hyper[i].place, space->hyper[i].value);
    }
}

double espi_gp_space_noise(const espi_gp_space *space)
{
    return space->noisy ? space->hyper[space->hypers - 1].value : 0.0;
}
