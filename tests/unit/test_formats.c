/* Unit tests of the table of formats: that its rows are whole and consistent, that whatever lists formats lists all of
 * them, and which format has a file that several could claim. They hold for a format that is added at the end, too. */
#include "data/format.h"
#include "files.h"

static size_t count_rows(void)
{
    size_t count = 0;
    while (espi_formats[count].name != NULL) count++;
    return count;
}

/* How often `word` stands in the text before `end`. */
static size_t count_words(const char *text, const char *end, const char *word)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL && at < end; at++) count++;
    return count;
}

static void every_format_has_a_row(void **state)
{
    (void)state;
    char *header = (char *)slurp("include/espalier.h").bytes;
    const char *begin = strstr(header, "typedef enum esp_format {"), *end = strstr(header, "} esp_format;");
    assert_non_null(begin);
    assert_non_null(end);
    assert_int_equal(count_words(begin, end, " ESP_FORMAT_"), 1 + count_rows()); /* AUTO has none */
    free(header);
    for (size_t i = 1; i <= count_rows(); i++) assert_non_null(espi_format_of((esp_format)i));
    assert_null(espi_format_of(ESP_FORMAT_AUTO));
    assert_null(espi_format_of((esp_format)(count_rows() + 1)));
}

static void rows_are_whole(void **state)
{
    (void)state;
    for (const espi_format *f = espi_formats; f->name != NULL; f++) {
        /* Help, man page and completion print names as they are. */
        assert_int_equal(strspn(f->name, "abcdefghijklmnopqrstuvwxyz0123456789"), strlen(f->name));
        assert_true(strlen(f->name) > 0 && strlen(f->help) > 0 && strlen(f->start) > 0);
        assert_non_null(f->reader);
        assert_non_null(f->reader->recognise);
        assert_non_null(f->reader->next);
        assert_string_not_equal(f->name, "auto");
        for (const espi_format *other = espi_formats; other < f; other++) assert_string_not_equal(f->name, other->name);
    }
}

static void endings_differ(void **state)
{
    (void)state;
    char path[PATH_SIZE];
    for (const espi_format *f = espi_formats; f->name != NULL; f++)
        for (size_t i = 0; f->endings[i] != NULL; i++) {
            /* With one dot, in front, no ending is the end of another. */
            assert_true(f->endings[i][0] == '.' && f->endings[i][1] != '\0');
            assert_null(strchr(f->endings[i] + 1, '.'));
            snprintf(path, sizeof path, "folder.gz/a.zst%s", f->endings[i]);
            assert_ptr_equal(espi_format_of_path(path), f); /* also: no row before it has this ending */
        }
    assert_null(espi_format_of_path("a.gz"));
    assert_null(espi_format_of_path("a.zst"));
    assert_null(espi_format_of_path("jsonl"));
    assert_null(espi_format_of_path(""));
}

static void the_public_list_has_them_all(void **state)
{
    (void)state;
    esp_format_info info;
    esp_format format = ESP_FORMAT_SRL;
    for (size_t i = 0; i < count_rows(); i++) {
        const char *name = esp_format_at(i, &info);
        const espi_format *f = espi_format_of((esp_format)(i + 1));
        assert_string_equal(name, f->name);
        assert_string_equal(name, esp_format_at(i, NULL));
        assert_string_equal(name, esp_format_name(info.format));
        assert_true(esp_format_find(name, &format));
        assert_int_equal(format, i + 1);
        assert_int_equal(info.format, i + 1);
        assert_string_equal(info.help, f->help);
        assert_ptr_equal(info.endings, f->endings);
        assert_int_equal(info.written, f->writer != NULL);
    }
    assert_null(esp_format_at(count_rows(), &info));
    assert_null(esp_format_at(SIZE_MAX, &info));
    assert_string_equal(esp_format_name(ESP_FORMAT_AUTO), "auto");
    assert_true(esp_format_find("auto", &format));
    assert_int_equal(format, ESP_FORMAT_AUTO);
    assert_false(esp_format_find("xml", &format));
    assert_null(esp_format_name((esp_format)99));
}

static void the_strongest_claim_wins(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        esp_format format;
    } files[] = {
        {"{\"t\": \"(a |BT:t| b)\"}\n", ESP_FORMAT_JSONL},
        {"(a |BT| 1:2)\n", ESP_FORMAT_PENN},
        {"T\t|BT|\t1:2\t(a b)\n", ESP_FORMAT_SRL},
        {"1\t3:0.5\t_\tX\t_\tA|BT:n|B\t0\troot\t_\t|BT|\n", ESP_FORMAT_CONLLU},
        {"1 |BT| (a {) |ET| 3:0.5 |EV|\n", ESP_FORMAT_SVMTK},
        {"1 3:0.5 |BV:b| 2:1 |EV|\n", ESP_FORMAT_KELP},
        {"1 3:0.5 |BV| 2:1 |EV| |BV:b| 2:1 |EV|\n", ESP_FORMAT_KELP}, /* as the second name says */
        {"1 |B:3\n", ESP_FORMAT_LIBSVM},
        {"1\t3:0.5\n", ESP_FORMAT_LIBSVM},
        {" \n# {\n  (a b)\n", ESP_FORMAT_PENN},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        esp_dataset *data = NULL;
        esp_error err = {0};
        const esp_status status =
            esp_dataset_parse(files[i].text, strlen(files[i].text), "in", NULL, NULL, &data, &err);
        assert_ok(status, files[i].text, &err);
        assert_int_equal(esp_dataset_format(data), files[i].format);
        esp_dataset_free(data);
    }
}

static void messages_name_them_all(void **state)
{
    (void)state;
    esp_dataset *data = NULL;
    esp_error err = {0};
    char part[PATH_SIZE];
    assert_int_equal(esp_dataset_parse("hello", 5, "in", NULL, NULL, &data, &err), ESP_ERR_PARSE);
    for (const espi_format *f = espi_formats; f->name != NULL; f++) {
        snprintf(part, sizeof part, "%s (%s)", f->name, f->start);
        assert_non_null(strstr(err.message, part));
    }
    assert_string_equal(err.setting, "format");
    assert_int_equal(esp_dataset_parse("{}", 2, "in", NULL, NULL, &data, &err), ESP_OK);
    assert_int_equal(esp_dataset_write(data, "-", ESP_FORMAT_SRL, &err), ESP_ERR_PARAM);
    esp_dataset_free(data);
    const char *list = strchr(err.message, ';');
    assert_non_null(list);
    for (const espi_format *f = espi_formats; f->name != NULL; f++) {
        snprintf(part, sizeof part, " %s", f->name);
        const char *at = strstr(list, part);
        assert_int_equal(at != NULL && strchr(", ", at[strlen(part)]) != NULL, f->writer != NULL);
    }
}

/* The row of a table of Markdown that has this cell; the caller frees it. */
static char *row_with(const char *page, const char *name)
{
    char cell[PATH_SIZE];
    snprintf(cell, sizeof cell, " | `%s` | ", name);
    const char *at = strstr(page, cell);
    if (at == NULL) fail_msg("docs/formats.md has no row for %s", name);
    return strndup(at, strcspn(at, "\n"));
}

static void the_documentation_lists_them_all(void **state)
{
    (void)state;
    char *formats = (char *)slurp("docs/formats.md").bytes, *tool = (char *)slurp("docs/cli.md").bytes;
    const char *recognised = strstr(tool, "| `format` | as recognised: ");
    assert_non_null(recognised);
    char *list = strndup(recognised, strcspn(recognised, "\n")), code[PATH_SIZE];
    for (const espi_format *f = espi_formats; f->name != NULL; f++) {
        snprintf(code, sizeof code, "`%s`", f->name);
        if (strstr(list, code) == NULL) fail_msg("%s is not among the values of format in docs/cli.md", f->name);
        char *row = row_with(formats, f->name);
        for (size_t i = 0; f->endings[i] != NULL; i++) {
            snprintf(code, sizeof code, "`%s`", f->endings[i]);
            if (strstr(row, code) == NULL) fail_msg("%s is missing in docs/formats.md: %s", code, row);
        }
        if ((strstr(row, "| yes |") != NULL) != (f->writer != NULL)) fail_msg("written or not? %s", row);
        free(row);
    }
    free(list);
    free(tool);
    free(formats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_has_a_row),
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(endings_differ),
        cmocka_unit_test(the_public_list_has_them_all),
        cmocka_unit_test(the_strongest_claim_wins),
        cmocka_unit_test(messages_name_them_all),
        cmocka_unit_test(the_documentation_lists_them_all),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
