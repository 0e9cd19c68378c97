/* Online learners. Unlike the other handles they change, so that one that is at work refuses a second thread. */
#include "module.h"

typedef struct learner {
    esp_online *online;
    bool busy; /* read and written with the interpreter's lock only */
} learner;

static const char learner_name[] = "espalier.online";

static void free_learner(PyObject *capsule)
{
    learner *l = PyCapsule_GetPointer(capsule, learner_name);
    if (l != NULL) esp_online_free(l->online);
    PyMem_Free(l);
}

static PyObject *wrap(bool ok, esp_online *online)
{
    learner *l = ok ? PyMem_Calloc(1, sizeof *l) : NULL;
    PyObject *capsule = l != NULL ? PyCapsule_New(l, learner_name, free_learner) : NULL;
    if (ok && l == NULL) PyErr_NoMemory();
    if (capsule != NULL) {
        l->online = online;
        return capsule;
    }
    PyMem_Free(l);
    esp_online_free(online);
    return NULL;
}

static learner *idle_learner(PyObject *object)
{
    learner *l = PyCapsule_GetPointer(object, learner_name);
    if (l == NULL || !l->busy) return l;
    PyErr_SetString(PyExc_ValueError, "the learner is at work in another thread");
    return NULL;
}

/* online_new(learner, kernel, [(name, value)]) */
static PyObject *online_new(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    const esp_kernel *kernel;
    PyObject *list;
    esp_setting *setting;
    size_t settings;
    esp_online *online = NULL;
    esp_error error;
    if (!PyArg_ParseTuple(args, "yO&O", &name, espy_kernel, &kernel, &list) ||
        !espy_settings(list, &setting, &settings))
        return NULL;
    const bool ok = espy_ok(esp_online_new(name, kernel, setting, settings, &online, &error), &error);
    PyMem_Free(setting);
    return wrap(ok, online);
}

/* online_resume(model, [(name, value)], RUN) */
static PyObject *online_resume(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    const esp_model *model;
    PyObject *list;
    esp_setting *setting;
    size_t settings;
    esp_online *online = NULL;
    if (!PyArg_ParseTuple(args, "O&O" ESPY_RUN, espy_model, &model, &list, ESPY_RUN_ARGS(&call)) ||
        !espy_settings(list, &setting, &settings))
        return NULL;
    espy_begin(&call);
    const esp_status status = esp_online_resume(model, setting, settings, &call.run, &online, &call.error);
    const bool ok = espy_end(&call, status);
    PyMem_Free(setting);
    return wrap(ok, online);
}

/* online_learn(online, dataset, RUN) */
static PyObject *online_learn(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {0};
    PyObject *object;
    const esp_dataset *data;
    if (!PyArg_ParseTuple(args, "OO&" ESPY_RUN, &object, espy_dataset, &data, ESPY_RUN_ARGS(&call))) return NULL;
    learner *l = idle_learner(object);
    if (l == NULL) return NULL;
    l->busy = true;
    espy_begin(&call);
    const esp_status status = esp_online_learn(l->online, data, &call.run, &call.error);
    const bool ok = espy_end(&call, status);
    l->busy = false;
    return ok ? Py_NewRef(Py_None) : NULL;
}

/* online_model(online) */
static PyObject *online_model(PyObject *module, PyObject *object)
{
    (void)module;
    espy_call call = {.progress = Py_None};
    esp_model *model = NULL;
    learner *l = idle_learner(object);
    if (l == NULL) return NULL;
    l->busy = true;
    espy_begin(&call);
    const esp_status status = esp_online_model(l->online, &model, &call.error);
    const bool ok = espy_end(&call, status);
    l->busy = false;
    return espy_wrap_model(ok, model);
}

PyMethodDef espy_online_methods[] = {{"online_new", online_new, METH_VARARGS, NULL},
                                     {"online_resume", online_resume, METH_VARARGS, NULL},
                                     {"online_learn", online_learn, METH_VARARGS, NULL},
                                     {"online_model", online_model, METH_O, NULL},
                                     {NULL, NULL, 0, NULL}};
