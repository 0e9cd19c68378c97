/* espalier._espalier: the library for Python. See module.h. */
#include "module.h"

#include <string.h>
#include <time.h>

/* ------------------------------------------------------------------- calls */

enum { ASKS_PER_SECOND = 20 };

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Called by the library from the thread that called it, often; Python is asked only now and then. */
static int ask_python(void *user, const char *stage, double fraction)
{
    espy_call *call = user;
    const double now = seconds();
    if (now < call->next) return 0;
    PyEval_RestoreThread(call->state);
    bool stop = PyErr_Occurred() != NULL || PyErr_CheckSignals() != 0; /* one that is pending stops, too */
    if (!stop && call->progress != Py_None) {
        PyObject *answer = PyObject_CallFunction(call->progress, "sd", stage, fraction);
        stop = answer == NULL;
        Py_XDECREF(answer);
    }
    call->state = PyEval_SaveThread();
    call->next = seconds() + 1.0 / ASKS_PER_SECOND;
    return stop;
}

void espy_begin(espy_call *call)
{
    call->run.memory = call->memory > 0 ? (size_t)call->memory : 0;
    call->run.progress = ask_python;
    call->run.user = call;
    call->next = seconds() + 1.0 / ASKS_PER_SECOND;
    call->state = PyEval_SaveThread();
}

/* The library's sentence, with the argument of Python that could be another where that would help. */
static PyObject *message_of(const esp_error *error)
{
    PyObject *message = PyUnicode_DecodeUTF8(error->message, (Py_ssize_t)strlen(error->message), "backslashreplace");
    if (message == NULL || error->setting == NULL) return message;
    PyObject *value = PyUnicode_DecodeUTF8(error->value, (Py_ssize_t)strlen(error->value), "backslashreplace");
    PyObject *longer = value == NULL             ? NULL
                       : error->value[0] == '\0' ? PyUnicode_FromFormat("%U; %s= names one", message, error->setting)
                                                 : PyUnicode_FromFormat("%U: %s=%R", message, error->setting, value);
    Py_DECREF(message);
    Py_XDECREF(value);
    return longer;
}

/* A ValueError that can be told from others: with other hyperparameters the same call may succeed. */
static PyObject *range_error;

bool espy_ok(esp_status status, const esp_error *error)
{
    if (status == ESP_OK) return true;
    if (PyErr_Occurred() != NULL) return false;
    PyObject *type = status == ESP_ERR_MEMORY      ? PyExc_MemoryError
                     : status == ESP_ERR_IO        ? PyExc_OSError
                     : status == ESP_ERR_CANCELLED ? PyExc_KeyboardInterrupt
                     : status == ESP_ERR_RANGE     ? range_error
                                                   : PyExc_ValueError;
    PyObject *message = message_of(error);
    /* Of a known errno Python makes the subclass, such as FileNotFoundError. */
    PyObject *value = message != NULL && status == ESP_ERR_IO && error->system != 0
                          ? Py_BuildValue("(iO)", error->system, message)
                          : Py_XNewRef(message);
    if (value != NULL) PyErr_SetObject(type, value);
    Py_XDECREF(value);
    Py_XDECREF(message);
    return false;
}

bool espy_end(espy_call *call, esp_status status)
{
    PyEval_RestoreThread(call->state);
    return PyErr_Occurred() == NULL && espy_ok(status, &call->error);
}

/* ----------------------------------------------------------------- handles */

static const char dataset_name[] = "espalier.dataset", kernel_name[] = "espalier.kernel",
                  model_name[] = "espalier.model";

static void free_dataset(PyObject *capsule) { esp_dataset_free(PyCapsule_GetPointer(capsule, dataset_name)); }
static void free_kernel(PyObject *capsule) { esp_kernel_free(PyCapsule_GetPointer(capsule, kernel_name)); }
static void free_model(PyObject *capsule) { esp_model_free(PyCapsule_GetPointer(capsule, model_name)); }

PyObject *espy_wrap_dataset(bool ok, esp_dataset *data)
{
    PyObject *capsule = ok ? PyCapsule_New(data, dataset_name, free_dataset) : NULL;
    if (capsule == NULL) esp_dataset_free(data);
    return capsule;
}

PyObject *espy_wrap_kernel(bool ok, esp_kernel *kernel)
{
    PyObject *capsule = ok ? PyCapsule_New(kernel, kernel_name, free_kernel) : NULL;
    if (capsule == NULL) esp_kernel_free(kernel);
    return capsule;
}

PyObject *espy_wrap_model(bool ok, esp_model *model)
{
    PyObject *capsule = ok ? PyCapsule_New(model, model_name, free_model) : NULL;
    if (capsule == NULL) esp_model_free(model);
    return capsule;
}

static int unwrap(PyObject *object, const char *name, void *out)
{
    void *pointer = PyCapsule_GetPointer(object, name);
    memcpy(out, &pointer, sizeof pointer);
    return pointer != NULL;
}

int espy_dataset(PyObject *object, void *out) { return unwrap(object, dataset_name, out); }
int espy_kernel(PyObject *object, void *out) { return unwrap(object, kernel_name, out); }
int espy_model(PyObject *object, void *out) { return unwrap(object, model_name, out); }

int espy_dataset_or_none(PyObject *object, void *out)
{
    if (object != Py_None) return unwrap(object, dataset_name, out);
    memset(out, 0, sizeof(void *));
    return 1;
}

int espy_text_or_none(PyObject *object, void *out)
{
    char *text = NULL;
    if (object != Py_None && PyBytes_AsStringAndSize(object, &text, NULL) != 0) return 0;
    memcpy(out, &text, sizeof text);
    return 1;
}

/* ------------------------------------------------------------------ values */

bool espy_array(PyObject *object, const char *format, size_t count, Py_buffer *view)
{
    const Py_ssize_t size = *format == 'i' || *format == 'f' ? 4 : 8;
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE | PyBUF_FORMAT) != 0) return false;
    /* "l" is what NumPy calls the 8-byte integers of most systems. */
    const bool kind = view->format != NULL &&
                      (strcmp(view->format, format) == 0 || (*format == 'q' && strcmp(view->format, "l") == 0));
    if (kind && view->itemsize == size && view->len == (Py_ssize_t)count * size) return true;
    PyErr_Format(PyExc_ValueError, "an array of %zu items of kind '%s' is needed", count, format);
    PyBuffer_Release(view);
    return false;
}

bool espy_settings(PyObject *list, esp_setting **out, size_t *count)
{
    *out = NULL;
    *count = 0;
    const Py_ssize_t size = PyList_Size(list);
    if (size < 0) return false;
    esp_setting *setting = PyMem_Calloc((size_t)size + 1, sizeof *setting);
    if (setting == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *pair = PyList_GetItem(list, i);
        if (!PyArg_ParseTuple(pair, "yy", &setting[i].name, &setting[i].value)) {
            PyMem_Free(setting);
            return false;
        }
    }
    *out = setting;
    *count = (size_t)size;
    return true;
}

PyObject *espy_bytes(const char *text)
{
    if (text == NULL) return Py_NewRef(Py_None);
    return PyBytes_FromString(text);
}

PyObject *espy_take_text(char *text)
{
    PyObject *bytes = PyBytes_FromString(text);
    esp_text_free(text);
    return bytes;
}

bool espy_append(PyObject *list, PyObject *item)
{
    const bool ok = item != NULL && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    return ok;
}

/* ------------------------------------------------------------------ module */

static bool fill_module(PyObject *module)
{
    PyMethodDef *const methods[] = {espy_data_methods,    espy_device_methods,  espy_explain_methods,
                                    espy_kernel_methods,  espy_model_methods,   espy_online_methods,
                                    espy_pattern_methods, espy_process_methods, espy_search_methods};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (PyModule_AddFunctions(module, methods[i]) != 0) return false;
    if (range_error == NULL) {
        PyObject *bases = PyTuple_Pack(2, PyExc_ValueError, PyExc_ArithmeticError);
        range_error = bases == NULL ? NULL
                                    : PyErr_NewExceptionWithDoc("espalier.RangeError",
                                                                "A result does not fit a number.", bases, NULL);
        Py_XDECREF(bases);
    }
    return range_error != NULL && PyModule_AddObjectRef(module, "RangeError", range_error) == 0 &&
           PyModule_AddStringConstant(module, "version", esp_version()) == 0;
}

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "espalier._espalier",
                                        .m_doc = "The C library, as it is; use the package espalier instead."};

PyMODINIT_FUNC PyInit__espalier(void);
PyMODINIT_FUNC PyInit__espalier(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && !fill_module(module)) Py_CLEAR(module);
    return module;
}
