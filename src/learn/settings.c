/* Settings of learners: one table each, for parsing, checking, help and the model file. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "learn/learner.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned espi_capabilities(const espi_settings *settings)
{
    const espi_learner *l = settings->learner;
    return l->capabilities_with != NULL ? l->capabilities_with(settings) : l->capabilities;
}

size_t espi_one_output(const espi_settings *settings, size_t classes)
{
    (void)settings, (void)classes;
    return 1;
}

bool espi_learns_pairs(const espi_settings *settings)
{
    return settings->learner->one_vs_one != NULL && settings->learner->one_vs_one(settings);
}

const espi_setting *espi_setting_find(const espi_learner *learner, const char *name)
{
    for (const espi_setting *s = learner->settings; s->info.name != NULL; s++)
        if (strcmp(s->info.name, name) == 0) return s;
    return NULL;
}

static bool is_text(const espi_setting *s) { return s->info.kind == ESP_KIND_TEXT || s->info.kind == ESP_KIND_WEIGHTS; }

static char **text_of(espi_settings *settings, const espi_setting *s)
{
    return (char **)(void *)((char *)settings + s->offset);
}

bool espi_settings_given(const espi_settings *settings, const void *field)
{
    const espi_setting *all = settings->learner->settings;
    const size_t offset = (size_t)((const char *)field - (const char *)settings);
    for (size_t i = 0; all[i].info.name != NULL; i++)
        if (all[i].offset == offset) return (settings->given >> i & 1) != 0;
    return false;
}

/* ----------------------------------------------------------------- values */

static esp_status refuse(const espi_setting *s, const char *value, esp_error *err)
{
    char quoted[96];
    const bool number = s->info.kind == ESP_KIND_NUMBER || s->info.kind == ESP_KIND_WHOLE;
    if (number && strtod(value, NULL) > s->high && strstr(s->info.range, "at most") == NULL)
        return espi_fail(err, ESP_ERR_PARAM, "%s is %s; allowed is %s, but at most %g", s->info.name,
                         espi_quote(value, strlen(value), quoted), s->info.range, s->high);
    return espi_fail(err, ESP_ERR_PARAM, "%s is %s; allowed is %s", s->info.name,
                     espi_quote(value, strlen(value), quoted), s->info.range);
}

static esp_status set_text(char **field, const espi_setting *s, const char *value, esp_error *err)
{
    if (s->check != NULL) {
        const esp_status status = s->check(value, err);
        if (status != ESP_OK) return status;
    }
    char *copy = *value != '\0' ? espi_copy_text(value, strlen(value)) : NULL;
    if (*value != '\0' && copy == NULL) return espi_no_memory(err);
    espi_free(*field);
    *field = copy;
    return ESP_OK;
}

static esp_status set_choice(void *field, const espi_setting *s, const char *value, esp_error *err)
{
    espi_choice choice = 0;
    while (s->choices[choice] != NULL && strcmp(value, s->choices[choice]) != 0) choice++;
    if (s->choices[choice] == NULL) return refuse(s, value, err);
    memcpy(field, &choice, sizeof choice);
    return ESP_OK;
}

static esp_status set_number(void *field, const espi_setting *s, const char *value, esp_error *err)
{
    double number;
    const bool whole = s->info.kind == ESP_KIND_WHOLE;
    if (!espi_number_parse(value, strlen(value), &number) || number > s->high || number < s->low ||
        (s->low_open && number == s->low) || (whole && floor(number) != number))
        return refuse(s, value, err);
    const size_t count = whole ? (size_t)number : 0;
    if (whole) memcpy(field, &count, sizeof count);
    else memcpy(field, &number, sizeof number);
    return ESP_OK;
}

static esp_status set_value(espi_settings *settings, const espi_setting *s, const char *value, esp_error *err)
{
    void *field = (char *)settings + s->offset;
    const bool flag = strcmp(value, "1") == 0;
    switch (s->info.kind) {
    case ESP_KIND_TEXT:
    case ESP_KIND_WEIGHTS: return set_text(text_of(settings, s), s, value, err);
    case ESP_KIND_CHOICE: return set_choice(field, s, value, err);
    case ESP_KIND_FLAG:
        if (!flag && strcmp(value, "0") != 0) return refuse(s, value, err);
        memcpy(field, &flag, sizeof flag);
        return ESP_OK;
    default: return set_number(field, s, value, err);
    }
}

static esp_status set_seed(espi_settings *settings, const char *value, esp_error *err)
{
    char *end, quoted[96];
    errno = 0;
    const unsigned long long seed = strtoull(value, &end, 10);
    if (*value >= '0' && *value <= '9' && *end == '\0' && errno == 0) {
        settings->seed = seed;
        return ESP_OK;
    }
    return espi_fail(err, ESP_ERR_PARAM, "seed is %s; allowed is a whole number from 0 to 2^64 - 1",
                     espi_quote(value, strlen(value), quoted));
}

static esp_status unknown_setting(const espi_learner *learner, const char *name, esp_error *err)
{
    const espi_setting *all = learner->settings;
    const char *names[64];
    char list[300] = "", quoted[96];
    size_t count = 0;
    for (; all[count].info.name != NULL && count < sizeof names / sizeof *names; count++) {
        names[count] = all[count].info.name;
        if (count > 0) espi_append(list, sizeof list, ", ");
        espi_append(list, sizeof list, names[count]);
    }
    const char *near = esp_nearest(name, names, count);
    espi_quote(name, strlen(name), quoted);
    if (near != NULL)
        return espi_fail(err, ESP_ERR_PARAM, "%s has no setting %s; did you mean '%s'?", learner->name, quoted, near);
    return espi_fail(err, ESP_ERR_PARAM, "%s has no setting %s; it has %s", learner->name, quoted, list);
}

esp_status espi_settings_set(espi_settings *settings, const char *name, const char *value, bool *unknown,
                             esp_error *err)
{
    const espi_setting *s = espi_setting_find(settings->learner, name);
    if (unknown != NULL) *unknown = s == NULL && strcmp(name, "seed") != 0;
    if (s == NULL)
        return strcmp(name, "seed") == 0 ? set_seed(settings, value, err)
                                         : unknown_setting(settings->learner, name, err);
    settings->given |= UINT64_C(1) << (s - settings->learner->settings);
    return set_value(settings, s, value, err);
}

/* ----------------------------------------------------------- all settings */

void espi_settings_free(espi_settings *settings)
{
    if (settings == NULL) return;
    for (const espi_setting *s = settings->learner->settings; s->info.name != NULL; s++)
        if (is_text(s)) espi_free(*text_of(settings, s));
    espi_free(settings);
}

/* All at their defaults. */
static esp_status start(const espi_learner *learner, espi_settings **out, esp_error *err)
{
    espi_settings *settings = *out = espi_alloc_zero(1, learner->settings_size);
    if (settings == NULL) return espi_no_memory(err);
    settings->learner = learner;
    settings->seed = 1;
    esp_status status = ESP_OK;
    for (const espi_setting *s = learner->settings; status == ESP_OK && s->info.name != NULL; s++)
        status = set_value(settings, s, s->info.default_value, err);
    return status;
}

static esp_status finish(espi_settings **settings, esp_status status, esp_error *err)
{
    if (status == ESP_OK && (*settings)->learner->check != NULL) status = (*settings)->learner->check(*settings, err);
    if (status == ESP_OK) return ESP_OK;
    espi_settings_free(*settings);
    *settings = NULL;
    return status;
}

esp_status espi_settings_new(const espi_learner *learner, const esp_setting *given, size_t count, espi_settings **out,
                             esp_error *err)
{
    esp_status status = start(learner, out, err);
    for (size_t i = 0; status == ESP_OK && i < count; i++)
        status = espi_settings_set(*out, given[i].name, given[i].value, NULL, err);
    return finish(out, status, err);
}

espi_settings *espi_settings_copy(const espi_settings *settings)
{
    espi_settings *copy = espi_alloc(1, settings->learner->settings_size);
    if (copy == NULL) return NULL;
    memcpy(copy, settings, settings->learner->settings_size);
    bool ok = true;
    for (const espi_setting *s = settings->learner->settings; s->info.name != NULL; s++) {
        if (!is_text(s)) continue;
        char **text = text_of(copy, s), *was = *text;
        *text = ok && was != NULL ? espi_copy_text(was, strlen(was)) : NULL;
        ok = ok && (was == NULL || *text != NULL);
    }
    if (ok) return copy;
    espi_settings_free(copy);
    return NULL;
}

/* Whether a setting has the same value in both. */
static bool is_same(const espi_setting *s, const espi_settings *a, const espi_settings *b)
{
    const char *x = (const char *)a + s->offset, *y = (const char *)b + s->offset;
    const char *p, *q;
    switch (s->info.kind) {
    case ESP_KIND_WHOLE: return memcmp(x, y, sizeof(size_t)) == 0;
    case ESP_KIND_FLAG: return memcmp(x, y, sizeof(bool)) == 0;
    case ESP_KIND_CHOICE: return memcmp(x, y, sizeof(espi_choice)) == 0;
    case ESP_KIND_TEXT:
    case ESP_KIND_WEIGHTS:
        memcpy(&p, x, sizeof p);
        memcpy(&q, y, sizeof q);
        return p == q || (p != NULL && q != NULL && strcmp(p, q) == 0);
    default: return memcmp(x, y, sizeof(double)) == 0;
    }
}

bool espi_settings_start_from(const espi_settings *settings, const espi_settings *before)
{
    if (settings->seed != before->seed) return false;
    for (const espi_setting *s = settings->learner->settings; s->info.name != NULL; s++)
        if (!s->warm_start && !is_same(s, settings, before)) return false;
    return true;
}

/* ------------------------------------------------------------------ texts */

static void add_value(espi_text *text, const espi_settings *settings, const espi_setting *s)
{
    const char *field = (const char *)settings + s->offset;
    double number;
    size_t whole;
    bool flag;
    espi_choice choice;
    const char *string;
    char digits[32];
    switch (s->info.kind) {
    case ESP_KIND_WHOLE:
        memcpy(&whole, field, sizeof whole);
        snprintf(digits, sizeof digits, "%zu", whole);
        espi_text_string(text, digits);
        break;
    case ESP_KIND_FLAG:
        memcpy(&flag, field, sizeof flag);
        espi_text_string(text, flag ? "1" : "0");
        break;
    case ESP_KIND_CHOICE:
        memcpy(&choice, field, sizeof choice);
        espi_text_string(text, s->choices[choice]);
        break;
    case ESP_KIND_TEXT:
    case ESP_KIND_WEIGHTS:
        memcpy(&string, field, sizeof string);
        espi_text_string(text, string != NULL ? string : "");
        break;
    default:
        memcpy(&number, field, sizeof number);
        espi_text_number(text, number);
        break;
    }
}

static void add_seed(espi_text *text, const espi_settings *settings)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, settings->seed);
    espi_text_string(text, digits);
}

char *espi_settings_text(const espi_settings *settings)
{
    espi_text text = {0};
    if (settings->learner->online != NULL) { /* whoever goes on with it shuffles on */
        espi_text_string(&text, "seed=");
        add_seed(&text, settings);
    }
    for (const espi_setting *s = settings->learner->settings; s->info.name != NULL; s++) {
        if (s->unrecorded) continue;
        if (text.size > 0) espi_text_string(&text, " ");
        espi_text_string(&text, s->info.name);
        espi_text_string(&text, "=");
        add_value(&text, settings, s);
    }
    return espi_text_take(&text);
}

/* The value of the setting `name`, if *text stands at it: up to a blank or, of the last one, to the end; else NULL. */
static esp_status take_value(const char **text, const char *name, bool last, char **value, esp_error *err)
{
    const size_t size = strlen(name);
    *value = NULL;
    if (strncmp(*text, name, size) != 0 || (*text)[size] != '=') return ESP_OK;
    const char *begin = *text + size + 1;
    const size_t length = last ? strlen(begin) : strcspn(begin, " ");
    *text = begin + length + (begin[length] == ' ');
    *value = espi_copy_text(begin, length);
    return *value != NULL ? ESP_OK : espi_no_memory(err);
}

esp_status espi_settings_read(const espi_learner *learner, const char *text, espi_settings **out, esp_error *err)
{
    char *value = NULL, quoted[96];
    esp_status status = start(learner, out, err);
    if (status == ESP_OK) status = take_value(&text, "seed", false, &value, err);
    if (status == ESP_OK && value != NULL) status = set_seed(*out, value, err);
    espi_free(value);
    for (const espi_setting *s = learner->settings; status == ESP_OK && s->info.name != NULL; s++) {
        status = take_value(&text, s->info.name, s[1].info.name == NULL, &value, err);
        if (status == ESP_OK && value != NULL) status = set_value(*out, s, value, err);
        espi_free(value);
    }
    if (status == ESP_OK && *text != '\0')
        status = espi_fail(err, ESP_ERR_PARAM, "the model has the setting %s, which %s does not have or not there",
                           espi_quote(text, strcspn(text, "= "), quoted), learner->name);
    return finish(out, status, err);
}

/* Adds "name=value, not value" if they differ. */
static void add_difference(espi_text *out, const char *name, const espi_text *was, const espi_text *is)
{
    if (was->size == is->size && (was->size == 0 || memcmp(was->bytes, is->bytes, was->size) == 0)) return;
    if (out->size > 0) espi_text_string(out, "; ");
    espi_text_string(out, name);
    espi_text_string(out, "=");
    if (was->size > 0) espi_text_add(out, was->bytes, was->size);
    else espi_text_string(out, "none");
    espi_text_string(out, ", not ");
    if (is->size > 0) espi_text_add(out, is->bytes, is->size);
    else espi_text_string(out, "none");
}

void espi_settings_differ(const espi_settings *checkpoint, const espi_settings *given, espi_text *out)
{
    const espi_setting *s = given->learner->settings;
    for (bool last = false; !last; s++) {
        espi_text was = {0}, is = {0};
        last = s->info.name == NULL; /* the seed is in no table */
        if (last) add_seed(&was, checkpoint), add_seed(&is, given);
        else add_value(&was, checkpoint, s), add_value(&is, given, s);
        out->failed = out->failed || was.failed || is.failed;
        add_difference(out, last ? "seed" : s->info.name, &was, &is);
        espi_text_free(&was);
        espi_text_free(&is);
    }
}
