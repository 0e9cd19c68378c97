/* Epsilon-SVR: numbers, with errors up to epsilon at no cost.
 *
 *     minimise 1/2 |w|^2 + C sum_i (xi_i + xi*_i)   subject to  -epsilon - xi*_i <= y_i - f(x_i) <= epsilon + xi_i
 *
 * One problem with two variables per example (svm/smo.h): with sign +1 for errors
 * above, with sign -1 for those below. */
#include "learn/svm/machine.h"

typedef struct svr_settings {
    espi_machine_settings machine;
    double cost, epsilon;
} svr_settings;

static const svr_settings *view(const espi_settings *settings) { return (const svr_settings *)(const void *)settings; }

/* clang-format off */
static const espi_setting settings[] = {
    {.info = {"C", "cost of an error: larger fits the training data more closely", "1", "a number > 0",
              ESP_KIND_NUMBER},
     .offset = offsetof(svr_settings, cost), .low = 0.0, .low_open = true, .high = 1e300, .warm_start = true},
    {.info = {"epsilon", "errors up to this cost nothing", "0.1", "a number >= 0", ESP_KIND_NUMBER},
     .offset = offsetof(svr_settings, epsilon), .low = 0.0, .high = 1e300},
    ESPI_MACHINE_SETTINGS(svr_settings),
};
/* clang-format on */

static size_t variables(const espi_training *t, size_t problem)
{
    (void)problem;
    return 2 * t->count;
}

static void pose(const espi_training *t, size_t problem, espi_variables *v)
{
    const svr_settings *s = view(t->settings);
    const size_t n = t->count;
    (void)problem;
    for (size_t i = 0; i < v->count; i++) {
        const double y = t->targets->value[t->example[i % n]];
        v->example[i] = (uint32_t)(i % n);
        v->sign[i] = i < n ? 1 : -1;
        v->linear[i] = s->epsilon - v->sign[i] * y;
        v->bound[i] = s->cost;
    }
}

static double scale(const espi_settings *from, const espi_settings *to) { return view(to)->cost / view(from)->cost; }

static const espi_machine machine = {.variables = variables, .pose = pose, .scale = scale};

const espi_learner espi_learner_svr = {.name = "svr",
                                       .help = "support vector regression for numbers",
                                       .settings = settings,
                                       .settings_size = sizeof(svr_settings),
                                       .capabilities = ESP_LEARNS_NUMBERS | ESP_NEEDS_TARGET | ESP_KEEPS_CHECKPOINTS,
                                       .check_kernel = espi_machine_check_kernel,
                                       .targets = espi_targets_numbers,
                                       .outputs = espi_one_output,
                                       .train = espi_machine_train,
                                       .check_shares = espi_machine_check_shares,
                                       .out_of_fold = espi_machine_out_of_fold,
                                       .for_validation = espi_machine_for_validation,
                                       .family = &machine};
