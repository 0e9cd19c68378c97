/* Online learning as others see it: runs over datasets and streams, checkpoints, and going on from a model. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/text.h"
#include "data/stream.h"
#include "kernel/expression/columns.h"
#include "learn/model/model.h"
#include "learn/online.h"
#include "learn/train/registry.h"

#include <inttypes.h>
#include <string.h>

/* Examples from one question whether to go on, or look at the memory, to the next. */
enum { ASK = 128, MEASURE = 2048 };

struct esp_online {
    const espi_online_class *class;
    espi_online_state *state;
    bool continuing; /* the next run takes up the one that the checkpoint is of */
    bool idle;       /* epochs 0 was given for a model that is resumed: nothing is to be learned */
    bool inherited;  /* epochs are the model's, not given */
    uint64_t bad;
    uint64_t every;
    esp_online_watcher watch;
    void *user;
};

typedef struct run_state { /* one run over the data */
    esp_online *online;
    const esp_run *run;
    uint64_t passed, skip; /* examples of this epoch that the checkpoint has seen: passed over so far, and all */
    double fraction;       /* of the run that is done; negative: not known */
} run_state;

/* ------------------------------------------------------------------ handles */

/* Takes the state over, also on failure. */
static esp_status wrap(const espi_online_class *class, espi_online_state *state, bool continuing, esp_online **out,
                       esp_error *err)
{
    esp_online *online = espi_alloc_zero(1, sizeof *online);
    if (online == NULL) {
        class->free(state);
        return espi_no_memory(err);
    }
    online->class = class;
    online->state = state;
    online->continuing = continuing;
    *out = online;
    return ESP_OK;
}

/* The learner of this name, if it learns online; NULL with a sentence if not. */
static const espi_learner *find_online(const char *name, esp_error *err)
{
    const espi_learner *learner = espi_learner_find(name, err);
    if (learner == NULL || learner->online != NULL) return learner;
    const char *other = "none";
    for (size_t i = 0; esp_learner_name(i, NULL) != NULL; i++)
        if (espi_learner_find(esp_learner_name(i, NULL), NULL)->online != NULL) other = esp_learner_name(i, NULL);
    espi_fail(err, ESP_ERR_PARAM, "%s does not learn example by example; %s does", learner->name, other);
    return NULL;
}

esp_status esp_online_new(const char *name, const esp_kernel *kernel, const esp_setting *given, size_t count,
                          esp_online **out, esp_error *err)
{
    espi_settings *settings = NULL;
    espi_online_state *state = NULL;
    *out = NULL;
    const espi_learner *learner = find_online(name, err);
    if (learner == NULL) return ESP_ERR_PARAM;
    esp_status status = espi_settings_new(learner, given, count, &settings, err);
    if (status == ESP_OK) status = learner->online->start(settings, kernel, &state, err);
    return status == ESP_OK ? wrap(learner->online, state, false, out, err) : status;
}

/* The settings of a model that was learned online. */
static esp_status settings_of(const esp_model *model, espi_settings **out, esp_error *err)
{
    *out = NULL;
    if (model->history == NULL)
        return espi_fail(err, ESP_ERR_PARAM,
                         "the model was learned by %s; only one that was learned example by example can learn on",
                         model->learner);
    const espi_learner *learner = find_online(model->learner, err);
    return learner != NULL ? espi_settings_read(learner, model->settings, out, err) : ESP_ERR_PARAM;
}

/* Settings of a model, with those given in their place. With `idle`, epochs 0 is of this run alone and no setting for
 * those that go on from it: *idle is set, and the model's stay. */
static esp_status replace_settings(espi_settings *settings, const esp_setting *given, size_t count, bool *idle,
                                   esp_error *err)
{
    const espi_learner *learner = settings->learner;
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < count; i++) {
        double epochs;
        const bool last_word = idle != NULL && strcmp(given[i].name, "epochs") == 0;
        if (last_word) *idle = espi_number_parse(given[i].value, strlen(given[i].value), &epochs) && epochs == 0.0;
        if (!last_word || !*idle) status = espi_settings_set(settings, given[i].name, given[i].value, NULL, err);
    }
    if (status == ESP_OK && learner->online->replaced != NULL) learner->online->replaced(settings, given, count);
    return status == ESP_OK && learner->check != NULL ? learner->check(settings, err) : status;
}

esp_status esp_online_resume(const esp_model *model, const esp_setting *given, size_t count, const esp_run *run,
                             esp_online **out, esp_error *err)
{
    espi_settings *settings = NULL;
    espi_online_state *state = NULL;
    bool idle = false;
    *out = NULL;
    esp_status status = settings_of(model, &settings, err);
    if (status != ESP_OK) return status;
    const espi_online_class *class = settings->learner->online;
    status = replace_settings(settings, given, count, &idle, err);
    if (status == ESP_OK) status = class->restore(model, settings, run, &state, err);
    else espi_settings_free(settings);
    if (status == ESP_OK) status = wrap(class, state, false, out, err);
    if (status != ESP_OK) return status;
    (*out)->idle = idle;
    if (!idle) state->origin = espi_model_digest(model);
    (*out)->inherited = true;
    for (size_t i = 0; i < count; i++)
        if (strcmp(given[i].name, "epochs") == 0) (*out)->inherited = false;
    return ESP_OK;
}

/* The kernel of the checkpoint names all columns; the one given need not. */
static esp_status compare_kernels(const esp_model *checkpoint, const esp_kernel *kernel, espi_text *differences,
                                  esp_error *err)
{
    esp_kernel *bound = NULL;
    const esp_status status = espi_kernel_bind_names(kernel, checkpoint->support, &bound, NULL);
    const bool same = status == ESP_OK && strcmp(bound->text, checkpoint->kernel->text) == 0;
    esp_kernel_free(bound);
    if (status == ESP_ERR_MEMORY) return espi_no_memory(err);
    if (same) return ESP_OK;
    espi_text_string(differences, "the kernel ");
    espi_text_string(differences, checkpoint->kernel->text);
    espi_text_string(differences, ", not ");
    espi_text_string(differences, kernel->text);
    return ESP_OK;
}

static esp_status refuse_differences(espi_text *differences, esp_error *err)
{
    if (differences->size == 0 && !differences->failed) return ESP_OK;
    char *text = espi_text_take(differences);
    const esp_status status =
        text == NULL ? espi_no_memory(err)
                     : espi_fail(err, ESP_ERR_PARAM, "the checkpoint was made with %s; remove it to start anew", text);
    espi_free(text);
    return status;
}

/* Whether the checkpoint's run began as told: afresh, or with this model. */
static esp_status check_origin(const esp_model *checkpoint, const esp_model *resumed, esp_error *err)
{
    const uint64_t origin = checkpoint->history->origin;
    if (origin == (resumed != NULL ? espi_model_digest(resumed) : 0)) return ESP_OK;
    return espi_fail(err, ESP_ERR_PARAM, "the checkpoint is of a run that %s; remove it to start anew",
                     origin == 0       ? "started afresh, without a model to resume"
                     : resumed == NULL ? "resumed a model"
                                       : "resumed another model");
}

/* The settings with which the run of a checkpoint was begun, as given again. */
static esp_status given_again(const esp_model *checkpoint, const esp_model *resumed, const esp_setting *given,
                              size_t count, espi_settings **out, esp_error *err)
{
    if (resumed == NULL) {
        const espi_learner *learner = find_online(checkpoint->learner, err);
        return learner != NULL ? espi_settings_new(learner, given, count, out, err) : ESP_ERR_PARAM;
    }
    const esp_status status = settings_of(resumed, out, err);
    return status == ESP_OK ? replace_settings(*out, given, count, NULL, err) : status;
}

esp_status esp_online_continue(const esp_model *checkpoint, const esp_kernel *kernel, const esp_model *resumed,
                               const esp_setting *given, size_t count, const esp_run *run, esp_online **out,
                               esp_error *err)
{
    espi_settings *was = NULL, *is = NULL;
    espi_online_state *state = NULL;
    espi_text differences = {0};
    *out = NULL;
    esp_status status = settings_of(checkpoint, &was, err);
    if (status == ESP_OK) status = check_origin(checkpoint, resumed, err);
    if (status == ESP_OK && kernel != NULL) status = compare_kernels(checkpoint, kernel, &differences, err);
    if (status == ESP_OK) status = given_again(checkpoint, resumed, given, count, &is, err);
    if (status == ESP_OK) {
        espi_settings_differ(was, is, &differences);
        status = refuse_differences(&differences, err);
    }
    espi_text_free(&differences);
    if (status == ESP_OK) {
        status = was->learner->online->restore(checkpoint, is, run, &state, err);
        is = NULL; /* taken over */
    }
    if (status == ESP_OK) status = wrap(was->learner->online, state, true, out, err);
    espi_settings_free(was);
    espi_settings_free(is);
    return status;
}

void esp_online_free(esp_online *online)
{
    if (online == NULL) return;
    online->class->free(online->state);
    espi_free(online);
}

void esp_online_watch(esp_online *online, uint64_t every, esp_online_watcher watch, void *user)
{
    online->every = watch != NULL ? every : 0;
    online->watch = watch;
    online->user = user;
}

esp_status esp_online_model(const esp_online *online, esp_model **out, esp_error *err)
{
    return online->class->model(online->state, out, err);
}

uint64_t esp_online_examples(const esp_online *online) { return online->state->steps; }

void esp_online_measure(const esp_online *online, esp_online_stats *out)
{
    const espi_online_state *s = online->state;
    *out = (esp_online_stats){
        .examples = s->steps, .epoch = (size_t)s->epochs + 1, .bad = online->bad, .bytes = online->class->bytes(s)};
    if (s->epochs > 0 && s->at == 0 && s->epochs >= s->wanted_epochs) out->epoch--; /* all are done */
    online->class->measure(s, out);
}

/* --------------------------------------------------------------------- runs */

static esp_status check_memory(const run_state *r, esp_error *err)
{
    char used[32], allowed[32];
    const size_t bytes = r->run != NULL && r->run->memory > 0 ? r->online->class->bytes(r->online->state) : 0;
    if (bytes == 0 || bytes <= r->run->memory) return ESP_OK;
    return espi_fail(err, ESP_ERR_MEMORY, "after %" PRIu64 " examples the model takes %s; the limit is %s",
                     r->online->state->steps, espi_size_text((double)bytes, used),
                     espi_size_text((double)r->run->memory, allowed));
}

/* Learns from one example, unless the checkpoint has; then tells whoever watches. */
static esp_status learn(run_state *r, const esp_dataset *data, size_t row, esp_error *err)
{
    esp_online *o = r->online;
    esp_status status = ESP_OK;
    if (r->passed < r->skip) {
        if (++r->passed == r->skip && o->every > 0) status = o->watch(o->user, o, err);
        return status;
    }
    if (o->state->at % ASK == 0) status = espi_progress(r->run, "learning", r->fraction, err);
    if (status == ESP_OK) status = o->class->learn(o->state, data, row, err);
    if (status == ESP_OK && o->state->at % MEASURE == 0) status = check_memory(r, err);
    if (status == ESP_OK && o->every > 0 && o->state->steps % o->every == 0) status = o->watch(o->user, o, err);
    return status;
}

static esp_status end_epoch(run_state *r, esp_error *err)
{
    espi_online_state *s = r->online->state;
    r->online->class->leave(s);
    if (r->passed < r->skip)
        return espi_fail(err, ESP_ERR_PARSE,
                         "the checkpoint has seen %" PRIu64 " examples, but the input has only %" PRIu64, r->skip,
                         r->passed);
    s->epochs++;
    s->at = 0;
    return ESP_OK;
}

static run_state begin_run(esp_online *online, const esp_run *run)
{
    espi_online_state *s = online->state;
    if (!online->continuing) s->epochs = s->at = 0;
    online->continuing = false;
    if (run != NULL) s->run = (esp_run){.threads = 1, .progress = run->progress, .user = run->user};
    return (run_state){.online = online, .run = run, .skip = s->at, .fraction = -1.0};
}

static void end_run(run_state *r)
{
    r->online->class->leave(r->online->state);
    r->online->state->run = (esp_run){0};
}

esp_status esp_online_learn(esp_online *online, const esp_dataset *data, const esp_run *run, esp_error *err)
{
    espi_online_state *s = online->state;
    if (online->idle) return ESP_OK;
    run_state r = begin_run(online, run);
    uint32_t *order = NULL;
    esp_status status = ESP_OK;
    if (s->shuffle && (order = espi_alloc(data->rows, sizeof *order)) == NULL) status = espi_no_memory(err);
    while (status == ESP_OK && s->epochs < s->wanted_epochs) {
        for (size_t i = 0; order != NULL && i < data->rows; i++) order[i] = (uint32_t)i;
        if (order != NULL) espi_epoch_shuffle(s->settings->seed, s->epochs, order, data->rows);
        const double all = (double)s->wanted_epochs * (double)data->rows;
        for (size_t i = 0; status == ESP_OK && i < data->rows; i++) {
            r.fraction = ((double)s->epochs * (double)data->rows + (double)i) / all;
            status = learn(&r, data, order != NULL ? order[i] : i, err);
        }
        if (status == ESP_OK) status = end_epoch(&r, err);
    }
    end_run(&r);
    espi_free(order);
    return status;
}

/* ------------------------------------------------------------------ streams */

static esp_status learn_row(void *context, const esp_dataset *data, size_t row, esp_error *err)
{
    return learn(context, data, row, err);
}

/* What the reader tells of its progress is that of learning. */
static int pass_progress(void *user, const char *stage, double fraction)
{
    run_state *r = user;
    (void)stage;
    r->fraction = fraction;
    return r->run->progress(r->run->user, "learning", fraction);
}

static esp_status read_epochs(esp_online *online, const char *path, const esp_read_options *options, const esp_run *run,
                              esp_error *err)
{
    espi_online_state *s = online->state;
    run_state r = begin_run(online, run);
    esp_run reading = run != NULL ? *run : (esp_run){0};
    if (reading.progress != NULL) {
        reading.progress = pass_progress;
        reading.user = &r;
    }
    esp_status status = ESP_OK;
    while (status == ESP_OK && s->epochs < s->wanted_epochs) {
        status = espi_dataset_stream(path, options, &reading, learn_row, &r, &online->bad, err);
        if (status == ESP_OK) status = end_epoch(&r, err);
    }
    end_run(&r);
    return status;
}

/* Nothing is to be learned from it, but a name that was mistyped is told. */
static esp_status only_open(const char *path, esp_error *err)
{
    espi_stream stream;
    if (strcmp(path, "-") == 0) return ESP_OK;
    const esp_status status = espi_stream_open(&stream, path, NULL, err);
    if (status == ESP_OK) espi_stream_close(&stream);
    return status;
}

esp_status esp_online_read(esp_online *online, const char *path, const esp_read_options *options, const esp_run *run,
                           esp_error *err)
{
    const espi_online_state *s = online->state;
    if (online->idle) return only_open(path, err);
    if (s->shuffle) {
        esp_dataset *data = NULL;
        esp_status status = esp_dataset_read(path, options, run, &data, err);
        if (status == ESP_OK) {
            online->bad = esp_dataset_bad_count(data);
            status = esp_online_learn(online, data, run, err);
        }
        esp_dataset_free(data);
        return status;
    }
    if (strcmp(path, "-") == 0 && s->wanted_epochs > 1)
        return espi_suggest(err,
                            espi_fail(err, ESP_ERR_PARAM,
                                      "standard input can be read once, but epochs is %zu%s; a file can be read again, "
                                      "and shuffle keeps all examples in memory",
                                      s->wanted_epochs, online->inherited ? ", as in the model" : ""),
                            online->inherited ? "epochs" : NULL, "1");
    return read_epochs(online, path, options, run, err);
}
