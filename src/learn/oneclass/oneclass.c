/* One-class support vector machine: what most examples have in common, and which ones do not fit in (Schoelkopf et al.
 * 2001). No targets are needed.
 *
 *     minimise 1/2 |w|^2 + 1/(nu n) sum_i xi_i - rho   subject to  w.x_i >= rho - xi_i,  xi_i >= 0
 *
 * It is solved in LIBSVM's scaling: one variable per example between 0 and 1, which add up to nu n. The decision
 * function is f(x) = w.x - rho: at most a part nu of the training examples lies below 0, and at least such a part
 * supports the model. Predictions are the classes 1, like the training examples, and -1, unlike them. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "learn/svm/machine.h"

typedef struct oneclass_settings {
    espi_machine_settings machine;
    double nu;
} oneclass_settings;

/* clang-format off */
static const espi_setting settings[] = {
    {.info = {"nu", "part of the training examples that may lie outside, about", "0.5", "a number > 0, at most 1",
              ESP_KIND_NUMBER},
     .offset = offsetof(oneclass_settings, nu), .low = 0.0, .low_open = true, .high = 1.0},
    ESPI_MACHINE_SETTINGS(oneclass_settings),
};
/* clang-format on */

/* ----------------------------------------------------------------- targets */

/* What a target of the data says: 1, -1, or nothing that these predictions could be judged by. */
static uint32_t class_of(const esp_dataset *data, size_t example)
{
    double value;
    if (data->target_name == NULL) return 1;
    const espi_symbol *s = &data->target_texts.symbol[data->target[example]];
    if (!espi_number_parse(s->text, s->size, &value)) return ESPI_NO_CLASS;
    return value == 1.0 ? 1 : value == -1.0 ? 0 : ESPI_NO_CLASS;
}

/* Training looks at none of them; they are what predictions are judged by. */
static esp_status make_targets(const espi_settings *s, const esp_dataset *data, espi_targets *out, esp_error *err)
{
    (void)s;
    *out = (espi_targets){.count = data->rows, .classes = 2};
    out->name = espi_alloc(2, sizeof *out->name);
    out->class_of = espi_alloc(data->rows, sizeof *out->class_of);
    if (out->name == NULL || out->class_of == NULL) {
        espi_targets_free(out);
        return espi_no_memory(err);
    }
    out->name[0] = "-1";
    out->name[1] = "1";
    for (size_t i = 0; i < data->rows; i++) out->class_of[i] = class_of(data, i);
    return ESP_OK;
}

/* ----------------------------------------------------------------- problem */

static size_t variables(const espi_training *t, size_t problem)
{
    (void)problem;
    return t->count;
}

static void pose(const espi_training *t, size_t problem, espi_variables *v)
{
    (void)problem;
    for (size_t i = 0; i < v->count; i++) {
        v->example[i] = (uint32_t)i;
        v->sign[i] = 1;
        v->linear[i] = 0.0;
        v->bound[i] = 1.0;
    }
    v->sum = ((const oneclass_settings *)(const void *)t->settings)->nu * (double)v->count;
}

static const espi_machine machine = {.variables = variables, .pose = pose};

const espi_learner espi_learner_oneclass = {.name = "oneclass",
                                            .help = "one-class support vector machine: which examples are unlike most",
                                            .settings = settings,
                                            .settings_size = sizeof(oneclass_settings),
                                            .capabilities = ESP_FINDS_OUTLIERS | ESP_KEEPS_CHECKPOINTS,
                                            .check_kernel = espi_machine_check_kernel,
                                            .targets = make_targets,
                                            .outputs = espi_one_output,
                                            .train = espi_machine_train,
                                            .out_of_fold = espi_machine_out_of_fold,
                                            .for_validation = espi_machine_for_validation,
                                            .family = &machine};
