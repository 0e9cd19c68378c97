/* Sequences: PrefixSpan (Pei et al. 2001) with the pruning of Suzuki et al. 2004.
 *
 * The projected database of a pattern u holds, for each example that contains u, where the next symbol may stand:
 * behind the first occurrence if gaps are free (what can follow any occurrence can follow the first), else behind every
 * end of an occurrence. One pass over it counts all patterns ua; a second one, over what is left to grow, makes their
 * databases. Symbols are numbered by their bytes, so that patterns come in the order of the trie. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/sort.h"
#include "base/status.h"
#include "mine/search.h"

#include <string.h>

typedef struct place {
    uint32_t row;
    uint32_t next; /* the first token behind the occurrence */
} place;

typedef struct database { /* the used rows, with the symbols that may be part of a kept pattern */
    size_t rows, symbols;
    size_t *row, *token; /* row r: tokens row[r] .. row[r+1]; token t: symbols symbol[token[t]] .. */
    uint32_t *symbol;
    uint32_t *kinds; /* per row: its different symbols */
    uint8_t *positive;
    uint32_t *original; /* symbol -> symbol of the column */
} database;

typedef struct frame { /* a pattern that is to be recorded and grown */
    espi_step step;
    bool grow;
    size_t from, to; /* its database: place[from .. to) */
} frame;

typedef struct tally { /* of one symbol, while the patterns that end with it are counted */
    uint64_t seen;     /* the row it was last seen in, as a stamp */
    uint32_t x, y;
    size_t places, at; /* entries of its database; where the next goes; SIZE_MAX: not grown */
} tally;

typedef struct miner { /* one thread's */
    espi_search *search;
    const database *db;
    bool first_only; /* gaps are free: places behind the first occurrence only */
    tally *tally;
    uint64_t stamp;
    uint32_t *touched;
    size_t touches, touched_capacity;
    frame *frame;
    size_t frames, frame_capacity;
    place *place;
    size_t place_capacity;
    espi_mine_stats stats;
} miner;

typedef struct sequence_mining {
    espi_search search;
    database db;
    miner *worker;
    int workers;
    miner first; /* finds the first symbols */
} sequence_mining;

/* ----------------------------------------------------------------- database */

static void database_free(database *d)
{
    espi_free(d->row);
    espi_free(d->token);
    espi_free(d->symbol);
    espi_free(d->kinds);
    espi_free(d->positive);
    espi_free(d->original);
}

/* rank[symbol of the column] = number by bytes among those that can be part of a kept pattern, or ESPI_NO_SYMBOL. */
static bool rank_symbols(database *d, const espi_search *search, const espi_sequences *s, const uint8_t *positive,
                         const bool *used, size_t rows, uint32_t *rank)
{
    tally *t = espi_alloc_zero(s->symbols.count, sizeof *t);
    d->original = espi_alloc(s->symbols.count, sizeof *d->original);
    bool ok = t != NULL && d->original != NULL;
    for (size_t r = 0; ok && r < rows; r++) {
        if ((used != NULL && !used[r]) || s->row[r] == s->row[r + 1]) continue;
        for (size_t f = s->token[s->row[r]]; f < s->token[s->row[r + 1]]; f++) {
            tally *of = &t[s->factor[f]];
            if (of->seen == r + 1) continue;
            of->seen = r + 1;
            of->x++;
            of->y += positive[r] != 0;
        }
    }
    for (size_t i = 0; ok && i < s->symbols.count; i++)
        rank[i] = t[i].x > 0 && espi_search_hopeful(search, t[i].x, t[i].y) ? 0 : ESPI_NO_SYMBOL;
    ok = ok && espi_symbols_rank(&s->symbols, rank, d->original, &d->symbols);
    espi_free(t);
    return ok;
}

/* A token's symbols, each once. */
static size_t copy_token(const espi_sequences *s, size_t token, const uint32_t *rank, uint32_t *out)
{
    size_t count = 0;
    for (size_t f = s->token[token]; f < s->token[token + 1]; f++) {
        const uint32_t symbol = rank[s->factor[f]];
        size_t k = 0;
        while (k < count && out[k] != symbol) k++;
        if (symbol != ESPI_NO_SYMBOL && k == count) out[count++] = symbol;
    }
    return count;
}

/* `seen` has a place for each symbol, all 0. */
static void copy_rows(database *d, const espi_column *column, const uint8_t *positive, const bool *used,
                      const uint32_t *rank, size_t *seen)
{
    const espi_sequences *s = &column->sequences;
    size_t tokens = 0, symbols = 0;
    for (size_t r = 0; r < column->rows; r++) {
        if (used != NULL && !used[r]) continue;
        const size_t first = symbols;
        d->row[d->rows] = tokens;
        d->positive[d->rows] = positive[r] != 0;
        d->kinds[d->rows++] = 0;
        for (size_t t = s->row[r]; t < s->row[r + 1]; t++) {
            d->token[tokens++] = symbols;
            symbols += copy_token(s, t, rank, d->symbol + symbols);
        }
        for (size_t i = first; i < symbols; i++) {
            d->kinds[d->rows - 1] += seen[d->symbol[i]] != d->rows;
            seen[d->symbol[i]] = d->rows;
        }
    }
    d->row[d->rows] = tokens;
    d->token[tokens] = symbols;
}

static bool database_make(database *d, const espi_search *search, const espi_column *column, const uint8_t *positive,
                          const bool *used)
{
    const espi_sequences *s = &column->sequences;
    uint32_t *rank = espi_alloc(s->symbols.count, sizeof *rank);
    size_t *seen = espi_alloc_zero(s->symbols.count, sizeof *seen);
    d->row = espi_alloc(column->rows + 1, sizeof *d->row);
    d->token = espi_alloc(s->tokens + 1, sizeof *d->token);
    d->symbol = espi_alloc(s->factors, sizeof *d->symbol);
    d->kinds = espi_alloc(column->rows, sizeof *d->kinds);
    d->positive = espi_alloc(column->rows, sizeof *d->positive);
    const bool ok = rank != NULL && seen != NULL && d->row != NULL && d->token != NULL && d->symbol != NULL &&
                    d->kinds != NULL && d->positive != NULL &&
                    rank_symbols(d, search, s, positive, used, column->rows, rank);
    if (ok) copy_rows(d, column, positive, used, rank, seen);
    espi_free(rank);
    espi_free(seen);
    return ok;
}

/* ------------------------------------------------------------------- growth */

static void miner_free(miner *m)
{
    espi_free(m->tally);
    espi_free(m->touched);
    espi_free(m->frame);
    espi_free(m->place);
}

static bool miner_start(miner *m, espi_search *search, const database *db)
{
    *m = (miner){.search = search, .db = db, .first_only = search->options->gap == SIZE_MAX};
    m->tally = espi_alloc_zero(db->symbols, sizeof *m->tally);
    return m->tally != NULL;
}

/* Visits the tokens at which the next symbol may stand: of the row of place[from]
 * alone, whose places end before *to. */
typedef struct window {
    size_t token, end; /* the tokens at hand */
    size_t from, to;   /* places of the row not yet looked at */
} window;

static bool next_window(const miner *m, size_t depth, window *w)
{
    const database *d = m->db;
    const size_t gap = depth == 0 ? SIZE_MAX : m->search->options->gap; /* a pattern starts anywhere */
    while (w->from < w->to) {
        const place *p = &m->place[w->from++];
        const size_t start = d->row[p->row] + p->next, last = d->row[p->row + 1];
        if (start > w->end || w->end == 0) w->token = start; /* else the windows overlap: go on behind the last */
        else w->token = w->end;
        w->end = gap < last - start ? start + gap + 1 : last;
        if (w->token < w->end) return true;
    }
    return false;
}

/* Meets a symbol at a token. Returns whether that is the first time in the row; *ok is false if memory is out. */
static bool meet(miner *m, uint32_t symbol, size_t token, uint32_t row, bool fill, bool *ok)
{
    tally *of = &m->tally[symbol];
    const bool again = of->seen == m->stamp;
    if (again && m->first_only) return false;
    of->seen = m->stamp;
    if (fill) {
        const place next = {.row = row, .next = (uint32_t)(token + 1 - m->db->row[row])};
        if (of->at != SIZE_MAX) m->place[of->at++] = next;
        return !again;
    }
    if (of->x == 0) {
        *ok = espi_reserve(&m->touched, &m->touched_capacity, m->touches + 1, sizeof *m->touched);
        if (!*ok) return false;
        m->touched[m->touches++] = symbol;
    }
    of->places++;
    of->x += !again;
    of->y += !again && m->db->positive[row];
    return !again;
}

/* Counts what may follow the places [from, to), or with `fill` puts the places of what is grown where they belong. */
static bool scan(miner *m, size_t depth, size_t from, size_t to, bool fill)
{
    const database *d = m->db;
    bool ok = true;
    while (from < to && ok) {
        const uint32_t row = m->place[from].row;
        window w = {.from = from};
        while (from < to && m->place[from].row == row) from++;
        w.to = from;
        m->stamp++;
        /* Where only the first place of a symbol counts, a row is done when all its symbols are met. */
        for (uint32_t left = d->kinds[row]; ok && (left > 0 || !m->first_only) && next_window(m, depth, &w);)
            for (size_t t = w.token; ok && (left > 0 || !m->first_only) && t < w.end; t++)
                for (size_t i = d->token[t]; ok && i < d->token[t + 1]; i++)
                    left -= meet(m, d->symbol[i], t, row, fill, &ok);
    }
    return ok;
}

/* Judges the counted symbols and makes frames for those that are kept or grown: the last symbol first, so that the
 * first comes off the stack first. Their databases lie from `top` on, in the same order. */
static bool make_frames(miner *m, size_t depth, size_t *top)
{
    espi_sort_falling(m->touched, m->touches);
    for (size_t i = 0; i < m->touches; i++) {
        tally *of = &m->tally[m->touched[i]];
        const espi_verdict v = espi_search_judge(m->search, depth + 1, of->x, of->y, &m->stats);
        of->at = SIZE_MAX;
        if (!v.keep && !v.grow) continue;
        if (!espi_reserve(&m->frame, &m->frame_capacity, m->frames + 1, sizeof *m->frame)) return false;
        frame *f = &m->frame[m->frames++];
        *f = (frame){.grow = v.grow, .from = *top, .to = *top};
        f->step = (espi_step){.depth = (uint32_t)depth + 1,
                              .label = m->touched[i],
                              .x = of->x,
                              .y = of->y,
                              .kept = v.keep,
                              .statistic = v.statistic};
        if (!v.grow) continue;
        of->at = *top;
        f->to = *top += of->places;
    }
    return espi_reserve(&m->place, &m->place_capacity, *top, sizeof *m->place);
}

/* Pushes frames for all patterns one symbol longer than the one whose database is place[from .. to). */
static esp_status grow(miner *m, size_t depth, size_t from, size_t to, esp_error *err)
{
    size_t top = to;
    m->touches = 0;
    bool ok = scan(m, depth, from, to, false);
    if (ok && m->touches > 0) ok = make_frames(m, depth, &top);
    if (ok && top > to) ok = scan(m, depth, from, to, true);
    for (size_t i = 0; i < m->touches; i++) m->tally[m->touched[i]] = (tally){0};
    return ok ? ESP_OK : espi_no_memory(err);
}

/* ---------------------------------------------------------------------- sequence_mining */

enum { PULSE = 1024 }; /* patterns grown between two questions whether to go on */

static esp_status mine_item(void *context, size_t item, const espi_worker *thread, espi_record *record, esp_error *err)
{
    sequence_mining *j = context;
    miner *m = &j->worker[thread->number];
    const frame *start = &j->first.frame[item];
    const size_t places = start->to - start->from;
    if (!espi_reserve(&m->place, &m->place_capacity, places, sizeof *m->place) ||
        !espi_reserve(&m->frame, &m->frame_capacity, 1, sizeof *m->frame))
        return espi_no_memory(err);
    if (places > 0) memcpy(m->place, j->first.place + start->from, places * sizeof *m->place);
    m->frame[0] = (frame){.step = start->step, .grow = start->grow, .to = places};
    m->frames = 1;
    esp_status status = ESP_OK;
    for (size_t count = 1; m->frames > 0 && status == ESP_OK; count++) {
        const frame f = m->frame[--m->frames];
        status = espi_record_add(&j->search, record, &f.step, err);
        if (status == ESP_OK && count % PULSE == 0)
            status = espi_progress(thread->run, "mining", (double)item / (double)j->search.items, err);
        if (status == ESP_OK && f.grow) status = grow(m, f.step.depth, f.from, f.to, err);
    }
    return status == ESP_OK ? espi_record_add(&j->search, record, NULL, err) : status;
}

static esp_status find_first(sequence_mining *j, esp_error *err)
{
    miner *m = &j->first;
    if (!miner_start(m, &j->search, &j->db) ||
        !espi_reserve(&m->place, &m->place_capacity, j->db.rows, sizeof *m->place))
        return espi_no_memory(err);
    for (size_t r = 0; r < j->db.rows; r++) m->place[r] = (place){.row = (uint32_t)r};
    return grow(m, 0, 0, j->db.rows, err);
}

/* The trie of the joined steps, with the texts of the symbols that they use. */
static bool make_trie(const sequence_mining *j, const espi_symbols *symbols, espi_record *all, espi_trie *out)
{
    uint32_t *number = espi_alloc_zero(j->db.symbols, sizeof *number);
    bool ok = number != NULL;
    for (size_t i = 0; ok && i < all->steps; i++) number[all->step[i].label] = 1;
    for (size_t k = 0; ok && k < j->db.symbols; k++) {
        const espi_symbol *s = &symbols->symbol[j->db.original[k]];
        if (number[k] == 1) ok = (number[k] = espi_symbols_add(&out->symbols, s->text, s->size)) != ESPI_NO_SYMBOL;
    }
    for (size_t i = 0; ok && i < all->steps; i++) all->step[i].label = number[all->step[i].label];
    ok = ok && espi_patterns_make(&out->set, all->step, all->steps, false);
    espi_free(number);
    return ok;
}

static esp_status run_job(sequence_mining *j, const espi_column *column, espi_trie *out, esp_error *err)
{
    const size_t items = j->first.frames;
    espi_record all = {0};
    j->workers = espi_worker_count(j->search.run, items);
    j->worker = espi_alloc_zero((size_t)j->workers, sizeof *j->worker);
    bool ok = j->worker != NULL;
    for (int w = 0; ok && w < j->workers; w++) ok = miner_start(&j->worker[w], &j->search, &j->db);
    if (!ok) return espi_no_memory(err);
    esp_status status =
        espi_search_run(&j->search, items, j->first.frame, sizeof *j->first.frame, mine_item, j, &all, err);
    if (status == ESP_OK && !make_trie(j, &column->sequences.symbols, &all, out)) status = espi_no_memory(err);
    espi_free(all.step);
    return status;
}

esp_status espi_mine_sequences(const espi_column *column, const uint8_t *positive, const bool *used,
                               const espi_mine_options *options, const esp_run *run, espi_trie *out,
                               espi_mine_stats *stats, esp_error *err)
{
    sequence_mining j = {0};
    *out = (espi_trie){0};
    esp_status status = espi_search_start(&j.search, column->rows, positive, used, options, run, err);
    if (status == ESP_OK && !database_make(&j.db, &j.search, column, positive, used)) status = espi_no_memory(err);
    if (status == ESP_OK) status = find_first(&j, err);
    if (status == ESP_OK) status = run_job(&j, column, out, err);
    espi_selection found = {.kind = ESPI_SELECTED_SEQUENCES, .trie = *out};
    if (status == ESP_OK) status = espi_selection_limit(&found, options->top, err);
    *out = found.trie;
    if (status != ESP_OK) espi_trie_free(out);
    espi_mine_stats sum = j.first.stats;
    for (int w = 0; j.worker != NULL && w < j.workers; w++) {
        sum.visited += j.worker[w].stats.visited;
        sum.pruned += j.worker[w].stats.pruned;
        miner_free(&j.worker[w]);
    }
    sum.kept = out->set.patterns;
    if (stats != NULL) *stats = sum;
    miner_free(&j.first);
    espi_free(j.worker);
    database_free(&j.db);
    espi_search_free(&j.search);
    return status;
}
