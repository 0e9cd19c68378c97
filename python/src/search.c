/* Indexes, search, pairs and clusters. */
#include "module.h"

static const char index_name[] = "espalier.index", hits_name[] = "espalier.hits";

static void free_index(PyObject *capsule) { esp_index_free(PyCapsule_GetPointer(capsule, index_name)); }
static void free_hits(PyObject *capsule) { esp_hits_free(PyCapsule_GetPointer(capsule, hits_name)); }

static PyObject *wrap_index(bool ok, esp_index *index)
{
    PyObject *capsule = ok ? PyCapsule_New(index, index_name, free_index) : NULL;
    if (capsule == NULL) esp_index_free(index);
    return capsule;
}

/* index_new(kernel, dataset, id or None, RUN) */
static PyObject *index_new(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    const esp_kernel *kernel;
    const esp_dataset *data;
    const char *id;
    esp_index *index = NULL;
    if (!PyArg_ParseTuple(args, "O&O&O&" ESPY_RUN, espy_kernel, &kernel, espy_dataset, &data, espy_text_or_none, &id,
                          ESPY_RUN_ARGS(&call)))
        return NULL;
    espy_begin(&call);
    const esp_status status = esp_index_new(kernel, data, id, &call.run, &index, &call.error);
    return wrap_index(espy_end(&call, status), index);
}

/* index_add(index, dataset, RUN) */
static PyObject *index_add(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    PyObject *object;
    const esp_dataset *data;
    esp_index *index = NULL;
    if (!PyArg_ParseTuple(args, "OO&" ESPY_RUN, &object, espy_dataset, &data, ESPY_RUN_ARGS(&call))) return NULL;
    const esp_index *old = PyCapsule_GetPointer(object, index_name);
    if (old == NULL) return NULL;
    espy_begin(&call);
    const esp_status status = esp_index_add(old, data, &call.run, &index, &call.error);
    return wrap_index(espy_end(&call, status), index);
}

/* index_read(path, RUN) */
static PyObject *index_read(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    const char *path;
    esp_index *index = NULL;
    if (!PyArg_ParseTuple(args, "y" ESPY_RUN, &path, ESPY_RUN_ARGS(&call))) return NULL;
    espy_begin(&call);
    const esp_status status = esp_index_read(path, &call.run, &index, &call.error);
    return wrap_index(espy_end(&call, status), index);
}

/* index_parse(bytes, name, RUN) */
static PyObject *index_parse(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    Py_buffer bytes;
    const char *name;
    esp_index *index = NULL;
    if (!PyArg_ParseTuple(args, "y*y" ESPY_RUN, &bytes, &name, ESPY_RUN_ARGS(&call))) return NULL;
    espy_begin(&call);
    const esp_status status = esp_index_parse(bytes.buf, (size_t)bytes.len, name, &call.run, &index, &call.error);
    const bool ok = espy_end(&call, status);
    PyBuffer_Release(&bytes);
    return wrap_index(ok, index);
}

/* index_write(index, path) */
static PyObject *index_write(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object;
    const char *path;
    esp_error error = {0};
    if (!PyArg_ParseTuple(args, "Oy", &object, &path)) return NULL;
    const esp_index *index = PyCapsule_GetPointer(object, index_name);
    if (index == NULL || !espy_ok(esp_index_write(index, path, &error), &error)) return NULL;
    return Py_NewRef(Py_None);
}

/* index_bytes(index) */
static PyObject *index_bytes(PyObject *module, PyObject *object)
{
    (void)module;
    char *bytes = NULL;
    size_t size;
    esp_error error = {0};
    const esp_index *index = PyCapsule_GetPointer(object, index_name);
    if (index == NULL || !espy_ok(esp_index_bytes(index, &bytes, &size, &error), &error)) return NULL;
    PyObject *result = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size);
    esp_text_free(bytes);
    return result;
}

/* index_info(index) -> (examples, kernel, field of names or None, summary) */
static PyObject *index_info(PyObject *module, PyObject *object)
{
    (void)module;
    char *summary = NULL;
    esp_error error = {0};
    const esp_index *index = PyCapsule_GetPointer(object, index_name);
    if (index == NULL || !espy_ok(esp_index_summary(index, &summary, &error), &error)) return NULL;
    return Py_BuildValue("(nyNN)", (Py_ssize_t)esp_index_count(index), esp_index_kernel(index),
                         espy_bytes(esp_index_id_field(index)), espy_take_text(summary));
}

/* index_ids(index) -> [name] */
static PyObject *index_ids(PyObject *module, PyObject *object)
{
    (void)module;
    const esp_index *index = PyCapsule_GetPointer(object, index_name);
    PyObject *list = index != NULL ? PyList_New(0) : NULL;
    for (size_t i = 0; list != NULL && i < esp_index_count(index); i++)
        if (!espy_append(list, espy_bytes(esp_index_id(index, i)))) Py_CLEAR(list);
    return list;
}

/* search(index, dataset, top, above or None, id or None, others, no_bounds, RUN) -> (hits, entries, computed, skipped)
 */
static PyObject *search(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    PyObject *object, *above;
    const esp_dataset *queries;
    esp_search_options options = {0};
    esp_hits *hits = NULL;
    Py_ssize_t top;
    int others, no_bounds;
    if (!PyArg_ParseTuple(args, "OO&nOO&pp" ESPY_RUN, &object, espy_dataset, &queries, &top, &above, espy_text_or_none,
                          &options.id, &others, &no_bounds, ESPY_RUN_ARGS(&call)))
        return NULL;
    const esp_index *index = PyCapsule_GetPointer(object, index_name);
    if (index == NULL) return NULL;
    options.threshold = above != Py_None;
    if (options.threshold) options.above = PyFloat_AsDouble(above);
    if (PyErr_Occurred() != NULL) return NULL;
    options.top = top > 0 ? (size_t)top : 0;
    options.others = others != 0;
    options.no_bounds = no_bounds != 0;
    espy_begin(&call);
    const esp_status status = esp_search(index, queries, &options, &call.run, &hits, &call.error);
    PyObject *capsule = espy_end(&call, status) ? PyCapsule_New(hits, hits_name, free_hits) : NULL;
    if (capsule == NULL) {
        esp_hits_free(hits);
        return NULL;
    }
    size_t entries = 0, count;
    uint64_t skipped;
    for (size_t q = 0; q < esp_hits_queries(hits); q++, entries += count) (void)esp_hits_of(hits, q, &count);
    const uint64_t computed = esp_hits_computed(hits, &skipped);
    return Py_BuildValue("(NnKK)", capsule, (Py_ssize_t)entries, (unsigned long long)computed,
                         (unsigned long long)skipped);
}

/* hits_fill(hits, start, example, similarity): int64 of queries + 1, int64 and float64 of entries */
static PyObject *hits_fill(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object, *out[3];
    Py_buffer view[3];
    if (!PyArg_ParseTuple(args, "OOOO", &object, &out[0], &out[1], &out[2])) return NULL;
    const esp_hits *hits = PyCapsule_GetPointer(object, hits_name);
    if (hits == NULL) return NULL;
    const size_t queries = esp_hits_queries(hits);
    size_t entries = 0, count;
    for (size_t q = 0; q < queries; q++, entries += count) (void)esp_hits_of(hits, q, &count);
    const size_t size[3] = {queries + 1, entries, entries};
    int held = 0;
    while (held < 3 && espy_array(out[held], held < 2 ? "q" : "d", size[held], &view[held])) held++;
    for (size_t q = 0, at = 0; held == 3 && q <= queries; q++) {
        ((int64_t *)view[0].buf)[q] = (int64_t)at;
        const esp_hit *hit = esp_hits_of(hits, q, &count);
        for (size_t i = 0; i < count; i++, at++) {
            ((int64_t *)view[1].buf)[at] = (int64_t)hit[i].example;
            ((double *)view[2].buf)[at] = hit[i].similarity;
        }
    }
    for (int i = 0; i < held; i++) PyBuffer_Release(&view[i]);
    return held == 3 ? Py_NewRef(Py_None) : NULL;
}

/* hits_measure(hits, index, path of judgements) -> {name: value} */
static PyObject *hits_measure(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object[2];
    const char *path;
    esp_qrels *qrels = NULL;
    esp_search_metrics m;
    esp_error error = {0};
    if (!PyArg_ParseTuple(args, "OOy", &object[0], &object[1], &path)) return NULL;
    const esp_hits *hits = PyCapsule_GetPointer(object[0], hits_name);
    const esp_index *index = hits != NULL ? PyCapsule_GetPointer(object[1], index_name) : NULL;
    if (index == NULL) return NULL;
    esp_status status = esp_qrels_read(path, &qrels, &error);
    if (status == ESP_OK) status = esp_hits_measure(hits, index, qrels, &m, &error);
    esp_qrels_free(qrels);
    if (!espy_ok(status, &error)) return NULL;
    return Py_BuildValue("{snsnsnsnsdsdsdsdsdsdsd}", "queries", (Py_ssize_t)m.queries, "unjudged",
                         (Py_ssize_t)m.unjudged, "unknown_queries", (Py_ssize_t)m.unknown_queries, "unknown_examples",
                         (Py_ssize_t)m.unknown_examples, "mrr", m.mrr, "map", m.map, "precision_1", m.precision_1,
                         "precision_5", m.precision_5, "precision_10", m.precision_10, "ndcg_10", m.ndcg_10, "ndcg",
                         m.ndcg);
}

/* pairs(index, above, no_bounds, RUN) -> [(first, second, similarity)] */
static PyObject *pairs(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    PyObject *object;
    double above;
    int no_bounds;
    size_t count = 0;
    esp_pairs *found = NULL;
    if (!PyArg_ParseTuple(args, "Odp" ESPY_RUN, &object, &above, &no_bounds, ESPY_RUN_ARGS(&call))) return NULL;
    const esp_index *index = PyCapsule_GetPointer(object, index_name);
    if (index == NULL) return NULL;
    espy_begin(&call);
    const esp_status status = esp_pairs_find(index, above, no_bounds != 0, &call.run, &found, &call.error);
    PyObject *list = espy_end(&call, status) ? PyList_New(0) : NULL;
    const esp_pair *pair = list != NULL ? esp_pairs_list(found, &count) : NULL;
    for (size_t i = 0; list != NULL && i < count; i++)
        if (!espy_append(list, Py_BuildValue("(nnd)", (Py_ssize_t)pair[i].first, (Py_ssize_t)pair[i].second,
                                             pair[i].similarity)))
            Py_CLEAR(list);
    esp_pairs_free(found);
    return list;
}

/* clusters(index, above, no_bounds, RUN) -> [[(example, similarity to the first)]] */
static PyObject *clusters(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    PyObject *object;
    double above;
    int no_bounds;
    esp_clusters *found = NULL;
    if (!PyArg_ParseTuple(args, "Odp" ESPY_RUN, &object, &above, &no_bounds, ESPY_RUN_ARGS(&call))) return NULL;
    const esp_index *index = PyCapsule_GetPointer(object, index_name);
    if (index == NULL) return NULL;
    espy_begin(&call);
    const esp_status status = esp_clusters_find(index, above, no_bounds != 0, &call.run, &found, &call.error);
    PyObject *list = espy_end(&call, status) ? PyList_New(0) : NULL;
    for (size_t c = 0; list != NULL && c < esp_clusters_count(found); c++) {
        size_t count;
        const esp_hit *member = esp_clusters_of(found, c, &count);
        PyObject *one = PyList_New(0);
        for (size_t i = 0; one != NULL && i < count; i++)
            if (!espy_append(one, Py_BuildValue("(nd)", (Py_ssize_t)member[i].example, member[i].similarity)))
                Py_CLEAR(one);
        if (!espy_append(list, one)) Py_CLEAR(list);
    }
    esp_clusters_free(found);
    return list;
}

PyMethodDef espy_search_methods[] = {{"index_new", index_new, METH_VARARGS, NULL},
                                     {"index_add", index_add, METH_VARARGS, NULL},
                                     {"index_read", index_read, METH_VARARGS, NULL},
                                     {"index_parse", index_parse, METH_VARARGS, NULL},
                                     {"index_write", index_write, METH_VARARGS, NULL},
                                     {"index_bytes", index_bytes, METH_O, NULL},
                                     {"index_info", index_info, METH_O, NULL},
                                     {"index_ids", index_ids, METH_O, NULL},
                                     {"search", search, METH_VARARGS, NULL},
                                     {"hits_fill", hits_fill, METH_VARARGS, NULL},
                                     {"hits_measure", hits_measure, METH_VARARGS, NULL},
                                     {"pairs", pairs, METH_VARARGS, NULL},
                                     {"clusters", clusters, METH_VARARGS, NULL},
                                     {NULL, NULL, 0, NULL}};
