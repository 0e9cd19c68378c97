/* What the commands that learn share: the settings of learners as options, from the library's tables, and training. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

const char *cli_learner_names[CLI_LEARNERS + 1];
char cli_learner_help[300];

static struct {
    char title[64];
    cli_option option[CLI_LEARNER_OPTIONS + 1];
    char help[CLI_LEARNER_OPTIONS][320];
} tables[CLI_LEARNERS];
static size_t learners;
static const char *setting_names[CLI_SETTINGS];
static size_t setting_count;

/* The settings with a name of the common options are filled in from there. */
static bool is_common(const char *name)
{
    for (const cli_option *o = cli_common_options; o->name != NULL; o++)
        if (strcmp(o->name, name) == 0) return true;
    return false;
}

size_t cli_setting_place(const char *name)
{
    for (size_t i = 0; i < setting_count; i++)
        if (strcmp(setting_names[i], name) == 0) return i;
    return CLI_SETTINGS;
}

static bool add_option(cli_option *option, char *help, size_t help_size, const esp_parameter_info *info)
{
    size_t place = cli_setting_place(info->name);
    if (place == CLI_SETTINGS) {
        if (setting_count == CLI_SETTINGS) return false;
        place = setting_count++;
        setting_names[place] = info->name;
    }
    const bool flag = info->kind == ESP_KIND_FLAG;
    const bool number = info->kind == ESP_KIND_NUMBER || info->kind == ESP_KIND_WHOLE;
    snprintf(help, help_size, "%s%s%s%s%s%s", info->help, flag ? "" : "; ", flag ? "" : info->range,
             !flag && info->default_value[0] != '\0' ? " (default " : "", flag ? "" : info->default_value,
             !flag && info->default_value[0] != '\0' ? ")" : "");
    *option = (cli_option){.name = info->name,
                           .letter = info->name[1] == '\0' ? info->name[0] : '\0',
                           .kind = flag ? CLI_SWITCH : CLI_TEXT,
                           .offset = offsetof(cli_learning, value) + place * sizeof(const char *),
                           .argument = flag     ? NULL
                                       : number ? "N"
                                                : "VALUE",
                           .help = help};
    return true;
}

/* "svm (the default) or perceptron": the learners whose targets can be just these. */
static size_t list_learners(unsigned targets, char *list, size_t size)
{
    const char *having[CLI_LEARNERS];
    size_t count = 0, used = 0;
    for (size_t l = 0; l < learners; l++) {
        const unsigned can = esp_learner_capabilities(cli_learner_names[l], NULL, 0);
        if ((can & (ESP_LEARNS_CLASSES | ESP_LEARNS_NUMBERS)) == targets) having[count++] = cli_learner_names[l];
    }
    for (size_t i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(list + used, size - used, "%s%s%s",
                                 i == 0          ? ""
                                 : i + 1 < count ? ", "
                                                 : " or ",
                                 having[i], having[i] == cli_learner_names[0] ? " (the default)" : "");
    return count;
}

/* "what to train: svm (the default) or perceptron for classes, svr for numbers, ..." */
static void describe_learners(void)
{
    static const struct {
        unsigned targets;
        const char *what;
    } kinds[] = {{ESP_LEARNS_CLASSES, "for classes"},
                 {ESP_LEARNS_NUMBERS, "for numbers"},
                 {ESP_LEARNS_CLASSES | ESP_LEARNS_NUMBERS, "for either"},
                 {0, "without targets"}};
    size_t used = (size_t)snprintf(cli_learner_help, sizeof cli_learner_help, "what to train");
    const char *before = ": ";
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        char list[120];
        if (list_learners(kinds[k].targets, list, sizeof list) == 0 || used >= sizeof cli_learner_help) continue;
        used += (size_t)snprintf(cli_learner_help + used, sizeof cli_learner_help - used, "%s%s %s", before, list,
                                 kinds[k].what);
        before = ", ";
    }
}

int cli_learners_begin(void)
{
    const char *name, *help;
    bool room = true;
    for (; (name = esp_learner_name(learners, &help)) != NULL && room; learners++) {
        if ((room = learners < CLI_LEARNERS) == false) break;
        cli_learner_names[learners] = name;
        snprintf(tables[learners].title, sizeof tables[learners].title, "Settings with -l %s", name);
        const esp_parameter_info *info;
        size_t count = 0;
        for (size_t i = 0; room && (info = esp_learner_setting(learners, i)) != NULL; i++) {
            if (is_common(info->name)) continue;
            room =
                count < CLI_LEARNER_OPTIONS && add_option(&tables[learners].option[count], tables[learners].help[count],
                                                          sizeof tables[learners].help[count], info);
            count++;
        }
    }
    describe_learners();
    return room ? CLI_OK : cli_fail("the library has more learners or settings than this tool has room for");
}

const cli_option *cli_learner_options(size_t learner) { return learner < learners ? tables[learner].option : NULL; }

const char *cli_learner_title(size_t learner) { return tables[learner].title; }

bool cli_learner_has(const char *learner, const char *setting)
{
    size_t index = 0;
    while (index < learners && strcmp(cli_learner_names[index], learner) != 0) index++;
    const esp_parameter_info *info;
    for (size_t i = 0; (info = esp_learner_setting(index, i)) != NULL; i++)
        if (strcmp(info->name, setting) == 0) return true;
    return false;
}

const char *cli_learner_of(const cli_learning *settings)
{
    return cli_learner_names[settings->learner > 0 ? settings->learner - 1 : 0];
}

static int foreign_setting(const char *learner, const char *name)
{
    const char *having[CLI_LEARNERS];
    size_t count = 0;
    for (size_t l = 0; l < learners; l++)
        if (cli_learner_has(cli_learner_names[l], name)) having[count++] = cli_learner_names[l];
    char list[200] = "";
    for (size_t i = 0; i < count; i++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " and ", having[i]);
    }
    return cli_usage("%s%s is a setting of %s, not of %s", name[1] == '\0' ? "-" : "--", name, list, learner);
}

static int gather_settings(const cli_learning *s, cli_training *training)
{
    for (size_t i = 0; i < setting_count; i++) {
        if (s->value[i] == NULL) continue;
        if (!cli_learner_has(training->learner, setting_names[i]))
            return foreign_setting(training->learner, setting_names[i]);
        training->setting[training->settings++] = (esp_setting){.name = setting_names[i], .value = s->value[i]};
    }
    if (training->resumes && !s->common.seeded) return CLI_OK;
    snprintf(training->seed, sizeof training->seed, "%llu", (unsigned long long)s->common.seed);
    training->setting[training->settings++] = (esp_setting){.name = "seed", .value = training->seed};
    return CLI_OK;
}

int cli_training_check(const cli_learning *settings, cli_training *training)
{
    training->from = settings;
    if (training->learner == NULL) training->learner = cli_learner_of(settings);
    const int code = training->kernel != NULL ? CLI_OK : cli_kernel(settings->kernel, &training->kernel);
    return code == CLI_OK ? gather_settings(settings, training) : code;
}

static unsigned capabilities(const cli_training *training)
{
    return esp_learner_capabilities(training->learner, training->setting, training->settings);
}

/* Names the columns, since one of them may be the target that was meant. */
static int target_missing(const esp_dataset *data, const char *path, const char *purpose)
{
    char list[300] = "";
    for (size_t c = 0; c < esp_dataset_columns(data); c++) {
        const size_t used = strlen(list);
        const char *name = esp_dataset_column_name(data, c);
        if (used + strlen(name) + 8 > sizeof list) {
            strcat(list, ", ...");
            break;
        }
        snprintf(list + used, sizeof list - used, "%s%s", used == 0 ? "" : ", ", name);
    }
    return cli_fail("%s: the examples have no target to %s; --target FIELD names the field that holds it "
                    "(there are: %s)",
                    strcmp(path, "-") == 0 ? "standard input" : path, purpose, list);
}

int cli_training_read(cli_training *training, bool judged)
{
    const cli_settings *s = &training->from->common;
    const int code =
        training->shared ? cli_read_share(s, &training->data) : cli_read(s, s->operand[0], &training->data);
    if (code != CLI_OK || (training->shared && cli_grouped())) return code; /* notes would be about a part */
    cli_kernel_notes(s, training->kernel, training->data, NULL);
    const unsigned can = capabilities(training);
    const bool target = esp_dataset_target_name(training->data) != NULL;
    const bool needed = (can & ESP_NEEDS_TARGET) != 0;
    if (!target && (judged || needed))
        return target_missing(training->data, s->operand[0], needed ? "learn from" : "judge predictions by");
    if (target && (can & ESP_LEARNS_CLASSES) != 0) cli_note_measured(s, training->data);
    return CLI_OK;
}

void cli_training_end(cli_training *training)
{
    esp_dataset_free(training->data);
    esp_kernel_free(training->kernel);
}

bool cli_training_of_numbers(const cli_training *training)
{
    return (capabilities(training) & ESP_LEARNS_NUMBERS) != 0;
}

bool cli_learner_can(const char *learner, esp_capability capability)
{
    return (esp_learner_capabilities(learner, NULL, 0) & (unsigned)capability) != 0;
}

static const cli_settings *watching; /* the settings of the run, for its messages */

static void on_message(void *user, const char *line)
{
    (void)user;
    cli_run_end();
    cli_detail(watching, "%s", line);
}

esp_run cli_learn_run(const cli_settings *settings)
{
    esp_run run = cli_run(settings);
    if (settings->memory == 0) run.memory /= 2;
    watching = settings;
    run.message = settings->verbose ? on_message : NULL;
    return run;
}

esp_run cli_training_how(const cli_training *training)
{
    esp_run run = cli_learn_run(&training->from->common);
    cli_device(&training->from->common, training->learner, esp_dataset_count(training->data), &run);
    return run;
}

/* The value of a key in "key<TAB>value" lines; empty if there is none. */
static const char *find_value(const char *lines, const char *key, char value[64])
{
    const size_t size = strlen(key);
    value[0] = '\0';
    for (const char *line = lines; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        if (length > size && strncmp(line, key, size) == 0 && line[size] == '\t')
            snprintf(value, 64, "%.*s", (int)(length - size - 1), line + size + 1);
        line += length + (line[length] == '\n');
    }
    return value;
}

/* How training ended, if not as it should. */
static void show_end(const cli_settings *s, const char *lines)
{
    char end[64], folded[64];
    find_value(lines, "end", end);
    if (strcmp(end, "interrupted") == 0) {
        cli_note(s, "interrupted: the model is what was learned so far");
    } else if (strncmp(end, "stopped where", 13) == 0) {
        cli_note(s, "stopped where no step was better, before the gradient was small");
    } else if (strncmp(end, "nothing", 7) == 0) {
        cli_note(s, "%s; the hyperparameters stay as given", end);
    } else if (strcmp(end, "stopped by rounding") == 0) {
        cli_note(s,
                 "stopped where rounding hides how far the optimum is; norm(...), or a smaller C or lambda, may help");
    } else if (strcmp(end, "converged") != 0) {
        const char *limit = strstr(lines, "max-iterations=");
        if (find_value(lines, "limit", folded)[0] != '\0') limit = NULL;
        cli_note(s, "stopped at the limit of %.0f iterations before it converged; a larger --max-iterations may help",
                 limit != NULL ? strtod(strchr(limit, '=') + 1, NULL) : strtod(folded, NULL));
    }
}

/* How close to the optimum a support vector machine is, where that was verified. */
static void show_verified(const cli_settings *s, const char *lines)
{
    char primal[64], dual[64], gap[64], violation[64];
    if (find_value(lines, "primal objective", primal)[0] == '\0') return;
    find_value(lines, "dual objective", dual);
    find_value(lines, "relative gap", gap);
    find_value(lines, "worst violation", violation);
    cli_note(s, "verified on all examples: primal objective %.6g, dual %.6g, relative gap %.2g, worst violation %.2g",
             strtod(primal, NULL), strtod(dual, NULL), strtod(gap, NULL), strtod(violation, NULL));
}

/* What is odd about a Gaussian process: jitter, and hyperparameters at their bounds. */
static void show_doubts(const cli_settings *s, const char *lines)
{
    static const char bound[] = "at a bound\t";
    char jitter[64];
    if (find_value(lines, "jitter", jitter)[0] != '\0')
        cli_note(s, "%s was added to the diagonal: without it the kernel matrix is not positive definite", jitter);
    for (const char *line = strstr(lines, bound); line != NULL; line = strstr(line + 1, bound)) {
        const char *name = line + strlen(bound);
        cli_note(s, "at the bound of its range: %.*s", (int)strcspn(name, "\n"), name);
    }
}

static void show_learned(const cli_settings *s, const esp_model *model, const char *lines, const char *path)
{
    static const char *const keys[] = {"log likelihood", "log likelihood bound", "log evidence"};
    char examples[64], inducing[64], value[64], few[96] = "", classes[48] = "";
    size_t key = 0;
    while (find_value(lines, keys[key], value)[0] == '\0' && key < 2) key++;
    find_value(lines, "trained-on", examples);
    if (find_value(lines, "inducing", inducing)[0] != '\0') snprintf(few, sizeof few, ", for which %s stand", inducing);
    cli_detail(s, "learned kernel %s", esp_model_kernel(model));
    if (esp_model_classes(model) > 0) snprintf(classes, sizeof classes, " of %zu classes", esp_model_classes(model));
    cli_note(s, "%s: %s example%s%s%s; %s %.6g; written to %s", esp_model_learner(model), examples,
             strcmp(examples, "1") == 0 ? "" : "s", classes, few, keys[key], strtod(value, NULL),
             strcmp(path, "-") == 0 ? "standard output" : path);
    show_doubts(s, lines);
    show_end(s, lines);
}

int cli_show_model(const cli_settings *s, const esp_model *model, const char *path)
{
    esp_error error;
    char *lines = NULL, support[64], updates[64], examples[64], classes[48] = "";
    const esp_status status = esp_model_summary(model, &lines, &error);
    if (status != ESP_OK) return cli_error(status, &error);
    if (cli_learner_can(esp_model_learner(model), ESP_LEARNS_KERNEL)) {
        show_learned(s, model, lines, path);
        esp_text_free(lines);
        return CLI_OK;
    }
    find_value(lines, "support examples", support);
    find_value(lines, "updates", updates);
    find_value(lines, "trained-on", examples);
    const bool online = updates[0] != '\0';
    if (esp_model_classes(model) > 0) snprintf(classes, sizeof classes, "%zu classes; ", esp_model_classes(model));
    cli_note(s, "%s: %s%s %s %s examples%s; written to %s", esp_model_learner(model), classes,
             online ? updates : support, online ? "updates in" : "of", examples, online ? "" : " are support vectors",
             strcmp(path, "-") == 0 ? "standard output" : path);
    if (!online) show_verified(s, lines);
    if (!online) show_end(s, lines);
    if (cli_learner_has(esp_model_learner(model), "epsilon") && strcmp(support, "0") == 0)
        cli_note(
            s, "nothing was learned but a constant, as all targets lie within epsilon of it; take a smaller --epsilon");
    esp_text_free(lines);
    return CLI_OK;
}

size_t cli_model_support(const esp_model *model)
{
    esp_error error;
    char *lines = NULL, support[64] = "";
    if (esp_model_summary(model, &lines, &error) == ESP_OK) find_value(lines, "support examples", support);
    esp_text_free(lines);
    return (size_t)strtoull(support, NULL, 10);
}

int cli_training_run(const cli_training *training, const esp_kernel *kernel, const char *path)
{
    const cli_settings *s = &training->from->common;
    esp_model *model = NULL;
    esp_error error;
    esp_run run = cli_training_how(training);
    double began = cli_seconds();
    run.checkpoint = training->checkpoint;
    if (training->shared) cli_share(s, &run);
    esp_status status = esp_train_share(training->learner, kernel, training->data, training->setting,
                                        training->settings, &run, &model, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    if (model == NULL) return CLI_OK; /* the first of several processes has it */
    cli_detail(s, "kernel %s", esp_kernel_text(kernel));
    cli_detail(s, "trained in %.3f s", cli_seconds() - began);
    began = cli_seconds();
    status = esp_model_write(model, path, &error);
    int code = CLI_OK;
    if (status != ESP_OK) code = cli_error(status, &error);
    else cli_detail(s, "written in %.3f s", cli_seconds() - began);
    if (code == CLI_OK) cli_remove_checkpoint(training->checkpoint, s);
    if (code == CLI_OK) code = cli_show_model(s, model, path);
    esp_model_free(model);
    return code;
}
