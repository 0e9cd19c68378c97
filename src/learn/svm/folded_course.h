/* A run of the folded solver (folded.h) over problems that share their examples: what folded.c, its stages, rounds and
 * passes, and folded_fit.c, which poses the problems and makes a fit of them, both know. */
#ifndef ESPI_LEARN_SVM_FOLDED_COURSE_H
#define ESPI_LEARN_SVM_FOLDED_COURSE_H

#include "learn/svm/folded.h"

enum { ESPI_COURSE_CHUNK = 64 }; /* neighbours come into view together: they share much */

typedef struct espi_course {
    espi_folded f;
    espi_training *training;
    size_t first; /* problem */
    const espi_machine_settings *settings;
    uint64_t limit;     /* of moves */
    const esp_run *run; /* who is told how it goes */
    double fraction;    /* what was told last */
    esp_run asking;     /* of all that works for it: only whether to stop is asked */
    double began;       /* in seconds, and ... */
    uint64_t looks;     /* ... how many there were */
    uint32_t *chunk;    /* numbers of chunks, in random order */
    size_t chunks;
    espi_folded_checkpoint *checkpoint; /* NULL: none is kept */
    bool converged;
} espi_course;

/* From the state that it is in to the end. */
esp_status espi_course_run(espi_course *s, esp_error *err);

/* What the last verification found, of all problems, and whether that is enough. */
espi_certificate espi_course_certificate(const espi_folded *f);
bool espi_course_is_solved(const espi_course *s, const espi_certificate *c);
/* Whether rounding is in the way of anything closer. */
bool espi_course_is_rounding(const espi_folded_state *state);

#endif
