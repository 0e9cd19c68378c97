/* Text files that appear complete or not at all, as the library's own do: a temporary beside the target, fsync, rename.
 * A path that exists and is no regular file (a pipe, /dev/full) is written directly. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_temporary(cli_output *output)
{
    const size_t size = strlen(output->path) + 48;
    output->temporary = malloc(size);
    if (output->temporary == NULL) return -1;
    int fd = -1;
    for (int attempt = 0; attempt < 100 && fd < 0; attempt++) {
        snprintf(output->temporary, size, "%s.%ld-%d.tmp", output->path, (long)getpid(), attempt);
        fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) break;
    }
    return fd;
}

static void release(cli_output *output)
{
    free(output->path);
    free(output->temporary);
    *output = (cli_output){0};
}

int cli_output_open(cli_output *output, const char *path)
{
    *output = (cli_output){0};
    if (strcmp(path, "-") == 0) {
        cli_interrupt_default(); /* there is no file to leave half-written */
        output->file = stdout;
        return CLI_OK;
    }
    output->path = realpath(path, NULL); /* the rename replaces the file, not a link to it */
    if (output->path == NULL) output->path = strdup(path);
    if (output->path == NULL) return cli_fail("out of memory");
    struct stat st;
    const bool direct = stat(output->path, &st) == 0 && !S_ISREG(st.st_mode);
    const int fd = direct ? open(output->path, O_WRONLY | O_CLOEXEC) : open_temporary(output);
    if (fd >= 0) output->file = fdopen(fd, "w");
    if (output->file != NULL) return CLI_OK;
    const int code = cli_fail("%s: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    if (fd >= 0 && output->temporary != NULL) unlink(output->temporary);
    release(output);
    return code;
}

int cli_output_close(cli_output *output, int code)
{
    if (output->file == NULL) return code;
    if (output->file == stdout) {
        *output = (cli_output){0};
        return code; /* the end of the program tells what could not be written */
    }
    errno = 0;
    bool good = fflush(output->file) == 0 && ferror(output->file) == 0;
    if (good && output->temporary != NULL) good = fsync(fileno(output->file)) == 0;
    const int reason = errno;
    if (fclose(output->file) != 0 && good) good = false;
    struct stat st;
    if (good && code == CLI_OK && output->temporary != NULL) {
        if (stat(output->path, &st) == 0) (void)chmod(output->temporary, st.st_mode & 07777);
        good = rename(output->temporary, output->path) == 0;
    }
    if (!good && code == CLI_OK)
        code = cli_fail("%s: %s", output->path, strerror(reason != 0 ? reason : errno != 0 ? errno : EIO));
    if (code != CLI_OK && output->temporary != NULL) unlink(output->temporary);
    release(output);
    return code;
}

void cli_field(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\t') fputs("\\t", file);
        else if (*text == '\n') fputs("\\n", file);
        else if (*text == '\r') fputs("\\r", file);
        else if (*text == '\\') fputs("\\\\", file);
        else putc(*text, file);
    }
}

void cli_pattern(FILE *file, const char *text, bool field)
{
    for (; *text != '\0'; text++) {
        if (*text == '\t' && field) fputs("\\t", file);
        else if (*text == '\n') fputs("\\n", file);
        else if (*text == '\r') fputs("\\r", file);
        else putc(*text, file);
    }
}
