/* Learners: how one describes itself, and the problems it is given.
 *
 * All that differs between learners is a field of espi_learner; training, cross-validation and grid search (train/)
 * know them only through it. To add a learner: write its class, its table of settings and what it does in a folder
 * beside the others, name it in train/registry.c, and test it against its definition (CONTRIBUTING.md). */
#ifndef ESPI_LEARN_LEARNER_H
#define ESPI_LEARN_LEARNER_H

#include "base/text.h"
#include "kernel/expression/kernel.h"
#include "learn/targets.h"

typedef struct espi_learner espi_learner;

/* --------------------------------------------------------------- settings */

/* The values of a learner's settings. Each learner puts its own fields behind
 * this, and one table says what they are. */
typedef struct espi_settings {
    const espi_learner *learner;
    uint64_t seed;
    uint64_t given; /* bit i: entry i of the table was set, and is not just at its default */
} espi_settings;

typedef unsigned espi_choice; /* index among the choices of a setting */

/* One setting. Its field is a double (ESP_KIND_NUMBER), size_t (_WHOLE), bool (_FLAG), espi_choice (_CHOICE), or a text
 * that belongs to the settings, NULL if it is empty (_TEXT, _WEIGHTS). */
typedef struct espi_setting {
    esp_parameter_info info;
    size_t offset; /* of the field in the learner's settings */
    double low, high;
    bool low_open;              /* `low` itself is not allowed */
    const char *const *choices; /* of ESP_KIND_CHOICE, ended by NULL */
    bool warm_start;            /* a solution under one value is a good start under another */
    bool unrecorded;            /* models do not tell it: it says how to learn, not what */
    esp_status (*check)(const char *value, esp_error *err); /* what else to ask of a text; may be NULL */
} espi_setting;

/* The settings of a learner: those given, and the defaults of all others. ESP_ERR_PARAM if a name is unknown, a value
 * is refused, or they do not fit together. espi_settings_free releases them. */
esp_status espi_settings_new(const espi_learner *learner, const esp_setting *given, size_t count, espi_settings **out,
                             esp_error *err);
void espi_settings_free(espi_settings *settings);
espi_settings *espi_settings_copy(const espi_settings *settings); /* NULL if memory is out */
/* Changes one; if the learner has none of this name, *unknown is set (NULL: not wanted). Whether settings fit together
 * is not asked. */
esp_status espi_settings_set(espi_settings *settings, const char *name, const char *value, bool *unknown,
                             esp_error *err);
/* The entry of the table with this name, or NULL. */
const espi_setting *espi_setting_find(const espi_learner *learner, const char *name);
/* Whether the setting that has this field was given. */
bool espi_settings_given(const espi_settings *settings, const void *field);
/* Whether the solution under some settings is a start under others: they differ in nothing but such that allow it. */
bool espi_settings_start_from(const espi_settings *settings, const espi_settings *before);

/* "C=10 multiclass=ovr ...", for a model; of an online learner with the seed in front. NULL if memory is out. */
char *espi_settings_text(const espi_settings *settings);
/* Back from the text of a model that was learned online; what an earlier version did not have is at its default.
 * ESP_ERR_PARAM if it is none. */
esp_status espi_settings_read(const espi_learner *learner, const char *text, espi_settings **out, esp_error *err);
/* Adds "epochs=1, not 2; ...": all that differ. Both are of the same learner. */
void espi_settings_differ(const espi_settings *checkpoint, const espi_settings *given, espi_text *out);

/* --------------------------------------------------------------- problems */

/* What is to be learned. */
typedef struct espi_problem {
    const espi_settings *settings;
    const esp_kernel *kernel;
    const esp_dataset *data;
    const espi_targets *targets; /* of all examples of the data */
    const esp_run *run;
    struct espi_shares *shares; /* ranks have the examples, of which the data are a part (shares.h); NULL: no */
} espi_problem;

/* A cross-validation: example i is tested in fold number fold[i], and trained on in all others. */
typedef struct espi_folds {
    const uint32_t *fold;
    size_t count;
    size_t first, last; /* those to do here: first .. last-1 */
} espi_folds;

/* Settings under which a problem is cross-validated, and who takes what comes out. */
typedef struct espi_trial {
    const espi_settings *settings;
    /* Called once for each example, with its score per output by a fit that has not seen it; and, from learners that
     * give variances, with that of the function and that of the target for each output, else with NULL. May be called
     * by several threads, for different examples. */
    void (*take)(void *context, size_t example, const double *score, const double *variance);
    void *context;
} espi_trial;

/* ------------------------------------------------------------------ class */

struct espi_online_class; /* online.h */

struct espi_learner {
    const char *name, *help;
    const espi_setting *settings; /* ended by a NULL name */
    size_t settings_size;         /* of the struct that begins with espi_settings */
    unsigned capabilities;        /* a sum of esp_capability */
    /* The same where it depends on the settings; NULL: it does not. */
    unsigned (*capabilities_with)(const espi_settings *settings);

    /* Whether settings fit together. NULL: any do. */
    esp_status (*check)(const espi_settings *settings, esp_error *err);
    /* Whether it can learn with this kernel, and from these targets: asked before hours of work. NULL: any will do. */
    esp_status (*check_kernel)(const espi_settings *settings, const esp_kernel *kernel, esp_error *err);
    esp_status (*check_targets)(const espi_settings *settings, const espi_targets *targets, esp_error *err);
    /* The targets that it learns: espi_targets_classes, espi_targets_numbers, or its own. */
    esp_status (*targets)(const espi_settings *settings, const esp_dataset *data, espi_targets *out, esp_error *err);
    /* Decision functions for targets of so many classes (0: numbers). */
    size_t (*outputs)(const espi_settings *settings, size_t classes);
    bool (*one_vs_one)(const espi_settings *settings); /* whether these are for pairs of classes; NULL: never. Others
                                                          ask espi_learns_pairs */

    /* NULL for learners that are online: these are handed one example after the other. */
    esp_status (*train)(const espi_problem *problem, esp_model **out, esp_error *err);
    /* Whether `train` can do this at rank 0 with shares of the examples, the other ranks serving. NULL: it cannot. */
    esp_status (*check_shares)(const espi_settings *settings, const esp_kernel *kernel, esp_error *err);
    /* The scores of every example, for each trial; the settings of the problem itself are not used. */
    esp_status (*out_of_fold)(const espi_problem *problem, const espi_folds *folds, const espi_trial *trial,
                              size_t trials, esp_error *err);
    /* The log likelihood of the targets, nothing being searched, and unless `gradient` is NULL its derivatives in the
     * hyperparameters of the kernel, in their order, and in what the learner has besides. NULL: it has none. */
    esp_status (*log_likelihood)(const espi_problem *problem, double *value, double *gradient, esp_error *err);
    /* Switches off what a cross-validation has no use for. NULL: there is nothing. */
    void (*for_validation)(espi_settings *settings);

    const struct espi_online_class *online; /* NULL: it does not learn example by example */
    const void *family;                     /* of learners that share their code: what that has to know of each */
};

/* For `outputs`: one decision function, whatever the targets. */
size_t espi_one_output(const espi_settings *settings, size_t classes);

unsigned espi_capabilities(const espi_settings *settings);
bool espi_learns_pairs(const espi_settings *settings);

#endif
