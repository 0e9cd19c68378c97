/* --mpi: the processes that mpirun or srun started divide the work. All of them run the same command; the first one
 * alone prints, and a sentence about what went wrong comes from each. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static esp_group *group; /* of this process; NULL: none */

bool cli_first(void) { return group == NULL || esp_group_rank(group) == 0; }

bool cli_grouped(void) { return group != NULL && esp_group_size(group) > 1; }

const char *cli_group_name(char name[128])
{
    name[0] = '\0';
    if (!cli_grouped()) return name;
    const int rank = esp_group_rank(group);
    snprintf(name, 128, "rank %d on %s: ", rank, esp_group_host(group, rank));
    return name;
}

static const cli_settings *telling;

static void on_message(void *user, const char *line)
{
    (void)user;
    cli_run_end();
    cli_detail(telling, "%s", line);
}

void cli_share(const cli_settings *settings, esp_run *run)
{
    run->group = group;
    telling = settings;
    if (group != NULL && settings->verbose && run->message == NULL) run->message = on_message;
}

char *cli_group_line(char **arguments)
{
    size_t size = 1;
    bool wanted = false;
    for (size_t i = 0; arguments[i] != NULL; i++) {
        wanted = wanted || strcmp(arguments[i], "--mpi") == 0;
        size += strlen(arguments[i]) + 1;
    }
    char *line = wanted ? malloc(size) : NULL;
    if (line == NULL) return NULL;
    char *at = line;
    for (size_t i = 0; arguments[i] != NULL; i++) { /* an option and what follows it are one line */
        const bool joined = arguments[i][0] == '-' && arguments[i + 1] != NULL && arguments[i + 1][0] != '-';
        at = stpcpy(stpcpy(at, arguments[i]), joined ? " " : "\n");
    }
    *at = '\0';
    return line;
}

int cli_group_begin(cli_settings *settings, const char *line)
{
    if (!settings->mpi) return CLI_OK;
    for (size_t i = 0; i < settings->operands; i++)
        if (strcmp(settings->operand[i], "-") == 0)
            return cli_usage("--mpi: only one rank would have the standard input; give files that all can read");
    esp_error error;
    esp_run run = cli_run(settings);
    esp_status status = esp_group_open("mpi", &group, &error);
    if (status != ESP_OK) {
        cli_fail("--mpi: %s", error.message);
        return status == ESP_ERR_PARAM ? CLI_USAGE : CLI_FAILURE;
    }
    run.group = group;
    status = esp_group_agree(&run, "argument", line != NULL ? line : "", &error);
    if (status != ESP_OK) return cli_error(status, &error);
    if (!cli_first()) settings->quiet = true;
    cli_detail(settings, "%d rank%s", esp_group_size(group), esp_group_size(group) == 1 ? "" : "s");
    return CLI_OK;
}

int cli_group_end(const cli_settings *settings, int code)
{
    if (group == NULL) return code;
    if (code == CLI_OK) code = cli_flush(code); /* all are to know if the results could not be written */
    if (code == CLI_OK) {
        esp_error error;
        esp_run run = cli_run(settings);
        run.group = group;
        const esp_status status = esp_group_wait(&run, &error);
        if (status != ESP_OK) code = cli_error(status, &error);
    }
    if (code != CLI_OK) esp_group_fail(group, code == CLI_USAGE ? ESP_ERR_PARAM : ESP_ERR_IO, cli_last_words());
    fflush(stderr);
    esp_group_close(group);
    group = NULL;
    return code;
}
