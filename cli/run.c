/* Messages, progress, interruption, and the reading and writing that commands share. */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *current_command = "";
static volatile sig_atomic_t interrupted;

void cli_begin(const char *command) { current_command = command; }

static char last_words[1200];

const char *cli_last_words(void) { return last_words; }

static void say(const char *format, va_list args, const char *tail)
{
    fprintf(stderr, current_command[0] == '\0' ? "espalier%s: " : "espalier %s: ", current_command);
    vfprintf(stderr, format, args);
    fprintf(stderr, "%s\n", tail);
}

/* What went wrong comes from every process of a group, so it says from which; the line is written at once. */
static void complain(const char *format, va_list args, const char *tail)
{
    char name[128];
    vsnprintf(last_words, sizeof last_words, format, args);
    fprintf(stderr, "espalier%s%s: %s%s%s\n", current_command[0] == '\0' ? "" : " ", current_command,
            cli_group_name(name), last_words, tail);
}

int cli_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(format, args, "");
    va_end(args);
    return CLI_FAILURE;
}

int cli_usage(const char *format, ...)
{
    char tail[80];
    snprintf(tail, sizeof tail, "; see 'espalier %s%s--help'", current_command, current_command[0] == '\0' ? "" : " ");
    const size_t size = strlen(format);
    va_list args;
    va_start(args, format);
    complain(format, args, size > 0 && format[size - 1] == '?' ? tail + 1 : tail);
    va_end(args);
    return CLI_USAGE;
}

/* How the tool is given another value where that would help; the library names the setting only. What begins with a
 * comma stands within the sentence, before its first semicolon, all else behind it. */
static const char *remedy_of(const esp_error *error)
{
    static const struct {
        const char *setting, *words;
    } all[] = {{"target", "; --target FIELD names one"},
               {"format", "; --from names one"},
               {"id", "; --id FIELD names them"},
               {"positive", ": --positive "},
               {"epochs", ", unless --epochs 1 is given"}};
    for (size_t i = 0; error->setting != NULL && i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].setting, error->setting) == 0) return all[i].words;
    return "";
}

int cli_error(esp_status status, const esp_error *error)
{
    const char *remedy = remedy_of(error), *message = error->message;
    const size_t size = remedy[0] == ',' ? strcspn(message, ";") : strlen(message);
    const bool named = remedy[0] == ':'; /* what goes behind it */
    /* A blocked read or write that Ctrl-C ended comes back as a failure of the system. */
    if (interrupted && status == ESP_ERR_IO) cli_fail("interrupted");
    else if (interrupted && cli_grouped()) cli_fail("%s; another rank has died, or the job was stopped", message);
    else
        cli_fail("%.*s%s%s%s", (int)size, message, remedy,
                 !named                    ? ""
                 : error->value[0] != '\0' ? error->value
                                           : "CLASS",
                 message + size);
    return status == ESP_ERR_PARAM ? CLI_USAGE : CLI_FAILURE;
}

void cli_note(const cli_settings *settings, const char *format, ...)
{
    if (settings->quiet) return;
    va_list args;
    va_start(args, format);
    say(format, args, "");
    va_end(args);
}

void cli_detail(const cli_settings *settings, const char *format, ...)
{
    if (settings->quiet || !settings->verbose) return;
    va_list args;
    va_start(args, format);
    say(format, args, "");
    va_end(args);
}

int cli_flush(int code)
{
    static bool told;
    errno = 0;
    if (told || (fflush(stdout) == 0 && ferror(stdout) == 0)) return code;
    told = true;
    if (errno == 0 && putchar('\n') != EOF) (void)fflush(stdout); /* an earlier failure: asks for its reason again */
    return cli_fail("standard output: %s", errno != 0 ? strerror(errno) : "writing failed");
}

double cli_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The first signal asks to stop. One that follows at once belongs to it: `timeout` signals the process and then its
 * group. A later one means it: the default, which ends the process. */
static void on_interrupt(int number)
{
    static struct timespec first;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!interrupted) {
        first = now;
        interrupted = 1;
    } else if ((double)(now.tv_sec - first.tv_sec) + 1e-9 * (double)(now.tv_nsec - first.tv_nsec) > 0.5) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

/* Ctrl-C, `timeout` and a closed terminal: all end the work at the next safe point. A signal that was ignored at the
 * start, as SIGINT of a job in the background, stays so. */
static void catch_interrupt(void (*handler)(int))
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = handler}, old;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) sigaction(signals[i], &action, NULL);
}

bool cli_interrupted(void) { return interrupted != 0; }

void cli_interrupt_default(void) { catch_interrupt(SIG_DFL); }

static struct {
    char stage[64];
    double began, drawn;
    unsigned turns;
    bool visible;
} bar;

static void draw(double fraction, double now)
{
    static const char cells[] = "##############################";
    const double gone = now - bar.began;
    if (fraction < 0) {
        fprintf(stderr, "\r\033[K%s %c %.0f s", bar.stage, "|/-\\"[bar.turns++ % 4], gone);
    } else {
        const double left = fraction > 0 ? gone * (1 - fraction) / fraction : 0;
        fprintf(stderr, "\r\033[K%s [%-30.*s] %3.0f %%  %d:%02d left", bar.stage, (int)(fraction * 30), cells,
                fraction * 100, (int)left / 60, (int)left % 60);
    }
    fflush(stderr);
    bar.visible = true;
}

static int on_progress(void *user, const char *stage, double fraction)
{
    if (interrupted) return 1;
    if (!*(const bool *)user) return 0;
    const double now = cli_seconds();
    if (strncmp(bar.stage, stage, sizeof bar.stage - 1) != 0) {
        snprintf(bar.stage, sizeof bar.stage, "%s", stage);
        bar.began = bar.drawn = now; /* the first picture comes late: short work shows none */
    }
    if (now - bar.drawn < 0.1) return 0;
    bar.drawn = now;
    draw(fraction > 1 ? 1 : fraction, now);
    return 0;
}

esp_run cli_run(const cli_settings *settings)
{
    static bool shown;
    shown = !settings->quiet && isatty(STDERR_FILENO);
    if (!interrupted) catch_interrupt(on_interrupt);
    const uint64_t limit = cli_memory_limit(settings);
    return (esp_run){.threads = (int)settings->threads,
                     .memory = limit > SIZE_MAX ? SIZE_MAX : (size_t)limit,
                     .progress = on_progress,
                     .user = &shown};
}

void cli_run_end(void)
{
    if (bar.visible) fputs("\r\033[K", stderr);
    bar.visible = false;
    bar.stage[0] = '\0';
}

uint64_t cli_memory_limit(const cli_settings *settings)
{
    if (settings->memory != 0) return settings->memory;
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
}

const char *cli_size_text(uint64_t bytes, bool up, char text[32])
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    uint64_t unit = 1000;
    size_t name = 0;
    if (bytes < unit) {
        snprintf(text, 32, "%u bytes", (unsigned)bytes);
        return text;
    }
    for (; bytes / unit >= 1000; name++) unit *= 1000;
    const uint64_t tenth = unit / 10, tenths = bytes / tenth + (up && bytes % tenth != 0);
    snprintf(text, 32, "%llu.%llu %s", (unsigned long long)tenths / 10, (unsigned long long)tenths % 10, units[name]);
    return text;
}

static esp_read_options how_to_read(const cli_settings *settings)
{
    return (esp_read_options){.format = settings->from,
                              .target = settings->target,
                              .clean = settings->clean,
                              .skip_bad = settings->skip_bad,
                              .lowercase = settings->lowercase,
                              .digits = settings->digits};
}

static void tell_read(const cli_settings *settings, const char *name, const esp_dataset *data, double began)
{
    const size_t count = esp_dataset_count(data), bad = esp_dataset_bad_count(data);
    if (bad > 0)
        cli_note(settings, "%s: skipped %zu bad example%s; the first: %s", name, bad, bad == 1 ? "" : "s",
                 esp_dataset_first_bad(data));
    cli_detail(settings, "%s: %zu example%s read in %.3f s", name, count, count == 1 ? "" : "s", cli_seconds() - began);
}

int cli_read(const cli_settings *settings, const char *path, esp_dataset **out)
{
    const esp_read_options options = how_to_read(settings);
    esp_error error;
    const esp_run run = cli_run(settings);
    const double began = cli_seconds();
    const esp_status status = esp_dataset_read(path, &options, &run, out, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    tell_read(settings, strcmp(path, "-") == 0 ? "standard input" : path, *out, began);
    return CLI_OK;
}

int cli_read_share(const cli_settings *settings, esp_dataset **out)
{
    const esp_read_options options = how_to_read(settings);
    esp_error error;
    esp_run run = cli_run(settings);
    const double began = cli_seconds();
    cli_share(settings, &run);
    const esp_status status =
        esp_dataset_read_share((const char *const *)settings->operand, settings->operands, &options, &run, out, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    tell_read(settings, settings->operands == 1 ? settings->operand[0] : "all files", *out, began);
    return CLI_OK;
}

int cli_check_output(const char *path, const cli_settings *settings)
{
    if (path == NULL || strcmp(path, "-") == 0) return CLI_OK;
    struct stat st, in;
    if (stat(path, &st) == 0) {
        for (size_t i = 0; settings != NULL && i < settings->operands; i++)
            if (S_ISREG(st.st_mode) && stat(settings->operand[i], &in) == 0 && in.st_dev == st.st_dev &&
                in.st_ino == st.st_ino)
                return cli_usage("%s is what is read; writing to it would replace the %s", path,
                                 esp_model_recognise(path)   ? "model"
                                 : esp_index_recognise(path) ? "index"
                                                             : "data");
        if (S_ISDIR(st.st_mode)) return cli_fail("%s: is a directory, not a file to write to", path);
        if (access(path, W_OK) != 0) return cli_fail("%s: %s", path, strerror(errno));
        if (!S_ISREG(st.st_mode)) return CLI_OK;
    }
    const char *slash = strrchr(path, '/');
    const size_t size = slash == NULL ? 1 : slash == path ? 1 : (size_t)(slash - path);
    char *folder = strndup(slash == NULL ? "." : path, size);
    if (folder == NULL) return cli_fail("out of memory");
    int code = CLI_OK;
    if (stat(folder, &st) != 0)
        code = cli_fail("%s: the folder '%s' cannot be used: %s", path, folder, strerror(errno));
    else if (!S_ISDIR(st.st_mode)) code = cli_fail("%s: '%s' is a file, not a folder", path, folder);
    else if (access(folder, W_OK | X_OK) != 0)
        code = cli_fail("%s: cannot write in the folder '%s': %s", path, folder, strerror(errno));
    free(folder);
    return code;
}

int cli_write(const esp_dataset *data, const char *path, esp_format format)
{
    if (path == NULL) path = "-";
    if (strcmp(path, "-") == 0) {
        cli_interrupt_default(); /* there is no file to leave half-written */
        if (format == ESP_FORMAT_AUTO) format = ESP_FORMAT_JSONL;
    }
    esp_error error;
    const esp_status status = esp_dataset_write(data, path, format, &error);
    return status == ESP_OK ? CLI_OK : cli_error(status, &error);
}

bool cli_ends_with(const char *path, const char *ending)
{
    const size_t size = strlen(path), tail = strlen(ending);
    return size >= tail && strcasecmp(path + size - tail, ending) == 0;
}

int cli_kernel(const char *expression, esp_kernel **out)
{
    if (expression == NULL) {
        char list[512] = "";
        const char *name, *help;
        for (size_t i = 0; (name = esp_kernel_name(i, &help)) != NULL; i++) {
            const size_t used = strlen(list);
            if (used + strlen(name) + 3 < sizeof list)
                snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ", name);
        }
        return cli_usage("-k EXPR is missing; the kernels are %s", list);
    }
    esp_error error;
    const esp_status status = esp_kernel_parse(expression, out, &error);
    return status == ESP_OK ? CLI_OK : cli_error(status, &error);
}
