/* Matching one tree against the index (partial_tree.h): the constants by its names, then the excess node by node. */
#include "base/alloc.h"
#include "base/status.h"
#include "base/hot.h"
#include "kernel/partial_tree/match.h"

#include <string.h>

void espi_ptk_matcher_free(espi_ptk_matcher *m)
{
    if (m == NULL) return;
    for (size_t i = 0; i < m->columns; i++) espi_free(m->column[i].value);
    for (size_t i = 0; i < m->sum_room; i++) {
        espi_free(m->sum[i].w);
        espi_free(m->sum[i].block);
        espi_free(m->sum[i].shape);
    }
    espi_pool_free(&m->pool);
    espi_free(m->column);
    espi_free(m->sum);
    espi_free(m->sum_of);
    espi_free(m->summed);
    espi_free(m->kin_summed);
    espi_free(m->met_at);
    espi_free(m->met);
    espi_free(m->kin_met);
    espi_free(m->kin);
    espi_free(m->side);
    espi_free(m->label);
    espi_free(m->list);
    espi_free(m->begin);
    espi_free(m->sorted);
    espi_free(m->cell);
    espi_free(m->kin_value);
    espi_free(m->saved);
    espi_ptk_narrow_free(&m->narrow);
    espi_ptk_cells_free(&m->table);
    espi_free(m->counts);
    espi_free(m);
}

espi_ptk_matcher *espi_ptk_matcher_new(const espi_ptk_values *values, const espi_ptk_index *index,
                                       const espi_ptk_link *link, const esp_run *run)
{
    espi_ptk_matcher *m = espi_alloc_zero(1, sizeof *m);
    if (m == NULL) return NULL;
    m->values = values;
    m->index = index;
    m->link = link;
    m->run = run;
    m->sum_of = espi_alloc_zero(index->trees->group.count, sizeof *m->sum_of);
    m->summed = espi_alloc_zero(index->blocks, sizeof *m->summed);
    m->kin_summed = espi_alloc_zero(index->trees->shapes, sizeof *m->kin_summed);
    m->met_at = espi_alloc_zero(index->blocks, sizeof *m->met_at);
    m->kin_met = espi_alloc_zero(index->trees->shapes, sizeof *m->kin_met);
    m->label = espi_alloc_zero(index->list.count + 1, sizeof *m->label);
    m->counts = espi_alloc_zero(index->trees->trees, sizeof *m->counts);
    if (m->sum_of != NULL && m->summed != NULL && m->kin_summed != NULL && m->met_at != NULL && m->kin_met != NULL &&
        m->label != NULL && m->counts != NULL)
        return m;
    espi_ptk_matcher_free(m);
    return NULL;
}

/* ------------------------------------------------------------- hot loops */

/* Counts of frequent names are small: they are summed in short integers, many side by side. */
HOT static void add_small_counts(uint16_t *restrict total, const uint8_t *restrict count, size_t n, uint16_t times)
{
    for (size_t j = 0; j < n; j++) total[j] = (uint16_t)(total[j] + times * count[j]);
}

HOT static void add_small_sums(double *restrict out, const uint16_t *restrict total, size_t n, double value)
{
    for (size_t j = 0; j < n; j++) out[j] += value * total[j];
}

/* ------------------------------------------------------- what is done with w */

typedef struct sink { /* what w goes to: a row, the gradient of a weighted row, or scores */
    size_t from, to;
    size_t lanes;                  /* of w */
    double *out;                   /* the row; NULL: it is not asked for */
    const double *weight;          /* of the row's derivatives; NULL: these are not asked for */
    double *gradient;              /* by lane; that of the values has no meaning */
    const espi_ptk_folded *folded; /* NULL: no scores */
    double *score;
    const double *value; /* the constant that the sums of counts of frequent names are to be multiplied with */
    size_t most;         /* that such a sum can have reached; 0: all are 0 */
} sink;

/* Of `times` occurrences, weighted, all worth `value`: their derivatives. */
static void add_constant(const sink *s, const double *value, double times)
{
    for (size_t lane = 1; lane < s->lanes; lane++) s->gradient[lane] += times * value[lane];
}

static void add_waiting(const espi_ptk_matcher *m, sink *s)
{
    const size_t n = s->to - s->from;
    if (s->most == 0) return;
    if (s->out != NULL) add_small_sums(s->out, m->counts, n, *s->value);
    if (s->weight != NULL) {
        double times = 0.0;
        for (size_t j = 0; j < n; j++) times += s->weight[j] * m->counts[j];
        add_constant(s, s->value, times);
    }
    memset(m->counts, 0, n * sizeof *m->counts);
    s->most = 0;
}

/* Adds `times` pairs per occurrence of a frequent name, as far as short integers can: the caller sees to the rest. */
static bool add_dense(const espi_ptk_matcher *m, const uint8_t *count, double times, const double *value, sink *s)
{
    if (times > UINT16_MAX / ESPI_PTK_SMALL) return false;
    const size_t more = (size_t)times * ESPI_PTK_SMALL;
    const bool same = s->value != NULL && memcmp(value, s->value, s->lanes * sizeof *value) == 0;
    if (!same || s->most + more > UINT16_MAX) add_waiting(m, s);
    s->value = value;
    s->most += more;
    add_small_counts(m->counts, count + s->from, s->to - s->from, (uint16_t)times);
    return true;
}

/* The first of the occurrences in a tree >= `from`. */
static size_t skip_to(const espi_ptk_occurrence *at, size_t n, size_t from)
{
    size_t low = 0, high = from == 0 ? 0 : n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (at[middle].tree < from) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Adds w of vertices of a group to the trees where they occur, in order, and what these weigh, times w, to the
 * gradient. */
static void use_occurrences(const espi_ptk_matcher *m, uint32_t group, const espi_ptk_occurrence *at, size_t all,
                            const double *w, const sink *s)
{
    const size_t first = skip_to(at, all, s->from), size = m->index->size[group];
    if (s->weight == NULL) { /* a row alone */
        double *out = s->out;
        for (size_t i = first; i < all && at[i].tree < s->to; i++) out[at[i].tree - s->from] += w[at[i].item];
        return;
    }
    double sum[ESPI_PTK_LANES] = {0.0};
    for (size_t i = first; i < all && at[i].tree < s->to; i++) {
        const size_t tree = at[i].tree - s->from;
        const double *here = w + at[i].item;
        if (s->out != NULL) s->out[tree] += *here;
        for (size_t lane = 1; lane < ESPI_PTK_LANES; lane++) sum[lane] += s->weight[tree] * here[lane * size];
    }
    for (size_t lane = 1; lane < s->lanes; lane++) s->gradient[lane] += sum[lane];
}

/* Uses w of the first n vertices of a block of a group. */
static void use_block(const espi_ptk_matcher *m, uint32_t group, uint32_t block, const double *w, size_t n, sink *s)
{
    const espi_ptk_index *x = m->index;
    const struct espi_ptk_block *b = &x->block[block];
    w += b->place;
    if (s->folded == NULL) use_occurrences(m, group, x->at + b->at, b[1].at - b->at, w, s);
    for (size_t k = 0; s->folded != NULL && k < s->folded->outputs; k++) {
        const double *f = s->folded->vertex + k * x->vertices + b->vertex;
        double total = 0.0;
        for (size_t r = 0; r < n; r++) total += f[r] * w[r];
        s->score[k] += total;
    }
}

/* The same of a shape with rare labels; w is 0 where it does not reach. */
static void use_kin(const espi_ptk_matcher *m, uint32_t group, uint32_t shape, const double *w, sink *s)
{
    const espi_ptk_index *x = m->index;
    const struct espi_ptk_kin *kin = &x->kin[shape];
    const struct espi_ptk_block *b = &x->block[kin->block];
    w += b->place;
    if (s->folded == NULL) use_occurrences(m, group, x->kin_at + kin->at, kin[1].at - kin->at, w, s);
    for (size_t k = 0; s->folded != NULL && k < s->folded->outputs; k++) {
        const double *f = s->folded->vertex + k * x->vertices + b->vertex;
        double total = 0.0;
        for (size_t i = kin->member; i < kin[1].member; i++) total += f[x->member[i]] * w[x->member[i]];
        s->score[k] += total;
    }
}

/* Uses `times` pairs per occurrence of a name, worth `value` each. */
static void use_name(const espi_ptk_matcher *m, uint32_t name, double times, const double *value, sink *s)
{
    const espi_ptk_index *x = m->index;
    if (s->folded != NULL) {
        for (size_t k = 0; k < s->folded->outputs; k++)
            s->score[k] += times * *value * s->folded->name[k * x->trees->name.count + name];
        return;
    }
    if (x->dense[name] != NULL && add_dense(m, x->dense[name], times, value, s)) return;
    const espi_ptk_occurrence *at = x->name_at + x->name_start[name];
    const size_t end = x->name_start[name + 1] - x->name_start[name];
    double weighted = 0.0;
    for (size_t i = skip_to(at, end, s->from); i < end && at[i].tree < s->to; i++) {
        if (s->out != NULL) s->out[at[i].tree - s->from] += times * *value * at[i].item;
        if (s->weight != NULL) weighted += s->weight[at[i].tree - s->from] * at[i].item;
    }
    if (s->weight != NULL) add_constant(s, value, times * weighted);
}

/* The constants of the tree with all others. */
static void use_names(const espi_ptk_matcher *m, sink *s)
{
    for (size_t i = 0; i < m->tree->counts; i++) {
        const espi_ptk_count *c = &m->tree->count[i];
        const uint32_t name = (uint32_t)m->tree->trees->name.key[c->name];
        for (size_t n = 0; n < 2; n++) {
            const uint32_t other = m->link->namesake[c->name][n];
            const double *value = espi_ptk_constant(m->values, name, espi_ptk_namesake(name, n));
            if (other != ESPI_NO_NODE) use_name(m, other, c->count, value, s);
        }
    }
    add_waiting(m, s);
}

/* ------------------------------------------------------- sums and columns */

/* The w of a group that several nodes share: zeros at first. */
static espi_ptk_sum *sum_of(espi_ptk_matcher *m, uint32_t g)
{
    if (m->sum_of[g] > 0) return &m->sum[m->sum_of[g] - 1];
    if (m->sums == m->sum_room) {
        if (!espi_reserve(&m->sum, &m->sum_capacity, m->sums + 1, sizeof *m->sum)) return NULL;
        m->sum[m->sum_room++] = (espi_ptk_sum){0};
    }
    espi_ptk_sum *s = &m->sum[m->sums];
    const size_t size = m->index->size[g] * m->lanes;
    if (!espi_reserve(&s->w, &s->capacity, size, sizeof *s->w)) return NULL;
    memset(s->w, 0, size * sizeof *s->w);
    s->group = g;
    s->blocks = s->shapes = 0;
    s->column = ESPI_NO_NODE;
    m->sum_of[g] = (uint32_t)++m->sums;
    return s;
}

/* A column for a node, which becomes its first user. */
static double *take_column(espi_ptk_matcher *m, size_t node, uint32_t group)
{
    const uint32_t number = espi_pool_take(&m->pool, node);
    if (number == ESPI_NO_NODE) return NULL;
    if (number == m->columns) {
        if (!espi_reserve(&m->column, &m->column_capacity, m->columns + 1, sizeof *m->column)) return NULL;
        m->column[m->columns++] = (espi_ptk_column){0};
    }
    espi_ptk_column *c = &m->column[number];
    const size_t size = m->index->size[group] * m->lanes;
    c->group = group;
    if (!espi_reserve(&c->value, &c->capacity, size, sizeof *c->value)) return NULL;
    m->steps += size;
    return c->value;
}

static void leave_column(espi_ptk_matcher *m, uint32_t number)
{
    const double pending = espi_pool_leave(&m->pool, number);
    if (pending == 0.0) return;
    const espi_ptk_column *c = &m->column[number];
    espi_ptk_add(m->sum[m->sum_of[c->group] - 1].w, c->value, m->index->size[c->group] * m->lanes, pending);
}

static void release_column(espi_ptk_matcher *m, size_t node)
{
    struct espi_pool_node *n = &m->pool.node[node];
    if (n->column != ESPI_NO_NODE) leave_column(m, n->column);
    n->column = ESPI_NO_NODE;
}

/* ----------------------------------------------------------------- nodes */

/* The column of a node, with what it met in m->met and m->kin, added to `w` if there is one; *out is NULL if it met
 * nothing. */
static esp_status make_column(espi_ptk_matcher *m, size_t number, uint32_t group, espi_ptk_sum *sum, double **out,
                              esp_error *err)
{
    const espi_ptk_node *node = &m->tree->node[number];
    *out = take_column(m, number, group);
    if (*out == NULL) return espi_no_memory(err);
    return espi_ptk_fill(m, node, *out, sum == NULL ? NULL : sum->w, node->count, err);
}

/* Whether two nodes have one shape and the same children, as far as columns can tell. */
static bool same_below(const espi_ptk_matcher *m, size_t a, size_t b)
{
    const espi_ptk_node *x = &m->tree->node[a], *y = &m->tree->node[b];
    if (x->shape != y->shape) return false;
    for (size_t k = 0; k < m->tree->trees->shape[x->shape].children; k++) {
        const uint32_t i = m->tree->child[x->first + k], j = m->tree->child[y->first + k];
        if (i == ESPI_NO_NODE || j == ESPI_NO_NODE ? i != j : m->pool.node[i].serial != m->pool.node[j].serial)
            return false;
    }
    return true;
}

static bool same_column(const espi_ptk_matcher *m, const double *a, const double *b, uint32_t group)
{
    return memcmp(a, b, m->index->size[group] * m->lanes * sizeof *a) == 0;
}

/* Notes where the column just made adds to w. */
static bool note_sum(espi_ptk_matcher *m, espi_ptk_sum *s)
{
    if (!espi_reserve(&s->block, &s->block_capacity, s->blocks + m->mets, sizeof *s->block) ||
        !espi_reserve(&s->shape, &s->shape_capacity, s->shapes + m->kins, sizeof *s->shape))
        return false;
    for (size_t i = 0; i < m->mets; i++) {
        const uint32_t block = m->met[i].block;
        if (!m->summed[block]) s->block[s->blocks++] = block;
        m->summed[block] = true;
    }
    for (size_t i = 0; i < m->kins; i++) {
        const uint32_t shape = m->kin[i].shape;
        if (!m->kin[i].apart || m->kin_summed[shape]) continue;
        s->shape[s->shapes++] = shape;
        m->kin_summed[shape] = true;
    }
    return true;
}

/* The column of one of several nodes of a group, added to w. Along a chain that repeats, columns soon stop changing
 * (lambda < 1), and the nodes above share the group's newest: a chain of many nodes costs a few columns. */
static esp_status make_or_share(espi_ptk_matcher *m, size_t number, uint32_t group, esp_error *err)
{
    double *col;
    espi_ptk_sum *s = m->sum_of[group] > 0 ? &m->sum[m->sum_of[group] - 1] : NULL;
    if (s != NULL && same_below(m, number, s->node)) {
        espi_pool_share(&m->pool, number, s->column, m->tree->node[number].count);
        s->node = number;
        return ESP_OK;
    }
    if (!espi_ptk_meet(m, &m->tree->node[number])) return espi_no_memory(err);
    if (m->mets + m->kins == 0) return ESP_OK;
    s = sum_of(m, group);
    if (s == NULL || !note_sum(m, s)) return espi_no_memory(err);
    const esp_status status = make_column(m, number, group, s, &col, err);
    if (status != ESP_OK) return status;
    if (s->column != ESPI_NO_NODE && same_column(m, col, m->column[s->column].value, group)) {
        release_column(m, number);
        espi_pool_share(&m->pool, number, s->column, 0.0);
    } else {
        if (s->column != ESPI_NO_NODE) leave_column(m, s->column);
        s->column = m->pool.node[number].column;
        espi_pool_keep(&m->pool, s->column);
    }
    s->node = number;
    return ESP_OK;
}

static esp_status match_node(espi_ptk_matcher *m, size_t number, sink *s, esp_error *err)
{
    const espi_ptk_node *node = &m->tree->node[number];
    const uint32_t group = m->link->group[node->shape];
    espi_pool_enter(&m->pool, number, node->uses);
    if (group == ESPI_NO_NODE) return ESP_OK;
    if (!node->alone) return make_or_share(m, number, group, err);
    if (!espi_ptk_meet(m, node)) return espi_no_memory(err);
    if (m->mets + m->kins == 0) return ESP_OK;
    double *col;
    const esp_status status = make_column(m, number, group, NULL, &col, err);
    for (size_t i = 0; status == ESP_OK && i < m->mets; i++) use_block(m, group, m->met[i].block, col, m->met[i].n, s);
    for (size_t i = 0; status == ESP_OK && i < m->kins; i++)
        if (m->kin[i].apart) use_kin(m, group, m->kin[i].shape, col, s);
    return status;
}

static void release_children(espi_ptk_matcher *m, size_t number)
{
    const espi_ptk_node *node = &m->tree->node[number];
    for (size_t k = 0; k < m->tree->trees->shape[node->shape].children; k++) {
        const uint32_t child = m->tree->child[node->first + k];
        if (child != ESPI_NO_NODE && --m->pool.node[child].uses == 0) release_column(m, child);
    }
    if (node->uses == 0) release_column(m, number);
}

/* Uses and forgets a sum. Shapes of blocks that are in it as a whole have been used with these. */
static void finish_sum(espi_ptk_matcher *m, const espi_ptk_sum *x, bool ok, sink *s)
{
    if (ok && x->column != ESPI_NO_NODE) leave_column(m, x->column);
    for (size_t k = 0; k < x->blocks && ok; k++)
        use_block(m, x->group, x->block[k], x->w, espi_ptk_reach(m, &m->index->block[x->block[k]]), s);
    for (size_t k = 0; k < x->shapes; k++) {
        if (ok && !m->summed[m->index->kin[x->shape[k]].block]) use_kin(m, x->group, x->shape[k], x->w, s);
        m->kin_summed[x->shape[k]] = false;
    }
    for (size_t k = 0; k < x->blocks; k++) m->summed[x->block[k]] = false;
    m->sum_of[x->group] = 0;
}

/* Uses and forgets the sums, and takes all columns back, also after a failure in the middle. */
static void finish_tree(espi_ptk_matcher *m, bool ok, sink *s)
{
    for (size_t i = 0; i < m->sums; i++) finish_sum(m, &m->sum[i], ok, s);
    for (size_t i = 0; i < m->mets && !ok; i++) m->met_at[m->met[i].block] = 0;
    m->sums = m->mets = 0;
    espi_pool_end(&m->pool, ok);
}

/* The first block without a vertex in trees before `to`: blocks come in order of the trees that brought them. */
static uint32_t find_limit(const espi_ptk_index *x, size_t to)
{
    size_t low = 0, high = x->blocks;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (x->first[x->block[middle].vertex] < to) low = middle + 1;
        else high = middle;
    }
    return (uint32_t)low;
}

static esp_status match_tree(espi_ptk_matcher *m, const espi_ptk_tree *tree, sink *s, esp_error *err)
{
    m->tree = tree;
    m->lanes = s->lanes;
    if (m->to != s->to) m->limit = find_limit(m->index, s->to);
    m->to = s->to;
    if (!espi_pool_begin(&m->pool, tree->nodes)) return espi_no_memory(err);
    use_names(m, s);
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < tree->nodes; i++) {
        status = match_node(m, i, s, err);
        if (status == ESP_OK) release_children(m, i);
    }
    finish_tree(m, status == ESP_OK, s);
    return status;
}

esp_status espi_ptk_match_row(espi_ptk_matcher *m, const espi_ptk_tree *tree, size_t from, size_t to, double *out,
                              esp_error *err)
{
    sink s = {.from = from, .to = to, .lanes = 1, .out = out};
    memset(out, 0, (to - from) * sizeof *out);
    return match_tree(m, tree, &s, err);
}

esp_status espi_ptk_match_gradient(espi_ptk_matcher *m, const espi_ptk_tree *tree, size_t from, size_t to,
                                   const double *weight, double *value, double *gradient, esp_error *err)
{
    double sum[ESPI_PTK_LANES] = {0.0};
    sink s = {.from = from, .to = to, .lanes = ESPI_PTK_LANES, .out = value, .weight = weight, .gradient = sum};
    if (from == to) return ESP_OK;
    if (value != NULL) memset(value, 0, (to - from) * sizeof *value);
    const esp_status status = match_tree(m, tree, &s, err);
    for (size_t lane = 1; status == ESP_OK && lane < ESPI_PTK_LANES; lane++) gradient[lane - 1] += sum[lane];
    return status;
}

esp_status espi_ptk_match_score(espi_ptk_matcher *m, const espi_ptk_tree *tree, const espi_ptk_folded *folded,
                                double *score, esp_error *err)
{
    sink s = {.to = m->index->trees->trees, .lanes = 1, .folded = folded, .score = score};
    for (size_t k = 0; k < folded->outputs; k++) score[k] = 0.0;
    return match_tree(m, tree, &s, err);
}
