#include "data/tree_parser.h"

#include "base/alloc.h"

#include <string.h>

enum { BEFORE, OPENED, LABEL, BETWEEN, LEAF }; /* espi_tree_parser.mode: what the next byte may belong to */

enum { ORDINARY, BLANK, OPEN, CLOSE, BACKSLASH, NUL };
static const unsigned char kind[256] = {
    ['\0'] = NUL,   [' '] = BLANK,  ['\t'] = BLANK, ['\n'] = BLANK, ['\r'] = BLANK,
    ['\v'] = BLANK, ['\f'] = BLANK, ['('] = OPEN,   [')'] = CLOSE,  ['\\'] = BACKSLASH};

void espi_tree_begin(espi_tree_parser *t, espi_forest *forest, bool clean)
{
    t->forest = forest;
    t->clean = clean;
    t->root = ESPI_NO_NODE;
    t->reason = NULL;
    t->mode = BEFORE;
    t->escaped = false;
    t->frames = t->nodes = t->token_size = 0;
}

void espi_tree_parser_free(espi_tree_parser *t)
{
    espi_free(t->frame);
    espi_free(t->node);
    espi_free(t->token);
    *t = (espi_tree_parser){0};
}

static espi_tree_state wrong(espi_tree_parser *t, const char *reason)
{
    t->reason = reason;
    return ESPI_TREE_WRONG;
}

static bool keep(espi_tree_parser *t, const char *bytes, size_t size)
{
    if (!espi_reserve(&t->token, &t->token_capacity, t->token_size + size + 1, 1)) return false;
    memcpy(t->token + t->token_size, bytes, size);
    t->token_size += size;
    return true;
}

static bool add_node(espi_tree_parser *t, espi_ref node)
{
    if (!espi_reserve(&t->node, &t->node_capacity, t->nodes + 1, sizeof *t->node)) return false;
    t->node[t->nodes++] = node;
    return true;
}

/* A label or leaf is complete: its last piece is bytes[0..size), earlier ones were kept. */
static bool end_token(espi_tree_parser *t, const char *bytes, size_t size)
{
    if (t->token_size > 0) {
        if (!keep(t, bytes, size)) return false;
        bytes = t->token;
        size = t->token_size;
        t->token_size = 0;
    }
    const uint32_t symbol = espi_symbols_add(&t->forest->symbols, bytes, size);
    if (symbol == ESPI_NO_SYMBOL) return false;
    if (t->mode == LABEL) t->frame[t->frames - 1].label = symbol;
    else if (!add_node(t, ESPI_LEAF | symbol)) return false;
    t->mode = BETWEEN;
    return true;
}

/* The label without its function tags: cut at the first '-' or '=' that is not its first byte. */
static uint32_t without_tags(espi_forest *f, uint32_t label)
{
    const espi_symbol s = f->symbols.symbol[label];
    if (s.text[0] == '-') return label; /* -LRB- and its kin */
    const size_t size = s.size > 1 ? 1 + strcspn(s.text + 1, "-=") : s.size;
    return size == s.size ? label : espi_symbols_add(&f->symbols, s.text, size);
}

static bool is_trace(const espi_forest *f, uint32_t label)
{
    return f->symbols.symbol[label].size == 6 && memcmp(f->symbols.symbol[label].text, "-NONE-", 6) == 0;
}

/* A closing bracket: the newest frame becomes a node of the one below it. */
static espi_tree_state close_node(espi_tree_parser *t)
{
    const espi_tree_frame frame = t->frame[t->frames - 1];
    const size_t arity = t->nodes - frame.first;
    const bool outermost = t->frames == 1;
    uint32_t label = frame.label;
    espi_ref node = ESPI_NO_NODE;
    bool removed = false;
    if (label == ESPI_NO_SYMBOL) {
        if (arity == 0 && frame.removed == 0) return wrong(t, "empty brackets; a node needs a label");
        if (!outermost) return wrong(t, "a bracket without a label inside a tree");
        if (arity > 1) return wrong(t, "a bracket without a label around several trees; it may hold one");
        if (arity == 1) node = t->node[frame.first];
        removed = arity == 0;
    } else if (arity == 0) {
        removed = frame.removed > 0;
        node = ESPI_LEAF | label;
    } else if (t->clean && is_trace(t->forest, label)) {
        removed = true;
    } else {
        if (t->clean) label = without_tags(t->forest, label);
        if (label == ESPI_NO_SYMBOL) return ESPI_TREE_NO_MEMORY;
        node = espi_forest_node(t->forest, label, t->node + frame.first, arity);
        if (node == ESPI_NO_NODE) return ESPI_TREE_NO_MEMORY;
    }
    t->nodes = frame.first;
    t->frames--;
    if (outermost) {
        t->root = removed ? ESPI_NO_NODE : node;
        return ESPI_TREE_COMPLETE;
    }
    if (removed) t->frame[t->frames - 1].removed++;
    else if (!add_node(t, node)) return ESPI_TREE_NO_MEMORY;
    t->mode = BETWEEN;
    return ESPI_TREE_MORE;
}

static espi_tree_state open_node(espi_tree_parser *t)
{
    if (!espi_reserve(&t->frame, &t->frame_capacity, t->frames + 1, sizeof *t->frame)) return ESPI_TREE_NO_MEMORY;
    t->frame[t->frames++] = (espi_tree_frame){.label = ESPI_NO_SYMBOL, .first = t->nodes};
    t->mode = OPENED;
    return ESPI_TREE_MORE;
}

/* The rest of a label or leaf that starts or goes on at `at`; returns where it stops. */
static const char *take_token(espi_tree_parser *t, const char *at, const char *end, espi_tree_state *state)
{
    const char *start = at;
    for (;;) {
        if (t->escaped && at < end) { /* the kept backslash goes if this byte needed it */
            if (kind[(unsigned char)*at] == NUL) break;
            if (kind[(unsigned char)*at] != ORDINARY) t->token_size--;
            t->escaped = false;
            at++;
        }
        while (at < end && kind[(unsigned char)*at] == ORDINARY) at++;
        if (at == end || kind[(unsigned char)*at] != BACKSLASH) break;
        if (!keep(t, start, (size_t)(at - start) + 1)) *state = ESPI_TREE_NO_MEMORY;
        if (*state == ESPI_TREE_NO_MEMORY) return at;
        t->escaped = true;
        start = ++at;
    }
    const size_t size = (size_t)(at - start);
    if (!(at == end ? keep(t, start, size) : end_token(t, start, size))) *state = ESPI_TREE_NO_MEMORY;
    return at;
}

espi_tree_state espi_tree_feed(espi_tree_parser *t, const char *bytes, size_t size, size_t *used)
{
    const char *at = bytes, *end = bytes + size;
    espi_tree_state state = t->mode == BEFORE ? ESPI_TREE_BEFORE : ESPI_TREE_MORE;
    while (at < end && (state == ESPI_TREE_MORE || state == ESPI_TREE_BEFORE)) {
        if (t->mode == LABEL || t->mode == LEAF) {
            at = take_token(t, at, end, &state);
            continue;
        }
        switch (kind[(unsigned char)*at]) {
        case BLANK: at++; break;
        case OPEN:
            state = open_node(t);
            if (state == ESPI_TREE_MORE) at++;
            break;
        case CLOSE:
            state = t->mode == BEFORE ? wrong(t, "a bracket closes that was never opened") : close_node(t);
            if (state == ESPI_TREE_MORE || state == ESPI_TREE_COMPLETE) at++;
            break;
        case NUL: state = wrong(t, "a NUL byte inside a tree"); break;
        default:
            if (t->mode == BEFORE) state = wrong(t, "a tree starts with '('");
            else t->mode = t->mode == OPENED ? LABEL : LEAF;
        }
    }
    *used = (size_t)(at - bytes);
    return state;
}
