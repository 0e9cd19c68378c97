/* The device that does the algebra of Gaussian processes. It is never closed: a thread that the interpreter leaves
 * behind at its end may still use it, and what it holds goes with the process. */
#include "module.h"

#include <string.h>
#include <unistd.h>

static const char device_name[] = "espalier.device";

/* device_open(name) -> device: an OSError with the library's sentence where there is none to use, a
 * FileNotFoundError if the plugin is not installed */
static PyObject *device_open(PyObject *module, PyObject *args)
{
    (void)module;
    espy_call call = {.progress = Py_None};
    const char *name;
    esp_device *device = NULL;
    if (!PyArg_ParseTuple(args, "y", &name)) return NULL;
    espy_begin(&call);
    const esp_status status = esp_device_open(name, &device, &call.error);
    if (!espy_end(&call, status)) return NULL;
    PyObject *capsule = PyCapsule_New(device, device_name, NULL);
    if (capsule != NULL && PyCapsule_SetContext(capsule, (void *)(intptr_t)getpid()) != 0) Py_CLEAR(capsule);
    if (capsule == NULL) esp_device_close(device);
    return capsule;
}

int espy_device_or_none(PyObject *object, void *out)
{
    void *device = NULL;
    if (object != Py_None) device = PyCapsule_GetPointer(object, device_name);
    if (object != Py_None && device == NULL) return 0;
    /* A driver does not survive a fork. */
    if (device != NULL && (intptr_t)PyCapsule_GetContext(object) != getpid()) {
        PyErr_SetString(PyExc_ValueError, "the device was opened by another process");
        return 0;
    }
    memcpy(out, &device, sizeof device);
    return 1;
}

/* device_pays(examples) -> bool */
static PyObject *device_pays(PyObject *module, PyObject *args)
{
    (void)module;
    Py_ssize_t examples;
    if (!PyArg_ParseTuple(args, "n", &examples)) return NULL;
    return PyBool_FromLong(esp_device_pays((size_t)examples));
}

/* device_fits(device, examples) -> None, or the sentence that says why the matrix does not fit */
static PyObject *device_fits(PyObject *module, PyObject *args)
{
    (void)module;
    esp_device *device;
    Py_ssize_t examples;
    esp_error error;
    if (!PyArg_ParseTuple(args, "O&n", espy_device_or_none, &device, &examples)) return NULL;
    if (device == NULL || esp_device_fits(device, (size_t)examples, &error) == ESP_OK) return Py_NewRef(Py_None);
    return PyBytes_FromString(error.message);
}

PyMethodDef espy_device_methods[] = {{"device_open", device_open, METH_VARARGS, NULL},
                                     {"device_pays", device_pays, METH_VARARGS, NULL},
                                     {"device_fits", device_fits, METH_VARARGS, NULL},
                                     {NULL, NULL, 0, NULL}};
