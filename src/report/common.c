/* What several parts of a report ask. */
#include "report/report.h"

#include <math.h>
#include <string.h>

const espi_column *espi_report_column(const esp_dataset *data, const char *name, esp_column_type type)
{
    size_t index;
    if (espi_find_column(data, name, strlen(name), &index) && data->column[index].type == type)
        return &data->column[index];
    for (index = 0; index < data->columns; index++)
        if (data->column[index].type == type) return &data->column[index];
    return NULL;
}

double espi_report_margin(const esp_predictions *p, size_t i)
{
    const double *score = p->column + i * p->columns;
    if (p->columns == 1) return fabs(score[0]);
    double next = -INFINITY;
    for (size_t c = 0; c < p->columns; c++)
        if (c != p->winner[i]) next = fmax(next, score[c]);
    return score[p->winner[i]] - next;
}
