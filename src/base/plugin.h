/* Plugins: shared objects that do a job on other hardware (a GPU, several machines) and need libraries that Espalier
 * itself does without. They are loaded when somebody asks for them, and nothing ever requires them.
 *
 * libespalier-NAME.so exports one function, espalier_plugin, which gives its table. Every table begins with the head
 * below, whose layout never changes; what follows the head belongs to the version. */
#ifndef ESPI_BASE_PLUGIN_H
#define ESPI_BASE_PLUGIN_H

#include "espalier.h"

typedef struct espi_plugin_head {
    char name[8];     /* "cuda" */
    uint32_t version; /* of the table; only equal versions work together */
    uint32_t size;    /* bytes of the table, the head included */
} espi_plugin_head;

#define ESPI_PLUGIN_FUNCTION "espalier_plugin"
typedef const espi_plugin_head *(*espi_plugin_function)(void);

/* The table of a plugin, which stays loaded until the process ends. It is searched in `folder`; or, if that is NULL,
 * beside the file that holds this library, in the folder of libraries that belongs to it (bin/../lib), and where the
 * system looks for libraries. ESP_ERR_IO, with one sentence: there is none (then err->system is ENOENT), it cannot be
 * loaded, or it is of another version. */
esp_status espi_plugin_load(const char *folder, const char *name, uint32_t version, size_t size,
                            const espi_plugin_head **out, esp_error *err);

#endif
