/* Named binary features of a predicate and a candidate, after D. Gildea and D. Jurafsky, Automatic labeling of semantic
 * roles, Computational Linguistics 28(3), 2002, and N. Xue and M. Palmer, Calibrating features for semantic role
 * labeling, EMNLP 2004. docs/srl.md lists them.
 *
 * A name is "kind=value", and each kind gives at most one name. A leaf "_" has no word; what would name it is left
 * out. */
#include "task/srl.h"

#include "base/alloc.h"

#include <string.h>

/* ------------------------------------------------------------------- names */

static void add(espi_srl_names *names, const char *string) { espi_text_add(&names->text, string, strlen(string)); }

static void add_piece(espi_srl_names *names, const espi_srl_tree *t, espi_srl_piece piece)
{
    espi_text_add(&names->text, t->names.bytes + piece.at, piece.size);
}

static void end_name(espi_srl_names *names)
{
    if (!espi_reserve(&names->end, &names->capacity, names->count + 1, sizeof *names->end)) names->text.failed = true;
    else names->end[names->count++] = names->text.size;
}

static void clear(espi_srl_names *names) { names->text.size = names->count = 0; }

static void add_pair(espi_srl_names *names, const espi_srl_tree *t, const char *kind, espi_srl_piece value)
{
    add(names, kind);
    add_piece(names, t, value);
    end_name(names);
}

static void add_string(espi_srl_names *names, const char *kind, const char *value)
{
    add(names, kind);
    add(names, value);
    end_name(names);
}

/* Names first .. end of `from`. */
static void add_names(espi_srl_names *names, const espi_srl_names *from, size_t first, size_t end)
{
    if (first == end) return;
    const size_t start = first > 0 ? from->end[first - 1] : 0, shift = names->text.size - start;
    espi_text_add(&names->text, from->text.bytes + start, from->end[end - 1] - start);
    if (!espi_reserve(&names->end, &names->capacity, names->count + end - first, sizeof *names->end))
        names->text.failed = true;
    if (names->text.failed) return;
    for (size_t i = first; i < end; i++) names->end[names->count++] = from->end[i] + shift;
}

static void free_names(espi_srl_names *names)
{
    espi_text_free(&names->text);
    espi_free(names->end);
}

void espi_srl_features_free(espi_srl_features *f)
{
    free_names(&f->names);
    free_names(&f->of_node);
    free_names(&f->of_predicate);
    espi_free(f->of_node_first);
    espi_text_free(&f->up);
    espi_free(f->level);
    espi_free(f->trace);
    *f = (espi_srl_features){0};
}

/* ----------------------------------------------------------------- of a node */

static const espi_srl_node *pre_terminal(const espi_srl_tree *t, uint32_t leaf)
{
    return &t->node[t->leaf[leaf].parent];
}

static void add_word(espi_srl_names *names, const espi_srl_tree *t, const char *kind, uint32_t leaf)
{
    if (t->leaf[leaf].word) add_pair(names, t, kind, t->leaf[leaf].name);
}

/* What can be counted or found for a node from those before it: parents and left neighbours come first. */
static void trace_node(espi_srl_features *f, const espi_srl_tree *t, uint32_t i)
{
    const espi_srl_node *n = &t->node[i];
    espi_srl_trace *trace = &f->trace[i];
    *trace = (espi_srl_trace){.np = espi_srl_is(t, n->name, "NP"), .governor = ESPI_SRL_NONE};
    if (n->left != ESPI_SRL_NONE) trace->np_left = f->trace[n->left].np_left + f->trace[n->left].np;
    if (n->parent == ESPI_SRL_NONE) return;
    const espi_srl_piece above = t->node[n->parent].name;
    const bool governs = espi_srl_is(t, above, "S") || espi_srl_is(t, above, "VP");
    trace->governor = governs ? n->parent : f->trace[n->parent].governor;
    f->trace[n->parent].np_below += trace->np;
}

/* "DT-JJ-NN", marked where a child is `marked` or `other`; long ones are cut, as they hardly come twice. */
static void add_children(espi_srl_names *names, const espi_srl_tree *t, const espi_srl_node *n, uint32_t marked,
                         uint32_t other)
{
    enum { MOST = 8 };
    size_t count = 0;
    for (uint32_t c = n->child; c != ESPI_SRL_NONE; c = t->node[c].right) {
        if (count++ > 0) add(names, "-");
        if (count > MOST) {
            add(names, "...");
            break;
        }
        add_piece(names, t, t->node[c].name);
        if (c == marked) add(names, "*");
        if (c == other) add(names, "'");
    }
}

/* The last child of a PP is what the preposition governs. */
static void add_object(espi_srl_names *names, const espi_srl_tree *t, const espi_srl_node *n)
{
    if (!espi_srl_is(t, n->name, "PP")) return;
    uint32_t last = n->child;
    for (; last != ESPI_SRL_NONE && t->node[last].right != ESPI_SRL_NONE; last = t->node[last].right) continue;
    if (last == ESPI_SRL_NONE || last == n->child) return;
    add_word(names, t, "ow=", t->node[last].head);
    add_pair(names, t, "op=", pre_terminal(t, t->node[last].head)->name);
}

static void add_node(espi_srl_names *names, const espi_srl_tree *t, const espi_srl_node *n, const espi_srl_trace *trace)
{
    add_pair(names, t, "pt=", n->name);
    add_word(names, t, "hw=", n->head);
    add_pair(names, t, "hp=", pre_terminal(t, n->head)->name);
    add_word(names, t, "fw=", n->first);
    add_pair(names, t, "fp=", pre_terminal(t, n->first)->name);
    add_word(names, t, "lw=", n->last);
    add_pair(names, t, "lp=", pre_terminal(t, n->last)->name);
    add_object(names, t, n);
    if (trace->np && trace->governor != ESPI_SRL_NONE) add_pair(names, t, "gov=", t->node[trace->governor].name);
    if (n->left != ESPI_SRL_NONE) add_pair(names, t, "ls=", t->node[n->left].name);
    if (n->right != ESPI_SRL_NONE) add_pair(names, t, "rs=", t->node[n->right].name);
    if (n->parent != ESPI_SRL_NONE) add_pair(names, t, "par=", t->node[n->parent].name);
    if (espi_srl_below_unary(t, n)) add_string(names, "un=", "1");
    if (n->child == ESPI_SRL_NONE) return;
    add(names, "exp=");
    add_children(names, t, n, ESPI_SRL_NONE, ESPI_SRL_NONE);
    end_name(names);
}

bool espi_srl_features_sentence(espi_srl_features *f, const espi_srl_tree *t)
{
    clear(&f->of_node);
    if (!espi_reserve(&f->of_node_first, &f->of_node_capacity, t->nodes + 1, sizeof *f->of_node_first) ||
        !espi_reserve(&f->trace, &f->trace_capacity, t->nodes, sizeof *f->trace))
        return false;
    for (uint32_t i = 0; i < t->nodes; i++) {
        f->of_node_first[i] = f->of_node.count;
        trace_node(f, t, i);
        add_node(&f->of_node, t, &t->node[i], &f->trace[i]);
    }
    f->of_node_first[t->nodes] = f->of_node.count;
    return !f->of_node.text.failed;
}

/* ------------------------------------------------------------ of a predicate */

static bool is_one_of(const espi_srl_tree *t, espi_srl_piece name, const char *const *words)
{
    for (; *words != NULL; words++)
        if (espi_srl_is(t, name, *words)) return true;
    return false;
}

/* The last pre-terminal of a verb among the children before `until`. */
static uint32_t verb_before(const espi_srl_tree *t, uint32_t parent, uint32_t until)
{
    static const char *const tags[] = {"VB", "VBD", "VBG", "VBN", "VBP", "VBZ", "AUX", "AUXG", NULL};
    uint32_t found = ESPI_SRL_NONE;
    for (uint32_t c = t->node[parent].child; c != until; c = t->node[c].right)
        if (t->node[c].child == ESPI_SRL_NONE && is_one_of(t, t->node[c].name, tags)) found = c;
    return found;
}

bool espi_srl_passive(const espi_srl_tree *t, const espi_srl_spine *s)
{
    static const char *const phrases[] = {"VP", "SQ", "SINV", "UCP", "ADJP", NULL};
    static const char *const have[] = {"have", "has", "had", "having", "'ve", "'d", NULL};
    if (!espi_srl_is(t, t->node[s->node[0]].name, "VBN")) return false;
    for (size_t k = 1; k < s->nodes && is_one_of(t, t->node[s->node[k]].name, phrases); k++) {
        const uint32_t verb = verb_before(t, s->node[k], s->node[k - 1]);
        if (verb != ESPI_SRL_NONE) return !is_one_of(t, t->leaf[t->node[verb].first].name, have);
    }
    return true; /* a participle on its own: "the cat brought home" */
}

/* The levels of the spine: its labels with an arrow before each but the first, and the NPs beside it. */
static bool set_levels(espi_srl_features *f, const espi_srl_tree *t, const espi_srl_spine *s)
{
    f->up.size = 0;
    if (!espi_reserve(&f->level, &f->level_capacity, s->nodes, sizeof *f->level)) return false;
    for (size_t k = 0; k < s->nodes; k++) {
        const espi_srl_piece label = t->node[s->node[k]].name;
        if (k > 0) espi_text_add(&f->up, "^", 1);
        espi_text_add(&f->up, t->names.bytes + label.at, label.size);
        f->level[k] = (espi_srl_level){.up_end = f->up.size};
        if (k == 0) continue;
        const espi_srl_trace *child = &f->trace[s->node[k - 1]];
        const size_t below = f->trace[s->node[k]].np_below;
        f->level[k].np_before = f->level[k - 1].np_before + child->np_left;
        f->level[k].np_after = f->level[k - 1].np_after + below - child->np_left - child->np;
    }
    return !f->up.failed;
}

static void add_lemma(espi_srl_names *names, const espi_srl_predicate *p)
{
    espi_text_add(&names->text, p->lemma.bytes, p->lemma.size);
}

/* The verb that governs the clause or phrase of the predicate: the head of the nearest VP above a node of the spine
 * that is no VP. It tells light verbs (take a look) and verbs of control (want to go). */
static void add_governing_verb(espi_srl_names *names, const espi_srl_tree *t, const espi_srl_spine *s)
{
    bool crossed = false;
    for (size_t k = 1; k < s->nodes; k++) {
        const espi_srl_node *n = &t->node[s->node[k]];
        const bool verbal = espi_srl_is(t, n->name, "VP");
        if (verbal && crossed) {
            add_word(names, t, "gv=", n->head);
            return;
        }
        crossed = crossed || !verbal;
    }
}

/* The head of the first NP behind the predicate below the same parent. */
static void add_predicate_object(espi_srl_names *names, const espi_srl_tree *t, const espi_srl_spine *s)
{
    for (uint32_t c = t->node[s->node[0]].right; c != ESPI_SRL_NONE; c = t->node[c].right) {
        if (!espi_srl_is(t, t->node[c].name, "NP")) continue;
        add_word(names, t, "ob=", t->node[c].head);
        return;
    }
}

bool espi_srl_features_predicate(espi_srl_features *f, const espi_srl_tree *t, const espi_srl_predicate *p,
                                 const espi_srl_spine *s)
{
    espi_srl_names *names = &f->of_predicate;
    clear(names);
    f->passive = espi_srl_passive(t, s);
    add(names, "pl=");
    add_lemma(names, p);
    end_name(names);
    add_word(names, t, "pw=", p->token);
    add_pair(names, t, "pp=", t->node[s->node[0]].name);
    add_string(names, "voice=", f->passive ? "passive" : "active");
    if (s->nodes > 1) {
        add(names, "sub=");
        add_piece(names, t, t->node[s->node[1]].name);
        add(names, ">");
        add_children(names, t, &t->node[s->node[1]], s->node[0], ESPI_SRL_NONE);
        end_name(names);
    }
    add_governing_verb(names, t, s);
    add_predicate_object(names, t, s);
    if (s->nodes > 2) add_pair(names, t, "pg=", t->node[s->node[2]].name);
    return set_levels(f, t, s) && !names->text.failed;
}

/* ------------------------------------------------------------------ of both */

static void add_path(espi_srl_features *f, const espi_srl_tree *t, const espi_srl_spine *s)
{
    espi_text_add(&f->names.text, f->up.bytes, f->level[s->up].up_end);
    for (size_t i = s->down; i-- > 0;) {
        add(&f->names, "!");
        add_piece(&f->names, t, t->node[s->way[i]].name);
    }
}

/* A number, those above 4 in groups. */
static void add_count(espi_srl_names *names, const char *kind, size_t count)
{
    static const struct {
        size_t most;
        const char *text;
    } groups[] = {{0, "0"},   {1, "1"},   {2, "2"},      {3, "3"},     {4, "4"},
                  {6, "5-6"}, {9, "7-9"}, {14, "10-14"}, {20, "15-20"}};
    enum { GROUPS = sizeof groups / sizeof *groups };
    size_t i = 0;
    while (i < GROUPS && groups[i].most < count) i++;
    add_string(names, kind, i < GROUPS ? groups[i].text : "21-");
}

static size_t clauses(const espi_srl_tree *t, const uint32_t *node, size_t count)
{
    static const char *const labels[] = {"S", "SBAR", "SBARQ", "SINV", "SQ", NULL};
    size_t found = 0;
    for (size_t i = 0; i < count; i++) found += is_one_of(t, t->node[node[i]].name, labels);
    return found;
}

/* NPs beside the spine on the candidate's side that are nearer to the predicate than it. */
static size_t nearer(const espi_srl_features *f, const espi_srl_spine *s, bool before)
{
    if (s->up == 0) return 0;
    const espi_srl_trace *branch = &f->trace[s->way[s->down - 1]], *child = &f->trace[s->node[s->up - 1]];
    const espi_srl_level *below = &f->level[s->up - 1];
    return before ? below->np_before + child->np_left - branch->np_left - branch->np
                  : below->np_after + branch->np_left - child->np_left - child->np;
}

bool espi_srl_features_pair(espi_srl_features *f, const espi_srl_tree *t, const espi_srl_predicate *p,
                            const espi_srl_spine *s)
{
    espi_srl_names *names = &f->names;
    const espi_srl_node *n = &t->node[s->candidate];
    const bool before = n->last < s->token;
    clear(names);
    add_names(names, &f->of_node, f->of_node_first[s->candidate], f->of_node_first[s->candidate + 1]);
    add_names(names, &f->of_predicate, 0, f->of_predicate.count);
    add_string(names, "pos=", before ? "before" : "after");
    add(names, "path=");
    add_path(f, t, s);
    end_name(names);
    add(names, "up=");
    espi_text_add(&names->text, f->up.bytes, f->level[s->up].up_end);
    end_name(names);
    add_count(names, "down=", s->down);
    add_count(names, "dist=", before ? s->token - n->last - 1 : n->first - s->token - 1);
    add_count(names, "cl=", clauses(t, s->node, s->up + 1) + clauses(t, s->way, s->down));
    add_count(names, "nb=", nearer(f, s, before));
    add(names, "lca=");
    add_children(names, t, &t->node[s->node[s->up]], s->way[s->down - 1],
                 s->up > 0 ? s->node[s->up - 1] : ESPI_SRL_NONE);
    end_name(names);
    add(names, "plt=");
    add_lemma(names, p);
    add(names, "+");
    add_piece(names, t, n->name);
    end_name(names);
    return !names->text.failed;
}
