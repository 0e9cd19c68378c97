/* What the files of the extension module share: calls that let other threads run and can be interrupted, handles of the
 * library as capsules, arrays by the buffer protocol, and errors as exceptions.
 *
 * The module is thin on purpose. It takes text as bytes, checks what would crash and nothing else; meaning, defaults
 * and friendly arguments belong to the Python code that calls it. */
#ifndef ESPY_MODULE_H
#define ESPY_MODULE_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "espalier.h"

/* ------------------------------------------------------------------- calls */

/* One call of the library. Every function that may take long has as its last arguments threads, memory in bytes,
 * a progress callable or None, and a device or None: ESPY_RUN in the format and ESPY_RUN_ARGS(call) among the
 * places. */
typedef struct espy_call {
    esp_run run;
    esp_error error;
    Py_ssize_t memory;
    PyObject *progress;
    PyThreadState *state; /* of this thread, while it is without the interpreter */
    double next;          /* when to ask Python again, in seconds */
} espy_call;

#define ESPY_RUN "inOO&"
#define ESPY_RUN_ARGS(call)                                                                                            \
    &(call)->run.threads, &(call)->memory, &(call)->progress, espy_device_or_none, &(call)->run.device

/* Lets other threads run until espy_end, between which Python must not be touched. */
void espy_begin(espy_call *call);
/* False, with an exception set, if the progress callable or a signal handler raised one, whatever the status, or if the
 * status is a failure: then it is the library's sentence. */
bool espy_end(espy_call *call, esp_status status);
/* The exception alone, for calls that are too short for all this. */
bool espy_ok(esp_status status, const esp_error *error);

/* ----------------------------------------------------------------- handles */

/* Take the handle over, also on failure, and also if `ok`, the verdict of espy_end, is false: a call that was told to
 * stop may have a result all the same. The result is then NULL. */
PyObject *espy_wrap_dataset(bool ok, esp_dataset *data);
PyObject *espy_wrap_kernel(bool ok, esp_kernel *kernel);
PyObject *espy_wrap_model(bool ok, esp_model *model);

/* Converters for "O&". */
int espy_dataset(PyObject *object, void *out);
int espy_dataset_or_none(PyObject *object, void *out);
int espy_kernel(PyObject *object, void *out);
int espy_model(PyObject *object, void *out);
/* Of this process: one that a parent has opened is refused. */
int espy_device_or_none(PyObject *object, void *out);
/* Bytes or None, as a string that the object owns, or NULL. */
int espy_text_or_none(PyObject *object, void *out);

/* ------------------------------------------------------------------ values */

/* A C-contiguous array that can be written, of `count` items of the kind `format` ("d", "f", "i", "q"); false with an
 * exception if it is another. PyBuffer_Release follows. */
bool espy_array(PyObject *object, const char *format, size_t count, Py_buffer *view);

/* How many hyperparameters a kernel has; false with an exception. */
bool espy_count_hyperparameters(const esp_kernel *kernel, size_t *count);

/* (name, value) pairs of bytes as settings, which borrow from `list`; PyMem_Free releases *out. */
bool espy_settings(PyObject *list, esp_setting **out, size_t *count);

/* What Python calls the types of columns, in the order of esp_column_type. */
enum { ESPY_COLUMN_TYPES = 3 };
extern const char *const espy_column_types[];

/* Bytes, or None for NULL. */
PyObject *espy_bytes(const char *text);
/* Bytes made of a text that is then freed. */
PyObject *espy_take_text(char *text);
/* Puts the item, which it takes over, into a list; false if either failed. */
bool espy_append(PyObject *list, PyObject *item);

/* ----------------------------------------------------------------- methods */

extern PyMethodDef espy_data_methods[], espy_device_methods[], espy_explain_methods[], espy_kernel_methods[],
    espy_model_methods[], espy_online_methods[], espy_pattern_methods[], espy_process_methods[], espy_search_methods[];

#endif
