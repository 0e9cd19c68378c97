/* espalier explain: the features that decide in a model, and those that decided about examples. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct explain_settings {
    cli_settings common;
    const char *output, *class_name;
    uint64_t top, max_size, effort;
    int format, sign;
    bool all, nodes;
    cli_list example;
} explain_settings;

static const char *const formats[] = {"text", "json", "penn", NULL};
static const char *const signs[] = {"both", "for", "against", NULL};
enum { TEXT, JSON, PENN };

/* clang-format off */
static const cli_option options[] = {
    {.name = "class", .kind = CLI_TEXT, .offset = offsetof(explain_settings, class_name), .argument = "LABEL",
     .help = "the class to speak for (default: all of a model; of an example the one that is predicted)"},
    {.name = "all-classes", .kind = CLI_FLAG, .offset = offsetof(explain_settings, all),
     .help = "of examples, all classes instead of the predicted one"},
    {.name = "top", .kind = CLI_NUMBER, .offset = offsetof(explain_settings, top), .argument = "N",
     .least = 1, .most = UINT32_MAX, .help = "features to show: per class, of an example up and down (default: 20)"},
    {.name = "max-size", .kind = CLI_NUMBER, .offset = offsetof(explain_settings, max_size), .argument = "N",
     .least = 1, .most = UINT32_MAX, .help = "most productions of a fragment or tokens of a pattern (default: any)"},
    {.name = "sign", .kind = CLI_CHOICE, .offset = offsetof(explain_settings, sign), .argument = "NAME",
     .choices = signs, .help = "of a model, features for the class, against it, or both (the default)"},
    {.name = "example", .kind = CLI_LIST, .offset = offsetof(explain_settings, example), .argument = "N",
     .help = "explain this example of DATA, counted from 1, or these: 3-7 (default: all); may be given several times"},
    {.name = "nodes", .kind = CLI_FLAG, .offset = offsetof(explain_settings, nodes),
     .help = "also the share of each node of an example's tree"},
    {.name = "effort", .kind = CLI_NUMBER, .offset = offsetof(explain_settings, effort), .argument = "N",
     .least = 1, .most = UINT64_MAX,
     .help = "fragments that a search may grow before it stops (default: 1000000; of an example 20000)"},
    {.name = "format", .kind = CLI_CHOICE, .offset = offsetof(explain_settings, format), .argument = "NAME",
     .choices = formats, .help = "text (lines of fields, the default), json (JSON Lines) or penn (fragments as trees)"},
    {.name = "output", .letter = 'o', .kind = CLI_TEXT, .offset = offsetof(explain_settings, output),
     .argument = "FILE", .help = "where to write (default: standard output)"},
    {.name = NULL}};
/* clang-format on */

typedef struct explain_job {
    const explain_settings *settings;
    esp_model *model;
    esp_dataset *data; /* NULL: the model is explained */
    esp_explainer *explainer;
    esp_predictions *predictions; /* where the predicted class is to be shown */
    cli_output output;
} explain_job;

static int format_of(const explain_settings *s) { return s->format > 0 ? s->format - 1 : TEXT; }

static int check_settings(const explain_settings *s)
{
    const bool data = s->common.operands > 1;
    if (data && strcmp(s->common.operand[0], "-") == 0 && strcmp(s->common.operand[1], "-") == 0)
        return cli_usage("standard input can be read only once");
    if (!data && (s->nodes || s->all || s->example.count > 0))
        return cli_usage("%s needs DATA, whose examples it is about", s->nodes ? "--nodes"
                                                                      : s->all ? "--all-classes"
                                                                               : "--example");
    if (data && s->sign > 0) return cli_usage("--sign is for models; of an example both sides are shown");
    if (s->nodes && format_of(s) == PENN)
        return cli_usage("--format penn has no place for --nodes; text and json have");
    if (s->all && s->class_name != NULL) return cli_usage("--class and --all-classes exclude each other");
    return cli_check_output(s->output, &s->common);
}

static esp_explain_options options_of(const explain_settings *s)
{
    return (esp_explain_options){.class_name = s->class_name,
                                 .top = (size_t)s->top,
                                 .max_size = (size_t)s->max_size,
                                 .sign = s->sign == 2   ? 1
                                         : s->sign == 3 ? -1
                                                        : 0,
                                 .effort = s->effort,
                                 .shares = s->nodes};
}

/* -------------------------------------------------------------------- writing */

static void write_feature(FILE *file, const esp_feature *f)
{
    if (f->kind == ESP_FEATURE_WORD || f->kind == ESP_FEATURE_VALUE) cli_field(file, f->text);
    else cli_pattern(file, f->text, true);
}

static size_t tree_terms(const explain_job *job)
{
    size_t count = 0;
    for (size_t t = 0; t < esp_explainer_terms(job->explainer); t++)
        count += esp_explainer_kind(job->explainer, t) == ESP_FEATURE_FRAGMENT;
    return count;
}

/* Ends a line about something of a term; which one is told where it could be another. */
static void end_line(FILE *file, const explain_job *job, size_t term, bool several)
{
    if (several) {
        putc('\t', file);
        cli_field(file, esp_explainer_term(job->explainer, term));
    }
    putc('\n', file);
}

static void write_fragments(FILE *file, const esp_explanation *x)
{
    const esp_feature *f;
    for (size_t i = 0; (f = esp_explanation_feature(x, i)) != NULL; i++) {
        if (f->kind != ESP_FEATURE_FRAGMENT) continue;
        cli_pattern(file, f->text, false);
        putc('\n', file);
    }
}

static void write_weights(FILE *file, const explain_job *job, const esp_explanation *x)
{
    const bool several = esp_explanation_terms(x) > 1;
    const esp_feature *f;
    for (size_t i = 0; (f = esp_explanation_feature(x, i)) != NULL; i++) {
        cli_field(file, esp_explanation_output(x, f->output));
        fprintf(file, "\t%.17g\t%.17g\t", f->weight, f->occurrences);
        write_feature(file, f);
        end_line(file, job, f->term, several);
    }
}

/* The first fields of a line about an example. */
static void begin_line(FILE *file, const esp_explanation *x, size_t output, size_t example, const char *what,
                       double value)
{
    fprintf(file, "%zu\t", example + 1);
    cli_field(file, esp_explanation_output(x, output));
    fprintf(file, "\t%s\t%.17g\t", what, value);
}

static void write_nodes(FILE *file, const explain_job *job, const esp_explanation *x, size_t output, size_t example)
{
    const bool several = tree_terms(job) > 1;
    for (size_t t = 0; t < esp_explanation_terms(x); t++)
        for (size_t i = 0; i < esp_explanation_nodes(x, t); i++) {
            begin_line(file, x, output, example, "node", esp_explanation_share(x, t, i, output));
            fprintf(file, "%zu ", i + 1);
            cli_field(file, esp_explanation_node(x, t, i)->label);
            end_line(file, job, t, several);
        }
}

static void write_contributions(FILE *file, const explain_job *job, const esp_explanation *x, size_t example)
{
    size_t at = 0;
    const esp_feature *f;
    for (size_t o = 0; o < esp_explanation_outputs(x); o++) {
        begin_line(file, x, o, example, "score", esp_explanation_score(x, o));
        putc('\n', file);
        begin_line(file, x, o, example, "bias", esp_explanation_bias(x, o));
        putc('\n', file);
        for (; (f = esp_explanation_feature(x, at)) != NULL && f->output == o; at++) {
            begin_line(file, x, o, example, f->contribution > 0.0 ? "up" : "down", f->contribution);
            write_feature(file, f);
            end_line(file, job, f->term, esp_explanation_terms(x) > 1);
        }
        begin_line(file, x, o, example, "rest", esp_explanation_rest(x, o));
        putc('\n', file);
        for (size_t t = 0; t < esp_explanation_terms(x); t++) {
            begin_line(file, x, o, example, "term", esp_explanation_term_score(x, o, t));
            cli_field(file, esp_explainer_term(job->explainer, t));
            putc('\n', file);
        }
        write_nodes(file, job, x, o, example);
    }
}

static int write_json(FILE *file, const esp_explanation *x)
{
    esp_error error;
    char *text;
    const esp_status status = esp_explanation_json(x, &text, &error);
    if (status != ESP_OK) return cli_error(status, &error);
    fputs(text, file);
    esp_text_free(text);
    return CLI_OK;
}

/* Says where a search stopped early; `example` is 0 for a model. */
static void note_bounds(const explain_job *job, const esp_explanation *x, size_t example)
{
    static const char longer[] = "a larger --effort or --memory searches longer";
    for (size_t o = 0; o < esp_explanation_outputs(x); o++) {
        double bound;
        if (esp_explanation_is_exact(x, o, &bound)) continue;
        if (!isfinite(bound))
            cli_note(&job->settings->common, "%s: the search was ended early; how much is left out is not known (%s)",
                     esp_explanation_output(x, o), longer);
        else if (example == 0)
            cli_note(&job->settings->common, "%s: the search was ended early; what is left out weighs at most %g (%s)",
                     esp_explanation_output(x, o), bound, longer);
        else
            cli_note(&job->settings->common,
                     "example %zu, %s: the search was ended early; what is left out contributes at most %g (%s)",
                     example, esp_explanation_output(x, o), bound, longer);
    }
}

static int write_explanation(explain_job *job, const esp_explanation *x, size_t example)
{
    FILE *file = job->output.file;
    const int format = format_of(job->settings);
    note_bounds(job, x, job->data != NULL ? example + 1 : 0);
    if (format == JSON) return write_json(file, x);
    if (format == PENN) write_fragments(file, x);
    else if (job->data == NULL) write_weights(file, job, x);
    else write_contributions(file, job, x, example);
    return CLI_OK;
}

/* ----------------------------------------------------------------- explaining */

static int explain_model(explain_job *job, const esp_run *run)
{
    const explain_settings *s = job->settings;
    const esp_explain_options given = options_of(s);
    const double began = cli_seconds();
    esp_explanation *x = NULL;
    esp_error error;
    const esp_status status = esp_explain(job->explainer, &given, run, &x, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    cli_detail(&s->common, "%zu features in %.3f s", esp_explanation_count(x), cli_seconds() - began);
    for (size_t t = 0; t < esp_explainer_terms(job->explainer); t++)
        if (esp_explainer_reason(job->explainer, t) != NULL)
            cli_note(&s->common, "%s", esp_explainer_reason(job->explainer, t));
    const int code = write_explanation(job, x, 0);
    esp_explanation_free(x);
    return code;
}

static int explain_example(explain_job *job, size_t example, const esp_run *run)
{
    esp_explain_options given = options_of(job->settings);
    esp_explanation *x = NULL;
    esp_error error;
    if (job->predictions != NULL) given.class_name = esp_predictions_label(job->predictions, example);
    const esp_status status = esp_explain_example(job->explainer, job->data, example, &given, run, &x, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    const int code = write_explanation(job, x, example);
    esp_explanation_free(x);
    return code;
}

/* "7" or "3-7", counted from 1, as a range from 0. */
static int read_range(const char *text, size_t count, size_t *first, size_t *end)
{
    char *rest;
    const unsigned long long low = strtoull(text, &rest, 10);
    const bool range = *rest == '-' && rest[1] >= '0' && rest[1] <= '9';
    const unsigned long long high = range ? strtoull(rest + 1, &rest, 10) : low;
    if (*text < '0' || *text > '9' || *rest != '\0' || low < 1 || high < low)
        return cli_usage("--example is '%s'; it must be a number from 1 on, or a range such as 3-7", text);
    if (high > count) return cli_usage("--example is '%s', but there are %zu examples", text, count);
    *first = (size_t)low - 1;
    *end = (size_t)high;
    return CLI_OK;
}

static int explain_data(explain_job *job, const esp_run *run)
{
    const explain_settings *s = job->settings;
    const size_t count = esp_dataset_count(job->data), lists = s->example.count;
    esp_error error;
    int code = CLI_OK;
    size_t first = 0, end = count;
    for (size_t i = 0; code == CLI_OK && i < lists; i++) code = read_range(s->example.item[i], count, &first, &end);
    if (code != CLI_OK) return code;
    if (!s->all && s->class_name == NULL && esp_model_classes(job->model) > 0) { /* numbers have one function */
        const esp_status status = esp_predict(job->model, job->data, run, &job->predictions, &error);
        cli_run_end();
        if (status != ESP_OK) return cli_error(status, &error);
    }
    for (size_t i = 0; code == CLI_OK && i < (lists > 0 ? lists : 1); i++) {
        if (lists > 0) code = read_range(s->example.item[i], count, &first, &end);
        for (size_t k = first; code == CLI_OK && k < end; k++) code = explain_example(job, k, run);
    }
    return code;
}

static int check_fragments(const explain_job *job)
{
    const bool any = tree_terms(job) > 0;
    if (!any && job->settings->nodes)
        cli_note(&job->settings->common, "--nodes has nothing to show: no term of the kernel has fragments of trees");
    if (any || format_of(job->settings) != PENN) return CLI_OK;
    return cli_usage("--format penn is for fragments of trees, and the kernel %s has none",
                     esp_model_kernel(job->model));
}

static int explain_file(explain_job *job)
{
    const explain_settings *s = job->settings;
    esp_error error;
    esp_status status = esp_model_read(s->common.operand[0], &job->model, &error);
    if (status != ESP_OK) return cli_error(status, &error);
    int code = s->common.operands > 1 ? cli_read(&s->common, s->common.operand[1], &job->data) : CLI_OK;
    if (code != CLI_OK) return code;
    esp_run run = cli_run(&s->common);
    if (s->common.memory == 0) run.memory /= 2;
    const double began = cli_seconds();
    status = esp_explainer_new(job->model, &run, &job->explainer, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    cli_detail(&s->common, "%s: prepared in %.3f s", s->common.operand[0], cli_seconds() - began);
    code = check_fragments(job);
    if (code == CLI_OK) code = cli_output_open(&job->output, s->output != NULL ? s->output : "-");
    if (code != CLI_OK) return code;
    code = job->data == NULL ? explain_model(job, &run) : explain_data(job, &run);
    return cli_output_close(&job->output, code);
}

static int run_explain(const cli_settings *settings)
{
    explain_job job = {.settings = (const explain_settings *)settings};
    int code = check_settings(job.settings);
    if (code == CLI_OK) code = explain_file(&job);
    esp_predictions_free(job.predictions);
    esp_explainer_free(job.explainer);
    esp_dataset_free(job.data);
    esp_model_free(job.model);
    return code;
}

const cli_command cli_explain = {
    .name = "explain",
    .usage = "MODEL [DATA]",
    .summary = "the fragments, patterns and features that decide in a model",
    .text =
        "Prints the features of a model with the largest weights, a line each: the class, the weight in its decision "
        "function, how often the support examples have the feature, the feature, and where the kernel is a sum "
        "the term it belongs to, separated by TABs. Features are "
        "fragments of trees (st, sst, sasst, fsst), in which (NP ...) is a node whose children are left open, patterns "
        "of sequences (seq, fseq), and values of vectors by name (linear).\n"
        "With DATA, prints for each example what its score is made of, a line each: the number of the example, the "
        "class, what the line is about, a number, a text, and for features of a sum the term. 'score' "
        "is the sum of 'bias', of the features that push "
        "it 'up' and 'down', and of 'rest', which is all others together; 'term' lines are the parts of the kernel's "
        "summands, and with --nodes a 'node' line has the share of each node, leaves included, from the root on.\n"
        "The search for features, and the shares of nodes, take at most --memory (default: half of what the machine "
        "has): a search that would need more ends early and says so, shares that would are refused.\n"
        "Kernels without features of their own (ptk, gtk, poly, rbf, products) have support examples in their place "
        "when examples are explained.",
    .examples = "espalier explain questions.model --class HUM --top 10\n"
                "espalier explain questions.model test.jsonl --example 3 --nodes\n"
                "espalier explain questions.model --format penn | espalier info -",
    .options = options,
    .reads = true,
    .least = 1,
    .most = 2,
    .settings_size = sizeof(explain_settings),
    .run = run_explain};
