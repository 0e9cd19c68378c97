/* Grid search by cross-validation. Combinations that share a kernel are handed to the learner together, as trials, so
 * that it can share what they have in common: rows of a Gram matrix, or starts of the solver. */
#include "base/alloc.h"
#include "base/group.h"
#include "base/parallel.h"
#include "base/status.h"
#include "learn/predictions.h"
#include "learn/train/setup.h"

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

/* Tries every value once, so that a wrong one is an error before hours of work. */
static esp_status check_line(line *l, const espi_setup *setup, const esp_kernel *kernel, esp_error *err)
{
    bool unknown = false;
    esp_status status = ESP_OK;
    espi_settings *trial = espi_settings_copy(setup->settings);
    if (trial == NULL) return espi_no_memory(err);
    for (size_t i = 0; status == ESP_OK && i < l->values; i++) {
        status = espi_settings_set(trial, l->name, l->value[i], &unknown, err);
        if (status == ESP_OK) status = espi_setup_check_targets(trial, &setup->targets, err);
    }
    espi_settings_free(trial);
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

static esp_status start_tuning(esp_tuning *t, const espi_setup *setup, const esp_grid *grid, size_t lines,
                               esp_error *err)
{
    if (lines == 0)
        return espi_fail(err, ESP_ERR_PARAM, "the grid is empty; a line such as C=0.1,1,10 gives values to try");
    t->lines = lines;
    t->combinations = 1;
    t->line = espi_alloc_zero(lines, sizeof *t->line);
    if (t->line == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < lines; i++) {
        esp_status status = parse_line(&t->line[i], &grid[i], err);
        for (size_t k = 0; status == ESP_OK && k < i; k++)
            if (strcmp(grid[k].name, grid[i].name) == 0)
                status = espi_fail(err, ESP_ERR_PARAM, "the grid has two lines for %s", grid[i].name);
        if (status == ESP_OK) status = check_line(&t->line[i], setup, setup->problem.kernel, err);
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

/* ----------------------------------------------------------------- metrics */

typedef enum measure { ACCURACY, RMSE, NLPD } measure;
static const char *const measures[] = {[ACCURACY] = "accuracy", [RMSE] = "rmse", [NLPD] = "nlpd"};

/* The metric of this name, or without one that of the targets. */
static esp_status choose_measure(const char *name, const espi_setup *setup, measure *out, esp_error *err)
{
    const bool numbers = setup->targets.classes == 0;
    char quoted[96];
    *out = numbers ? RMSE : ACCURACY;
    if (name == NULL || strcmp(name, measures[*out]) == 0) return ESP_OK;
    if (strcmp(name, measures[numbers ? ACCURACY : RMSE]) == 0)
        return espi_fail(err, ESP_ERR_PARAM, "%s is for %s, but the targets are %s", name,
                         numbers ? "classes" : "numbers", numbers ? "numbers" : "classes");
    if (strcmp(name, measures[NLPD]) != 0)
        return espi_fail(err, ESP_ERR_PARAM, "there is no metric %s; allowed are accuracy, rmse and nlpd",
                         espi_quote(name, strlen(name), quoted));
    *out = NLPD;
    if ((espi_capabilities(setup->settings) & ESP_GIVES_VARIANCES) != 0) return ESP_OK;
    return espi_fail(err, ESP_ERR_PARAM, "nlpd needs predictive densities, which gp has and %s has not",
                     setup->settings->learner->name);
}

typedef struct judging { /* one combination: how right the prediction of each example is */
    const espi_targets *targets;
    measure measure;
    bool pairs;
    double *probability; /* per example and class, where NLPD asks for them; or NULL */
    double *value;       /* per example: 1 if its class is right, else 0; the squared error; or its NLPD */
} judging;

/* ------------------------------------------------------------------ search */

typedef struct search {
    esp_tuning *tuning;
    measure measure;
    const espi_setup *setup;
    espi_folds folds;
    espi_trial *trial; /* those that share a kernel ... */
    judging *judging;
    size_t *combination; /* ... and which ones these are */
    size_t trials;
    size_t done;           /* combinations of other kernels */
    const esp_run *group;  /* of those who search together; NULL: nobody else does */
    size_t *lead;          /* per kernel: its first combination */
    double **found;        /* per kernel and trial: values of the examples that this rank has judged, else 0 */
    size_t kernels, parts; /* parts of a kernel's folds */
    int threads;           /* of this rank */
} search;

static double nlpd_of(const judging *j, size_t example, const double *score, const double *variance)
{
    const espi_targets *t = j->targets;
    if (t->classes == 0) return -espi_log_density(score[0] - t->value[example], variance[1]);
    double *probability = j->probability + example * t->classes;
    espi_decide_spread(score, variance, t->classes, probability);
    return -espi_log_probability(probability[t->class_of[example]]);
}

static void judge(void *context, size_t example, const double *score, const double *variance)
{
    const judging *j = context;
    const espi_targets *t = j->targets;
    if (j->measure == NLPD) {
        j->value[example] = nlpd_of(j, example, score, variance);
        return;
    }
    if (t->classes == 0) {
        j->value[example] = (score[0] - t->value[example]) * (score[0] - t->value[example]);
        return;
    }
    const size_t class = variance != NULL ? espi_decide_spread(score, variance, t->classes, NULL)
                                          : espi_decide(score, t->classes, j->pairs, NULL);
    j->value[example] = class == t->class_of[example];
}

/* Higher is better: the accuracy, minus the root of the mean squared error, or minus the mean NLPD. */
static double score_of(const judging *j)
{
    double sum = 0.0;
    for (size_t i = 0; i < j->targets->count; i++) sum += j->value[i];
    const double mean = sum / (double)j->targets->count;
    return j->measure == ACCURACY ? mean : j->measure == RMSE ? -sqrt(mean) : -mean;
}

/* The settings of a combination, for espi_settings_free. */
static esp_status combine(const search *s, size_t combination, espi_settings **out, esp_error *err)
{
    const esp_tuning *t = s->tuning;
    const espi_learner *learner = s->setup->settings->learner;
    espi_settings *settings = *out = espi_settings_copy(s->setup->settings);
    if (settings == NULL) return espi_no_memory(err);
    if (learner->for_validation != NULL) learner->for_validation(settings);
    esp_status status = ESP_OK;
    for (size_t l = 0; status == ESP_OK && l < t->lines; l++)
        if (!t->line[l].kernel)
            status = espi_settings_set(settings, t->line[l].name, esp_tuning_value(t, combination, l), NULL, err);
    if (status == ESP_OK && learner->check != NULL) status = learner->check(settings, err);
    return status;
}

static void free_trials(search *s)
{
    for (size_t i = 0; i < s->trials; i++) {
        espi_settings_free((espi_settings *)s->trial[i].settings);
        espi_free(s->judging[i].probability);
        espi_free(s->judging[i].value);
    }
    s->trials = 0;
}

/* The combinations that share the kernel of `first`. */
static esp_status make_trials(search *s, size_t first, esp_error *err)
{
    esp_tuning *t = s->tuning;
    const espi_targets *targets = &s->setup->targets;
    esp_status status = ESP_OK;
    for (size_t c = first; status == ESP_OK && c < t->combinations; c++) {
        if (!same_kernel(t, first, c)) continue;
        t->kernel[c] = t->kernel[first];
        espi_settings *settings;
        status = combine(s, c, &settings, err);
        if (settings == NULL) break;
        judging *j = &s->judging[s->trials];
        *j = (judging){.targets = targets, .measure = s->measure, .pairs = espi_learns_pairs(settings)};
        const bool probable = s->measure == NLPD && targets->classes > 0;
        if (probable) j->probability = espi_alloc(targets->count, targets->classes * sizeof *j->probability);
        j->value = espi_alloc(targets->count, sizeof *j->value);
        s->combination[s->trials] = c;
        s->trial[s->trials++] = (espi_trial){.settings = settings, .take = judge, .context = j};
        if (status == ESP_OK && (j->value == NULL || (probable && j->probability == NULL)))
            status = espi_no_memory(err);
    }
    return status;
}

/* What a learner says of its part of the search is a part of the whole. */
static int pass_progress(void *user, const char *stage, double fraction)
{
    const search *s = user;
    const esp_run *run = s->setup->problem.run;
    if (strcmp(stage, "searching") == 0)
        fraction = ((double)s->done + fraction * (double)s->trials) / (double)s->tuning->combinations;
    return run->progress(run->user, stage, fraction);
}

/* All combinations that share the kernel of `first`. */
static esp_status search_kernel(search *s, size_t first, esp_error *err)
{
    esp_tuning *t = s->tuning;
    espi_problem problem = s->setup->problem;
    esp_run run = problem.run != NULL ? *problem.run : (esp_run){0};
    esp_status status = make_kernel(t, first, problem.kernel, err);
    if (status == ESP_OK) status = make_trials(s, first, err);
    problem.kernel = t->kernel[first];
    if (run.progress != NULL) {
        run.progress = pass_progress;
        run.user = s;
    }
    if (problem.run != NULL) problem.run = &run;
    if (status == ESP_OK)
        status = s->setup->settings->learner->out_of_fold(&problem, &s->folds, s->trial, s->trials, err);
    for (size_t i = 0; status == ESP_OK && i < s->trials; i++) t->score[s->combination[i]] = score_of(&s->judging[i]);
    s->done += s->trials;
    free_trials(s);
    if (status == ESP_OK)
        status = espi_progress(s->setup->problem.run, "searching", (double)s->done / (double)t->combinations, err);
    return status;
}

/* What combinations cannot be is an error before hours of work. */
static esp_status check_combinations(const search *s, esp_error *err)
{
    const unsigned targets = ESP_LEARNS_CLASSES | ESP_LEARNS_NUMBERS;
    esp_status status = ESP_OK;
    for (size_t c = 0; status == ESP_OK && c < s->tuning->combinations; c++) {
        espi_settings *trial = NULL;
        status = combine(s, c, &trial, err);
        if (status == ESP_OK) status = espi_setup_check_kernel(trial, s->setup->problem.kernel, err);
        if (status == ESP_OK && ((espi_capabilities(trial) ^ espi_capabilities(s->setup->settings)) & targets) != 0)
            status =
                espi_fail(err, ESP_ERR_PARAM, "likelihood decides what targets are, and cannot be searched in a grid");
        espi_settings_free(trial);
    }
    return status;
}

/* ---------------------------------------------------------------- together */

/* All kernels, which every rank has. */
static esp_status make_kernels(search *s, esp_error *err)
{
    esp_tuning *t = s->tuning;
    esp_status status = ESP_OK;
    s->lead = espi_alloc(t->combinations, sizeof *s->lead);
    s->found = espi_alloc_zero(t->combinations, sizeof *s->found);
    if (s->lead == NULL || s->found == NULL) return espi_no_memory(err);
    for (size_t c = 0; status == ESP_OK && c < t->combinations; c++) {
        if (t->kernel[c] != NULL) continue;
        s->lead[s->kernels++] = c;
        status = make_kernel(t, c, s->setup->problem.kernel, err);
        for (size_t d = c + 1; status == ESP_OK && d < t->combinations; d++)
            if (same_kernel(t, c, d)) t->kernel[d] = t->kernel[c];
    }
    return status;
}

/* Keeps what was judged in the folds of a part. */
static esp_status keep_part(search *s, size_t kernel, const espi_folds *folds, esp_error *err)
{
    const size_t count = s->setup->targets.count;
    if (s->found[kernel] == NULL) s->found[kernel] = espi_alloc_zero(s->trials, count * sizeof(double));
    if (s->found[kernel] == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < s->trials; i++)
        for (size_t e = 0; e < count; e++)
            if (folds->fold[e] >= folds->first && folds->fold[e] < folds->last)
                s->found[kernel][i * count + e] = s->judging[i].value[e];
    return ESP_OK;
}

static esp_status search_part(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    search *s = context;
    const size_t kernel = item / s->parts, part = item % s->parts;
    espi_folds folds = s->folds;
    espi_problem problem = s->setup->problem;
    esp_run run = *worker->run;
    folds.first = part * folds.count / s->parts;
    folds.last = (part + 1) * folds.count / s->parts;
    run.threads = s->threads;
    problem.run = &run;
    problem.kernel = s->tuning->kernel[s->lead[kernel]];
    esp_status status = make_trials(s, s->lead[kernel], err);
    if (status == ESP_OK) status = s->setup->settings->learner->out_of_fold(&problem, &folds, s->trial, s->trials, err);
    if (status == ESP_OK) status = keep_part(s, kernel, &folds, err);
    free_trials(s);
    return status;
}

/* Puts together what the ranks have found of a kernel. */
static esp_status score_kernel(search *s, size_t kernel, esp_error *err)
{
    const size_t count = s->setup->targets.count;
    esp_status status = make_trials(s, s->lead[kernel], err);
    if (status == ESP_OK && s->found[kernel] == NULL)
        s->found[kernel] = espi_alloc_zero(s->trials, count * sizeof(double));
    if (status == ESP_OK && s->found[kernel] == NULL) status = espi_no_memory(err);
    if (status == ESP_OK)
        status = espi_group_merge(s->group, s->found[kernel], s->trials * count * sizeof(double), err);
    for (size_t i = 0; status == ESP_OK && i < s->trials; i++) {
        memcpy(s->judging[i].value, s->found[kernel] + i * count, count * sizeof(double));
        s->tuning->score[s->combination[i]] = score_of(&s->judging[i]);
    }
    free_trials(s);
    return status;
}

/* Kernels are dealt out; where there are fewer of them than ranks, also parts of their folds. */
static esp_status search_together(search *s, esp_error *err)
{
    const size_t ranks = (size_t)espi_group_size(s->group);
    esp_run run = *s->group;
    esp_status status = make_kernels(s, err);
    if (status == ESP_OK) s->parts = (ranks + s->kernels - 1) / s->kernels;
    if (s->parts > s->folds.count) s->parts = s->folds.count;
    s->threads = espi_worker_count(s->group, SIZE_MAX);
    run.threads = 1; /* a rank does one part at a time, by all its threads */
    if (status == ESP_OK) status = espi_group_deal(&run, "searching", s->kernels * s->parts, 1, search_part, s, err);
    for (size_t k = 0; status == ESP_OK && k < s->kernels; k++) status = score_kernel(s, k, err);
    for (size_t k = 0; s->found != NULL && k < s->kernels; k++) espi_free(s->found[k]);
    espi_free(s->found);
    espi_free(s->lead);
    return status;
}

static esp_status search_all(search *s, esp_error *err)
{
    esp_tuning *t = s->tuning;
    s->trial = espi_alloc(t->combinations, sizeof *s->trial);
    s->judging = espi_alloc(t->combinations, sizeof *s->judging);
    s->combination = espi_alloc(t->combinations, sizeof *s->combination);
    esp_status status = s->trial == NULL || s->judging == NULL || s->combination == NULL ? espi_no_memory(err) : ESP_OK;
    if (status == ESP_OK) status = check_combinations(s, err);
    if (status == ESP_OK && espi_group_shares(s->group)) status = search_together(s, err);
    for (size_t c = 0; status == ESP_OK && c < t->combinations; c++)
        if (t->kernel[c] == NULL) status = search_kernel(s, c, err);
    for (size_t c = 1; status == ESP_OK && c < t->combinations; c++)
        if (t->score[c] > t->score[t->best]) t->best = c;
    espi_free(s->trial);
    espi_free(s->judging);
    espi_free(s->combination);
    return status;
}

esp_status esp_tune(const char *learner, const esp_kernel *kernel, const esp_dataset *data, const esp_setting *settings,
                    size_t count, const esp_grid *grid, size_t grid_count, const char *metric, size_t folds,
                    uint64_t seed, const esp_run *run, esp_tuning **out, esp_error *err)
{
    espi_setup setup;
    esp_error own;
    *out = NULL;
    if (err == NULL) err = &own;
    esp_tuning *t = espi_alloc_zero(1, sizeof *t);
    uint32_t *fold = espi_alloc(data->rows, sizeof *fold);
    search s = {.tuning = t, .setup = &setup, .folds = {.fold = fold, .count = folds, .last = folds}, .group = run};
    esp_status status = espi_setup_start(&setup, learner, kernel, data, settings, count, run, err);
    if (status == ESP_OK) status = espi_setup_agree(&setup, settings, count, grid, grid_count, folds, seed, run, err);
    if (status == ESP_OK && (t == NULL || fold == NULL)) status = espi_no_memory(err);
    if (status == ESP_OK) status = espi_folds_make(&setup.targets, folds, seed, fold, err);
    if (status == ESP_OK) status = choose_measure(metric, &setup, &s.measure, err);
    if (status == ESP_OK) status = start_tuning(t, &setup, grid, grid_count, err);
    if (status == ESP_OK) status = search_all(&s, err);
    espi_setup_end(&setup);
    espi_free(fold);
    if (status == ESP_OK) *out = t;
    else esp_tuning_free(t);
    return espi_group_end(run, status, err);
}
