#include "kernel/tree/pool.h"

#include "base/alloc.h"

void espi_pool_free(espi_pool *p)
{
    espi_free(p->column);
    espi_free(p->unused);
    espi_free(p->node);
    *p = (espi_pool){0};
}

bool espi_pool_begin(espi_pool *p, size_t nodes)
{
    p->serial = 0;
    return espi_reserve(&p->node, &p->node_capacity, nodes, sizeof *p->node);
}

void espi_pool_end(espi_pool *p, bool ok)
{
    p->unused_count = p->columns; /* if nothing failed, all are there, in some order */
    for (size_t i = 0; !ok && i < p->columns; i++) p->unused[i] = (uint32_t)i;
}

uint32_t espi_pool_take(espi_pool *p, size_t node)
{
    if (p->unused_count == 0) {
        if (!espi_reserve(&p->column, &p->column_capacity, p->columns + 1, sizeof *p->column) ||
            !espi_reserve(&p->unused, &p->unused_capacity, p->columns + 1, sizeof *p->unused))
            return ESPI_NO_NODE;
        p->unused[p->unused_count++] = (uint32_t)p->columns++;
    }
    const uint32_t number = p->unused[--p->unused_count];
    p->column[number] = (struct espi_pool_column){.serial = ++p->serial, .users = 1};
    p->node[node].column = number;
    p->node[node].serial = p->serial;
    return number;
}

void espi_pool_share(espi_pool *p, size_t node, uint32_t column, double count)
{
    p->node[node].column = column;
    p->node[node].serial = p->column[column].serial;
    p->column[column].users++;
    p->column[column].pending += count;
}

double espi_pool_leave(espi_pool *p, uint32_t column)
{
    if (--p->column[column].users > 0) return 0.0;
    p->unused[p->unused_count++] = column;
    return p->column[column].pending;
}

bool espi_pool_same_below(const espi_pool *p, const espi_plan *plan, size_t a, size_t b)
{
    const espi_plan_node *x = &plan->node[a], *y = &plan->node[b];
    for (size_t k = 0; k < x->end - x->first; k++) {
        const uint32_t i = plan->child[x->first + k], j = plan->child[y->first + k];
        if (((i | j) & ESPI_WORD) != 0 ? i != j : p->node[i].serial != p->node[j].serial) return false;
    }
    return true;
}
