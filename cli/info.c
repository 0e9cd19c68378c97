/* espalier info: what a data file or a model holds, and which kernels and learners there are. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct info_settings {
    cli_settings common;
    uint64_t top;
    bool kernels, learners;
} info_settings;

/* clang-format off */
static const cli_option options[] = {
    {.name = "top", .kind = CLI_NUMBER, .offset = offsetof(info_settings, top), .argument = "N", .least = 1,
     .most = UINT32_MAX, .help = "how many to list: classes of the target (default 10), hyperparameters of a gp, the "
     "largest first (default: all)"},
    {.name = "kernels", .kind = CLI_FLAG, .offset = offsetof(info_settings, kernels),
     .help = "list the kernels and their parameters instead"},
    {.name = "learners", .kind = CLI_FLAG, .offset = offsetof(info_settings, learners),
     .help = "list the learners and their settings instead"},
    {.name = NULL}};
/* clang-format on */

static void print_text(const char *key, const char *value)
{
    printf("%s\t", key);
    cli_field(stdout, value);
    putchar('\n');
}

static void print_count(const char *key, size_t value) { printf("%s\t%zu\n", key, value); }

static void print_column(const char *name, esp_column_type type, const esp_column_summary *c)
{
    static const char *const types[] = {"tree", "sequence", "vector"};
    print_text("column", name);
    print_text("type", types[type]);
    switch (type) {
    case ESP_COLUMN_TREE:
        print_count("nodes", c->items);
        print_count("leaves", c->leaves);
        print_count("subtrees", c->distinct);
        print_count("productions", c->productions);
        print_count("labels", c->symbols);
        print_count("largest", c->longest);
        print_count("deepest", c->deepest);
        break;
    case ESP_COLUMN_SEQUENCE:
        print_count("tokens", c->items);
        print_count("words", c->distinct);
        print_count("longest", c->longest);
        break;
    case ESP_COLUMN_VECTOR:
        print_count("values", c->items);
        print_count("features", c->distinct);
        print_count("longest", c->longest);
        break;
    }
    print_count("empty", c->empty);
    print_count("bytes", c->bytes);
}

static void print_range(const cli_class *classes, size_t count, size_t examples)
{
    double least = INFINITY, most = -INFINITY, mean = 0;
    for (size_t i = 0; i < count; i++) {
        const double value = strtod(classes[i].name, NULL);
        least = fmin(least, value);
        most = fmax(most, value);
        mean += value * ((double)classes[i].count / (double)examples);
    }
    printf("least\t%.17g\nmean\t%.17g\nmost\t%.17g\n", least, mean, most);
}

static int print_target(const esp_dataset *data, size_t top)
{
    const char *name = esp_dataset_target_name(data);
    if (name == NULL) return CLI_OK;
    size_t count = 0;
    cli_class *classes = cli_classes(data, &count);
    if (classes == NULL) return cli_fail("out of memory");
    const bool number = esp_dataset_target_is_number(data);
    print_text("target", name);
    print_text("type", number ? "number" : "class");
    print_count("classes", count);
    if (number && count > 0) print_range(classes, count, esp_dataset_count(data));
    /* Numbers are listed only where they look like classes: a long list of measurements tells nothing. */
    for (size_t i = 0; i < count && i < top && (!number || count <= top); i++) {
        fputs("class\t", stdout);
        cli_field(stdout, classes[i].name);
        printf("\t%zu\n", classes[i].count);
    }
    free(classes);
    return CLI_OK;
}

static int print_data(const cli_settings *settings, const esp_dataset *data, const char *path, size_t top)
{
    print_text("file", path);
    print_text("format", esp_format_name(esp_dataset_format(data)));
    print_count("examples", esp_dataset_count(data));
    if (esp_dataset_bad_count(data) > 0) print_count("skipped", esp_dataset_bad_count(data));
    int code = print_target(data, top);
    if (esp_dataset_target_name(data) == NULL && esp_dataset_columns(data) > 1 &&
        esp_dataset_format(data) == ESP_FORMAT_JSONL)
        cli_note(settings, "%s: no field is named 'y', so the examples have no target; --target FIELD names one",
                 strcmp(path, "-") == 0 ? "standard input" : path);
    for (size_t c = 0; code == CLI_OK && c < esp_dataset_columns(data); c++) {
        esp_column_summary summary;
        esp_error error;
        const esp_status status = esp_dataset_summarize(data, c, &summary, &error);
        if (status != ESP_OK) code = cli_error(status, &error);
        else print_column(esp_dataset_column_name(data, c), esp_dataset_column_type(data, c), &summary);
    }
    return code;
}

static void print_kernels(void)
{
    const char *name, *help;
    for (size_t k = 0; (name = esp_kernel_name(k, &help)) != NULL; k++) {
        printf("%s\t\t\t\t%s\n", name, help);
        const esp_parameter_info *p;
        for (size_t i = 0; (p = esp_kernel_parameter(k, i)) != NULL; i++)
            printf("%s\t%s\t%s\t%s\t%s\n", name, p->name, p->default_value, p->range, p->help);
    }
}

static void print_learners(void)
{
    const char *name, *help;
    for (size_t l = 0; (name = esp_learner_name(l, &help)) != NULL; l++) {
        printf("%s\t\t\t\t%s\n", name, help);
        const esp_parameter_info *p;
        for (size_t i = 0; (p = esp_learner_setting(l, i)) != NULL; i++)
            printf("%s\t%s\t%s\t%s\t%s\n", name, p->name, p->default_value, p->range, p->help);
    }
}

/* "hyperparameters<TAB>12", and the `top` largest of them (0: all). */
static void print_hyperparameters(const char *lines, size_t top)
{
    size_t count = 0;
    const char *end = lines;
    for (const char *at = lines; *at != '\0'; at++) {
        if (*at != '\n') continue;
        count++;
        if (top == 0 || count <= top) end = at + 1;
    }
    if (count == 0) return;
    print_count("hyperparameters", count);
    fwrite(lines, 1, (size_t)(end - lines), stdout);
}

static int print_model(const char *path, bool whole, size_t top)
{
    esp_model *model = NULL;
    char *text = NULL, *hyper = NULL;
    esp_error error;
    esp_status status = esp_model_read(path, &model, &error);
    if (status == ESP_OK) status = esp_model_summary(model, &text, &error);
    if (status == ESP_OK) status = esp_model_hyperparameters(model, &hyper, &error);
    if (status == ESP_OK) {
        print_text("file", path);
        print_text("format", "model");
        fputs(text, stdout);
        if (whole) print_text("expression", esp_model_kernel(model));
        print_hyperparameters(hyper, top);
    }
    esp_text_free(text);
    esp_text_free(hyper);
    esp_model_free(model);
    if (status != ESP_OK) return cli_error(status, &error);
    return CLI_OK;
}

static int print_index(const char *path)
{
    esp_index *index = NULL;
    char *text = NULL;
    esp_error error;
    esp_status status = esp_index_read(path, NULL, &index, &error);
    if (status == ESP_OK) status = esp_index_summary(index, &text, &error);
    if (status == ESP_OK) {
        print_text("file", path);
        print_text("format", "index");
        fputs(text, stdout);
    }
    esp_text_free(text);
    esp_index_free(index);
    return status == ESP_OK ? CLI_OK : cli_error(status, &error);
}

static int print_file(const info_settings *s, const char *path)
{
    if (esp_index_recognise(path)) return print_index(path);
    if (esp_model_recognise(path)) return print_model(path, s->common.verbose, (size_t)s->top);
    esp_dataset *data = NULL;
    int code = cli_read(&s->common, path, &data);
    if (code == CLI_OK) code = print_data(&s->common, data, path, s->top > 0 ? (size_t)s->top : 10);
    esp_dataset_free(data);
    return code;
}

static int run_info(const cli_settings *settings)
{
    const info_settings *s = (const info_settings *)settings;
    if ((s->kernels || s->learners) && settings->operands > 0)
        return cli_usage("--%s takes no files", s->kernels ? "kernels" : "learners");
    if (s->kernels) print_kernels();
    if (s->learners) print_learners();
    if (s->kernels || s->learners) return CLI_OK;
    if (settings->operands == 0)
        return cli_usage("a file is missing: the usage is 'espalier info DATA|MODEL|INDEX...'");
    int code = CLI_OK;
    for (size_t i = 0; code == CLI_OK && i < settings->operands; i++) code = print_file(s, settings->operand[i]);
    return code;
}

const cli_command cli_info = {
    .name = "info",
    .usage = "DATA|MODEL|INDEX...",
    .summary = "what a data file, a model or an index holds",
    .text = "Prints lines of a key and a value, separated by a TAB. A line 'file' opens each file, a line 'column' "
            "each of its columns; docs/cli.md describes the keys.",
    .examples = "espalier info questions.jsonl\n"
                "espalier info questions.model\n"
                "espalier info --kernels",
    .options = options,
    .reads = true,
    .most = SIZE_MAX,
    .settings_size = sizeof(info_settings),
    .run = run_info};
