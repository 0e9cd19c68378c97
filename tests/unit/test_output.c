/* Output files appear complete or not at all. */
#include "base/output.h"
#include "files.h"

#include <sys/stat.h>

static void assert_content(const char *path, const char *expected)
{
    char text[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, expected);
}

static void output_appears_when_committed(void **state)
{
    (void)state;
    const char *path = in_directory("file");
    espi_output *output = NULL;
    assert_int_equal(espi_output_open(path, &output, NULL), ESP_OK);
    espi_output_write(output, "one\n", strlen("one\n"));
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(espi_output_commit(output, NULL), ESP_OK);
    assert_content(path, "one\n");

    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(espi_output_open(path, &output, NULL), ESP_OK);
    espi_output_write(output, "two\n", 4);
    assert_content(path, "one\n");
    assert_int_equal(espi_output_commit(output, NULL), ESP_OK);
    assert_content(path, "two\n");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);

    assert_int_equal(espi_output_open(path, &output, NULL), ESP_OK);
    espi_output_write(output, "three\n", strlen("three\n"));
    espi_output_discard(output);
    espi_output_discard(NULL);
    assert_content(path, "two\n");
    unlink(path);
}

static void output_follows_links(void **state)
{
    (void)state;
    const char *path = in_directory("file"), *link_path = in_directory("link");
    espi_output *output = NULL;
    assert_int_equal(espi_output_open(path, &output, NULL), ESP_OK);
    assert_int_equal(espi_output_commit(output, NULL), ESP_OK);
    assert_int_equal(symlink("file", link_path), 0);
    assert_int_equal(espi_output_open(link_path, &output, NULL), ESP_OK);
    espi_output_write(output, "through the link\n", strlen("through the link\n"));
    assert_int_equal(espi_output_commit(output, NULL), ESP_OK);
    assert_content(path, "through the link\n");
    struct stat st;
    assert_int_equal(lstat(link_path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    unlink(link_path);
    unlink(path);
}

static void output_takes_more_than_its_buffer(void **state)
{
    (void)state;
    const char *path = in_directory("file");
    const size_t size = 300001;
    char *bytes = malloc(size), *back = malloc(size);
    for (size_t i = 0; i < size; i++) bytes[i] = (char)(i * 7 % 127);
    espi_output *output = NULL;
    assert_int_equal(espi_output_open(path, &output, NULL), ESP_OK);
    espi_output_write(output, bytes, 1);
    espi_output_write(output, bytes + 1, size - 1);
    assert_int_equal(espi_output_commit(output, NULL), ESP_OK);
    FILE *file = fopen(path, "rb");
    assert_int_equal(fread(back, 1, size, file), size);
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
    assert_memory_equal(bytes, back, size);
    free(bytes);
    free(back);
    unlink(path);
}

static void output_tells_what_went_wrong(void **state)
{
    (void)state;
    espi_output *output = NULL;
    esp_error err = {0};
    assert_int_equal(espi_output_open("/dev/full", &output, &err), ESP_OK);
    espi_output_write(output, "more than fits", strlen("more than fits"));
    assert_int_equal(espi_output_commit(output, &err), ESP_ERR_IO);
    assert_string_equal(err.message, "/dev/full: No space left on device");

    char message[2 * PATH_SIZE];
    const char *path = in_directory("missing/file");
    snprintf(message, sizeof message, "%s/missing/file: No such file or directory", directory);
    assert_int_equal(espi_output_open(path, &output, &err), ESP_ERR_IO);
    assert_null(output);
    assert_string_equal(err.message, message);

    snprintf(message, sizeof message, "%s: Is a directory", directory);
    assert_int_equal(espi_output_open(directory, &output, &err), ESP_ERR_IO);
    assert_null(output);
    assert_string_equal(err.message, message);
}

static void output_survives_every_refusal(void **state)
{
    (void)state;
    const long live = espi_alloc_live();
    const char *path = in_directory("file");
    for (long n = 0;; n++) {
        espi_output *output = NULL;
        esp_error err = {0};
        espi_alloc_fail_after(n);
        const esp_status status = espi_output_open(path, &output, &err);
        const bool reached = espi_alloc_fail_after(-1) < 0;
        assert_int_equal(status, reached ? ESP_ERR_MEMORY : ESP_OK);
        if (!reached) assert_int_equal(espi_output_commit(output, NULL), ESP_OK);
        else assert_null(output);
        assert_int_equal(espi_alloc_live(), live);
        assert_int_equal(access(path, F_OK), reached ? -1 : 0);
        if (!reached) break;
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_appears_when_committed),     cmocka_unit_test(output_follows_links),
        cmocka_unit_test(output_takes_more_than_its_buffer), cmocka_unit_test(output_tells_what_went_wrong),
        cmocka_unit_test(output_survives_every_refusal),
    };
    return cmocka_run_group_tests_name("output", tests, make_directory, remove_directory);
}
