/* Learners: their settings, and fits on rows of a Gram matrix, from which training, cross-validation and grid search
 * are made. */
#ifndef ESPI_LEARNER_H
#define ESPI_LEARNER_H

#include "base/text.h"
#include "kernel/expression/columns.h"
#include "kernel/expression/growing.h"
#include "learn/svm/rows.h"
#include "learn/svm/smo.h"

typedef enum espi_learner_kind { ESPI_SVM, ESPI_SVR, ESPI_PERCEPTRON, ESPI_GP } espi_learner_kind;
typedef unsigned espi_choice; /* index among the choices of a setting */

typedef enum espi_likelihood { ESPI_GAUSSIAN, ESPI_BERNOULLI } espi_likelihood;
typedef enum espi_standardise { ESPI_UNIT, ESPI_MEAN, ESPI_NONE } espi_standardise;

typedef struct espi_settings { /* of all learners; what one does not have stays at its default */
    espi_learner_kind learner;
    double cost, positive_weight, epsilon, tolerance;
    size_t max_iterations;
    size_t inducing;        /* examples that stand for all (pivots.h); 0: no */
    espi_choice one_vs_one; /* of multiclass: 1 */
    bool probability, no_shrinking, keep_partial, balanced;
    espi_choice form; /* an espi_form */
    size_t epochs;
    double margin;
    bool average, vote, shuffle;
    char *class_weight; /* "label=w,label=w", NULL: none */
    uint64_t seed;
    espi_choice likelihood;    /* an espi_likelihood */
    espi_choice constant_mean; /* of mean: 1 */
    espi_choice standardise;   /* an espi_standardise */
    double noise;
    const char *of_numbers; /* noise or standardise, where it was given: what only numbers have; NULL: neither was */
    size_t restarts;
    char *fix, *tie, *group, *prior; /* as given; NULL: none */
} espi_settings;

/* Checks names and values against the learner's table. espi_settings_free releases what it holds. */
esp_status espi_settings_parse(espi_settings *settings, const char *learner, const esp_setting *given, size_t count,
                               esp_error *err);
/* Changes one setting; ESP_ERR_PARAM if the learner has none of this name (then
 * *unknown is set) or refuses the value. */
esp_status espi_settings_set(espi_settings *settings, const char *name, const char *value, bool *unknown,
                             esp_error *err);
/* What no single setting can tell: whether they fit together. */
esp_status espi_settings_check(const espi_settings *settings, esp_error *err);
/* Back from the text of a model that was learned online. ESP_ERR_PARAM if it is none. */
esp_status espi_settings_read(espi_settings *settings, const char *learner, const char *text, esp_error *err);
/* Settings of a model, with those given in their place; average and vote replace each other. */
esp_status espi_settings_replace(espi_settings *settings, const esp_setting *given, size_t count, esp_error *err);
/* Adds "epochs=1, not 2; ...": all that differ. Both are of the same learner. */
void espi_settings_differ(const espi_settings *checkpoint, const espi_settings *given, espi_text *out);
/* The next "label=weight" of class-weight; *text goes on behind it. False, with *text where it was, if it is none. */
bool espi_weight_next(const char **text, const char **label, size_t *size, double *weight);
void espi_settings_free(espi_settings *settings);
/* False if memory is out; then there is nothing to free. */
bool espi_settings_copy(espi_settings *copy, const espi_settings *settings);
/* Whether the targets are numbers. */
static inline bool espi_learns_numbers(const espi_settings *settings)
{
    return settings->learner == ESPI_SVR || (settings->learner == ESPI_GP && settings->likelihood == ESPI_GAUSSIAN);
}
/* Whether its problems, folds and values of C work on the rows of one Gram matrix. */
static inline bool espi_shares_rows(const espi_settings *settings)
{
    return settings->learner == ESPI_SVM || settings->learner == ESPI_SVR;
}
const char *espi_learner_text(espi_learner_kind learner);
/* "C=10 multiclass=ovr ...", for a model; of a perceptron with its seed in front. NULL if memory is out. */
char *espi_settings_text(const espi_settings *settings);

/* Whether class-weight fits the classes of the targets: to be told before hours of work. */
typedef struct espi_targets espi_targets;
esp_status espi_weights_check(const espi_settings *settings, const espi_targets *targets, esp_error *err);

/* What is to be learned: the targets of all examples of a dataset. */
struct espi_targets {
    size_t count;
    size_t classes;     /* 0: a regression */
    const char **name;  /* classes in order: numbers by value, others by bytes; belong to the dataset */
    uint32_t *class_of; /* per example */
    double *value;      /* per example, for a regression */
};

/* ESP_ERR_PARSE if there is no target, one class only, or no number where one is needed. */
esp_status espi_targets_make(espi_targets *targets, const esp_dataset *data, const espi_settings *settings,
                             esp_error *err);
void espi_targets_free(espi_targets *targets);
/* The order of classes: by value (0 for all unless all are numbers), then by bytes. */
int espi_class_order(const char *name_a, double value_a, const char *name_b, double value_b);

/* The decision functions learned on some examples. */
typedef struct espi_fit {
    size_t examples, outputs;
    double *coefficient; /* example i, output k: coefficient[i * outputs + k] */
    double *bias;        /* per output */
    double *alpha;       /* solver variables of all problems, for warm starts */
    size_t *alpha_start; /* per problem and the end */
    size_t problems;
    size_t iterations; /* of all problems */
    bool converged;    /* all of them */
    bool cancelled;    /* some are unfinished: kept because of keep_partial */
} espi_fit;

size_t espi_output_count(const espi_settings *settings, size_t classes);
/* The classes of a problem, which is that of the output of the same number: positive, and negative (classes: all
 * others). */
void espi_problem_classes(bool one_vs_one, size_t classes, size_t problem, size_t *positive, size_t *negative);
/* Fits on the examples example[0 .. count) of the targets, whose rows are `rows` in the same order. `warm`: a fit of
 * the same examples whose cost was `warm_cost`, or NULL. */
esp_status espi_fit_make(espi_fit *fit, const espi_settings *settings, const espi_targets *targets,
                         const uint32_t *example, espi_rows *rows, const espi_fit *warm, double warm_cost,
                         const esp_run *run, esp_error *err);
void espi_fit_free(espi_fit *fit);

/* The same problem by problem, where each has rows of its own. What is handed to espi_fitting_start must outlive it;
 * espi_fitting_end must follow in any case. */
typedef struct espi_fitting {
    espi_fit *fit;
    const espi_settings *settings;
    const espi_targets *targets;
    const uint32_t *example;
    double *class_weight; /* per class */
    const espi_fit *warm;
    double scale;            /* of warm variables */
    espi_smo_result *result; /* per problem */
} espi_fitting;

esp_status espi_fitting_start(espi_fitting *fitting, espi_fit *fit, const espi_settings *settings,
                              const espi_targets *targets, const uint32_t *example, size_t count, const espi_fit *warm,
                              double warm_cost, esp_error *err);
/* `rows` are those of all examples, or of one-vs-one those of the two classes alone. Different problems may be solved
 * by several threads at once. */
esp_status espi_fitting_solve(const espi_fitting *fitting, size_t problem, espi_rows *rows, const esp_run *run,
                              esp_error *err);
/* Ends with `status`, which it returns: the fit is complete, or freed if this is a failure. */
esp_status espi_fitting_end(espi_fitting *fitting, esp_status status);

/* Scores of the examples test[0 .. count) of `all` under a fit on the examples train[..]: scores[t * outputs + k]. */
esp_status espi_fit_score(const espi_fit *fit, espi_rows *all, const uint32_t *train, const uint32_t *test,
                          size_t count, double *scores, esp_error *err);

/* From the scores of one example to the class, its score per class column, and probabilities. */
size_t espi_decide(const double *score, size_t classes, bool one_vs_one, double *per_class);

/* Folds: fold[i] of each example, classes spread evenly, drawn from the seed. */
esp_status espi_folds_make(const espi_targets *targets, size_t folds, uint64_t seed, uint32_t *fold, esp_error *err);

/* What is trained on and what is tested in one fold, in order; both have room for all `count` examples. */
void espi_fold_split(const uint32_t *fold, size_t count, size_t number, uint32_t *train, size_t *trained,
                     uint32_t *test, size_t *tested);

/* Scores of every example by fits that have not seen it. */
esp_status espi_out_of_fold(const espi_settings *settings, const espi_targets *targets, espi_rows *all,
                            const uint32_t *fold, size_t folds, const esp_run *run, double *scores, esp_error *err);

/* Sigmoids P = 1 / (1 + exp(A f + B)) fitted to scores (Platt 1999; Lin, Lin, Weng 2007); B is 0 for two classes, so
 * that the more probable class is the predicted one. platt[2k], platt[2k+1]. */
esp_status espi_platt_fit(const double *scores, const espi_targets *targets, const espi_settings *settings,
                          double *platt, esp_error *err);

#endif
