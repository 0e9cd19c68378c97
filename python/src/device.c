/* The device that does the algebra of Gaussian processes. It is never closed: a thread that the interpreter leaves
 * behind at its end may still use it, and what it holds goes with the process. */
#include "module.h"

#include <string.h>
#include <unistd.h>

static const char device_name[] = "espalier.device";

/* device_open(name) -> (device, memory): an OSError with the library's sentence where there is none to use, a
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
    return capsule != NULL ? Py_BuildValue("(Nn)", capsule, (Py_ssize_t)esp_device_memory(device)) : NULL;
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

PyMethodDef espy_device_methods[] = {{"device_open", device_open, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
