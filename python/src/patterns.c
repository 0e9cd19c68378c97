/* Mining, and patterns as features. */
#include "module.h"

static PyObject *found(const esp_patterns *patterns)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < esp_patterns_count(patterns); i++) {
        size_t positive;
        const size_t examples = esp_patterns_examples(patterns, i, &positive);
        if (!espy_append(list, Py_BuildValue("(ydnn)", esp_patterns_text(patterns, i), esp_patterns_value(patterns, i),
                                             (Py_ssize_t)examples, (Py_ssize_t)positive)))
            Py_CLEAR(list);
    }
    return list;
}

/* mine(kernel, dataset, metric, tau or None, min_support, max_length, top, positive or None, RUN)
 * -> [(text, value, examples, positive examples)], the best first */
static PyObject *mine(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    const esp_kernel *kernel;
    const esp_dataset *data;
    esp_mine_options options = {0};
    Py_ssize_t support, length, top;
    esp_patterns *patterns = NULL;
    if (!PyArg_ParseTuple(args, "O&O&yO&nnnO&" ESPY_RUN, espy_kernel, &kernel, espy_dataset, &data, &options.metric,
                          espy_text_or_none, &options.tau, &support, &length, &top, espy_text_or_none,
                          &options.positive, ESPY_RUN_ARGS(&call)))
        return NULL;
    options.min_support = support > 0 ? (size_t)support : 0;
    options.max_length = length > 0 ? (size_t)length : 0;
    options.top = top > 0 ? (size_t)top : 0;
    espy_begin(&call);
    const esp_status status = esp_mine(kernel, data, &options, &call.run, &patterns, &call.error);
    PyObject *list = espy_end(&call, status) ? found(patterns) : NULL;
    esp_patterns_free(patterns);
    return list;
}

static const char features_name[] = "espalier.features";
static void free_features(PyObject *capsule) { esp_features_free(PyCapsule_GetPointer(capsule, features_name)); }

/* features_new(kernel, patterns, dataset, RUN) */
static PyObject *features_new(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    const esp_kernel *kernel;
    const esp_dataset *patterns, *data;
    esp_features *features = NULL;
    if (!PyArg_ParseTuple(args, "O&O&O&" ESPY_RUN, espy_kernel, &kernel, espy_dataset, &patterns, espy_dataset, &data,
                          ESPY_RUN_ARGS(&call)))
        return NULL;
    espy_begin(&call);
    const esp_status status = esp_features_new(kernel, patterns, data, &call.run, &features, &call.error);
    PyObject *capsule = espy_end(&call, status) ? PyCapsule_New(features, features_name, free_features) : NULL;
    if (capsule == NULL) esp_features_free(features);
    return capsule;
}

/* features_info(features) -> ([text of each column], entries) */
static PyObject *features_info(PyObject *module, PyObject *object)
{
    (void)module;
    const size_t *start;
    const uint32_t *column;
    const double *value;
    const esp_features *features = PyCapsule_GetPointer(object, features_name);
    if (features == NULL) return NULL;
    PyObject *texts = PyList_New(0);
    for (size_t i = 0; texts != NULL && i < esp_features_columns(features); i++)
        if (!espy_append(texts, espy_bytes(esp_features_text(features, i)))) Py_CLEAR(texts);
    if (texts == NULL) return NULL;
    return Py_BuildValue("(Nn)", texts, (Py_ssize_t)esp_features_entries(features, &start, &column, &value));
}

/* features_fill(features, start, column, value): int64 of rows + 1, int64 and float64 of entries */
static PyObject *features_fill(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object, *out[3];
    Py_buffer view[3];
    const size_t *start;
    const uint32_t *column;
    const double *value;
    if (!PyArg_ParseTuple(args, "OOOO", &object, &out[0], &out[1], &out[2])) return NULL;
    const esp_features *features = PyCapsule_GetPointer(object, features_name);
    if (features == NULL) return NULL;
    const size_t entries = esp_features_entries(features, &start, &column, &value);
    const size_t rows = esp_features_rows(features), size[3] = {rows + 1, entries, entries};
    int held = 0;
    while (held < 3 && espy_array(out[held], held < 2 ? "q" : "d", size[held], &view[held])) held++;
    if (held == 3) {
        for (size_t i = 0; i <= rows; i++) ((int64_t *)view[0].buf)[i] = (int64_t)start[i];
        for (size_t i = 0; i < entries; i++) ((int64_t *)view[1].buf)[i] = column[i];
        for (size_t i = 0; i < entries; i++) ((double *)view[2].buf)[i] = value[i];
    }
    for (int i = 0; i < held; i++) PyBuffer_Release(&view[i]);
    return held == 3 ? Py_NewRef(Py_None) : NULL;
}

PyMethodDef espy_pattern_methods[] = {{"mine", mine, METH_VARARGS, NULL},
                                      {"features_new", features_new, METH_VARARGS, NULL},
                                      {"features_info", features_info, METH_O, NULL},
                                      {"features_fill", features_fill, METH_VARARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
