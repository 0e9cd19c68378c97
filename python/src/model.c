/* Models: trained, read, written, asked for predictions. */
#include "module.h"

#include <string.h>

/* Whether a setting is on. */
static bool is_on(const esp_setting *setting, size_t settings, const char *name)
{
    for (size_t i = 0; i < settings; i++)
        if (strcmp(setting[i].name, name) == 0) return strcmp(setting[i].value, "1") == 0;
    return false;
}

/* train(learner, kernel, dataset, [(name, value)], RUN): with keep-partial, an interrupt gives what it has so far */
static PyObject *train(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    const char *learner;
    const esp_kernel *kernel;
    const esp_dataset *data;
    PyObject *list;
    esp_setting *setting;
    size_t settings;
    esp_model *model = NULL;
    if (!PyArg_ParseTuple(args, "yO&O&O" ESPY_RUN, &learner, espy_kernel, &kernel, espy_dataset, &data, &list,
                          ESPY_RUN_ARGS(&call)) ||
        !espy_settings(list, &setting, &settings))
        return NULL;
    espy_begin(&call);
    const esp_status status = esp_train(learner, kernel, data, setting, settings, &call.run, &model, &call.error);
    bool ok = espy_end(&call, status);
    if (!ok && model != NULL && is_on(setting, settings, "keep-partial") &&
        PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        PyErr_Clear();
        ok = true;
    }
    PyMem_Free(setting);
    return espy_wrap_model(ok, model);
}

/* model_parse(bytes, name) */
static PyObject *model_parse(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {.progress = Py_None};
    Py_buffer bytes;
    const char *name;
    esp_model *model = NULL;
    if (!PyArg_ParseTuple(args, "y*y", &bytes, &name)) return NULL;
    espy_begin(&call);
    const esp_status status = esp_model_parse(bytes.buf, (size_t)bytes.len, name, &model, &call.error);
    const bool ok = espy_end(&call, status);
    PyBuffer_Release(&bytes);
    return espy_wrap_model(ok, model);
}

/* model_read(path) */
static PyObject *model_read(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {.progress = Py_None};
    const char *path;
    esp_model *model = NULL;
    if (!PyArg_ParseTuple(args, "y", &path)) return NULL;
    espy_begin(&call);
    const esp_status status = esp_model_read(path, &model, &call.error);
    return espy_wrap_model(espy_end(&call, status), model);
}

/* model_write(model, path) */
static PyObject *model_write(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {.progress = Py_None};
    const esp_model *model;
    const char *path;
    if (!PyArg_ParseTuple(args, "O&y", espy_model, &model, &path)) return NULL;
    espy_begin(&call);
    const esp_status status = esp_model_write(model, path, &call.error);
    return espy_end(&call, status) ? Py_NewRef(Py_None) : NULL;
}

/* model_bytes(model) -> bytes */
static PyObject *model_bytes(PyObject *module, PyObject *object)
{
    (void)module;
    espy_call call = {.progress = Py_None};
    const esp_model *model;
    char *text = NULL;
    size_t size = 0;
    if (!espy_model(object, &model)) return NULL;
    espy_begin(&call);
    const esp_status status = esp_model_bytes(model, &text, &size, &call.error);
    PyObject *bytes = espy_end(&call, status) ? PyBytes_FromStringAndSize(text, (Py_ssize_t)size) : NULL;
    esp_text_free(text);
    return bytes;
}

/* model_info(model) -> (learner, kernel, [class], summary, finished) */
static PyObject *model_info(PyObject *module, PyObject *object)
{
    (void)module;
    const esp_model *model;
    esp_error error;
    char *summary = NULL;
    if (!espy_model(object, &model) || !espy_ok(esp_model_summary(model, &summary, &error), &error)) return NULL;
    PyObject *classes = PyList_New(0);
    bool ok = classes != NULL;
    for (size_t i = 0; ok && i < esp_model_classes(model); i++)
        ok = espy_append(classes, espy_bytes(esp_model_class(model, i)));
    PyObject *info = !ok ? NULL
                         : Py_BuildValue("(yyOyO)", esp_model_learner(model), esp_model_kernel(model), classes, summary,
                                         esp_model_is_finished(model) ? Py_True : Py_False);
    esp_text_free(summary);
    Py_XDECREF(classes);
    return info;
}

/* model_hyperparameters(model) -> bytes: "name<TAB>value" lines */
static PyObject *model_hyperparameters(PyObject *module, PyObject *object)
{
    (void)module;
    const esp_model *model;
    esp_error error;
    char *text = NULL;
    if (!espy_model(object, &model) || !espy_ok(esp_model_hyperparameters(model, &text, &error), &error)) return NULL;
    return espy_take_text(text);
}

/* The class of each example by its number: labels are strings of the predictions,
 * so equal pointers are equal classes. */
static void fill_classes(const esp_predictions *predictions, int64_t *winner)
{
    for (size_t i = 0; i < esp_predictions_count(predictions); i++) {
        const char *label = esp_predictions_label(predictions, i);
        int64_t c = 0;
        while (esp_predictions_class(predictions, (size_t)c) != label) c++;
        winner[i] = c;
    }
}

static void fill_scores(const esp_predictions *predictions, double *score)
{
    const size_t columns = esp_predictions_columns(predictions);
    for (size_t i = 0; i < esp_predictions_count(predictions); i++)
        for (size_t c = 0; c < columns; c++) score[i * columns + c] = esp_predictions_column(predictions, i, c);
}

static void fill_probabilities(const esp_predictions *predictions, double *probability)
{
    const size_t classes = esp_predictions_classes(predictions);
    for (size_t i = 0; i < esp_predictions_count(predictions); i++)
        for (size_t c = 0; c < classes; c++)
            probability[i * classes + c] = esp_predictions_probability(predictions, i, c);
}

static void fill_moments(const esp_predictions *predictions, double *moment)
{
    for (size_t i = 0; i < esp_predictions_count(predictions); i++) {
        moment[3 * i] = esp_predictions_score(predictions, i);
        moment[3 * i + 1] = esp_predictions_variance(predictions, i);
        moment[3 * i + 2] = esp_predictions_latent_variance(predictions, i);
    }
}

/* predict(model, dataset, what, out, RUN): `what` is "classes" (int64 per example), "scores", "probabilities" or
 * "moments" (float64, a row per example; probabilities are -1 where the model has none). Moments are the score, the
 * variance and the latent variance. */
static PyObject *predict(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    const esp_model *model;
    const esp_dataset *data;
    const char *what;
    PyObject *out;
    Py_buffer view;
    esp_predictions *predictions = NULL;
    if (!PyArg_ParseTuple(args, "O&O&sO" ESPY_RUN, espy_model, &model, espy_dataset, &data, &what, &out,
                          ESPY_RUN_ARGS(&call)))
        return NULL;
    const size_t count = esp_dataset_count(data), classes = esp_model_classes(model);
    const size_t width = *what == 'm' ? 3 : *what == 'p' ? classes : *what == 's' && classes > 2 ? classes : 1;
    if (!espy_array(out, *what == 'c' ? "q" : "d", count * width, &view)) return NULL;
    espy_begin(&call);
    const esp_status status = esp_predict(model, data, &call.run, &predictions, &call.error);
    if (status == ESP_OK && *what == 'c' && classes > 0) fill_classes(predictions, view.buf);
    if (status == ESP_OK && *what == 's') fill_scores(predictions, view.buf);
    if (status == ESP_OK && *what == 'p') fill_probabilities(predictions, view.buf);
    if (status == ESP_OK && *what == 'm') fill_moments(predictions, view.buf);
    esp_predictions_free(predictions);
    const bool ok = espy_end(&call, status);
    PyBuffer_Release(&view);
    return ok ? Py_NewRef(Py_None) : NULL;
}

/* folds(learner, dataset, folds, seed, out): the fold of each example, from 0 */
static PyObject *folds(PyObject *module, PyObject *args)
{
    (void)module;
    const char *learner;
    const esp_dataset *data;
    Py_ssize_t count;
    unsigned long long seed;
    PyObject *out;
    Py_buffer view;
    esp_error error;
    if (!PyArg_ParseTuple(args, "yO&nKO", &learner, espy_dataset, &data, &count, &seed, &out) ||
        !espy_array(out, "i", esp_dataset_count(data), &view))
        return NULL;
    const esp_status status = esp_folds(learner, data, count > 0 ? (size_t)count : 0, seed, view.buf, &error);
    PyBuffer_Release(&view);
    return espy_ok(status, &error) ? Py_NewRef(Py_None) : NULL;
}

PyMethodDef espy_model_methods[] = {{"train", train, METH_VARARGS, NULL},
                                    {"model_parse", model_parse, METH_VARARGS, NULL},
                                    {"model_read", model_read, METH_VARARGS, NULL},
                                    {"model_write", model_write, METH_VARARGS, NULL},
                                    {"model_bytes", model_bytes, METH_O, NULL},
                                    {"model_info", model_info, METH_O, NULL},
                                    {"model_hyperparameters", model_hyperparameters, METH_O, NULL},
                                    {"predict", predict, METH_VARARGS, NULL},
                                    {"folds", folds, METH_VARARGS, NULL},
                                    {NULL, NULL, 0, NULL}};
