/* Datasets: read from files or memory, and looked at. */
#include "module.h"

const char *const espy_column_types[] = {"tree", "sequence", "vector"};

/* "auto, jsonl, ... and srl". */
static PyObject *format_names(void)
{
    PyObject *list = PyUnicode_FromString(esp_format_name(ESP_FORMAT_AUTO));
    const char *name;
    for (size_t i = 0; list != NULL && (name = esp_format_at(i, NULL)) != NULL; i++) {
        const bool last = esp_format_at(i + 1, NULL) == NULL;
        PyObject *longer = PyUnicode_FromFormat("%U%s%s", list, last ? " and " : ", ", name);
        Py_DECREF(list);
        list = longer;
    }
    return list;
}

static bool take_format(const char *name, esp_format *format)
{
    if (esp_format_find(name, format)) return true;
    PyObject *names = format_names();
    if (names != NULL) PyErr_Format(PyExc_ValueError, "the format is '%s'; there are %U", name, names);
    Py_XDECREF(names);
    return false;
}

/* dataset_parse(bytes, name, format, target or None, RUN) */
static PyObject *dataset_parse(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    Py_buffer bytes;
    const char *name, *format;
    esp_read_options options = {0};
    esp_dataset *data = NULL;
    if (!PyArg_ParseTuple(args, "y*yyO&" ESPY_RUN, &bytes, &name, &format, espy_text_or_none, &options.target,
                          ESPY_RUN_ARGS(&call)))
        return NULL;
    bool ok = take_format(format, &options.format);
    if (ok) {
        espy_begin(&call);
        const esp_status status =
            esp_dataset_parse(bytes.buf, (size_t)bytes.len, name, &options, &call.run, &data, &call.error);
        ok = espy_end(&call, status);
    }
    PyBuffer_Release(&bytes);
    return espy_wrap_dataset(ok, data);
}

/* dataset_read(path, format, target or None, clean, skip_bad, lowercase, digits, RUN) */
static PyObject *dataset_read(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    const char *path, *format;
    int clean, skip_bad, lowercase, digits;
    esp_read_options options = {0};
    esp_dataset *data = NULL;
    if (!PyArg_ParseTuple(args, "yyO&pppp" ESPY_RUN, &path, &format, espy_text_or_none, &options.target, &clean,
                          &skip_bad, &lowercase, &digits, ESPY_RUN_ARGS(&call)) ||
        !take_format(format, &options.format))
        return NULL;
    options.clean = clean;
    options.skip_bad = skip_bad;
    options.lowercase = lowercase;
    options.digits = digits;
    espy_begin(&call);
    const esp_status status = esp_dataset_read(path, &options, &call.run, &data, &call.error);
    return espy_wrap_dataset(espy_end(&call, status), data);
}

/* dataset_write(dataset, path, format) */
static PyObject *dataset_write(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {.progress = Py_None};
    const esp_dataset *data;
    const char *path, *name;
    esp_format format;
    if (!PyArg_ParseTuple(args, "O&yy", espy_dataset, &data, &path, &name) || !take_format(name, &format)) return NULL;
    espy_begin(&call);
    const esp_status status = esp_dataset_write(data, path, format, &call.error);
    return espy_end(&call, status) ? Py_NewRef(Py_None) : NULL;
}

/* dataset_info(dataset) -> (examples, [(name, type)], target name or None, targets are numbers, bad, first bad) */
static PyObject *dataset_info(PyObject *module, PyObject *object)
{
    (void)module;
    const esp_dataset *data;
    if (!espy_dataset(object, &data)) return NULL;
    PyObject *columns = PyList_New(0);
    bool ok = columns != NULL;
    for (size_t i = 0; ok && i < esp_dataset_columns(data); i++)
        ok = espy_append(columns, Py_BuildValue("(ys)", esp_dataset_column_name(data, i),
                                                espy_column_types[esp_dataset_column_type(data, i)]));
    PyObject *info =
        !ok ? NULL
            : Py_BuildValue("(nOyOny)", (Py_ssize_t)esp_dataset_count(data), columns, esp_dataset_target_name(data),
                            esp_dataset_target_is_number(data) ? Py_True : Py_False,
                            (Py_ssize_t)esp_dataset_bad_count(data), esp_dataset_first_bad(data));
    Py_XDECREF(columns);
    return info;
}

/* dataset_targets(dataset) -> [bytes] */
static PyObject *dataset_targets(PyObject *module, PyObject *object)
{
    (void)module;
    const esp_dataset *data;
    if (!espy_dataset(object, &data)) return NULL;
    PyObject *list = PyList_New(0);
    bool ok = list != NULL;
    for (size_t i = 0; ok && esp_dataset_target_name(data) != NULL && i < esp_dataset_count(data); i++)
        ok = espy_append(list, espy_bytes(esp_dataset_target(data, i)));
    if (!ok) Py_CLEAR(list);
    return list;
}

/* dataset_classes(dataset) -> [bytes], each target once; never holds a Python object for each example */
static PyObject *dataset_classes(PyObject *module, PyObject *object)
{
    (void)module;
    const esp_dataset *data;
    if (!espy_dataset(object, &data)) return NULL;
    PyObject *set = PySet_New(NULL), *list = NULL;
    bool ok = set != NULL;
    for (size_t i = 0; ok && esp_dataset_target_name(data) != NULL && i < esp_dataset_count(data); i++) {
        PyObject *text = espy_bytes(esp_dataset_target(data, i));
        ok = text != NULL && PySet_Add(set, text) == 0;
        Py_XDECREF(text);
    }
    if (ok) list = PySequence_List(set);
    Py_XDECREF(set);
    return list;
}

/* dataset_text(dataset, column, example) -> bytes */
static PyObject *dataset_text(PyObject *module, PyObject *args)
{
    (void)module;
    const esp_dataset *data;
    Py_ssize_t column, example;
    esp_error error;
    char *text = NULL;
    if (!PyArg_ParseTuple(args, "O&nn", espy_dataset, &data, &column, &example)) return NULL;
    if (column < 0 || (size_t)column >= esp_dataset_columns(data) || example < 0 ||
        (size_t)example >= esp_dataset_count(data)) {
        PyErr_SetString(PyExc_IndexError, "there is no such example");
        return NULL;
    }
    if (!espy_ok(esp_dataset_text(data, (size_t)column, (size_t)example, &text, &error), &error)) return NULL;
    return espy_take_text(text);
}

PyMethodDef espy_data_methods[] = {
    {"dataset_parse", dataset_parse, METH_VARARGS, NULL}, {"dataset_read", dataset_read, METH_VARARGS, NULL},
    {"dataset_write", dataset_write, METH_VARARGS, NULL}, {"dataset_info", dataset_info, METH_O, NULL},
    {"dataset_targets", dataset_targets, METH_O, NULL},   {"dataset_classes", dataset_classes, METH_O, NULL},
    {"dataset_text", dataset_text, METH_VARARGS, NULL},   {NULL, NULL, 0, NULL}};
