/* What the model is: learner, settings, kernel with its parameters, and how it went if it was learned online. */
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/expression/columns.h"
#include "report/report.h"

#include <string.h>

enum {
    ARGUMENT = 400, /* bytes of grammar rules and their like that are shown */
    STEPS = 60      /* points of a learning curve */
};

/* Whether a model, whose settings these are, tells the setting of this name. */
static bool tells(const char *settings, const char *name)
{
    const size_t size = strlen(name);
    for (const char *at = strstr(settings, name); at != NULL; at = strstr(at + 1, name))
        if ((at == settings || at[-1] == ' ') && at[size] == '=') return true;
    return false;
}

/* The settings that the learner has, and its models tell: name, help, default. */
static void add_settings(espi_text *t, const char *learner, const char *settings)
{
    const char *name, *help = "";
    size_t index = 0;
    while ((name = esp_learner_name(index, &help)) != NULL && strcmp(name, learner) != 0) index++;
    if (name != NULL) espi_json_text_of(t, "learnerHelp", help);
    espi_json_key(t, "settingTable");
    espi_json_open(t, '[');
    const esp_parameter_info *info;
    for (size_t i = 0; name != NULL && (info = esp_learner_setting(index, i)) != NULL; i++) {
        if (!tells(settings, info->name)) continue;
        espi_json_open(t, '{');
        espi_json_text_of(t, "name", info->name);
        espi_json_text_of(t, "help", info->help);
        espi_json_text_of(t, "default", info->default_value);
        espi_json_close(t, '}');
    }
    espi_json_close(t, ']');
}

static void add_parameter(espi_text *t, const espi_leaf *leaf, size_t index)
{
    const espi_parameter *p = &leaf->class->parameters[index];
    espi_json_open(t, '{');
    espi_json_text_of(t, "name", p->info.name);
    espi_json_text_of(t, "help", p->info.help);
    espi_json_text_of(t, "default", p->info.default_value);
    espi_json_key(t, "value");
    if (p->choices != NULL) {
        const char *choice = p->choices[(size_t)leaf->value[index]];
        espi_json_string(t, choice, strlen(choice));
    } else if (p->argument != NULL) {
        const char *argument = leaf->argument != NULL ? p->argument->text(leaf->argument) : "";
        espi_drawn_text(t, argument, strlen(argument), ARGUMENT);
    } else {
        espi_drawn_number(t, leaf->value[index]);
    }
    espi_json_close(t, '}');
}

/* What a leaf does, without what it would do to sequences if it works on vectors. */
static void add_help(espi_text *t, const espi_leaf *leaf, const esp_dataset *support)
{
    const espi_column *column;
    const bool vectors = espi_leaf_column(leaf, support, &column, NULL) == ESP_OK && column->type == ESP_COLUMN_VECTOR;
    const char *help = vectors && leaf->class->vector_help != NULL ? leaf->class->vector_help : leaf->class->help;
    espi_json_text_of(t, "help", help);
}

static void add_leaf(espi_text *t, const espi_leaf *leaf, const esp_dataset *support)
{
    espi_json_open(t, '{');
    espi_json_text_of(t, "name", leaf->class->name);
    add_help(t, leaf, support);
    if (leaf->column != NULL) espi_json_text_of(t, "column", leaf->column);
    espi_json_key(t, "parameters");
    espi_json_open(t, '[');
    for (size_t i = 0; leaf->class->parameters[i].info.name != NULL; i++) add_parameter(t, leaf, i);
    espi_json_close(t, ']');
    espi_json_key(t, "symbols");
    espi_json_open(t, '[');
    for (size_t i = 0; i < leaf->symbols; i++) {
        const espi_symbol_value *s = &leaf->symbol[i];
        espi_json_open(t, '[');
        espi_json_string(t, leaf->class->parameters[s->parameter].info.name,
                         strlen(leaf->class->parameters[s->parameter].info.name));
        espi_json_string(t, s->label, strlen(s->label));
        espi_drawn_number(t, s->value);
        espi_json_close(t, ']');
    }
    espi_json_close(t, ']');
    espi_json_close(t, '}');
}

/* Updates by the steps that made them, in intervals of equal length. */
static void add_curve(espi_text *t, const esp_model *m)
{
    const espi_history *h = m->history;
    const uint64_t width = h->steps / STEPS + (h->steps % STEPS > 0);
    uint64_t updates[STEPS] = {0};
    for (size_t i = 0; i < m->support->rows; i++)
        if (h->step[i] >= 1 && h->step[i] <= h->steps) updates[(h->step[i] - 1) / width]++;
    espi_json_key(t, "curve");
    espi_json_open(t, '{');
    espi_json_count_of(t, "steps", h->steps);
    espi_json_count_of(t, "mistakes", h->mistakes);
    espi_json_count_of(t, "epochs", h->epochs);
    espi_json_count_of(t, "width", width);
    espi_json_key(t, "updates");
    espi_json_open(t, '[');
    for (uint64_t i = 0; i * width < h->steps; i++) espi_json_count(t, updates[i]);
    espi_json_close(t, ']');
    espi_json_key(t, "tally");
    espi_json_open(t, '[');
    for (size_t c = 0; c < m->classes; c++) {
        espi_json_open(t, '[');
        espi_json_count(t, h->tally[c].hits);
        espi_json_count(t, h->tally[c].misses);
        espi_json_count(t, h->tally[c].false_alarms);
        espi_json_close(t, ']');
    }
    espi_json_close(t, ']');
    espi_json_close(t, '}');
}

static esp_status add_texts(espi_text *t, const esp_model *m, esp_error *err)
{
    char *summary = NULL, *hyperparameters = NULL, *kernel = espi_kernel_print_short(m->kernel);
    if (kernel == NULL) return espi_no_memory(err);
    espi_json_text_of(t, "kernel", kernel);
    espi_free(kernel);
    esp_status status = esp_model_summary(m, &summary, err);
    if (status == ESP_OK) espi_json_text_of(t, "summary", summary);
    if (status == ESP_OK && m->gaussian != NULL) status = esp_model_hyperparameters(m, &hyperparameters, err);
    if (hyperparameters != NULL) espi_json_text_of(t, "hyperparameters", hyperparameters);
    esp_text_free(summary);
    esp_text_free(hyperparameters);
    return status;
}

esp_status espi_report_model(espi_report *r, esp_error *err)
{
    const esp_model *m = r->model;
    espi_text *t = &r->json;
    espi_json_key(t, "model");
    espi_json_open(t, '{');
    espi_json_text_of(t, "learner", m->learner);
    add_settings(t, m->learner, m->settings != NULL ? m->settings : "");
    espi_json_text_of(t, "settings", m->settings != NULL ? m->settings : "");
    const esp_status status = add_texts(t, m, err);
    espi_json_key(t, "leaves");
    espi_json_open(t, '[');
    for (size_t i = 0; i < m->kernel->leaves; i++) add_leaf(t, &m->kernel->leaf[i], m->support);
    espi_json_close(t, ']');
    espi_json_key(t, "classes");
    espi_json_open(t, '[');
    for (size_t c = 0; c < m->classes; c++) espi_json_string(t, m->class_name[c], strlen(m->class_name[c]));
    espi_json_close(t, ']');
    espi_json_flag_of(t, "pairs", m->one_vs_one);
    espi_json_flag_of(t, "probabilities", m->platt != NULL || (m->gaussian != NULL && m->classes > 0));
    espi_json_flag_of(t, "vote", m->vote);
    espi_json_flag_of(t, "finished", esp_model_is_finished(m));
    espi_json_count_of(t, "support", m->support->rows);
    if (m->history != NULL && m->history->steps > 0) add_curve(t, m);
    espi_json_close(t, '}');
    return status;
}
