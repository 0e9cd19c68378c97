/* --device: whether a GPU does the dense algebra of Gaussian processes. */
#include "cli.h"

#include <errno.h>

enum { AUTO = 1, CPU, CUDA }; /* --device; 0: not given */

const char *const cli_device_names[] = {"auto", "cpu", "cuda", NULL};

static esp_device *opened; /* by this process, once */

/* Says what is missing: where a GPU was asked for, or where there is a plugin that is broken or of another version. */
static void open_device(const cli_settings *settings)
{
    esp_error error;
    if (opened != NULL || esp_device_open("cuda", &opened, &error) == ESP_OK) return;
    if (settings->device == CUDA || (error.system != ENOENT && error.system != ENODEV))
        cli_note(settings, "using the CPU: %s", error.message);
    else cli_detail(settings, "no GPU: %s", error.message);
}

void cli_device(const cli_settings *settings, const char *learner, size_t examples, esp_run *run)
{
    const bool wanted = settings->device == CUDA || (settings->device != CPU && esp_device_pays(examples));
    esp_error error;
    if (!wanted || !cli_learner_can(learner, ESP_LEARNS_KERNEL)) return;
    open_device(settings);
    run->device = opened;
    if (opened == NULL) return;
    cli_detail(settings, "GPU: %s", esp_device_name(opened));
    if (esp_device_fits(opened, examples, &error) != ESP_OK) cli_note(settings, "%s", error.message);
}

void cli_device_end(void)
{
    esp_device_close(opened);
    opened = NULL;
}
