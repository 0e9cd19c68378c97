/* The piece of a tree that connects a predicate and a candidate (A. Moschitti, D. Pighin and R. Basili, Tree kernels
 * for semantic role labeling, Computational Linguistics 34(2), 2008): below the lowest node that holds both, the way
 * down to the predicate's pre-terminal with its word, the way down to the candidate, and all below the candidate. For
 * (S (N Mary) (VP (V brought) (NP (D a) (N cat)))) and N it is (S (N Mary) (VP (V brought))).
 *
 * It splits into the link between the two, (S (N *) (VP (V brought))), and the candidate, (N Mary), which hybrid
 * kernels compare apart from each other (W. Che et al., A hybrid convolution tree kernel for semantic role labeling,
 * COLING/ACL 2006). A word in the candidate's place keeps its label that of an inner node, as it is in the whole piece:
 * its production is the same, and grammars that speak of it apply.
 *
 * The way to the predicate is the same text for all candidates, and what is below a candidate is a slice of the
 * sentence's text; so a piece is put together from few copies. */
#include "task/srl.h"

#include "base/alloc.h"

bool espi_srl_spine_set(espi_srl_spine *s, const espi_srl_tree *t, uint32_t token, bool marks)
{
    s->token = token;
    s->marks = marks;
    s->nodes = s->text.size = s->down = 0;
    const uint32_t bottom = t->leaf[token].parent;
    const size_t depth = (size_t)t->node[bottom].depth + 1;
    if (!espi_reserve(&s->node, &s->node_capacity, depth, sizeof *s->node) ||
        !espi_reserve(&s->text_at, &s->text_capacity, depth, sizeof *s->text_at) ||
        !espi_reserve(&s->way, &s->way_capacity, t->nodes, sizeof *s->way))
        return false;
    for (uint32_t n = bottom; n != ESPI_SRL_NONE; n = t->node[n].parent) s->node[s->nodes++] = n;
    for (size_t k = s->nodes; k-- > 0;) {
        const espi_srl_node *n = &t->node[s->node[k]];
        s->text_at[k] = s->text.size;
        espi_text_add(&s->text, t->text.bytes + n->text.at, n->label_end - n->text.at);
        if (k == 0 && marks) espi_text_add(&s->text, "-P", 2);
        espi_text_add(&s->text, " ", 1);
    }
    espi_text_add(&s->text, t->text.bytes + t->leaf[token].text.at, t->leaf[token].text.size);
    return !s->text.failed;
}

void espi_srl_spine_free(espi_srl_spine *s)
{
    espi_free(s->node);
    espi_free(s->way);
    espi_free(s->text_at);
    espi_text_free(&s->text);
    *s = (espi_srl_spine){0};
}

void espi_srl_spine_meet(espi_srl_spine *s, const espi_srl_tree *t, uint32_t candidate)
{
    uint32_t n = candidate;
    s->candidate = candidate;
    for (s->down = 0; !espi_srl_covers(&t->node[n], s->token); n = t->node[n].parent) s->way[s->down++] = n;
    s->up = t->node[s->node[0]].depth - t->node[n].depth;
}

static void close_brackets(espi_text *out, size_t count)
{
    static const char closing[] = "))))))))))))))))))))))))))))))))";
    for (const size_t most = sizeof closing - 1; count > 0;) {
        const size_t n = count < most ? count : most;
        espi_text_add(out, closing, n);
        count -= n;
    }
}

/* "(A ...)": the candidate with all below it, or with a word in place of that. */
static void add_candidate(const espi_srl_spine *s, const espi_srl_tree *t, bool whole, espi_text *out)
{
    const espi_srl_node *n = &t->node[s->candidate];
    espi_text_add(out, t->text.bytes + n->text.at, n->label_end - n->text.at);
    if (s->marks) espi_text_add(out, "-B", 2);
    if (whole) espi_text_add(out, t->text.bytes + n->label_end, n->text.at + n->text.size - n->label_end);
    else espi_text_add(out, " *)", 3);
}

/* " (A (B ...))": from the child of the meeting node down to the candidate. */
static void add_way(const espi_srl_spine *s, const espi_srl_tree *t, bool whole, espi_text *out)
{
    espi_text_add(out, " ", 1);
    for (size_t i = s->down - 1; i > 0; i--) {
        const espi_srl_node *n = &t->node[s->way[i]];
        espi_text_add(out, t->text.bytes + n->text.at, n->label_end - n->text.at);
        espi_text_add(out, " ", 1);
    }
    add_candidate(s, t, whole, out);
    close_brackets(out, s->down - 1);
}

void espi_srl_spine_text(const espi_srl_spine *s, const espi_srl_tree *t, espi_srl_part part, espi_text *out)
{
    const bool whole = part != ESPI_SRL_PATH;
    if (part == ESPI_SRL_CANDIDATE) {
        add_candidate(s, t, whole, out);
        return;
    }
    /* From `tail` on: the blank behind the meeting node's label, the way down to the predicate, and its word. */
    const size_t start = s->text_at[s->up];
    const size_t tail = (s->up > 0 ? s->text_at[s->up - 1] : s->text.size - t->leaf[s->token].text.size) - 1;
    const bool before = t->node[s->candidate].last < s->token;
    espi_text_add(out, s->text.bytes + start, tail - start);
    if (before) add_way(s, t, whole, out);
    espi_text_add(out, s->text.bytes + tail, s->text.size - tail);
    close_brackets(out, s->up);
    if (!before) add_way(s, t, whole, out);
    espi_text_add(out, ")", 1);
}
