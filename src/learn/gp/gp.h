/* Gaussian processes with a kernel whose hyperparameters are learned (Rasmussen & Williams 2006; Beck et al. 2015).
 *
 *     settings, kernel, data ─ space.c ─▶ what can move: hyperparameters by name, fixed, tied, with priors
 *                                  │
 *     search.c: L-BFGS over their logarithms ◀─▶ exact.c, laplace.c: log likelihood and gradient at a point
 *                                  │            ◀─▶ iterative.c: estimates of both, without the matrix
 *                                  │            ◀─▶ inducing.c: a bound of it, and its gradient
 *                                  │
 *     gp.c: the best point as a model, which predicts (model/posterior.c); out_of_fold.c: that for each fold
 *
 * A likelihood (espi_gp_likelihood) is told the kernel with its values and gives the log likelihood, its gradient in
 * all places of the kernel (hyper.h) and what predicts; the search knows nothing else of it. */
#ifndef ESPI_LEARN_GP_GP_H
#define ESPI_LEARN_GP_GP_H

#include "base/algebra.h"
#include "kernel/expression/hyper.h"
#include "learn/gp/inducing.h"
#include "learn/gp/iterative.h"
#include "learn/learner.h"

/* --------------------------------------------------------------- settings */

typedef enum espi_likelihood { ESPI_GAUSSIAN, ESPI_BERNOULLI } espi_likelihood;
typedef enum espi_standardise { ESPI_UNIT, ESPI_MEAN, ESPI_NONE } espi_standardise;

typedef enum espi_gp_solver { ESPI_GP_AUTO, ESPI_GP_EXACT, ESPI_GP_ITERATIVE } espi_gp_solver;

typedef struct espi_gp_settings {
    espi_settings common;
    espi_choice likelihood;    /* an espi_likelihood */
    espi_choice constant_mean; /* of mean: 1 */
    espi_choice standardise;   /* an espi_standardise */
    double noise, tolerance;
    size_t inducing; /* examples that stand for all (pivots.h); 0: no */
    size_t restarts, max_iterations;
    espi_choice solver;              /* an espi_gp_solver */
    size_t rank, probes;             /* of the iterative solver; 0: by the number of examples */
    double residual;                 /* its residuals */
    size_t iterations;               /* its iterations, at most */
    bool keep_partial;               /* what has not converged is kept */
    char *fix, *tie, *group, *prior; /* as given, and read when the hyperparameters are known (space.c); NULL: none */
} espi_gp_settings;

/* --------------------------------------------------------------- learning */

/* A model of the best hyperparameters. `keep`: a run that is cancelled gives what it found. */
esp_status espi_gp_learn(const espi_problem *problem, bool keep, esp_model **out, esp_error *err);
/* For the class of the learner. */
esp_status espi_gp_out_of_fold(const espi_problem *problem, const espi_folds *folds, const espi_trial *trial,
                               size_t trials, esp_error *err);

/* ------------------------------------------------------------ likelihoods */

/* Of classes: the modes of the posteriors, one latent function per output, as the last evaluation left them. The search
 * keeps values and hyperparameters of its best point, not these. */
typedef struct espi_gp_modes {
    double *coefficient; /* example i, output k: [i * outputs + k]; what predicts */
    double *curvature;   /* in the same way: W of Laplace's approximation */
    double *latent; /* output k, example i: [k * count + i]; zeros at first. The next evaluation starts from there */
    double value;   /* the log evidence */
} espi_gp_modes;

/* What is learned from. Targets are standardised numbers, or of classes -1 and 1: one output for two classes, else one
 * for each, whose examples have 1 there. */
typedef struct espi_gp_problem {
    const esp_dataset *data;
    const double *target; /* output k, example i: [k * count + i] */
    size_t count, outputs;
    espi_gp_modes *modes; /* of classes */
    bool constant_mean;
    double *matrix[3];         /* count x count numbers each: room for the likelihood; as many as it says */
    double *vector;            /* 8 x count numbers */
    espi_inducing *inducing;   /* of espi_gp_inducing: its pivots, and its room */
    espi_iterative *iterative; /* of espi_gp_iterative: its preconditioner and probes, and its room */
} espi_gp_problem;

/* What a likelihood finds at given hyperparameters, and all that prediction needs of it. */
typedef struct espi_gp_point {
    double enough;       /* set by the caller: the gradient of a value below it need not be given */
    double value;        /* log likelihood of the targets */
    double mean;         /* the constant that was subtracted from them */
    double jitter;       /* what had to be added to the diagonal; 0: nothing */
    double *coefficient; /* per example; of classes espi_gp_modes has them */
} espi_gp_point;

bool espi_gp_point_make(espi_gp_point *point, size_t count);
void espi_gp_point_copy(espi_gp_point *to, const espi_gp_point *from, size_t count);
void espi_gp_point_free(espi_gp_point *point);

typedef struct espi_gp_likelihood {
    const char *name;
    const char *value; /* what its value is called */
    bool noisy;        /* it has a noise variance */
    size_t matrices;   /* that it works with */
    /* Fills `point` and, unless `gradient` is NULL or the value is below point->enough, adds d value / d place to
     * gradient[place] and sets *noise_gradient.
     * ESP_ERR_RANGE, with a diagnosis, where there is no likelihood: other hyperparameters may have one. */
    esp_status (*evaluate)(const espi_gp_problem *problem, const esp_kernel *kernel, double noise, const esp_run *run,
                           espi_gp_point *point, double *gradient, double *noise_gradient, esp_error *err);
} espi_gp_likelihood;

extern const espi_gp_likelihood espi_gp_exact, espi_gp_laplace, espi_gp_one_vs_rest, espi_gp_inducing,
    espi_gp_iterative;

/* Factors K + (noise + jitter) I, with as little jitter as makes it possible; K is in matrix[0], both triangles of it.
 * The upper one stays, and problem->vector gets its diagonal. ESP_ERR_RANGE tells which examples cannot be told apart,
 * and which pivot failed. */
esp_status espi_gp_factor(const espi_gp_problem *problem, double noise, const esp_run *run, double *jitter,
                          espi_factor *factor, esp_error *err);

/* ------------------------------------------------------------------ space */

typedef struct espi_gp_variable { /* what the search moves: a value that some hyperparameters share */
    const char *name;             /* of the first of them */
    double start, low, high, draw_low, draw_high;
    double median, deviation; /* of its prior: ln value is normal around ln median; deviation 0: none */
} espi_gp_variable;

typedef struct espi_gp_space {
    esp_kernel *kernel; /* with all labels and features that are learned, and the values of the moment */
    espi_hyper *hyper;  /* of the kernel; then the noise, whose place is past those of the kernel */
    size_t hypers;
    size_t *variable; /* per hyperparameter; ESPI_GP_FIXED: it stays */
    espi_gp_variable *moving;
    size_t variables;
    bool noisy; /* the last hyperparameter is the noise */
} espi_gp_space;

#define ESPI_GP_FIXED SIZE_MAX

/* `spread` is the variance of the targets, from which the range of the noise follows; `noisy`: there is one.
 * ESP_ERR_PARAM if a setting names what is not there. */
esp_status espi_gp_space_new(espi_gp_space *space, const espi_gp_settings *settings, const esp_kernel *kernel,
                             const esp_dataset *data, bool noisy, double spread, const esp_run *run, esp_error *err);
void espi_gp_space_free(espi_gp_space *space);
/* Sets the values of the variables in the kernel and the noise. */
void espi_gp_space_set(espi_gp_space *space, const double *value);
double espi_gp_space_noise(const espi_gp_space *space);

/* The patterns of a setting: names with * and ?, separated by commas; \ takes the next byte as it is. */
bool espi_pattern_match(const char *pattern, size_t size, const char *name);
/* The next piece up to an unescaped `separator`, without blanks around it; false at the end. */
bool espi_pattern_next(const char **text, char separator, const char **piece, size_t *size);

/* ----------------------------------------------------------------- search */

/* What a search has learned of the curvature at its end: how ln values and minus the gradient changed in its last
 * steps, the oldest first. */
enum { ESPI_GP_MEMORY = 20 };
typedef struct espi_gp_curvature {
    size_t steps;
    double *moved, *bent; /* ESPI_GP_MEMORY x variables */
} espi_gp_curvature;

typedef struct espi_gp_found {
    espi_gp_point point; /* the best */
    double *value;       /* of the variables there */
    double objective;    /* its log likelihood and log priors */
    double shift;        /* to be added to log likelihoods that are shown: they are those of the targets as given */
    size_t runs, iterations;
    const char *end; /* of the best run: how it ended */
    bool there;      /* a point was found */
    /* Set by the caller, or left zero. */
    espi_gp_curvature *curvature; /* the first run begins with it; it becomes that of the best run */
    double little;                /* a step that moves no ln value by more is not taken: the search has converged */
} espi_gp_found;

/* Maximises the likelihood over the variables of the space, which is set to the best point. `found` is made by the
 * caller, its numbers being zeros. ESP_ERR_CANCELLED: found->there says whether there is a best point so far. */
esp_status espi_gp_search(espi_gp_space *space, const espi_gp_problem *problem, const espi_gp_likelihood *likelihood,
                          const espi_gp_settings *settings, const esp_run *run, espi_gp_found *found, esp_error *err);

/* False if memory is out; then and always there is something to free. */
bool espi_gp_curvature_make(espi_gp_curvature *curvature, size_t variables);
void espi_gp_curvature_free(espi_gp_curvature *curvature);
/* Exact searches on samples of the examples, of which there are more than ESPI_GP_SOME: the best values become the
 * starts of the variables, and found->curvature that of all examples. */
enum { ESPI_GP_SOME = 1500 };
esp_status espi_gp_search_samples(espi_gp_space *space, const espi_gp_problem *problem,
                                  const espi_gp_settings *settings, const esp_run *run, espi_gp_found *found,
                                  esp_error *err);
/* Of ln values: a step that is not worth an estimated likelihood of n examples. */
double espi_gp_too_little(size_t n);
/* espi_gp_search, which begins on samples where numbers are learned from many examples without restarts. */
esp_status espi_gp_exact_search(espi_gp_space *space, const espi_gp_problem *problem,
                                const espi_gp_likelihood *likelihood, const espi_gp_settings *settings,
                                const esp_run *run, espi_gp_found *found, esp_error *err);

/* The same with espi_gp_inducing: pivots are drawn at the first values, and again at the best ones, from which the
 * search goes on; what has the higher bound counts. problem->inducing is zeros at first. It is set to the pivots of the
 * best point and, if that is wanted (`keep`) or no one cancels, solved there. `found` is as in espi_gp_search. */
esp_status espi_gp_inducing_search(espi_gp_space *space, const espi_gp_problem *problem,
                                   const espi_gp_settings *settings, bool keep, const esp_run *run,
                                   espi_gp_found *found, esp_error *err);

/* Whether so many examples are learned from without the matrix, as the settings say. By itself that is so where the
 * matrices do not fit the memory, and where it is faster. */
bool espi_gp_is_iterative(const espi_gp_settings *settings, size_t count, const esp_run *run);
/* What the caller of espi_iterative_prepare sets: ranks and probes follow from the number of examples if not given. */
void espi_gp_iterative_start(espi_iterative *out, const espi_gp_settings *settings, size_t count, const esp_run *run);
/* The same with espi_gp_iterative: first exactly on a sample of the examples, whose best values the search starts from,
 * then on all, with a preconditioner that is made anew where a round has ended. problem->iterative has what the caller
 * sets of it. `keep` and `found` are as in espi_gp_inducing_search. */
esp_status espi_gp_iterative_search(espi_gp_space *space, const espi_gp_problem *problem,
                                    const espi_gp_settings *settings, bool keep, const esp_run *run,
                                    espi_gp_found *found, esp_error *err);

#endif
