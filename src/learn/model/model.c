#include "learn/model/model.h"

#include "base/alloc.h"
#include "base/status.h"
#include "learn/model/decision.h"

#include <stdlib.h>
#include <string.h>

esp_model *espi_model_new(void)
{
    esp_model *m = espi_alloc_zero(1, sizeof *m);
    pthread_mutexattr_t kind; /* a thread that asks a model it is preparing gets an answer, not a standstill */
    if (m == NULL) return NULL;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&m->lock, &kind);
    pthread_mutexattr_destroy(&kind);
    return m;
}

esp_status espi_model_begin(const espi_settings *settings, const char *const *class_name, size_t classes, char *summary,
                            esp_model **out, esp_error *err)
{
    const char *name = settings->learner->name;
    esp_model *m = espi_model_new();
    *out = NULL;
    if (m == NULL) {
        espi_free(summary);
        return espi_no_memory(err);
    }
    m->learner = espi_copy_text(name, strlen(name));
    m->settings = espi_settings_text(settings);
    m->summary = summary;
    if (classes > 0) m->class_name = espi_alloc_zero(classes, sizeof *m->class_name);
    bool ok =
        m->learner != NULL && m->settings != NULL && m->summary != NULL && (classes == 0 || m->class_name != NULL);
    for (; ok && m->classes < classes; m->classes++) {
        m->class_name[m->classes] = espi_copy_text(class_name[m->classes], strlen(class_name[m->classes]));
        ok = m->class_name[m->classes] != NULL;
    }
    if (ok) *out = m;
    else esp_model_free(m);
    return ok ? ESP_OK : espi_no_memory(err);
}

static void free_history(espi_history *h)
{
    if (h == NULL) return;
    espi_free(h->step);
    espi_free(h->change);
    espi_free(h->tally);
    espi_free(h);
}

static void free_gaussian(espi_gaussian *p)
{
    if (p == NULL) return;
    espi_free(p->curvature);
    espi_free(p->reduction);
    espi_free(p);
}

void espi_variants_free(esp_kernel **variant, size_t count)
{
    for (size_t i = 0; variant != NULL && i < count; i++) esp_kernel_free(variant[i]);
    espi_free(variant);
}

void esp_model_free(esp_model *m)
{
    if (m == NULL) return;
    espi_scorer_free(m->scorer);
    espi_posterior_free(m->posterior);
    for (size_t k = 0; m->decision != NULL && k < m->outputs; k++) espi_decision_free(&m->decision[k]);
    espi_free(m->decision);
    espi_variants_free(m->variant, m->outputs);
    pthread_mutex_destroy(&m->lock);
    for (size_t i = 0; m->class_name != NULL && i < m->classes; i++) espi_free(m->class_name[i]);
    espi_free(m->class_name);
    espi_free(m->learner);
    espi_free(m->settings);
    espi_free(m->summary);
    esp_kernel_free(m->kernel);
    esp_dataset_free(m->support);
    espi_free(m->coefficient);
    espi_free(m->bias);
    espi_free(m->platt);
    free_history(m->history);
    free_gaussian(m->gaussian);
    espi_free(m);
}

const char *esp_model_kernel(const esp_model *m) { return esp_kernel_text(m->kernel); }
const char *esp_model_learner(const esp_model *m) { return m->learner; }
size_t esp_model_classes(const esp_model *m) { return m->classes; }
const char *esp_model_class(const esp_model *m, size_t index)
{
    return index < m->classes ? m->class_name[index] : NULL;
}

bool esp_model_is_finished(const esp_model *m)
{
    static const char key[] = " epochs=";
    const char *wanted = m->history != NULL && m->settings != NULL ? strstr(m->settings, key) : NULL;
    if (wanted == NULL) return true;
    return m->history->at == 0 && m->history->epochs >= strtoull(wanted + sizeof key - 1, NULL, 10);
}
