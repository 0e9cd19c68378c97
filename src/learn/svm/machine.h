/* What support vector machines of all kinds share: svm, svr and oneclass pose problems of one form (smo.h) over rows of
 * a Gram matrix (rows.h), wherever these come from (row_source.h). Training is in machine.c, cross-validation in
 * out_of_fold.c:
 *
 *     data ──▶ source ──▶ rows ──▶ problems ──▶ fits ──▶ model or scores
 *              row_source*.c       pose         fit.c, smo.c                */
#ifndef ESPI_LEARN_SVM_MACHINE_H
#define ESPI_LEARN_SVM_MACHINE_H

#include "learn/learner.h"
#include "learn/svm/smo.h"

/* --------------------------------------------------------------- settings */

/* rows: sequential minimal optimisation over rows of the Gram matrix (smo.h). folded: without rows, on very many
 * examples (folded.h). auto: what is faster. */
typedef enum espi_solver { ESPI_SOLVER_AUTO, ESPI_SOLVER_ROWS, ESPI_SOLVER_FOLDED } espi_solver;
extern const char *const espi_solver_names[];

typedef struct espi_machine_settings { /* the first member of the settings of a machine */
    espi_settings common;
    double tolerance;
    size_t inducing;    /* examples that stand for all (pivots.h); 0: no */
    espi_choice solver; /* an espi_solver */
    size_t max_iterations;
    bool no_shrinking, keep_partial;
} espi_machine_settings;

/* The entries of these, last in the table of a machine whose settings are `type`, which has them as `machine`. */
/* clang-format off */
#define ESPI_MACHINE_SETTINGS(type)                                                                                    \
    {.info = {"tolerance", "stop when no pair of examples violates the optimum by more", "0.001",                      \
              "a number > 0, at most 1", ESP_KIND_NUMBER},                                                             \
     .offset = offsetof(type, machine.tolerance), .low = 0.0, .low_open = true, .high = 1.0},                          \
    {.info = {"inducing", "learn on features from so many examples, which alone support the model; 0: all examples",   \
              "0", "a whole number >= 0", ESP_KIND_WHOLE},                                                             \
     .offset = offsetof(type, machine.inducing), .low = 0.0, .high = 1e9},                                             \
    {.info = {"solver", "rows: rows of the Gram matrix; folded: no rows, for very many examples; auto: the faster one", \
              "auto", "auto, rows or folded", ESP_KIND_CHOICE},                                                        \
     .offset = offsetof(type, machine.solver), .choices = espi_solver_names, .unrecorded = true},                      \
    {.info = {"max-iterations", "stop after so many steps in any case", "10000000", "a whole number >= 1",             \
              ESP_KIND_WHOLE},                                                                                         \
     .offset = offsetof(type, machine.max_iterations), .low = 1.0, .high = 9e15},                                      \
    {.info = {"no-shrinking", "keep all examples in view all the time", "0", "a flag", ESP_KIND_FLAG},                 \
     .offset = offsetof(type, machine.no_shrinking)},                                                                  \
    {.info = {"keep-partial", "when interrupted, keep what is learned so far", "0", "a flag", ESP_KIND_FLAG},          \
     .offset = offsetof(type, machine.keep_partial)},                                                                  \
    {.info = {0}}
/* clang-format on */

static inline const espi_machine_settings *espi_machine_settings_of(const espi_settings *settings)
{
    return (const espi_machine_settings *)(const void *)settings;
}

/* ------------------------------------------------------------------- fits */

/* How close to the optimum a fit was found to be; of several problems the sum of the objectives, and the worst. */
typedef struct espi_certificate {
    bool there; /* false: the solver does not verify */
    double primal, dual, gap, violation;
    bool rounding;  /* it would take more exact numbers to get closer */
    uint64_t limit; /* of moves, that there was */
} espi_certificate;

/* The decision functions learned on some examples. */
typedef struct espi_fit {
    size_t examples, outputs;
    double *coefficient; /* example i, output k: coefficient[i * outputs + k] */
    double *bias;        /* per output */
    double *alpha;       /* solver variables of all problems, for warm starts */
    size_t *alpha_start; /* per problem and the end */
    size_t iterations;   /* of all problems */
    bool converged;      /* all of them */
    bool cancelled;      /* some are unfinished: kept because of keep_partial */
    espi_certificate certificate;
} espi_fit;

void espi_fit_free(espi_fit *fit);

/* What one fit is made on: the examples example[0 .. count) of the targets. There is a problem for each output. */
typedef struct espi_training {
    const espi_settings *settings; /* their learner's family says how problems are posed */
    const espi_targets *targets;
    const uint32_t *example;
    size_t count;
    bool keep_partial;      /* what an interruption leaves is kept */
    const char *checkpoint; /* a file to go on from; NULL: none */
    double *class_weight;   /* per class; NULL: the machine has none */
    const espi_fit *warm;   /* a fit of the same problems; NULL: none */
    double scale;           /* of its variables */
    espi_fit *fit;
    espi_smo_result *result; /* per problem */
} espi_training;

/* The variables of one problem; all have room for as many as there are. */
typedef struct espi_variables {
    size_t count;
    uint32_t *example; /* among those trained on */
    signed char *sign;
    double *linear, *bound;
    double sum; /* what the signed variables add up to; 0 unless the machine sets it */
} espi_variables;

void espi_variables_free(espi_variables *v);

typedef struct espi_machine { /* how a kind of machine poses its problems; the family of its learner */
    size_t (*variables)(const espi_training *training, size_t problem);
    /* Fills all of them. */
    void (*pose)(const espi_training *training, size_t problem, espi_variables *v);
    /* Weights of classes; NULL: there are none. */
    esp_status (*weigh)(const espi_training *training, double *weight, esp_error *err);
    /* By what the variables of a solution under other settings are multiplied to start from; NULL: no setting allows
     * that. */
    double (*scale)(const espi_settings *from, const espi_settings *to);
    /* Whether the settings ask for probabilities, and the sigmoids that turn scores of a cross-validation into them:
     * platt[2k], platt[2k+1] of output k. Both NULL: there are none. */
    bool (*calibrates)(const espi_settings *settings);
    esp_status (*calibrate)(const double *scores, const espi_targets *targets, double *platt, esp_error *err);
} espi_machine;

static inline const espi_machine *espi_machine_of(const espi_settings *settings) { return settings->learner->family; }

/* Fits one problem after the other: start, solve for each, end, which must follow in any case. All but fit and result,
 * which start makes, is set before; what is handed over must outlive the end. */
esp_status espi_training_start(espi_training *training, esp_error *err);
/* `rows` are those of all examples, or, where a problem has only some of them, those of these alone. Different problems
 * may be solved by several threads at once. */
esp_status espi_training_solve(const espi_training *training, size_t problem, espi_rows *rows, const esp_run *run,
                               esp_error *err);
/* Ends with `status`, which it returns: the fit is complete, or freed if this is a failure. */
esp_status espi_training_end(espi_training *training, esp_status status);

/* All of that over rows that all problems share. */
esp_status espi_training_run(espi_training *training, espi_rows *rows, const esp_run *run, esp_error *err);

/* What solvers begin with: the variables of a problem, for espi_variables_free (false if memory is out), and their
 * values in the fit, which are 0 or those of the warm start. */
bool espi_training_pose(const espi_training *training, size_t problem, espi_variables *v);
void espi_training_set_start(const espi_training *training, size_t problem, const espi_variables *v);

/* Scores of the examples test[0 .. count) of `all` under a fit on the examples train[..]: scores[t * outputs + k]. */
esp_status espi_fit_score(const espi_fit *fit, espi_rows *all, const uint32_t *train, const uint32_t *test,
                          size_t count, double *scores, esp_error *err);

/* --------------------------------------------------------------- learning */

/* For learners that are machines (learner.h). */
esp_status espi_machine_check_kernel(const espi_settings *settings, const esp_kernel *kernel, esp_error *err);
esp_status espi_machine_check_shares(const espi_settings *settings, const esp_kernel *kernel, esp_error *err);
void espi_machine_for_validation(espi_settings *settings);
esp_status espi_machine_train(const espi_problem *problem, esp_model **out, esp_error *err);
esp_status espi_machine_out_of_fold(const espi_problem *problem, const espi_folds *folds, const espi_trial *trial,
                                    size_t trials, esp_error *err);

#endif
