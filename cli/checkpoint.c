/* Checkpoints: files from which the same command goes on after a stop of any kind. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_check_checkpoint(const char *path, const char *output, const cli_settings *settings)
{
    struct stat st;
    if (path == NULL) return CLI_OK;
    if (strcmp(path, "-") == 0)
        return cli_usage("a checkpoint is read again, so --checkpoint needs a file, not standard output");
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return cli_usage("%s is no regular file; a checkpoint is read again, so it needs one", path);
    return cli_check_places("the checkpoint", path, "the model", output, settings);
}

void cli_remove_checkpoint(const char *path, const cli_settings *settings)
{
    if (path == NULL) return;
    char *real = realpath(path, NULL); /* not a link to it */
    if (unlink(real != NULL ? real : path) != 0 && errno != ENOENT)
        cli_note(settings, "%s: the checkpoint is done with, but cannot be removed: %s", path, strerror(errno));
    free(real);
}
