#include "mine/search.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

esp_status espi_search_start(espi_search *s, size_t rows, const uint8_t *positive, const bool *used,
                             const espi_mine_options *options, const esp_run *run, esp_error *err)
{
    *s = (espi_search){.options = options, .run = run, .margins = {.metric = options->metric}};
    size_t examples = 0, positives = 0;
    for (size_t i = 0; i < rows; i++) {
        if (used != NULL && !used[i]) continue;
        examples++;
        positives += positive[i] != 0;
    }
    if (positives == 0 || positives == examples)
        return espi_fail(err, ESP_ERR_PARAM, "%zu of %zu examples are positive; mining needs some of both classes",
                         positives, examples);
    s->margins.examples = (double)examples;
    s->margins.positive = (double)positives;
    s->min_support = options->min_support > 0 ? options->min_support : 1;
    s->max_length = options->max_length > 0 ? options->max_length : SIZE_MAX;
    s->threshold = espi_metric_threshold(&s->margins, options->tau);
    atomic_init(&s->rising, s->threshold);
    if (options->top > 0 && (s->heap = espi_alloc(options->top, sizeof *s->heap)) == NULL) return espi_no_memory(err);
    pthread_mutex_init(&s->lock, NULL);
    return ESP_OK;
}

void espi_search_free(espi_search *s)
{
    if (s->min_support > 0) pthread_mutex_destroy(&s->lock);
    espi_free(s->heap);
    *s = (espi_search){0};
}

/* Sinks heap[at] until its children are not smaller. */
static void sink(double *heap, size_t count, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child < count && child <= 2 * at + 2; child++)
            if (heap[child] < heap[least]) least = child;
        if (least == at) return;
        const double t = heap[at];
        heap[at] = heap[least];
        heap[least] = t;
        at = least;
    }
}

/* Takes a statistic among the best K and raises the threshold to the least of them. */
static void raise_threshold(espi_search *s, double statistic)
{
    pthread_mutex_lock(&s->lock);
    const size_t top = s->options->top;
    if (s->heaped < top) {
        s->heap[s->heaped++] = statistic;
        if (s->heaped == top)
            for (size_t i = top; i-- > 0;) sink(s->heap, top, i);
    } else if (statistic > s->heap[0]) {
        s->heap[0] = statistic;
        sink(s->heap, top, 0);
    }
    if (s->heaped == top && s->heap[0] > atomic_load(&s->rising)) atomic_store(&s->rising, s->heap[0]);
    pthread_mutex_unlock(&s->lock);
}

/* Rounding must not cut off what reaches the threshold exactly. */
static bool below(double bound, double threshold) { return bound * (1.0 + 1e-9) + 1e-12 < threshold; }

bool espi_search_hopeful(const espi_search *s, uint32_t x, uint32_t y)
{
    if (x < s->min_support) return false;
    return s->options->no_pruning || !below(espi_metric_bound(&s->margins, x, y), s->threshold);
}

espi_verdict espi_search_judge(const espi_search *s, size_t length, uint32_t x, uint32_t y, espi_mine_stats *stats)
{
    espi_verdict verdict = {0};
    stats->visited++;
    if (x < s->min_support) return verdict;
    const double threshold = atomic_load_explicit(&s->rising, memory_order_relaxed);
    verdict.statistic = espi_metric_value(&s->margins, x, y);
    verdict.keep = verdict.statistic >= threshold;
    if (length >= s->max_length) return verdict;
    verdict.grow = s->options->no_pruning || !below(espi_metric_bound(&s->margins, x, y), threshold);
    stats->pruned += !verdict.grow;
    return verdict;
}

/* ------------------------------------------------------------------ records */

/* What a step takes in the record and in the set that is made of it. */
enum { STEP_BYTES = sizeof(espi_step) + 12 * sizeof(uint32_t) };

/* Steps at the end that lead to nothing kept, now that one of this depth follows. */
static void forget_idle(espi_record *r, uint32_t depth)
{
    while (r->steps > 0 && !r->step[r->steps - 1].kept && r->step[r->steps - 1].depth >= depth) r->steps--;
}

static esp_status too_many(const espi_search *s, esp_error *err)
{
    char limit[32];
    return espi_fail(err, ESP_ERR_MEMORY,
                     "the patterns that reach the threshold need more than the limit of %s; raise tau or the least "
                     "support, or limit the length",
                     espi_size_text((double)s->run->memory, limit));
}

esp_status espi_record_add(espi_search *s, espi_record *r, const espi_step *step, esp_error *err)
{
    forget_idle(r, step != NULL ? step->depth : 0);
    if (step == NULL) return ESP_OK;
    if (!espi_reserve(&r->step, &r->capacity, r->steps + 1, sizeof *r->step)) return espi_no_memory(err);
    r->step[r->steps++] = *step;
    if (!step->kept) return ESP_OK;
    if (s->options->top > 0) {
        raise_threshold(s, step->statistic);
        return ESP_OK; /* what stays in the end is bounded by the number that is wanted */
    }
    /* Only steps that are sure to stay count, so that the limit does not depend on which thread is where. */
    const size_t more = (r->steps - r->counted) * STEP_BYTES;
    const size_t bytes = atomic_fetch_add_explicit(&s->bytes, more, memory_order_relaxed) + more;
    r->counted = r->steps;
    return s->run != NULL && s->run->memory > 0 && bytes > s->run->memory ? too_many(s, err) : ESP_OK;
}

/* Drops steps that are not kept and lead to nothing kept: the next step that stays is not below them. */
static void strip(espi_record *r)
{
    size_t to = r->steps;
    uint32_t next = 0; /* depth of the next step that stays */
    for (size_t i = r->steps; i-- > 0;) {
        if (!r->step[i].kept && next <= r->step[i].depth) continue;
        next = r->step[i].depth;
        r->step[--to] = r->step[i];
    }
    r->steps -= to;
    if (r->steps > 0) memmove(r->step, r->step + to, r->steps * sizeof *r->step);
}

/* --------------------------------------------------------------------- items */

typedef struct item {
    size_t number;
    uint32_t x;
    espi_record record;
} item;

typedef struct items {
    espi_mine_item mine;
    void *context;
    item *item; /* in the order in which they are done */
    size_t count;
} items;

static esp_status mine_item(void *context, size_t at, const espi_worker *worker, esp_error *err)
{
    items *s = context;
    return s->mine(s->context, s->item[at].number, worker, &s->item[at].record, err);
}

static int large_first(const void *x, const void *y)
{
    const item *a = x, *b = y;
    if (a->x != b->x) return a->x > b->x ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static int last_first(const void *x, const void *y)
{
    const item *a = x, *b = y;
    return (a->number < b->number) - (a->number > b->number);
}

/* All records in one, those of the last item first, without what has fallen below the threshold meanwhile. */
static esp_status join(const espi_search *search, items *s, espi_record *all, esp_error *err)
{
    size_t steps = 0;
    for (size_t i = 0; i < s->count; i++) steps += s->item[i].record.steps;
    if (!espi_reserve(&all->step, &all->capacity, steps, sizeof *all->step)) return espi_no_memory(err);
    if (s->count > 1) qsort(s->item, s->count, sizeof *s->item, last_first);
    for (size_t i = 0; i < s->count; i++) {
        espi_record *r = &s->item[i].record;
        if (r->steps > 0) memcpy(all->step + all->steps, r->step, r->steps * sizeof *r->step);
        all->steps += r->steps;
        espi_free(r->step);
        *r = (espi_record){0};
    }
    const double least = atomic_load(&search->rising);
    for (size_t i = 0; i < all->steps; i++) all->step[i].kept = all->step[i].kept && all->step[i].statistic >= least;
    strip(all);
    return ESP_OK;
}

esp_status espi_search_run(espi_search *search, size_t count, const void *frame, size_t size, espi_mine_item mine,
                           void *context, espi_record *all, esp_error *err)
{
    items s = {.mine = mine, .context = context, .count = count};
    *all = (espi_record){0};
    search->items = count;
    s.item = espi_alloc_zero(count, sizeof *s.item);
    if (s.item == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        const espi_step *step = (const void *)((const char *)frame + i * size);
        s.item[i] = (item){.number = i, .x = step->x};
    }
    if (count > 1) qsort(s.item, count, sizeof *s.item, large_first);
    esp_status status = espi_parallel(search->run, "mining", count, mine_item, &s, err);
    if (status == ESP_OK) status = join(search, &s, all, err);
    for (size_t i = 0; i < count; i++) espi_free(s.item[i].record.step);
    espi_free(s.item);
    return status;
}
