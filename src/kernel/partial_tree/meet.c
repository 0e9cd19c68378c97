/* What one node meets in the index: blocks with a frequent label of its children, and shapes with a rare one. */
#include "base/alloc.h"
#include "kernel/partial_tree/match.h"

/* The children of the node, and their labels numbered from 1. */
static void take_sides(espi_ptk_matcher *m, const espi_ptk_node *node, const uint32_t *list, size_t children)
{
    m->labels = 0;
    for (size_t k = 0; k < children; k++) {
        const uint32_t below = m->tree->child[node->first + k];
        espi_ptk_side *side = &m->side[k];
        *side = (espi_ptk_side){.inner = below != ESPI_NO_NODE};
        if (side->inner && m->pool.node[below].column != ESPI_NO_NODE) {
            const espi_ptk_column *column = &m->column[m->pool.node[below].column];
            side->column = column->value;
            side->stride = m->index->size[column->group];
        }
        if (list[k] == ESPI_NO_NODE) continue;
        if (m->label[list[k]] == 0) {
            m->list[++m->labels] = list[k];
            m->label[list[k]] = (uint32_t)m->labels;
        }
    }
}

/* Sorts the children by the numbers of their labels. */
static void sort_sides(espi_ptk_matcher *m, const uint32_t *list, size_t children)
{
    uint32_t *end = m->begin + 1; /* per label: where the next child with it goes */
    for (size_t i = 0; i <= m->labels + 1; i++) m->begin[i] = 0;
    for (size_t k = 0; k < children; k++)
        if (list[k] != ESPI_NO_NODE) end[m->label[list[k]]]++;
    for (size_t i = 1, next = 0; i <= m->labels; i++) {
        const uint32_t count = end[i];
        end[i] = (uint32_t)next;
        next += count;
    }
    for (size_t k = 0; k < children; k++)
        if (list[k] != ESPI_NO_NODE) m->sorted[end[m->label[list[k]]]++] = (uint32_t)k;
}

/* The blocks with a frequent label. */
static bool meet_blocks(espi_ptk_matcher *m, uint32_t list)
{
    const uint32_t *at = m->index->posting + m->index->list_start[list];
    const uint32_t *end = m->index->posting + m->index->list_start[list + 1];
    if (!espi_reserve(&m->met, &m->met_capacity, m->mets + (size_t)(end - at), sizeof *m->met)) return false;
    for (; at < end && *at < m->limit; at++) {
        if (m->met_at[*at] != 0) continue;
        m->met[m->mets++] = (espi_ptk_met){.block = *at};
        m->met_at[*at] = (uint32_t)m->mets;
    }
    return true;
}

/* How many vertices of a shape with rare labels lie in trees before `to`. */
static uint32_t kin_reach(const espi_ptk_matcher *m, const struct espi_ptk_kin *kin)
{
    const uint32_t *member = m->index->member + kin->member,
                   *first = m->index->first + m->index->block[kin->block].vertex;
    uint32_t low = 0, high = (uint32_t)(kin[1].member - kin->member);
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (first[member[middle]] < m->to) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The shapes with a rare label. */
static bool meet_kin(espi_ptk_matcher *m, uint32_t list)
{
    const uint32_t *at = m->index->posting + m->index->list_start[list];
    const uint32_t *end = m->index->posting + m->index->list_start[list + 1];
    if (!espi_reserve(&m->kin, &m->kin_capacity, m->kins + (size_t)(end - at), sizeof *m->kin)) return false;
    for (; at < end; at++) {
        const struct espi_ptk_kin *kin = &m->index->kin[*at];
        if (kin->block >= m->limit || m->kin_met[*at]) continue;
        const uint32_t n = kin_reach(m, kin);
        if (n == 0) continue;
        m->kin_met[*at] = true;
        m->kin[m->kins++] = (espi_ptk_met_kin){.shape = *at, .n = n, .apart = m->met_at[kin->block] == 0};
    }
    return true;
}

bool espi_ptk_meet(espi_ptk_matcher *m, const espi_ptk_node *node)
{
    const espi_ptk_shape *p = &m->tree->trees->shape[node->shape];
    const uint32_t *list = m->link->list + p->name;
    m->mets = m->kins = 0;
    if (!espi_reserve(&m->side, &m->side_capacity, p->children, sizeof *m->side) ||
        !espi_reserve(&m->sorted, &m->sorted_capacity, p->children, sizeof *m->sorted) ||
        !espi_reserve(&m->list, &m->list_capacity, p->children + 1, sizeof *m->list) ||
        !espi_reserve(&m->begin, &m->begin_capacity, p->children + 2, sizeof *m->begin))
        return false;
    take_sides(m, node, list, p->children);
    sort_sides(m, list, p->children);
    bool ok = true;
    for (size_t i = 1; ok && i <= m->labels; i++)
        if (m->list[i] < m->index->frequent) ok = meet_blocks(m, m->list[i]);
    for (size_t i = 1; ok && i <= m->labels; i++)
        if (m->list[i] >= m->index->frequent) ok = meet_kin(m, m->list[i]);
    for (size_t i = 1; i <= m->labels; i++) m->label[m->list[i]] = 0;
    for (size_t i = 0; !ok && i < m->mets; i++) m->met_at[m->met[i].block] = 0;
    for (size_t i = 0; i < m->kins; i++) m->kin_met[m->kin[i].shape] = false;
    return ok;
}
