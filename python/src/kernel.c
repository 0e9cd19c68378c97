/* Kernels: expressions and their values, written straight into arrays of the caller. */
#include "module.h"

/* kernel_parse(expression) */
static PyObject *kernel_parse(PyObject *module, PyObject *args)
{
    (void)module;
    const char *expression;
    esp_kernel *kernel = NULL;
    esp_error error;
    if (!PyArg_ParseTuple(args, "y", &expression)) return NULL;
    const bool ok = espy_ok(esp_kernel_parse(expression, &kernel, &error), &error);
    return espy_wrap_kernel(ok, kernel);
}

/* kernel_text(kernel) -> bytes: the expression in full */
static PyObject *kernel_text(PyObject *module, PyObject *object)
{
    (void)module;
    const esp_kernel *kernel;
    return espy_kernel(object, &kernel) ? espy_bytes(esp_kernel_text(kernel)) : NULL;
}

/* kernel_warning(kernel, dataset) -> bytes or None: what may be wrong about using it on these data */
static PyObject *kernel_warning(PyObject *module, PyObject *args)
{
    (void)module;
    const esp_kernel *kernel;
    const esp_dataset *data;
    esp_error error;
    char *text = NULL;
    if (!PyArg_ParseTuple(args, "O&O&", espy_kernel, &kernel, espy_dataset, &data) ||
        !espy_ok(esp_kernel_warning(kernel, data, NULL, &text, &error), &error))
        return NULL;
    return text == NULL ? Py_NewRef(Py_None) : espy_take_text(text);
}

/* gram(kernel, rows, columns or None, out, single, RUN): out is of float if `single`, else of double */
static PyObject *gram(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    const esp_kernel *kernel;
    const esp_dataset *rows, *cols;
    PyObject *out;
    int single;
    Py_buffer view;
    if (!PyArg_ParseTuple(args, "O&O&O&Op" ESPY_RUN, espy_kernel, &kernel, espy_dataset, &rows, espy_dataset_or_none,
                          &cols, &out, &single, ESPY_RUN_ARGS(&call)))
        return NULL;
    const size_t height = esp_dataset_count(rows), width = cols != NULL ? esp_dataset_count(cols) : height;
    if (!espy_array(out, single ? "f" : "d", height * width, &view)) return NULL;
    espy_begin(&call);
    const esp_status status = single ? esp_gram_single(kernel, rows, cols, &call.run, view.buf, &call.error)
                                     : esp_gram(kernel, rows, cols, &call.run, view.buf, &call.error);
    const bool ok = espy_end(&call, status);
    PyBuffer_Release(&view);
    return ok ? Py_NewRef(Py_None) : NULL;
}

/* diagonal(kernel, data, out, RUN) */
static PyObject *diagonal(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    const esp_kernel *kernel;
    const esp_dataset *data;
    PyObject *out;
    Py_buffer view;
    if (!PyArg_ParseTuple(args, "O&O&O" ESPY_RUN, espy_kernel, &kernel, espy_dataset, &data, &out,
                          ESPY_RUN_ARGS(&call)) ||
        !espy_array(out, "d", esp_dataset_count(data), &view))
        return NULL;
    espy_begin(&call);
    const esp_status status = esp_gram_diagonal(kernel, data, &call.run, view.buf, &call.error);
    const bool ok = espy_end(&call, status);
    PyBuffer_Release(&view);
    return ok ? Py_NewRef(Py_None) : NULL;
}

/* hyperparameters(kernel) -> [(name, value, low, high)] */
static PyObject *hyperparameters(PyObject *module, PyObject *object)
{
    (void)module;
    const esp_kernel *kernel;
    esp_hyperparameters *hyper = NULL;
    esp_error error;
    if (!espy_kernel(object, &kernel) || !espy_ok(esp_hyperparameters_new(kernel, &hyper, &error), &error)) return NULL;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < esp_hyperparameters_count(hyper); i++) {
        double low, high;
        const double value = esp_hyperparameters_value(hyper, i, &low, &high);
        if (!espy_append(list, Py_BuildValue("(yddd)", esp_hyperparameters_name(hyper, i), value, low, high)))
            Py_CLEAR(list);
    }
    esp_hyperparameters_free(hyper);
    return list;
}

/* The number of hyperparameters; false with an exception. */
bool espy_count_hyperparameters(const esp_kernel *kernel, size_t *count)
{
    esp_hyperparameters *hyper = NULL;
    esp_error error;
    if (!espy_ok(esp_hyperparameters_new(kernel, &hyper, &error), &error)) return false;
    *count = esp_hyperparameters_count(hyper);
    esp_hyperparameters_free(hyper);
    return true;
}

/* kernel_with_values(kernel, values): a copy; the values are an array, one for each hyperparameter */
static PyObject *kernel_with_values(PyObject *module, PyObject *args)
{
    (void)module;
    const esp_kernel *kernel;
    esp_kernel *made = NULL;
    PyObject *values;
    Py_buffer view;
    size_t count;
    esp_error error;
    if (!PyArg_ParseTuple(args, "O&O", espy_kernel, &kernel, &values) || !espy_count_hyperparameters(kernel, &count) ||
        !espy_array(values, "d", count, &view))
        return NULL;
    const esp_status status = esp_kernel_with_values(kernel, view.buf, &made, &error);
    PyBuffer_Release(&view);
    return espy_wrap_kernel(espy_ok(status, &error), made);
}

/* gram_gradient(kernel, data, out, RUN): out has the hyperparameters of each pair of examples side by side */
static PyObject *gram_gradient(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    const esp_kernel *kernel;
    const esp_dataset *data;
    PyObject *out;
    Py_buffer view;
    size_t count;
    if (!PyArg_ParseTuple(args, "O&O&O" ESPY_RUN, espy_kernel, &kernel, espy_dataset, &data, &out,
                          ESPY_RUN_ARGS(&call)) ||
        !espy_count_hyperparameters(kernel, &count) ||
        !espy_array(out, "d", esp_dataset_count(data) * esp_dataset_count(data) * count, &view))
        return NULL;
    espy_begin(&call);
    const esp_status status = esp_gram_gradient(kernel, data, &call.run, view.buf, &call.error);
    const bool ok = espy_end(&call, status);
    PyBuffer_Release(&view);
    return ok ? Py_NewRef(Py_None) : NULL;
}

/* A table of parameters as [(name, default, range, help, kind)]. `of`: esp_kernel_parameter, esp_learner_setting. */
static PyObject *parameters(const esp_parameter_info *(*of)(size_t, size_t), size_t index)
{
    static const char *const kinds[] = {
        [ESP_KIND_NUMBER] = "number", [ESP_KIND_WHOLE] = "whole",     [ESP_KIND_FLAG] = "flag",
        [ESP_KIND_CHOICE] = "choice", [ESP_KIND_WEIGHTS] = "weights", [ESP_KIND_RULES] = "rules",
        [ESP_KIND_TEXT] = "text"};
    PyObject *list = PyList_New(0);
    const esp_parameter_info *info;
    for (size_t i = 0; list != NULL && (info = of(index, i)) != NULL; i++)
        if (!espy_append(list, Py_BuildValue("(sssss)", info->name, info->default_value, info->range, info->help,
                                             kinds[info->kind])))
            Py_CLEAR(list);
    return list;
}

static PyObject *table(const char *(*name_of)(size_t, const char **),
                       const esp_parameter_info *(*parameter_of)(size_t, size_t))
{
    PyObject *list = PyList_New(0);
    const char *name, *help;
    for (size_t i = 0; list != NULL && (name = name_of(i, &help)) != NULL; i++)
        if (!espy_append(list, Py_BuildValue("(ssN)", name, help, parameters(parameter_of, i)))) Py_CLEAR(list);
    return list;
}

/* kernels() and learners() -> [(name, help, [(name, default, range, help)])] */
static PyObject *kernels(PyObject *module, PyObject *nothing)
{
    (void)module, (void)nothing;
    return table(esp_kernel_name, esp_kernel_parameter);
}

static PyObject *learners(PyObject *module, PyObject *nothing)
{
    (void)module, (void)nothing;
    return table(esp_learner_name, esp_learner_setting);
}

/* kernel_takes() -> [(name, [type of column])] */
static PyObject *kernel_takes(PyObject *module, PyObject *nothing)
{
    (void)module, (void)nothing;
    PyObject *list = PyList_New(0);
    const char *name;
    for (size_t i = 0; list != NULL && (name = esp_kernel_name(i, NULL)) != NULL; i++) {
        PyObject *types = PyList_New(0);
        for (size_t t = 0; types != NULL && t < ESPY_COLUMN_TYPES; t++)
            if (esp_kernel_takes(i, (esp_column_type)t) &&
                !espy_append(types, PyUnicode_FromString(espy_column_types[t])))
                Py_CLEAR(types);
        if (types == NULL || !espy_append(list, Py_BuildValue("(sN)", name, types))) Py_CLEAR(list);
    }
    return list;
}

PyMethodDef espy_kernel_methods[] = {{"kernel_parse", kernel_parse, METH_VARARGS, NULL},
                                     {"kernel_text", kernel_text, METH_O, NULL},
                                     {"kernel_warning", kernel_warning, METH_VARARGS, NULL},
                                     {"gram", gram, METH_VARARGS, NULL},
                                     {"diagonal", diagonal, METH_VARARGS, NULL},
                                     {"hyperparameters", hyperparameters, METH_O, NULL},
                                     {"kernel_with_values", kernel_with_values, METH_VARARGS, NULL},
                                     {"gram_gradient", gram_gradient, METH_VARARGS, NULL},
                                     {"kernel_takes", kernel_takes, METH_NOARGS, NULL},
                                     {"kernels", kernels, METH_NOARGS, NULL},
                                     {"learners", learners, METH_NOARGS, NULL},
                                     {NULL, NULL, 0, NULL}};
