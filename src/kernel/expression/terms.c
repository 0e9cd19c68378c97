#include "kernel/expression/terms.h"

#include "base/alloc.h"

static espi_term describe(const esp_kernel *kernel, espi_term t)
{
    const espi_op *op = &kernel->op[t.op];
    t.norm = op->kind == ESPI_NORM;
    const espi_op *inside = t.norm ? &kernel->op[op->left] : op;
    t.leaf = inside->kind == ESPI_LEAF_OP;
    if (t.leaf) t.number = inside->left;
    return t;
}

espi_term *espi_kernel_terms(const esp_kernel *kernel, size_t *count)
{
    espi_term *found = NULL, *todo = NULL;
    size_t waiting = 0, capacity = 0, room = 0;
    bool ok = espi_reserve(&todo, &capacity, 1, sizeof *todo);
    *count = 0;
    if (ok) todo[waiting++] = (espi_term){.op = kernel->ops - 1, .weight = 1.0};
    while (ok && waiting > 0) {
        const espi_term t = todo[--waiting];
        const espi_op *op = &kernel->op[t.op];
        if (op->kind == ESPI_SUM) {
            ok = espi_reserve(&todo, &capacity, waiting + 2, sizeof *todo);
            if (!ok) break;
            todo[waiting++] = (espi_term){.op = op->right, .weight = t.weight};
            todo[waiting++] = (espi_term){.op = op->left, .weight = t.weight};
        } else if (op->kind == ESPI_SCALE) {
            todo[waiting++] = (espi_term){.op = op->left, .weight = t.weight * op->number};
        } else {
            ok = espi_reserve(&found, &room, *count + 1, sizeof *found);
            if (ok) found[(*count)++] = describe(kernel, t);
        }
    }
    espi_free(todo);
    if (ok) return found;
    espi_free(found);
    return NULL;
}
