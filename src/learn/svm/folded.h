/* Support vector machines without rows: dual coordinate descent (Hsieh et al. 2008) on a sum of kernels that is folded
 * into one structure (kernel/evaluate/folded_sum.h). Memory grows with the examples, not with their square.
 *
 * The problems are those of smo.h, posed as they are for rows. The bias is free: the constraint
 *
 *     sum_k s_k a_k = S
 *
 * is met by the method of multipliers. While variables move, the bias is b = mu + rho (sum_k s_k a_k - S); then mu
 * becomes b, and so on until the two agree. The gradient of variable k of example i is
 *
 *     G_k = s_k (h_i + b) + p_k,    h_i = sum over all variables l of s_l a_l K(x_l, x_i)
 *
 *     folded_fit.c      poses the problems, and makes a fit of their solutions
 *     folded.c          stages, rounds and passes: which examples are looked at, and when it is enough
 *     folded_order.c    which examples stand together in a block
 *     folded_block.c    blocks, and a step: many examples are scored together, and their variables moved
 *     folded_descent.c  ... with the kernel values among them at hand
 *     folded_verify.c   all examples: the bias, primal and dual objective, and the worst violation
 *     folded_checkpoint.c   files from which another run goes on
 *
 * Examples come into view in stages, each four times as large as the one before, so that few of them ever have
 * variables that are not 0. Only those are active whose variables may still move: in a pass, blocks of these are taken
 * one after the other; in a round, passes follow one another until the active examples are at their optimum, and then
 * those are looked at that may have come to violate theirs. When none does, all examples are looked at. All that
 * several threads do has one result, whatever their number. */
#ifndef ESPI_LEARN_SVM_FOLDED_H
#define ESPI_LEARN_SVM_FOLDED_H

#include "base/random.h"
#include "kernel/evaluate/folded_sum.h"
#include "learn/svm/machine.h"

typedef struct espi_folded_record { /* of a problem, besides its variables */
    double multiplier;              /* mu */
    double surplus;                 /* sum_k s_k a_k - S */
    double bias;                    /* this and what follows: as the last verification found it */
    double primal, dual, violation; /* objectives, and how far a gradient is from where it should be at most */
    uint64_t moves;                 /* of a problem that is done; with the first of those that are learned together */
} espi_folded_record;

typedef struct espi_folded_problem { /* what is learned for one output */
    espi_variables v;                /* variable j * examples + i is of example i */
    double *alpha;
    espi_folded_record r;
} espi_folded_problem;

typedef struct espi_folded_block { /* examples that are scored together */
    uint32_t *example;             /* increasing */
    size_t count;
    double *gram; /* K(i, j) of these: gram[i * count + j] */
} espi_folded_block;

typedef enum espi_folded_phase {                    /* what is to be done next */
                                 ESPI_FOLDED_LOOK,  /* at the examples of the next stage */
                                 ESPI_FOLDED_STAGE, /* passes over the active ones of a stage */
                                 ESPI_FOLDED_VERIFY,
                                 ESPI_FOLDED_NEAR,  /* examples are looked at after a round */
                                 ESPI_FOLDED_ROUND, /* passes over the active ones of all */
                                 ESPI_FOLDED_DONE
} espi_folded_phase;

/* How far a run is. With it, the variables and which examples are active, another can go on from there, to the same
 * end. */
typedef struct espi_folded_state {
    uint64_t phase;
    uint64_t seen;                  /* chunks of examples that have come into view, in all stages */
    uint64_t pass;                  /* of the stage or round */
    uint64_t round;                 /* since the last verification */
    uint64_t moves;                 /* of variables, so far */
    uint64_t verified;              /* moves there were at the last verification */
    uint64_t looks;                 /* at examples: scores that were asked for */
    double strictness;              /* the tolerance that passes aim at: this part of that asked for */
    double tolerance, mean, margin; /* of the passes: two goals, and how sure is sure */
    double rho;
    double typical; /* K(x, x) of a typical example; 0: not yet known */
    espi_random random;
} espi_folded_state;

typedef struct espi_folded_outcome { /* of moving variables */
    double worst;                    /* violation; as espi_folded_step tells it */
    double total;                    /* of all violations there were */
    uint64_t moves;
} espi_folded_outcome;

typedef struct espi_folded {
    const uint32_t *row; /* of the sum, per example */
    espi_folded_sum *sum;
    const esp_run *run;
    size_t examples, problems;
    size_t copies; /* variables per example, of each problem */
    espi_folded_problem *problem;
    bool *active; /* per example */
    size_t actives;
    bool *near; /* per example: a round may change whether it violates its optimum; so the last verification expects */
    size_t nears;
    espi_folded_state state;

    espi_folded_block *block;
    size_t blocks, longest;  /* and the examples of the largest */
    uint32_t *member, *rows; /* of a step: places in the block of those that are active, and their rows of the data */
    double *score, *change;  /* member m, problem p: score[m * problems + p]; change of the coefficient */
    double *local;           /* scratch of espi_folded_descend, per thread */
    espi_folded_outcome *outcome; /* per problem */
} espi_folded;

static inline double espi_folded_bias(const espi_folded *f, const espi_folded_problem *p)
{
    return p->r.multiplier + f->state.rho * p->r.surplus;
}

/* How far the gradient of variable k, whose example has this score without the bias, is from where it should be. */
static inline double espi_folded_violation(const espi_folded_problem *p, size_t k, double score, double bias)
{
    const double gradient = p->v.sign[k] * (score + bias) + p->v.linear[k];
    if (gradient < 0.0) return p->alpha[k] < p->v.bound[k] ? -gradient : 0.0;
    return p->alpha[k] > 0.0 ? gradient : 0.0;
}

/* Puts active examples in an order in which those that are alike stand together, for so many blocks. */
esp_status espi_folded_order(espi_folded *f, uint32_t *example, size_t blocks, esp_error *err);
/* Makes blocks of the examples that are active, with the kernel values among them; what they were before is freed. */
esp_status espi_folded_blocks_make(espi_folded *f, esp_error *err);
void espi_folded_blocks_free(espi_folded *f);
/* Scores those examples of a block that are active, and moves their variables until none of them violates its optimum
 * by more than `tolerance`, or a tenth of the worst violation there was. What became of it goes to *outcome, together
 * with what is there from other blocks. A block of all active examples is dealt with to the end; the worst violation is
 * then what is left. An example whose variables are at bounds, and would stay there if gradients changed by `margin`,
 * is active no more. */
esp_status espi_folded_step(espi_folded *f, const espi_folded_block *block, double tolerance, double margin,
                            espi_folded_outcome *outcome, esp_error *err);

/* A step for one problem, of the members of a block whose scores are known (folded_descent.c): f->outcome. Different
 * problems may be dealt with by several threads, each with a scratch of that many numbers. */
esp_status espi_folded_descend(const espi_folded *f, const espi_folded_block *block, size_t members, size_t problem,
                               double tolerance, double *scratch, const esp_run *run, esp_error *err);
size_t espi_folded_scratch(const espi_folded *f, size_t examples);

/* Makes the sum once more, from the variables alone: what they were before is forgotten. */
esp_status espi_folded_sum_anew(espi_folded *f, esp_error *err);
/* Moves variables so that the constraints hold, makes the sum anew, and scores all examples: the bias, the objectives
 * and the worst violation of every problem. Then those examples are active of which a variable is free, or violates its
 * optimum by more than `tolerance`. Those are near whose gradients are so close to 0 that they may come to violate it.
 */
esp_status espi_folded_verify(espi_folded *f, double tolerance, esp_error *err);
/* Scores the examples that are near, by the bias of the moment: *worst violation, and which of them are active. */
esp_status espi_folded_look_near(espi_folded *f, double tolerance, double *worst, esp_error *err);
double espi_folded_surplus(const espi_folded_problem *p); /* by its variables */
/* Moves variables in proportion to the room they have, until the constraint of a problem holds. */
void espi_folded_meet(espi_folded_problem *p);

/* A file from which another run goes on (folded_checkpoint.c): the variables of all problems of a training, and the
 * state of those that are learned. Problems before these are done. */
typedef struct espi_folded_checkpoint {
    const char *path;
    uint64_t digest;            /* of what is learned, by which settings */
    espi_folded_record *record; /* per problem of the training; of those that are done */
    double saved, took;         /* when the last was written, and how long it took, in seconds */
} espi_folded_checkpoint;
esp_status espi_folded_digest(const espi_training *training, const esp_kernel *kernel, const espi_folded_sum *sum,
                              uint64_t *digest, esp_error *err);
/* Writes it, unless the last is quite new. `first`: the first of the problems that are learned. */
esp_status espi_folded_save(espi_folded_checkpoint *c, const espi_folded *f, const espi_training *t, size_t first,
                            esp_error *err);
/* The state of problems `first` and following, if the file has it; *there is false if not. ESP_ERR_PARAM if the file is
 * of another run, ESP_ERR_PARSE if it is damaged. */
esp_status espi_folded_load(const espi_folded_checkpoint *c, espi_folded *f, const espi_training *t, size_t first,
                            bool *there, esp_error *err);

/* ESP_ERR_PARAM if the kernel is not for this solver. */
esp_status espi_folded_check(const esp_kernel *kernel, esp_error *err);
/* Outputs that the sum of a fit needs: those of the training, or one where each is of two classes and has examples of
 * its own. */
size_t espi_folded_outputs(const espi_training *training);
/* Fits as espi_training_run does, over a sum of that many outputs, whose coefficients are all 0. */
esp_status espi_folded_fit(espi_training *training, const esp_kernel *kernel, espi_folded_sum *sum, const esp_run *run,
                           esp_error *err);

#endif
