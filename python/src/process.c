/* What Gaussian processes are asked besides predictions: joint posteriors, draws, likelihoods. */
#include "module.h"

/* covariance(model, dataset, latent, out, RUN): a matrix for each column of the scores */
static PyObject *covariance(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    const esp_model *model;
    const esp_dataset *data;
    int latent;
    PyObject *out;
    Py_buffer view;
    if (!PyArg_ParseTuple(args, "O&O&pO" ESPY_RUN, espy_model, &model, espy_dataset, &data, &latent, &out,
                          ESPY_RUN_ARGS(&call)))
        return NULL;
    const size_t count = esp_dataset_count(data), classes = esp_model_classes(model);
    if (!espy_array(out, "d", count * count * (classes > 2 ? classes : 1), &view)) return NULL;
    espy_begin(&call);
    const esp_status status = esp_predict_covariance(model, data, latent != 0, &call.run, view.buf, &call.error);
    const bool ok = espy_end(&call, status);
    PyBuffer_Release(&view);
    return ok ? Py_NewRef(Py_None) : NULL;
}

/* samples(model, dataset, count, seed, latent, out, RUN): targets, or functions; those of an example side by side */
static PyObject *samples(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    const esp_model *model;
    const esp_dataset *data;
    Py_ssize_t count;
    unsigned long long seed;
    int latent;
    PyObject *out;
    Py_buffer view;
    if (!PyArg_ParseTuple(args, "O&O&nKpO" ESPY_RUN, espy_model, &model, espy_dataset, &data, &count, &seed, &latent,
                          &out, ESPY_RUN_ARGS(&call)))
        return NULL;
    const size_t draws = count > 0 ? (size_t)count : 0, classes = esp_model_classes(model);
    const size_t width = latent && classes > 2 ? classes : 1;
    if (!espy_array(out, "d", esp_dataset_count(data) * draws * width, &view)) return NULL;
    espy_begin(&call);
    const esp_status status = esp_predict_samples(
        model, data, draws, seed, latent ? ESP_DRAW_FUNCTION : ESP_DRAW_TARGET, &call.run, view.buf, &call.error);
    const bool ok = espy_end(&call, status);
    PyBuffer_Release(&view);
    return ok ? Py_NewRef(Py_None) : NULL;
}

/* log_likelihood(learner, kernel, dataset, [(name, value)], gradient, out, RUN): the value and, if `gradient`, the
 * derivatives in the hyperparameters of the kernel and in the noise, for all of which `out` has room */
static PyObject *log_likelihood(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    const char *learner;
    const esp_kernel *kernel;
    const esp_dataset *data;
    PyObject *list, *out;
    int gradient;
    Py_buffer view;
    esp_setting *setting;
    size_t settings, count;
    if (!PyArg_ParseTuple(args, "yO&O&OpO" ESPY_RUN, &learner, espy_kernel, &kernel, espy_dataset, &data, &list,
                          &gradient, &out, ESPY_RUN_ARGS(&call)) ||
        !espy_count_hyperparameters(kernel, &count) || !espy_array(out, "d", count + 2, &view))
        return NULL;
    if (!espy_settings(list, &setting, &settings)) {
        PyBuffer_Release(&view);
        return NULL;
    }
    double *value = view.buf;
    espy_begin(&call);
    const esp_status status = esp_log_likelihood(learner, kernel, data, setting, settings, &call.run, value,
                                                 gradient ? value + 1 : NULL, &call.error);
    const bool ok = espy_end(&call, status);
    PyMem_Free(setting);
    PyBuffer_Release(&view);
    return ok ? Py_NewRef(Py_None) : NULL;
}

PyMethodDef espy_process_methods[] = {{"covariance", covariance, METH_VARARGS, NULL},
                                      {"samples", samples, METH_VARARGS, NULL},
                                      {"log_likelihood", log_likelihood, METH_VARARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
