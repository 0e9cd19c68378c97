/* Support trees as vertices with weights, and fragments found among them: where
 * they match, and how they are written. */
#include "base/alloc.h"
#include "base/status.h"
#include "explain/source.h"
#include "kernel/tree/tree_kernel.h"

#include <math.h>
#include <string.h>

void espi_tree_source_free(espi_tree_source *s)
{
    espi_free(s->lambda);
    espi_free(s->alpha);
    espi_free(s->f);
    espi_free(s->grown);
    espi_free(s->occurrences);
    espi_free(s->member_start);
    espi_free(s->member);
    espi_free(s->row_start);
    espi_free(s->row);
    *s = (espi_tree_source){0};
}

/* Vertices by production. */
static bool make_groups(espi_tree_source *s)
{
    const espi_forest *f = s->forest;
    s->member_start = espi_alloc_zero(f->productions + 2, sizeof *s->member_start);
    s->member = espi_alloc(f->vertices, sizeof *s->member);
    if (s->member_start == NULL || s->member == NULL) return false;
    for (size_t v = 0; v < f->vertices; v++) s->member_start[f->vertex[v].production + 2]++;
    for (size_t p = 2; p < f->productions + 2; p++) s->member_start[p] += s->member_start[p - 1];
    for (size_t v = 0; v < f->vertices; v++) s->member[s->member_start[f->vertex[v].production + 1]++] = (espi_ref)v;
    return true;
}

/* lambda and alpha of the productions, and from them E of every vertex; children come before parents. */
static bool make_factors(espi_tree_source *s, const espi_leaf *leaf)
{
    const espi_forest *f = s->forest;
    s->lambda = espi_alloc(f->productions, sizeof *s->lambda);
    s->alpha = espi_alloc(f->productions, sizeof *s->alpha);
    s->grown = espi_alloc(f->vertices, sizeof *s->grown);
    if (s->lambda == NULL || s->alpha == NULL || s->grown == NULL) return false;
    s->complete = true;
    for (size_t p = 0; p < f->productions; p++) {
        espi_tree_decay(leaf, f, p, &s->lambda[p], &s->alpha[p]);
        s->complete = s->complete && s->alpha[p] == 0.0;
    }
    for (size_t v = 0; v < f->vertices; v++) {
        const uint32_t p = f->vertex[v].production;
        double grown = s->lambda[p];
        for (size_t k = 0; k < f->production[p].arity; k++) {
            const espi_ref child = f->child[f->vertex[v].children + k];
            if (!espi_is_leaf(child)) grown *= s->alpha[p] > s->grown[child] ? s->alpha[p] : s->grown[child];
        }
        s->grown[v] = grown;
    }
    return true;
}

/* Visits all trees: first counts in row_start[v + 2], then with `fill` puts rows where row_start[v + 1] says. */
static bool visit_trees(espi_tree_source *s, const double *coefficient, espi_fragment_walker *w, espi_vertices *tree,
                        bool fill)
{
    for (size_t r = 0; r < s->forest->roots; r++) {
        if (!espi_vertices_make(tree, s->forest, s->forest->root[r], w)) return false;
        double nodes = 0.0;
        for (size_t i = 0; i < tree->count; i++) {
            const size_t v = tree->at[i].vertex;
            const double count = tree->at[i].count;
            if (fill) {
                s->row[s->row_start[v + 1]++] = (uint32_t)r;
                continue;
            }
            s->row_start[v + 2]++;
            s->occurrences[v] += count;
            nodes += count;
            for (size_t k = 0; k < s->outputs; k++) s->f[v * s->outputs + k] += count * coefficient[r * s->outputs + k];
        }
        if (nodes > (double)s->largest) s->largest = nodes < 0x1p53 ? (size_t)nodes : (size_t)1 << 53;
    }
    return true;
}

static bool make_weights(espi_tree_source *s, const double *coefficient)
{
    const espi_forest *f = s->forest;
    espi_fragment_walker walker = {0};
    espi_vertices tree = {0};
    s->f = espi_alloc_zero(f->vertices, s->outputs * sizeof *s->f);
    s->occurrences = espi_alloc_zero(f->vertices, sizeof *s->occurrences);
    s->row_start = espi_alloc_zero(f->vertices + 2, sizeof *s->row_start);
    bool ok = s->f != NULL && s->occurrences != NULL && s->row_start != NULL;
    ok = ok && visit_trees(s, coefficient, &walker, &tree, false);
    for (size_t v = 2; ok && v < f->vertices + 2; v++) s->row_start[v] += s->row_start[v - 1];
    ok = ok && (s->row = espi_alloc(s->row_start[f->vertices + 1], sizeof *s->row)) != NULL;
    ok = ok && visit_trees(s, coefficient, &walker, &tree, true);
    espi_vertices_free(&tree);
    espi_fragment_walker_free(&walker);
    return ok;
}

esp_status espi_tree_source_make(espi_tree_source *s, const espi_leaf *leaf, const espi_column *support,
                                 const double *coefficient, size_t outputs, esp_error *err)
{
    *s = (espi_tree_source){.forest = &support->trees, .outputs = outputs};
    if (make_groups(s) && make_factors(s, leaf) && make_weights(s, coefficient)) return ESP_OK;
    espi_tree_source_free(s);
    return espi_no_memory(err);
}

/* ------------------------------------------------------------------- examples */

void espi_tree_example_free(espi_tree_example *x)
{
    espi_free(x->production);
    espi_free(x->count);
    espi_vertices_free(&x->vertices);
    *x = (espi_tree_example){0};
}

bool espi_tree_example_make(espi_tree_example *x, const espi_tree_source *s, const espi_column *column, double scale)
{
    espi_fragment_walker walker = {0};
    *x = (espi_tree_example){.forest = &column->trees, .root = column->trees.root[0], .scale = scale};
    x->production = espi_forest_map_productions(x->forest, s->forest);
    x->count = espi_alloc_zero(x->forest->vertices, sizeof *x->count);
    const bool ok =
        x->production != NULL && x->count != NULL && espi_vertices_make(&x->vertices, x->forest, x->root, &walker);
    for (size_t i = 0; ok && i < x->vertices.count; i++) x->count[x->vertices.at[i].vertex] = x->vertices.at[i].count;
    espi_fragment_walker_free(&walker);
    if (!ok) espi_tree_example_free(x);
    return ok;
}

/* ------------------------------------------------------ what is told of them */

typedef struct replay { /* occurrences of a fragment: root and open nodes */
    espi_ref *ref;
    size_t capacity, count, open;
} replay;

/* One step: keeps the occurrences whose open node `skip` has the production. */
static bool replay_step(replay *r, const espi_forest *f, size_t skip, uint32_t production)
{
    const size_t inner = f->production[production].inner, open = inner + r->open - skip - 1;
    size_t capacity = 0, kept = 0;
    espi_ref *next = NULL;
    if (!espi_reserve(&next, &capacity, r->count * (1 + open), sizeof *next)) return false;
    espi_ref *to = next;
    for (size_t i = 0; i < r->count; i++) {
        const espi_ref *at = r->ref + i * (1 + r->open);
        const espi_vertex *v = &f->vertex[at[1 + skip]];
        if (v->production != production) continue;
        kept++;
        *to++ = at[0];
        for (size_t c = 0; c < f->production[production].arity; c++)
            if (!espi_is_leaf(f->child[v->children + c])) *to++ = f->child[v->children + c];
        for (size_t c = skip + 1; c < r->open; c++) *to++ = at[1 + c];
    }
    espi_free(r->ref);
    *r = (replay){.ref = next, .capacity = capacity, .count = kept, .open = open};
    return true;
}

static bool replay_all(replay *r, const espi_tree_source *s, const espi_found *found)
{
    const uint32_t first = found->steps == 1 ? 0 : found->step[1];
    const size_t start = s->member_start[first];
    if (found->steps == 1) { /* a complete subtree */
        if (!espi_reserve(&r->ref, &r->capacity, 1, sizeof *r->ref)) return false;
        *r = (replay){.ref = r->ref, .capacity = r->capacity, .count = 1};
        r->ref[0] = found->step[0];
        return true;
    }
    r->count = s->member_start[first + 1] - start;
    r->open = 1;
    if (!espi_reserve(&r->ref, &r->capacity, 2 * r->count, sizeof *r->ref)) return false;
    for (size_t i = 0; i < r->count; i++) r->ref[2 * i] = r->ref[2 * i + 1] = s->member[start + i];
    bool ok = true;
    for (size_t i = 0; ok && i < found->steps; i += 2)
        ok = replay_step(r, s->forest, found->step[i], found->step[i + 1]);
    return ok;
}

/* The product of the factors of a fragment. */
static double factor_of(const espi_tree_source *s, const espi_found *found)
{
    if (found->steps == 1) return s->grown[found->step[0]];
    double factor = 1.0;
    size_t capacity = 0, open = 1;
    double *alpha = NULL; /* of the open nodes, the leftmost last */
    bool ok = espi_reserve(&alpha, &capacity, 1, sizeof *alpha);
    if (ok) alpha[0] = 0.0;
    for (size_t i = 0; ok && i < found->steps; i += 2) {
        const uint32_t p = found->step[i + 1];
        for (size_t k = 0; k < found->step[i]; k++) factor *= alpha[--open];
        open--;
        factor *= s->lambda[p];
        const size_t inner = s->forest->production[p].inner;
        ok = espi_reserve(&alpha, &capacity, open + inner, sizeof *alpha);
        for (size_t k = 0; ok && k < inner; k++) alpha[open++] = s->alpha[p];
    }
    while (ok && open > 0) factor *= alpha[--open];
    espi_free(alpha);
    return ok ? factor : (double)NAN;
}

bool espi_fragment_facts(const espi_tree_source *s, const espi_found *found, espi_facts *facts)
{
    replay r = {0};
    const double factor = factor_of(s, found);
    uint8_t *seen = espi_alloc_zero(s->forest->roots, sizeof *seen);
    const bool ok = seen != NULL && !isnan(factor) && replay_all(&r, s, found);
    for (size_t k = 0; k < s->outputs; k++) facts->weight[k] = 0.0;
    for (size_t i = 0; ok && i < r.count; i++) {
        const size_t root = r.ref[i * (1 + r.open)];
        facts->occurrences += s->occurrences[root];
        for (size_t k = 0; k < s->outputs; k++) facts->weight[k] += s->f[root * s->outputs + k];
        for (size_t at = s->row_start[root]; at < s->row_start[root + 1]; at++) {
            facts->examples += seen[s->row[at]] == 0;
            seen[s->row[at]] = 1;
        }
    }
    for (size_t k = 0; k < s->outputs; k++) facts->weight[k] *= factor;
    espi_free(seen);
    espi_free(r.ref);
    return ok;
}

/* The steps of a complete subtree: preorder, always the leftmost open node. */
static bool unfold(const espi_forest *f, espi_ref root, uint32_t **step, size_t *steps, size_t *capacity)
{
    espi_ref *stack = NULL;
    size_t room = 0, waiting = 1;
    bool ok = espi_reserve(&stack, &room, 1, sizeof *stack);
    if (ok) stack[0] = root;
    while (ok && waiting > 0) {
        const espi_vertex *v = &f->vertex[stack[--waiting]];
        const espi_production *p = &f->production[v->production];
        ok = espi_reserve(step, capacity, *steps + 2, sizeof **step) &&
             espi_reserve(&stack, &room, waiting + p->inner, sizeof *stack);
        if (!ok) break;
        (*step)[(*steps)++] = 0;
        (*step)[(*steps)++] = v->production;
        for (size_t k = p->arity; k-- > 0;)
            if (!espi_is_leaf(f->child[v->children + k])) stack[waiting++] = f->child[v->children + k];
    }
    espi_free(stack);
    return ok;
}

/* A set that holds the one fragment, written as sets are. */
static bool write_steps(const espi_forest *f, const uint32_t *step, size_t steps, espi_text *text)
{
    espi_fragments one = {0};
    espi_step *path = espi_alloc(steps / 2, sizeof *path);
    bool ok = path != NULL;
    for (size_t i = 0; ok && i < steps / 2; i++) {
        const uint32_t p = espi_fragments_add(&one, f, step[2 * i + 1]);
        ok = p != ESPI_NO_NODE;
        path[i] = (espi_step){.depth = (uint32_t)i + 1, .label = p, .skip = step[2 * i], .kept = i + 1 == steps / 2};
    }
    ok = ok && espi_patterns_make(&one.set, path, steps / 2, true);
    if (ok) espi_fragments_text(&one, 0, text);
    espi_free(path);
    espi_fragments_free(&one);
    return ok && !text->failed;
}

bool espi_fragment_text(const espi_tree_source *s, const espi_found *found, espi_text *text)
{
    if (found->steps > 1) return write_steps(s->forest, found->step, found->steps, text);
    uint32_t *step = NULL;
    size_t steps = 0, capacity = 0;
    const bool ok =
        unfold(s->forest, found->step[0], &step, &steps, &capacity) && write_steps(s->forest, step, steps, text);
    espi_free(step);
    return ok;
}
