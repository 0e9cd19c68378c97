/* The patterns of sequences with their phi, depth first over projected lists (as PrefixSpan, Pei et al. 2001).
 *
 * A pattern u is held as the places where it ends: (sequence, position k, w), w = sum over its places that end at k of
 * lambda^gaps, so that phi_u of a sequence is the sum of its w. One token further,
 *
 *     w_ux(k) = sum over j < k of w_u(j) lambda^(k-1-j)      for every factor x of token k
 *
 * which is one pass over the sequences behind the first end of u; the same, differentiated line by line, gives the
 * slope dw / d lambda of each w. Lists lie on one stack: those of all ux while u is at work. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/sequence/sequence.h"

typedef struct place {
    uint32_t seq, position;
    double weight;
} place;

typedef struct list { /* of one pattern */
    uint32_t symbol;
    size_t first, end; /* its places on the stack */
} list;

typedef struct frame { /* a pattern whose extensions are at work */
    uint32_t number;
    size_t places;    /* size of the stack of places without its extensions */
    size_t next, end; /* of the stack of lists */
    size_t first;     /* its first list */
} frame;

typedef struct tally {   /* of a symbol, while a pattern is extended */
    size_t places;       /* then: where the next goes */
    uint32_t seqs, last; /* sequences; the newest, counted from 1 */
} tally;

typedef struct miner {
    const espi_seq_mining *of;
    place *place;
    double *slope; /* of each place; NULL if none are asked for */
    list *list;
    frame *frame;
    espi_seq_posting *posting;
    uint32_t *touched;
    tally *tally; /* per symbol */
    size_t places, place_capacity, slope_capacity, lists, list_capacity, frames, frame_capacity, posting_capacity,
        touched_count, touched_capacity;
    double effort, asked;
} miner;

enum { PATIENCE = 1 << 24 };

/* What an extension goes to: counted first, then written. */
static bool meet(miner *m, uint32_t symbol, uint32_t seq, bool write, uint32_t position, double weight, double slope)
{
    tally *t = &m->tally[symbol];
    if (write) {
        if (t->seqs < m->of->support) return true;
        if (m->slope != NULL) m->slope[t->places] = slope;
        m->place[t->places++] = (place){.seq = seq, .position = position, .weight = weight};
        return true;
    }
    if (t->places++ == 0) {
        if (!espi_reserve(&m->touched, &m->touched_capacity, m->touched_count + 1, sizeof *m->touched)) return false;
        m->touched[m->touched_count++] = symbol;
    }
    t->seqs += t->last != seq + 1;
    t->last = seq + 1;
    return true;
}

/* Extensions of a pattern in one sequence, where it ends at place[first .. end-1]. */
static bool extend_in(miner *m, size_t first, size_t end, bool write)
{
    const espi_seqs *s = m->of->seqs;
    const uint32_t seq = m->place[first].seq;
    const double lambda = m->of->rule->lambda;
    const size_t length = s->row[seq + 1] - s->row[seq];
    const bool slopes = m->slope != NULL;
    double weight = 0.0, slope = 0.0;
    for (size_t k = m->place[first].position + 1, next = first; k < length; k++) {
        if (slopes) slope = weight < ESPI_SEQ_TINY ? 0.0 : weight + slope * lambda;
        weight = weight < ESPI_SEQ_TINY ? 0.0 : weight * lambda;
        for (; next < end && m->place[next].position == k - 1; next++) {
            weight += m->place[next].weight;
            if (slopes) slope += m->slope[next];
        }
        if (weight == 0.0) { /* contiguous places only, or a long gap */
            if (next == end) break;
            k = m->place[next].position;
            continue;
        }
        const size_t token = s->row[seq] + k;
        for (size_t f = s->token[token]; f < s->token[token + 1]; f++)
            if (!meet(m, s->factor[f], seq, write, (uint32_t)k, weight, slope)) return false;
        if (!write) m->effort += 1.0;
    }
    return true;
}

static bool extend_all(miner *m, const list *u, bool write)
{
    bool ok = true;
    for (size_t i = u->first, end; ok && i < u->end; i = end) {
        for (end = i + 1; end < u->end && m->place[end].seq == m->place[i].seq;) end++;
        ok = extend_in(m, i, end, write);
    }
    return ok;
}

/* Every factor of every token: the patterns of length 1. */
static bool start_all(miner *m, bool write)
{
    const espi_seqs *s = m->of->seqs;
    for (size_t r = 0; r < s->count; r++)
        for (size_t t = s->row[r]; t < s->row[r + 1]; t++)
            for (size_t f = s->token[t]; f < s->token[t + 1]; f++)
                if (!meet(m, s->factor[f], (uint32_t)r, write, (uint32_t)(t - s->row[r]), 1.0, 0.0)) return false;
    return true;
}

/* Puts the lists of all ux that enough sequences have on the stack, and a frame over
 * them. `u` NULL: the empty pattern. */
static bool extend(miner *m, const list *u, uint32_t number)
{
    const frame f = {.number = number, .places = m->places, .first = m->lists, .next = m->lists};
    m->touched_count = 0;
    if (!(u == NULL ? start_all(m, false) : extend_all(m, u, false))) return false;
    size_t lists = 0, places = m->places;
    for (size_t i = 0; i < m->touched_count; i++)
        if (m->tally[m->touched[i]].seqs >= m->of->support) {
            places += m->tally[m->touched[i]].places;
            lists++;
        }
    if (places > m->of->places) {
        m->effort = HUGE_VAL;
        return true;
    }
    if (!espi_reserve(&m->place, &m->place_capacity, places, sizeof *m->place) ||
        !espi_reserve(&m->slope, &m->slope_capacity, m->of->slopes ? places : 0, sizeof *m->slope) ||
        !espi_reserve(&m->list, &m->list_capacity, m->lists + lists, sizeof *m->list) ||
        !espi_reserve(&m->frame, &m->frame_capacity, m->frames + 1, sizeof *m->frame))
        return false;
    for (size_t i = 0; i < m->touched_count; i++) {
        tally *t = &m->tally[m->touched[i]];
        if (t->seqs < m->of->support) continue;
        m->list[m->lists++] = (list){.symbol = m->touched[i], .first = m->places, .end = m->places + t->places};
        m->places += t->places;
        t->places = m->list[m->lists - 1].first;
    }
    const bool ok = lists == 0 || (u == NULL ? start_all(m, true) : extend_all(m, u, true));
    for (size_t i = 0; i < m->touched_count; i++) m->tally[m->touched[i]] = (tally){0};
    m->frame[m->frames] = f;
    m->frame[m->frames++].end = m->lists;
    return ok;
}

/* Tells the pattern to the sink. */
static bool offer(miner *m, const list *u, uint32_t parent, uint32_t *number)
{
    size_t count = 0;
    if (!espi_reserve(&m->posting, &m->posting_capacity, u->end - u->first, sizeof *m->posting)) return false;
    for (size_t i = u->first; i < u->end; i++) {
        const place *p = &m->place[i];
        if (count == 0 || m->posting[count - 1].seq != p->seq) m->posting[count++] = (espi_seq_posting){.seq = p->seq};
        m->posting[count - 1].phi += m->of->slopes ? m->slope[i] : p->weight;
    }
    return m->of->sink(m->of->context, parent, u->symbol, m->posting, count, number, &m->effort);
}

static esp_status search(miner *m, const esp_run *run, bool *done, esp_error *err)
{
    if (!extend(m, NULL, ESPI_NO_NODE)) return espi_no_memory(err);
    while (m->frames > 0 && m->effort <= m->of->effort) {
        frame *f = &m->frame[m->frames - 1];
        if (f->next == f->end) {
            m->lists = f->first;
            m->places = f->places;
            m->frames--;
            continue;
        }
        const list u = m->list[f->next++];
        uint32_t number;
        if (!offer(m, &u, f->number, &number)) return espi_no_memory(err);
        if (m->frames < m->of->rule->n && m->effort <= m->of->effort && !extend(m, &u, number))
            return espi_no_memory(err);
        if (m->effort - m->asked < PATIENCE) continue;
        m->asked = m->effort;
        const esp_status status = espi_progress(run, "computing the kernel", -1.0, err);
        if (status != ESP_OK) return status;
    }
    *done = m->effort <= m->of->effort;
    return ESP_OK;
}

esp_status espi_seq_mine(const espi_seq_mining *mining, const esp_run *run, bool *done, esp_error *err)
{
    miner m = {.of = mining};
    *done = false;
    m.tally = espi_alloc_zero(mining->seqs->symbols, sizeof *m.tally);
    const esp_status status = m.tally == NULL ? espi_no_memory(err) : search(&m, run, done, err);
    espi_free(m.place);
    espi_free(m.slope);
    espi_free(m.list);
    espi_free(m.frame);
    espi_free(m.posting);
    espi_free(m.touched);
    espi_free(m.tally);
    return status;
}
