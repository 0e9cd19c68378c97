/* C-SVC: classes by one machine, one for each class, or one for each pair of classes.
 *
 *     minimise 1/2 |w|^2 + sum_i C_i xi_i   subject to  y_i f(x_i) >= 1 - xi_i,  xi_i >= 0
 *
 *     two classes       one problem, the second class positive
 *     one-vs-rest       one problem per class
 *     one-vs-one        one problem per pair of classes, over the rows of the two
 *
 * C_i is C times the weight of the example's class, and positive-weight for positive examples. */
#include "base/status.h"
#include "learn/svm/machine.h"
#include "learn/svm/platt.h"

#include <string.h>

typedef struct svm_settings {
    espi_machine_settings machine;
    double cost, positive_weight;
    char *class_weight; /* "balanced", "label=w,label=w", or NULL: none */
    espi_choice one_vs_one;
    bool probability;
} svm_settings;

static const svm_settings *view(const espi_settings *settings) { return (const svm_settings *)(const void *)settings; }

static const char *const multiclass[] = {"ovr", "ovo", NULL};

/* clang-format off */
static const espi_setting settings[] = {
    {.info = {"C", "cost of an error: larger fits the training data more closely", "1", "a number > 0",
              ESP_KIND_NUMBER},
     .offset = offsetof(svm_settings, cost), .low = 0.0, .low_open = true, .high = 1e300, .warm_start = true},
    {.info = {"positive-weight", "factor of C for positive examples", "1", "a number > 0", ESP_KIND_NUMBER},
     .offset = offsetof(svm_settings, positive_weight), .low = 0.0, .low_open = true, .high = 1e100},
    {.info = {"class-weight", "factors of C by class; balanced: by how rare they are", "",
              "balanced, or label=weight,...", ESP_KIND_WEIGHTS},
     .offset = offsetof(svm_settings, class_weight)},
    {.info = {"multiclass", "one against the rest, or each against each", "ovr", "ovr or ovo", ESP_KIND_CHOICE},
     .offset = offsetof(svm_settings, one_vs_one), .choices = multiclass},
    {.info = {"probability", "also learn probabilities, from scores of a cross-validation", "0", "a flag",
              ESP_KIND_FLAG},
     .offset = offsetof(svm_settings, probability)},
    ESPI_MACHINE_SETTINGS(svm_settings),
};
/* clang-format on */

/* ------------------------------------------------------------------ checks */

static esp_status check(const espi_settings *s, esp_error *err)
{
    if (view(s)->probability && view(s)->one_vs_one)
        return espi_fail(err, ESP_ERR_PARAM, "probability needs multiclass ovr");
    return ESP_OK;
}

static bool is_balanced(const svm_settings *s)
{
    return s->class_weight != NULL && strcmp(s->class_weight, "balanced") == 0;
}

static esp_status check_targets(const espi_settings *s, const espi_targets *targets, esp_error *err)
{
    return is_balanced(view(s)) ? ESP_OK : espi_weights_check(view(s)->class_weight, targets, err);
}

static bool one_vs_one(const espi_settings *s) { return view(s)->one_vs_one != 0; }

static size_t outputs(const espi_settings *s, size_t classes) { return espi_class_outputs(classes, one_vs_one(s)); }

static void for_validation(espi_settings *s)
{
    espi_machine_for_validation(s);
    ((svm_settings *)(void *)s)->probability = false;
}

/* ---------------------------------------------------------------- problems */

static esp_status weigh(const espi_training *t, double *weight, esp_error *err)
{
    const svm_settings *s = view(t->settings);
    const size_t classes = t->targets->classes;
    for (size_t c = 0; c < classes; c++) {
        size_t members = 0;
        for (size_t i = 0; i < t->count; i++) members += t->targets->class_of[t->example[i]] == c;
        weight[c] = is_balanced(s) && members > 0 ? (double)t->count / (double)classes / (double)members : 1.0;
    }
    if (s->class_weight == NULL || is_balanced(s)) return ESP_OK;
    return espi_weights_parse(s->class_weight, t->targets, weight, err);
}

/* Whether an example of class c has a part in a problem. */
static bool takes_part(size_t c, size_t positive, size_t negative, size_t classes)
{
    return c == positive || c == negative || negative == classes;
}

static size_t variables(const espi_training *t, size_t problem)
{
    const size_t classes = t->targets->classes;
    size_t positive, negative, count = 0;
    espi_output_classes(one_vs_one(t->settings), classes, problem, &positive, &negative);
    for (size_t i = 0; i < t->count; i++)
        count += takes_part(t->targets->class_of[t->example[i]], positive, negative, classes);
    return count;
}

static void pose(const espi_training *t, size_t problem, espi_variables *v)
{
    const svm_settings *s = view(t->settings);
    const size_t classes = t->targets->classes;
    size_t positive, negative, k = 0;
    espi_output_classes(one_vs_one(t->settings), classes, problem, &positive, &negative);
    for (size_t i = 0; i < t->count; i++) {
        const size_t c = t->targets->class_of[t->example[i]];
        if (!takes_part(c, positive, negative, classes)) continue;
        v->example[k] = (uint32_t)i;
        v->sign[k] = c == positive ? 1 : -1;
        v->linear[k] = -1.0;
        v->bound[k] = s->cost * t->class_weight[c] * (c == positive ? s->positive_weight : 1.0);
        k++;
    }
}

static double scale(const espi_settings *from, const espi_settings *to) { return view(to)->cost / view(from)->cost; }

static bool wants_probabilities(const espi_settings *s) { return view(s)->probability; }

static const espi_machine machine = {.variables = variables,
                                     .pose = pose,
                                     .weigh = weigh,
                                     .scale = scale,
                                     .calibrates = wants_probabilities,
                                     .calibrate = espi_platt_fit};

const espi_learner espi_learner_svm = {.name = "svm",
                                       .help = "support vector machine for classes",
                                       .settings = settings,
                                       .settings_size = sizeof(svm_settings),
                                       .capabilities = ESP_LEARNS_CLASSES | ESP_NEEDS_TARGET | ESP_GIVES_PROBABILITIES |
                                                       ESP_KEEPS_CHECKPOINTS,
                                       .check = check,
                                       .check_kernel = espi_machine_check_kernel,
                                       .check_targets = check_targets,
                                       .targets = espi_targets_classes,
                                       .outputs = outputs,
                                       .one_vs_one = one_vs_one,
                                       .train = espi_machine_train,
                                       .check_shares = espi_machine_check_shares,
                                       .out_of_fold = espi_machine_out_of_fold,
                                       .for_validation = for_validation,
                                       .family = &machine};
