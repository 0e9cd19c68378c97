#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "learn/targets.h"

#include <string.h>

bool espi_weight_next(const char **text, const char **label, size_t *size, double *weight)
{
    const char *entry = *text;
    const size_t length = strcspn(entry, ",");
    size_t equal = length;
    while (equal > 0 && entry[equal - 1] != '=') equal--;
    if (equal == 0 || !espi_number_parse(entry + equal, length - equal, weight) || !(*weight > 0.0)) return false;
    *label = entry;
    *size = equal - 1;
    *text = entry + length + (entry[length] == ',');
    return true;
}

esp_status espi_weights_parse(const char *text, const espi_targets *t, double *weight, esp_error *err)
{
    const char *label;
    size_t size;
    double value;
    char quoted[96];
    while (*text != '\0') {
        size_t class = 0;
        if (!espi_weight_next(&text, &label, &size, &value))
            return espi_fail(err, ESP_ERR_PARAM,
                             "class-weight has %s; allowed is balanced, or label=weight,... with weights > 0",
                             espi_quote(text, strcspn(text, ","), quoted));
        while (class < t->classes && !(strlen(t->name[class]) == size && memcmp(t->name[class], label, size) == 0))
            class ++;
        if (class == t->classes)
            return espi_fail(err, ESP_ERR_PARAM, "class-weight names the class %s, which the data do not have",
                             espi_quote(label, size, quoted));
        weight[class] = value;
    }
    return ESP_OK;
}

esp_status espi_weights_check(const char *text, const espi_targets *t, esp_error *err)
{
    if (text == NULL) return ESP_OK;
    double *weight = espi_alloc(t->classes, sizeof *weight);
    if (weight == NULL) return espi_no_memory(err);
    const esp_status status = espi_weights_parse(text, t, weight, err);
    espi_free(weight);
    return status;
}
