/* Grid search by cross-validation. The Gram matrix of a kernel is computed once; folds, classes and values of C all
 * work on its rows. Of kernels that select patterns there is one per fold and class, and only values of C share it
 * (selected.h); Gaussian processes learn their kernel anew in every fold (gp.h). */
#include "base/alloc.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"
#include "learn/gp/gp.h"
#include "learn/svm/nystroem.h"
#include "learn/perceptron/perceptron.h"
#include "learn/svm/selected.h"
#include "learn/train/validate.h"

#include <math.h>
#include <string.h>

typedef struct line { /* one line of the grid */
    char *text;       /* the values, NUL-terminated one behind the other */
    const char **value;
    size_t values;
    const char *name;
    bool kernel; /* a parameter of the kernel, not a setting of the learner */
} line;

struct esp_tuning {
    line *line;
    size_t lines, combinations;
    double *score;
    esp_kernel **kernel; /* per combination; equal ones are shared */
    bool *owns;          /* per combination: whether its kernel is its own */
    size_t best;
};

size_t esp_tuning_count(const esp_tuning *t) { return t->combinations; }
double esp_tuning_score(const esp_tuning *t, size_t combination) { return t->score[combination]; }
size_t esp_tuning_best(const esp_tuning *t) { return t->best; }
const esp_kernel *esp_tuning_kernel(const esp_tuning *t, size_t combination) { return t->kernel[combination]; }

/* Which value of line `l` a combination has; the last line changes fastest. */
static size_t choice(const esp_tuning *t, size_t combination, size_t l)
{
    for (size_t k = t->lines - 1; k > l; k--) combination /= t->line[k].values;
    return combination % t->line[l].values;
}

const char *esp_tuning_value(const esp_tuning *t, size_t combination, size_t l)
{
    return t->line[l].value[choice(t, combination, l)];
}

void esp_tuning_free(esp_tuning *t)
{
    if (t == NULL) return;
    for (size_t i = 0; t->line != NULL && i < t->lines; i++) {
        espi_free(t->line[i].text);
        espi_free(t->line[i].value);
    }
    for (size_t i = 0; t->kernel != NULL && t->owns != NULL && i < t->combinations; i++)
        if (t->owns[i]) esp_kernel_free(t->kernel[i]);
    espi_free(t->line);
    espi_free(t->score);
    espi_free(t->kernel);
    espi_free(t->owns);
    espi_free(t);
}

static esp_status parse_line(line *l, const esp_grid *grid, esp_error *err)
{
    const size_t size = strlen(grid->values);
    size_t commas = 0;
    for (size_t i = 0; i < size; i++) commas += grid->values[i] == ',';
    l->name = grid->name;
    l->text = espi_copy_text(grid->values, size);
    l->value = espi_alloc(commas + 1, sizeof *l->value);
    if (l->text == NULL || l->value == NULL) return espi_no_memory(err);
    for (char *at = l->text; at != NULL;) {
        char *comma = strchr(at, ',');
        if (comma != NULL) *comma = '\0';
        if (*at == '\0') return espi_fail(err, ESP_ERR_PARAM, "the grid line %s has an empty value", grid->name);
        l->value[l->values++] = at;
        at = comma != NULL ? comma + 1 : NULL;
    }
    return ESP_OK;
}

/* Tries every value once, so that a wrong one is told before hours of work. */
static esp_status check_line(line *l, const espi_validation *v, const esp_kernel *kernel, esp_error *err)
{
    bool unknown = false;
    esp_status status = ESP_OK;
    espi_settings trial;
    if (!espi_settings_copy(&trial, &v->settings)) return espi_no_memory(err);
    for (size_t i = 0; status == ESP_OK && i < l->values; i++) {
        status = espi_settings_set(&trial, l->name, l->value[i], &unknown, err);
        if (status == ESP_OK) status = espi_weights_check(&trial, &v->targets, err);
    }
    espi_settings_free(&trial);
    if (!unknown) return status;
    l->kernel = true;
    for (size_t i = 0; i < l->values; i++) {
        esp_kernel *copy;
        status = espi_kernel_with(kernel, l->name, l->value[i], &copy, err);
        esp_kernel_free(copy);
        if (status != ESP_OK) return status;
    }
    return ESP_OK;
}

static esp_status start_tuning(esp_tuning *t, const espi_validation *v, const esp_kernel *kernel, const esp_grid *grid,
                               size_t lines, esp_error *err)
{
    if (lines == 0) return espi_fail(err, ESP_ERR_PARAM, "the grid is empty; --grid 'C=0.1,1,10' gives values to try");
    t->lines = lines;
    t->combinations = 1;
    t->line = espi_alloc_zero(lines, sizeof *t->line);
    if (t->line == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < lines; i++) {
        esp_status status = parse_line(&t->line[i], &grid[i], err);
        for (size_t k = 0; status == ESP_OK && k < i; k++)
            if (strcmp(grid[k].name, grid[i].name) == 0)
                status = espi_fail(err, ESP_ERR_PARAM, "the grid has two lines for %s", grid[i].name);
        if (status == ESP_OK) status = check_line(&t->line[i], v, kernel, err);
        if (status != ESP_OK) return status;
        t->combinations *= t->line[i].values;
        if (t->combinations > 1000000) return espi_fail(err, ESP_ERR_PARAM, "the grid has over a million combinations");
    }
    t->score = espi_alloc(t->combinations, sizeof *t->score);
    t->kernel = espi_alloc_zero(t->combinations, sizeof *t->kernel);
    t->owns = espi_alloc_zero(t->combinations, sizeof *t->owns);
    return t->score == NULL || t->kernel == NULL || t->owns == NULL ? espi_no_memory(err) : ESP_OK;
}

static bool same_kernel(const esp_tuning *t, size_t a, size_t b)
{
    for (size_t l = 0; l < t->lines; l++)
        if (t->line[l].kernel && choice(t, a, l) != choice(t, b, l)) return false;
    return true;
}

/* Whether two combinations differ in C at most, so that one may start from the other's solution. */
static bool same_but_cost(const esp_tuning *t, size_t a, size_t b)
{
    for (size_t l = 0; l < t->lines; l++)
        if (strcmp(t->line[l].name, "C") != 0 && choice(t, a, l) != choice(t, b, l)) return false;
    return true;
}

static esp_status make_kernel(esp_tuning *t, size_t combination, const esp_kernel *kernel, esp_error *err)
{
    esp_status status = espi_kernel_copy(kernel, &t->kernel[combination], err);
    t->owns[combination] = true;
    for (size_t l = 0; status == ESP_OK && l < t->lines; l++) {
        if (!t->line[l].kernel) continue;
        esp_kernel *next;
        status =
            espi_kernel_with(t->kernel[combination], t->line[l].name, esp_tuning_value(t, combination, l), &next, err);
        if (status != ESP_OK) break;
        esp_kernel_free(t->kernel[combination]);
        t->kernel[combination] = next;
    }
    return status;
}

/* Accuracy, or minus the root of the mean squared error. */
static esp_status judge(const double *scores, const espi_targets *t, const espi_settings *settings, double *result,
                        esp_error *err)
{
    const size_t outputs = espi_output_count(settings, t->classes);
    double *per_class = espi_alloc(t->classes, sizeof *per_class), sum = 0.0;
    if (per_class == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < t->count; i++) {
        const double *s = scores + i * outputs;
        if (t->classes == 0) sum += (s[0] - t->value[i]) * (s[0] - t->value[i]);
        else sum += espi_decide(s, t->classes, settings->one_vs_one, per_class) == t->class_of[i];
    }
    espi_free(per_class);
    *result = t->classes == 0 ? -sqrt(sum / (double)t->count) : sum / (double)t->count;
    return ESP_OK;
}

typedef struct search {
    esp_tuning *tuning;
    espi_validation *validation;
    const esp_dataset *data;
    espi_bound *bound;
    espi_rows *rows;   /* both are made when they are needed */
    espi_split *split; /* per fold */
    espi_fit *last;    /* per fold: the fit of the combination before */
    size_t previous;   /* that combination; combinations: none */
    double previous_cost;
    double *scores;
} search;

/* The settings of a combination; espi_settings_free releases them, also after a failure. */
static esp_status combine(const search *s, size_t combination, espi_settings *settings, esp_error *err)
{
    const esp_tuning *t = s->tuning;
    esp_status status = espi_settings_copy(settings, &s->validation->settings) ? ESP_OK : espi_no_memory(err);
    settings->probability = settings->keep_partial = false;
    for (size_t l = 0; status == ESP_OK && l < t->lines; l++)
        if (!t->line[l].kernel)
            status = espi_settings_set(settings, t->line[l].name, esp_tuning_value(t, combination, l), NULL, err);
    return status == ESP_OK ? espi_settings_check(settings, err) : status;
}

/* The rows of the whole Gram matrix and of each fold. */
static esp_status make_rows(search *s, const esp_kernel *kernel, const esp_run *run, esp_error *err)
{
    if (s->rows != NULL) return ESP_OK;
    esp_status status = espi_bind(kernel, s->data, s->data, run, &s->bound, err);
    if (status == ESP_OK) status = espi_rows_new(s->bound, run, &s->rows, err);
    for (size_t f = 0; status == ESP_OK && f < s->validation->folds; f++)
        status = espi_split_make(&s->split[f], s->validation->fold, f, s->rows, err);
    return status;
}

static esp_status try_combination(search *s, size_t combination, const esp_run *run, esp_error *err)
{
    const esp_tuning *t = s->tuning;
    espi_settings settings;
    esp_status status = combine(s, combination, &settings, err);
    const bool warm = s->previous < t->combinations && same_but_cost(t, s->previous, combination);
    if (status == ESP_OK && settings.learner == ESPI_GP)
        status = espi_gp_folds(&settings, t->kernel[combination], s->data, &s->validation->targets, s->validation->fold,
                               s->validation->folds, run, s->scores, NULL, err);
    if (status == ESP_OK && settings.learner == ESPI_PERCEPTRON)
        status = espi_perceptron_folds(&settings, t->kernel[combination], s->data, &s->validation->targets,
                                       s->validation->fold, s->validation->folds, run, s->scores, err);
    const bool shares = espi_shares_rows(&settings), whole = shares && settings.inducing == 0;
    if (status == ESP_OK && shares && !whole)
        status = espi_nystroem_out_of_fold(&settings, t->kernel[combination], s->data, &s->validation->targets,
                                           s->validation->fold, s->validation->folds, run, s->scores, err);
    if (status == ESP_OK && whole) status = make_rows(s, t->kernel[combination], run, err);
    for (size_t f = 0; status == ESP_OK && whole && f < s->validation->folds; f++) {
        espi_fit fit = {0};
        status = espi_split_score(&s->split[f], &settings, &s->validation->targets, s->rows, &fit,
                                  warm ? &s->last[f] : NULL, s->previous_cost, run, s->scores, err);
        espi_fit_free(&s->last[f]);
        s->last[f] = fit;
    }
    if (status == ESP_OK) status = judge(s->scores, &s->validation->targets, &settings, &t->score[combination], err);
    s->previous = combination;
    s->previous_cost = settings.cost;
    espi_settings_free(&settings);
    return status;
}

typedef struct group { /* combinations that share a kernel which selects, and pose the same problems */
    size_t *combination;
    espi_settings *settings;
    espi_selected_run *fits;
    size_t count;
} group;

static void free_group(group *g)
{
    for (size_t i = 0; g->fits != NULL && g->settings != NULL && i < g->count; i++) {
        espi_settings_free(&g->settings[i]);
        espi_fit_free(&g->fits[i].fit);
        espi_free(g->fits[i].scores);
    }
    espi_free(g->combination);
    espi_free(g->settings);
    espi_free(g->fits);
}

static esp_status make_group(const search *s, size_t first, espi_choice one_vs_one, group *g, esp_error *err)
{
    const esp_tuning *t = s->tuning;
    esp_status status = ESP_OK;
    g->combination = espi_alloc(t->combinations, sizeof *g->combination);
    g->settings = espi_alloc_zero(t->combinations, sizeof *g->settings);
    g->fits = espi_alloc_zero(t->combinations, sizeof *g->fits);
    if (g->combination == NULL || g->settings == NULL || g->fits == NULL) return espi_no_memory(err);
    for (size_t c = first; status == ESP_OK && c < t->combinations; c++) {
        espi_settings *settings = &g->settings[g->count];
        espi_selected_run *f = &g->fits[g->count];
        if (!same_kernel(t, first, c)) continue;
        t->kernel[c] = t->kernel[first];
        status = combine(s, c, settings, err);
        const bool member = settings->one_vs_one == one_vs_one;
        if (!member) espi_settings_free(settings);
        if (!member) continue;
        g->combination[g->count] = c;
        f->settings = settings;
        f->warm = g->count > 0 && same_but_cost(t, g->combination[g->count - 1], c);
        f->scores =
            espi_alloc(s->data->rows, espi_output_count(settings, s->validation->targets.classes) * sizeof *f->scores);
        g->count++;
        if (status == ESP_OK && f->scores == NULL) status = espi_no_memory(err);
    }
    return status;
}

static esp_status search_group(const search *s, group *g, const esp_run *run, esp_error *err)
{
    const espi_validation *v = s->validation;
    const size_t rows = s->data->rows;
    uint32_t *train = espi_alloc(rows, sizeof *train), *test = espi_alloc(rows, sizeof *test);
    esp_status status = train == NULL || test == NULL ? espi_no_memory(err) : ESP_OK;
    espi_selected part = {.kernel = s->tuning->kernel[g->combination[0]],
                          .data = s->data,
                          .targets = &v->targets,
                          .train = train,
                          .test = test};
    for (size_t f = 0; status == ESP_OK && f < v->folds; f++) {
        espi_fold_split(v->fold, rows, f, train, &part.trained, test, &part.tested);
        status = espi_selected_fit(&part, g->fits, g->count, run, NULL, err);
        for (size_t i = 0; i < g->count; i++) espi_fit_free(&g->fits[i].fit);
    }
    for (size_t i = 0; status == ESP_OK && i < g->count; i++)
        status = judge(g->fits[i].scores, &v->targets, &g->settings[i], &s->tuning->score[g->combination[i]], err);
    espi_free(train);
    espi_free(test);
    return status;
}

/* All combinations that share the kernel of `first`, which selects patterns: each fold and problem has its own Gram
 * rows, so that these are the outer loops. */
static esp_status search_selected(const search *s, size_t first, const esp_kernel *kernel, const esp_run *run,
                                  esp_error *err)
{
    esp_status status = make_kernel(s->tuning, first, kernel, err);
    for (espi_choice one_vs_one = 0; status == ESP_OK && one_vs_one < 2; one_vs_one++) {
        group g = {0};
        status = make_group(s, first, one_vs_one, &g, err);
        if (status == ESP_OK && g.count > 0) status = search_group(s, &g, run, err);
        free_group(&g);
    }
    return status;
}

/* All combinations that share the kernel of `first`. */
static esp_status search_kernel(search *s, size_t first, const esp_kernel *kernel, const esp_run *run, esp_error *err)
{
    esp_tuning *t = s->tuning;
    const size_t folds = s->validation->folds;
    esp_status status = make_kernel(t, first, kernel, err);
    s->previous = t->combinations;
    for (size_t c = first; status == ESP_OK && c < t->combinations; c++) {
        if (!same_kernel(t, first, c)) continue;
        t->kernel[c] = t->kernel[first];
        status = try_combination(s, c, run, err);
        if (status == ESP_OK) status = espi_progress(run, "searching", (double)(c + 1) / (double)t->combinations, err);
    }
    for (size_t f = 0; f < folds; f++) {
        espi_fit_free(&s->last[f]);
        espi_split_free(&s->split[f]);
    }
    espi_rows_free(s->rows);
    espi_bound_free(s->bound);
    s->rows = NULL;
    s->bound = NULL;
    return status;
}

/* What combinations cannot be is told before hours of work. */
static esp_status check_combinations(const search *s, const esp_kernel *kernel, esp_error *err)
{
    esp_status status = ESP_OK;
    for (size_t c = 0; status == ESP_OK && c < s->tuning->combinations; c++) {
        espi_settings trial = {0};
        status = combine(s, c, &trial, err);
        if (status == ESP_OK) status = espi_selected_check(kernel, &trial, err);
        if (status == ESP_OK && espi_learns_numbers(&trial) != espi_learns_numbers(&s->validation->settings))
            status =
                espi_fail(err, ESP_ERR_PARAM, "likelihood decides what targets are, and cannot be searched in a grid");
        espi_settings_free(&trial);
    }
    return status;
}

esp_status esp_tune(const char *learner, const esp_kernel *kernel, const esp_dataset *data, const esp_setting *settings,
                    size_t count, const esp_grid *grid, size_t grid_count, size_t folds, uint64_t seed,
                    const esp_run *run, esp_tuning **out, esp_error *err)
{
    espi_validation v;
    *out = NULL;
    esp_tuning *t = espi_alloc_zero(1, sizeof *t);
    search s = {.tuning = t, .validation = &v, .data = data};
    esp_status status = espi_validation_start(&v, learner, kernel, data, settings, count, folds, seed, err);
    if (status == ESP_OK) status = t == NULL ? espi_no_memory(err) : start_tuning(t, &v, kernel, grid, grid_count, err);
    if (status == ESP_OK) {
        /* Room for one-vs-one, which the grid may ask for. */
        const size_t k = v.targets.classes, outputs = k <= 2 ? 1 : k * (k - 1) / 2 > k ? k * (k - 1) / 2 : k;
        s.split = espi_alloc_zero(folds, sizeof *s.split);
        s.last = espi_alloc_zero(folds, sizeof *s.last);
        s.scores = espi_alloc(data->rows, outputs * sizeof *s.scores);
        if (s.split == NULL || s.last == NULL || s.scores == NULL) status = espi_no_memory(err);
    }
    if (status == ESP_OK) status = check_combinations(&s, kernel, err);
    const bool selects = espi_shares_rows(&v.settings) && espi_kernel_selects(kernel);
    for (size_t c = 0; status == ESP_OK && c < t->combinations; c++)
        if (t->kernel[c] == NULL)
            status = selects ? search_selected(&s, c, kernel, run, err) : search_kernel(&s, c, kernel, run, err);
    for (size_t c = 1; status == ESP_OK && c < t->combinations; c++)
        if (t->score[c] > t->score[t->best]) t->best = c;
    espi_free(s.split);
    espi_free(s.last);
    espi_free(s.scores);
    espi_validation_end(&v);
    if (status == ESP_OK) *out = t;
    else esp_tuning_free(t);
    return status;
}
