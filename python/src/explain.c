/* Explanations, as the JSON Lines of the library, and reports. */
#include "module.h"

static const char explainer_name[] = "espalier.explainer";

/* The model, which the explainer needs, is the context of its capsule. */
static void free_explainer(PyObject *capsule)
{
    esp_explainer_free(PyCapsule_GetPointer(capsule, explainer_name));
    Py_XDECREF((PyObject *)PyCapsule_GetContext(capsule));
}

static int take_explainer(PyObject *object, void *out)
{
    esp_explainer **explainer = out;
    *explainer = PyCapsule_GetPointer(object, explainer_name);
    return *explainer != NULL;
}

/* explainer_new(model, RUN) */
static PyObject *explainer_new(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    PyObject *object;
    const esp_model *model;
    esp_explainer *explainer = NULL;
    if (!PyArg_ParseTuple(args, "O" ESPY_RUN, &object, ESPY_RUN_ARGS(&call)) || !espy_model(object, &model))
        return NULL;
    espy_begin(&call);
    const esp_status status = esp_explainer_new(model, &call.run, &explainer, &call.error);
    const bool ok = espy_end(&call, status);
    PyObject *capsule = ok ? PyCapsule_New(explainer, explainer_name, free_explainer) : NULL;
    if (capsule == NULL) esp_explainer_free(explainer);
    else if (PyCapsule_SetContext(capsule, Py_NewRef(object)) != 0) Py_CLEAR(capsule);
    return capsule;
}

/* explain(explainer, dataset or None, example, class or None, top, max_size, sign, effort, shares, RUN) -> bytes: JSON
 * Lines about an example or, without a dataset, about the model */
static PyObject *explain(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    const esp_explainer *explainer;
    const esp_dataset *data;
    Py_ssize_t example, top, max_size;
    unsigned long long effort;
    int shares;
    esp_explain_options options = {0};
    esp_explanation *explanation = NULL;
    char *text = NULL;
    if (!PyArg_ParseTuple(args, "O&O&nO&nniKp" ESPY_RUN, take_explainer, &explainer, espy_dataset_or_none, &data,
                          &example, espy_text_or_none, &options.class_name, &top, &max_size, &options.sign, &effort,
                          &shares, ESPY_RUN_ARGS(&call)))
        return NULL;
    options.top = (size_t)top;
    options.max_size = (size_t)max_size;
    options.effort = effort;
    options.shares = shares;
    espy_begin(&call);
    esp_status status = data == NULL ? esp_explain(explainer, &options, &call.run, &explanation, &call.error)
                                     : esp_explain_example(explainer, data, (size_t)example, &options, &call.run,
                                                           &explanation, &call.error);
    if (status == ESP_OK) status = esp_explanation_json(explanation, &text, &call.error);
    esp_explanation_free(explanation);
    if (espy_end(&call, status)) return espy_take_text(text);
    esp_text_free(text);
    return NULL;
}

/* report(model, dataset or None, path, title or None, data name or None, examples, top, RUN) */
static PyObject *report(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    const esp_model *model;
    const esp_dataset *data;
    const char *path;
    Py_ssize_t examples, top;
    esp_report_options options = {0};
    if (!PyArg_ParseTuple(args, "O&O&yO&O&nn" ESPY_RUN, espy_model, &model, espy_dataset_or_none, &data, &path,
                          espy_text_or_none, &options.title, espy_text_or_none, &options.data_name, &examples, &top,
                          ESPY_RUN_ARGS(&call)))
        return NULL;
    options.examples = (size_t)examples;
    options.top = (size_t)top;
    espy_begin(&call);
    const esp_status status = esp_report_write(model, data, &options, path, &call.run, &call.error);
    return espy_end(&call, status) ? Py_NewRef(Py_None) : NULL;
}

PyMethodDef espy_explain_methods[] = {{"explainer_new", explainer_new, METH_VARARGS, NULL},
                                      {"explain", explain, METH_VARARGS, NULL},
                                      {"report", report, METH_VARARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
