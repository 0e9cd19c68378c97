/* Reports: what is gathered of a model and of data, and the parts of the page's JSON that each file writes. The page
 * itself (report.html, report.css, *.js) is part of the library; all that it shows comes from this JSON. */
#ifndef ESPI_REPORT_REPORT_H
#define ESPI_REPORT_REPORT_H

#include "learn/model/model.h"
#include "learn/predictions.h"
#include "report/drawn.h"

typedef struct espi_tree_sizes { /* of each subtree of a column; NULL until they are needed */
    size_t *nodes;
    double *matches; /* pairs of its nodes with subtrees of the support examples that have the same production */
} espi_tree_sizes;

typedef struct espi_report {
    const esp_model *model;
    const esp_dataset *data; /* NULL: the model alone */
    esp_report_options options;
    const esp_run *run;
    esp_predictions *predictions; /* from here on: with data only */
    esp_metrics *metrics;         /* NULL: no targets to judge by */
    uint32_t *actual;             /* class per example, ESPI_NO_CLASS where the model has no such; NULL as above */
    double *target;               /* the same of a regression */
    double *variance;             /* of the target, per example of a Gaussian process; NULL: not known */
    char *no_metrics;             /* why not, though there are targets; or NULL */
    espi_tree_sizes *tree_sizes;  /* per column; NULL until they are needed */
    espi_text json;
} espi_report;

enum {
    ESPI_FEATURE_TEXT = 2000, /* bytes of a feature's text, for large fragments and for support examples */
    ESPI_EXAMPLE_TEXT = 400   /* bytes of an example's text */
};

typedef struct espi_shown { /* a decision function of an explanation */
    esp_explanation *of;
    size_t output;
    const char *class; /* NULL for a regression */
} espi_shown;

/* How sure a prediction is: the winner's score above the next one's, or the score of two classes without its sign. */
double espi_report_margin(const esp_predictions *predictions, size_t example);

/* The column of the data that stands for one of the support examples: that of its name or, where a kernel leaves the
 * name out, the first of its type. There is one where the data fit the model. */
const espi_column *espi_report_column(const esp_dataset *data, const char *name, esp_column_type type);

/* Each adds members to the object that is open in report->json. */
esp_status espi_report_model(espi_report *report, esp_error *err);
esp_status espi_report_quality(espi_report *report, esp_error *err);
esp_status espi_report_features(espi_report *report, const esp_explainer *explainer, esp_error *err);
/* `explainer` may be NULL: decisions cannot be explained. */
esp_status espi_report_examples(espi_report *report, const esp_explainer *explainer, esp_error *err);
esp_status espi_report_profile(espi_report *report, esp_error *err);
/* The words of an example, by the column that it is shown by, each with what it contributes to the functions; nothing
 * where scores are no sums over the words of that column. */
esp_status espi_report_words(espi_report *report, const esp_explainer *explainer, size_t example,
                             const espi_column *column, const espi_shown *shown, size_t functions, esp_error *err);

/* Which examples are worth looking at: at most `most`, written to `example`, *count of them. Of classes: in turn for
 * each class the surest errors, up to half of `most` while there is enough else, then the right ones that are the least
 * sure; without targets the least sure. Of numbers: as many of the largest errors as of the smallest; without targets
 * of the largest and the smallest values. */
esp_status espi_report_choose(const espi_report *report, size_t most, size_t *example, size_t *count, esp_error *err);

/* Examples of the data that equal an earlier one, or a support example. */
typedef struct espi_duplicates {
    size_t within;      /* examples that equal an earlier one ... */
    size_t conflicting; /* ... whose target is another one */
    size_t support;     /* examples that equal a support example in all columns that the model uses */
} espi_duplicates;
esp_status espi_report_duplicates(const esp_model *model, const esp_dataset *data, espi_duplicates *out,
                                  esp_error *err);

/* How often targets lie in the intervals that a normal distribution promises; adds an array of [level, share]. */
void espi_report_coverage(espi_text *json, const double *target, const double *mean, const double *variance,
                          size_t count);

/* Values in bins of equal width. A zeroed one is empty. */
enum { ESPI_BINS = 32 };
typedef struct espi_histogram {
    double low, high;
    size_t bins, bin[ESPI_BINS];
    size_t count;
} espi_histogram;
/* Bins for values between low and high; of whole numbers, edges lie half way between two. */
espi_histogram espi_histogram_between(double low, double high, bool whole);
void espi_histogram_add(espi_histogram *histogram, double value);
/* The array of its bins. */
void espi_histogram_bins(espi_text *json, const espi_histogram *histogram);

/* Writes the page with this JSON in it; the file appears complete or not at all. */
esp_status espi_report_page(const espi_text *json, const char *path, esp_error *err);

/* The page before and behind the JSON. */
extern const unsigned char espi_page_head[], espi_page_tail[];
extern const size_t espi_page_head_size, espi_page_tail_size;

#endif
