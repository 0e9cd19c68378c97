#define _GNU_SOURCE /* dladdr */
#include "base/plugin.h"

#include "base/status.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What dlopen says names the file first; that is left out. */
static const char *reason_of(const char *file)
{
    const char *why = dlerror();
    if (why == NULL) return "it cannot be loaded";
    const size_t size = strlen(file);
    return strncmp(why, file, size) == 0 && why[size] == ':' ? why + size + 2 : why;
}

/* ENOENT where there is no such file; a bare name is looked up by the system. */
static esp_status open_file(const char *file, void **handle, esp_error *err)
{
    esp_status status = ESP_OK;
    *handle = NULL;
    if (strchr(file, '/') == NULL || access(file, F_OK) == 0) {
        /* Drivers do not bear being unloaded. */
        *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (*handle == NULL) status = espi_fail(err, ESP_ERR_IO, "%s: %s", file, reason_of(file));
    }
    if (*handle == NULL && status == ESP_OK) status = espi_fail(err, ESP_ERR_IO, "there is no %s", file);
    if (*handle == NULL && access(file, F_OK) != 0) err->system = ENOENT;
    return status;
}

/* The folder, with a slash behind it, of the file that holds this code: a shared library or the program. "": unknown.
 */
static void own_folder(char folder[PATH_MAX])
{
    Dl_info self;
    const bool library = dladdr(ESPI_PLUGIN_FUNCTION, &self) != 0 && self.dli_fname != NULL && self.dli_fname[0] == '/';
    if (library) {
        snprintf(folder, PATH_MAX, "%s", self.dli_fname);
    } else { /* a program's name is as it was called */
        const ssize_t size = readlink("/proc/self/exe", folder, PATH_MAX - 1);
        folder[size < 0 ? 0 : size] = '\0';
    }
    char *slash = strrchr(folder, '/');
    if (slash != NULL) slash[1] = '\0';
}

static esp_status find_file(const char *folder, const char *name, char path[PATH_MAX], void **handle, esp_error *err)
{
    /* The build says where libraries are, seen from programs. */
    static const char *const places[] = {"", ESPI_LIBRARIES_FROM_PROGRAMS "/"};
    char own[PATH_MAX];
    esp_status status = ESP_ERR_IO;
    if (folder != NULL) {
        snprintf(path, PATH_MAX, "%s/libespalier-%s.so", folder, name);
        return open_file(path, handle, err);
    }
    own_folder(own);
    for (size_t i = 0; own[0] != '\0' && i < sizeof places / sizeof *places; i++) {
        const int size = snprintf(path, PATH_MAX, "%s%slibespalier-%s.so", own, places[i], name);
        if (size < 0 || size >= PATH_MAX) continue;
        status = open_file(path, handle, err);
        if (status == ESP_OK || err->system != ENOENT) return status;
    }
    snprintf(path, PATH_MAX, "libespalier-%s.so", name);
    status = open_file(path, handle, err);
    if (status == ESP_OK) return status;
    status =
        espi_fail(err, ESP_ERR_IO, "the plugin libespalier-%s.so is not installed; 'make %s' builds it", name, name);
    err->system = ENOENT;
    return status;
}

esp_status espi_plugin_load(const char *folder, const char *name, uint32_t version, size_t size,
                            const espi_plugin_head **out, esp_error *err)
{
    char path[PATH_MAX];
    void *handle;
    esp_error ignored;
    if (err == NULL) err = &ignored;
    *out = NULL;
    const esp_status status = find_file(folder, name, path, &handle, err);
    if (status != ESP_OK) return status;
    espi_plugin_function function;
    void *symbol = dlsym(handle, ESPI_PLUGIN_FUNCTION);
    memcpy(&function, &symbol, sizeof function); /* ISO C has no conversion from an object to a function */
    const espi_plugin_head *head = symbol != NULL ? function() : NULL;
    if (head == NULL || strncmp(head->name, name, sizeof head->name) != 0)
        return espi_fail(err, ESP_ERR_IO, "%s is not a plugin of Espalier for %s", path, name);
    if (head->version != version || head->size < size)
        return espi_fail(
            err, ESP_ERR_IO,
            "%s has version %u of the plugin's interface, and this Espalier has %u; build it again by 'make %s'", path,
            head->version, version, name);
    *out = head;
    return ESP_OK;
}
