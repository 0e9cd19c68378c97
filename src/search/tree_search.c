/* Bounds first, then exact values in the order of bounds, until no bound reaches the worst of the best.
 *
 * The bound of a tree x is sum_g a_g(q) a_g(x), times sqrt(K(q, q) K(x, x)) where nothing is normalised. If only
 * similarities of s or more are wanted, the longest lists of postings stay closed as long as their part R of the query,
 * R^2 = sum_{closed g} a_g(q)^2, is below s: no tree that has only these can reach s, and the others by
 *
 *     sum_{open g} a_g(q) a_g(x)  +  R sqrt(1 - sum_{open g} a_g(x)^2)          (Cauchy-Schwarz) */
#include "search/tree_search.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdlib.h>

/* Bounds are sums of rounded numbers, and similarities are rounded when they are told. */
static const double slack = 1.0 + 1e-9;

void espi_tree_search_free(espi_tree_search *s)
{
    espi_tree_query_free(&s->query);
    espi_free(s->bound);
    espi_free(s->mass);
    espi_free(s->met);
    espi_free(s->candidate);
    espi_free(s->opened);
    *s = (espi_tree_search){0};
}

static bool fit(espi_tree_search *s, size_t trees)
{
    if (s->trees == trees) return true;
    espi_free(s->bound);
    espi_free(s->mass);
    espi_free(s->met);
    s->bound = espi_alloc_zero(trees, sizeof *s->bound);
    s->mass = espi_alloc_zero(trees, sizeof *s->mass);
    s->met = espi_alloc(trees, sizeof *s->met);
    s->trees = s->bound != NULL && s->mass != NULL && s->met != NULL ? trees : 0;
    return s->trees > 0;
}

esp_status espi_tree_search_value(espi_tree_search *s, const esp_index *x, size_t tree, double *value, esp_error *err)
{
    const esp_status status = espi_tree_query_value(&s->query, tree, x->norm, value, err);
    s->computed++;
    if (status != ESP_OK) return status;
    *value = espi_similarity(*value * x->weight);
    return isfinite(*value) ? ESP_OK : espi_fail(err, ESP_ERR_RANGE, "a similarity is too large for a number");
}

/* The longest lists first. */
static int longer(const void *x, const void *y)
{
    const struct espi_opened *a = x, *b = y;
    const size_t m = a->end - a->first, n = b->end - b->first;
    return m != n ? (m < n) - (m > n) : (a->first > b->first) - (a->first < b->first);
}

/* The lists to open, opened[*from .. *count), and the part of the query that stays closed. */
static esp_status choose_lists(espi_tree_search *s, const esp_index *x, double least, size_t *from, size_t *count,
                               double *closed, esp_error *err)
{
    const espi_block_maker *m = &s->query.maker;
    if (!espi_reserve(&s->opened, &s->opened_room, m->blocks, sizeof *s->opened)) return espi_no_memory(err);
    *count = *from = 0;
    *closed = 0.0;
    for (size_t i = 0; i < m->blocks; i++) {
        struct espi_opened list;
        if (m->block[i].group >= x->trees.groups) continue;
        if (!espi_postings_of(&x->trees, m->block[i].group, &list.first, &list.end))
            return espi_index_wrong(x->file, err);
        list.weight = espi_block_weight(m->block[i].value, s->query.self);
        if (list.end > list.first) s->opened[(*count)++] = list;
    }
    /* Only of normalised kernels a part of the query bounds what it can give. */
    if (!x->norm || !(least > 0.0)) return ESP_OK;
    if (*count > 1) qsort(s->opened, *count, sizeof *s->opened, longer);
    /* To close less than could be closed makes the bounds of the others closer. */
    const double part = least / x->weight / slack, room = 0.5 * part * part;
    double sum = 0.0;
    for (; *from < *count; (*from)++) {
        const double square = s->opened[*from].weight * s->opened[*from].weight;
        if (!(sum + square < room)) break;
        sum += square;
    }
    *closed = sqrt(sum);
    return ESP_OK;
}

/* Adds up the postings of the open lists before `limit`; *met trees have some. False: wrong. */
static bool add_lists(espi_tree_search *s, const esp_index *x, size_t from, size_t count, size_t limit, bool mass,
                      size_t *met)
{
    for (size_t i = from; i < count; i++) {
        const struct espi_opened *list = &s->opened[i];
        for (size_t p = list->first; p < list->end; p++) {
            const espi_tree_posting post = x->trees.posting[p];
            const double weight = (double)post.weight;
            if (post.tree >= limit) {
                if (post.tree >= s->trees) return false;
                break; /* lists are in the order of trees */
            }
            if (s->bound[post.tree] == 0.0) {
                if (*met == s->trees) return false;
                s->met[(*met)++] = post.tree;
            }
            s->bound[post.tree] += list->weight * weight;
            if (mass) s->mass[post.tree] += weight * weight;
        }
    }
    return true;
}

static int by_bound(const void *x, const void *y)
{
    const struct espi_candidate *a = x, *b = y;
    return a->bound != b->bound ? (a->bound < b->bound) - (a->bound > b->bound)
                                : (a->tree > b->tree) - (a->tree < b->tree);
}

/* The bound of a tree that was met. Comparisons are such that one that is not a number keeps it. */
static double bound_of(const espi_tree_search *s, const esp_index *x, uint32_t tree, double closed)
{
    const double left = 1.0 - s->mass[tree];
    double bound = s->bound[tree] + (closed > 0.0 && left > 0.0 ? closed * sqrt(left) : 0.0);
    if (!x->norm) {
        const espi_wide self = espi_tree_index_self(&x->trees, tree);
        bound *= s->query.root * (self.m > 0.0 ? espi_wide_normalise(self, self, espi_wide_of(1.0)) : 0.0);
    }
    return bound * x->weight * slack;
}

static esp_status try_tree(espi_tree_search *s, const esp_index *x, size_t tree, espi_best *best, esp_error *err)
{
    double value;
    const esp_status status = espi_tree_search_value(s, x, tree, &value, err);
    if (status != ESP_OK) return status;
    return espi_best_add(best, tree, value) ? ESP_OK : espi_no_memory(err);
}

/* Moves the candidates of range low .. high-1 whose bound is above the pivot (`equal`: or the pivot) to its front;
 * where they end. */
static size_t divide(struct espi_candidate *c, size_t low, size_t high, double pivot, bool equal)
{
    while (low < high) {
        if (c[low].bound > pivot || (equal && !(c[low].bound < pivot))) {
            low++;
            continue;
        }
        high--;
        const struct espi_candidate t = c[low];
        c[low] = c[high];
        c[high] = t;
    }
    return low;
}

/* Moves the k candidates with the largest bounds to the front, 0 < k < count, as quicksort would. */
static void front(struct espi_candidate *c, size_t count, size_t k)
{
    size_t low = 0,
           high = count; /* place k - 1 lies in this range; all before it are at least as large as all behind */
    while (high - low > 1) {
        const double pivot = c[low + (high - low) / 2].bound;
        const size_t above = divide(c, low, high, pivot, false);
        if (k <= above) {
            high = above;
            continue;
        }
        const size_t equal = divide(c, above, high, pivot, true);
        if (k <= equal || equal == low) return; /* the k-th is the pivot */
        low = equal;
    }
}

/* The trees that were met, in the order of their bounds. Few of them are tried, as a rule, so that they are sorted a
 * part at a time. */
static esp_status try_met(espi_tree_search *s, const esp_index *x, size_t met, double closed, size_t not,
                          espi_best *best, esp_error *err)
{
    struct espi_candidate *c;
    size_t left = 0, done = 0;
    esp_status status = ESP_OK;
    if (!espi_reserve(&s->candidate, &s->candidate_room, met, sizeof *s->candidate)) return espi_no_memory(err);
    c = s->candidate;
    for (size_t i = 0; i < met; i++) {
        const double bound = bound_of(s, x, s->met[i], closed);
        if (s->met[i] != not &&!(bound < best->above)) c[left++] = (struct espi_candidate){bound, s->met[i]};
    }
    for (size_t part = best->most / 2 + 16; status == ESP_OK && done < left; part *= 2) {
        const size_t end = part < left - done ? done + part : left;
        if (end < left) front(c + done, left - done, part);
        if (end > done + 1) qsort(c + done, end - done, sizeof *c, by_bound);
        for (; status == ESP_OK && done < end && !(c[done].bound < espi_best_bar(best)); done++)
            status = try_tree(s, x, c[done].tree, best, err);
        if (done < end) break; /* all others have smaller bounds */
        /* What can still get in, behind what is done. */
        size_t kept = done;
        for (size_t i = done; i < left; i++)
            if (!(c[i].bound < espi_best_bar(best))) c[kept++] = c[i];
        left = kept;
    }
    return status;
}

/* Trees that share nothing with the query have similarity 0, and are not even met. */
static esp_status add_strangers(const espi_tree_search *s, size_t limit, size_t not, espi_best *best, esp_error *err)
{
    for (size_t i = 0; i < limit; i++) {
        if (best->count == best->most && (best->hit[0].similarity > 0.0 || best->hit[0].example < i)) break;
        if (s->bound[i] == 0.0 && i != not &&!espi_best_add(best, i, 0.0)) return espi_no_memory(err);
    }
    return ESP_OK;
}

esp_status espi_tree_search_run(espi_tree_search *s, const esp_index *x, size_t limit, size_t not, bool every,
                                espi_best *best, esp_error *err)
{
    size_t from = 0, count = 0, met = 0;
    double closed = 0.0;
    esp_status status = fit(s, x->count) ? ESP_OK : espi_no_memory(err);
    if (status == ESP_OK && every) {
        for (size_t i = 0; status == ESP_OK && i < limit; i++)
            if (i != not ) status = try_tree(s, x, i, best, err);
        return status;
    }
    if (status == ESP_OK) status = choose_lists(s, x, best->above, &from, &count, &closed, err);
    if (status == ESP_OK && !add_lists(s, x, from, count, limit, closed > 0.0, &met))
        status = espi_index_wrong(x->file, err);
    if (status == ESP_OK) status = try_met(s, x, met, closed, not, best, err);
    if (status == ESP_OK && best->above <= 0.0 && closed == 0.0) status = add_strangers(s, limit, not, best, err);
    for (size_t i = 0; i < met; i++) s->bound[s->met[i]] = s->mass[s->met[i]] = 0.0;
    return status;
}
