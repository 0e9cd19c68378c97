/* espalier convert: from one data format to another. */
#include "cli.h"

typedef struct convert_settings {
    cli_settings common;
    const char *output;
    esp_format to;
} convert_settings;

/* clang-format off */
static const cli_option options[] = {
    {.name = "to", .kind = CLI_FORMAT, .offset = offsetof(convert_settings, to), .argument = "FORMAT",
     .help = "format to write (default: by the ending of FILE; jsonl on standard output)"},
    {.name = "output", .letter = 'o', .kind = CLI_TEXT, .offset = offsetof(convert_settings, output),
     .argument = "FILE", .help = "where to write (default: standard output)"},
    {.name = NULL}};
/* clang-format on */

static int run_convert(const cli_settings *settings)
{
    const convert_settings *s = (const convert_settings *)settings;
    int code = cli_check_output(s->output, NULL);
    if (code != CLI_OK) return code;
    esp_dataset *data = NULL;
    code = cli_read(settings, settings->operand[0], &data);
    if (code == CLI_OK) code = cli_write(data, s->output, s->to);
    esp_dataset_free(data);
    return code;
}

const cli_command cli_convert = {
    .name = "convert",
    .usage = "DATA",
    .summary = "from one data format to another",
    .text = "Reads DATA in any format and writes it in another one. A format that cannot hold what the data has is "
            "refused before the first byte is written.",
    .examples = "espalier convert trees.mrg --clean -o trees.jsonl\n"
                "zcat old.dat.gz | espalier convert --from svmtk --to kelp - > new.klp",
    .options = options,
    .reads = true,
    .least = 1,
    .most = 1,
    .settings_size = sizeof(convert_settings),
    .run = run_convert};
