/* Groups of one process, matrices made in their file, and how many processors a process may use. */
#include "base/group.h"
#include "base/processors.h"
#include "files.h"

#include <sys/stat.h>

/* -------------------------------------------------------------- one process */

static void a_group_of_one_keeps_what_it_has(void **state)
{
    (void)state;
    esp_group *group = NULL;
    esp_error err = {0};
    assert_int_equal(esp_group_open("one", &group, &err), ESP_OK);
    assert_int_equal(esp_group_rank(group), 0);
    assert_int_equal(esp_group_size(group), 1);
    assert_true(strlen(esp_group_host(group, 0)) > 0);
    assert_null(esp_group_host(group, 1));
    assert_null(esp_group_host(group, -1));
    const esp_run alone = {.group = group}, none = {0};
    const esp_run *const runs[] = {&alone, &none, NULL};
    for (size_t i = 0; i < 3; i++) {
        const esp_run *run = runs[i];
        double value[2] = {1.5, -0.0};
        int all = 0, own = 7;
        assert_false(espi_group_shares(run));
        assert_int_equal(espi_group_rank(run), 0);
        assert_int_equal(espi_group_size(run), 1);
        assert_int_equal(espi_group_broadcast(run, value, sizeof value, &err), ESP_OK);
        assert_int_equal(espi_group_gather(run, &own, sizeof own, &all, &err), ESP_OK);
        assert_int_equal(all, 7);
        assert_int_equal(espi_group_sum(run, value, 2, &err), ESP_OK);
        assert_int_equal(espi_group_merge(run, value, sizeof value, &err), ESP_OK);
        assert_true(value[0] == 1.5 && value[1] == 0.0 && signbit(value[1]));
        assert_int_equal(espi_group_barrier(run, &err), ESP_OK);
        assert_int_equal(espi_group_agree(run, "other data", 5, &err), ESP_OK);
        assert_int_equal(esp_group_agree(run, "text", "a\nb", &err), ESP_OK);
        assert_int_equal(esp_group_wait(run, &err), ESP_OK);
        assert_null(espi_group_apart(run).group);
        assert_true(espi_group_block(run, 100000) >= 1);
    }
    esp_group_fail(group, ESP_ERR_IO, "broken");
    esp_group_fail(NULL, ESP_ERR_IO, "broken");
    esp_group_close(group);
    esp_group_close(NULL);
}

static esp_status count_item(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    atomic_int *seen = context;
    (void)err;
    assert_true(worker->run == NULL || worker->run->group == NULL);
    atomic_fetch_add(&seen[item], 1);
    return ESP_OK;
}

static void threads_are_dealt_each_item_once(void **state)
{
    (void)state;
    esp_group *group = NULL;
    assert_int_equal(esp_group_open("one", &group, NULL), ESP_OK);
    for (int threads = 1; threads <= 4; threads++) {
        atomic_int seen[100] = {0};
        const esp_run run = {.threads = threads, .group = group};
        assert_int_equal(espi_group_deal(&run, "counting", 100, 7, count_item, seen, NULL), ESP_OK);
        for (size_t i = 0; i < 100; i++) assert_int_equal(seen[i], 1);
        assert_int_equal(espi_group_deal(&run, "counting", 0, 7, count_item, seen, NULL), ESP_OK);
    }
    esp_group_close(group);
}

static void groups_that_are_not_there(void **state)
{
    (void)state;
    esp_group *group = NULL;
    esp_error err = {0};
    assert_int_equal(espi_group_open("/nowhere", "mpi", &group, &err), ESP_ERR_IO);
    assert_null(group);
    assert_int_equal(err.system, ENOENT);
    assert_int_equal(espi_group_open("/nowhere", "mpi", &group, NULL), ESP_ERR_IO);
}

/* ------------------------------------------------------- matrices in a file */

static const char trees[] = "{\"y\": 1, \"tree\": \"(S (A a) (B b))\"}\n{\"y\": 2, \"tree\": \"(S (A a) (C c))\"}\n"
                            "{\"y\": 1, \"tree\": \"(S (B b))\"}\n{\"y\": 2, \"tree\": \"(A a)\"}\n";

static esp_dataset *many_trees(size_t copies)
{
    const size_t size = sizeof trees - 1;
    char *text = malloc(copies * size);
    esp_dataset *data = NULL;
    for (size_t i = 0; i < copies; i++) memcpy(text + i * size, trees, size);
    assert_int_equal(esp_dataset_parse(text, copies * size, "trees", NULL, NULL, &data, NULL), ESP_OK);
    free(text);
    return data;
}

static void assert_same_files(const char *first, const char *second)
{
    FILE *a = fopen(first, "r"), *b = fopen(second, "r");
    assert_non_null(a);
    assert_non_null(b);
    int c, d;
    do {
        c = getc(a);
        d = getc(b);
        assert_int_equal(c, d);
    } while (c != EOF);
    fclose(a);
    fclose(b);
}

static void compare_matrices(const esp_dataset *rows, const esp_dataset *cols, const esp_run *run)
{
    const char *whole = in_directory("whole.npy"), *strips = in_directory("strips.npy");
    const size_t count = esp_dataset_count(rows), width = cols != NULL ? esp_dataset_count(cols) : count;
    esp_kernel *kernel = NULL;
    esp_error err = {0};
    double *gram = malloc((count * width + 1) * sizeof *gram);
    assert_int_equal(esp_kernel_parse("norm(sst(tree, lambda=0.4))", &kernel, NULL), ESP_OK);
    assert_int_equal(esp_gram(kernel, rows, cols, NULL, gram, &err), ESP_OK);
    assert_int_equal(esp_gram_write(gram, count, width, NULL, ESP_GRAM_NPY, whole, NULL, &err), ESP_OK);
    assert_int_equal(esp_gram_file(kernel, rows, cols, strips, run, &err), ESP_OK);
    assert_same_files(whole, strips);
    unlink(whole);
    unlink(strips);
    esp_kernel_free(kernel);
    free(gram);
}

static void a_matrix_in_its_file_has_the_same_bytes(void **state)
{
    (void)state;
    esp_dataset *few = many_trees(1), *many = many_trees(75);
    esp_group *group = NULL;
    assert_int_equal(esp_group_open("one", &group, NULL), ESP_OK);
    const esp_run little = {.memory = 20000, .threads = 2}, grouped = {.group = group};
    compare_matrices(few, NULL, NULL);
    compare_matrices(many, NULL, NULL);
    compare_matrices(many, NULL, &little); /* a strip is a row or two */
    compare_matrices(many, NULL, &grouped);
    compare_matrices(many, few, NULL);
    compare_matrices(few, many, &grouped);
    esp_group_close(group);
    esp_dataset_free(few);
    esp_dataset_free(many);
}

static void matrices_that_cannot_be_written(void **state)
{
    (void)state;
    esp_dataset *data = many_trees(10);
    esp_kernel *kernel = NULL, *wrong = NULL;
    esp_error err = {0};
    const esp_run little = {.memory = 64, .threads = 1};
    assert_int_equal(esp_kernel_parse("sst(tree)", &kernel, NULL), ESP_OK);
    assert_int_equal(esp_kernel_parse("sst(nothing)", &wrong, NULL), ESP_OK);
    const char *path = in_directory("matrix.npy");
    assert_int_equal(esp_gram_file(kernel, data, NULL, "/dev/full", NULL, &err), ESP_ERR_PARAM);
    assert_non_null(strstr(err.message, "/dev/full is not a file"));
    assert_int_equal(esp_gram_file(kernel, data, NULL, "/nowhere/matrix.npy", NULL, &err), ESP_ERR_IO);
    assert_int_equal(esp_gram_file(kernel, data, NULL, path, &little, &err), ESP_ERR_MEMORY);
    assert_int_equal(esp_gram_file(wrong, data, NULL, path, NULL, &err), ESP_ERR_PARAM);
    assert_int_equal(access(path, F_OK), -1);
    esp_kernel_free(kernel);
    esp_kernel_free(wrong);
    esp_dataset_free(data);
}

/* ---------------------------------------------------------------- processors */

static void put(const char *root, const char *name, const char *text)
{
    char path[PATH_SIZE * 2];
    for (const char *slash = strchr(name + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(path, sizeof path, "%s%.*s", root, (int)(slash - name), name);
        (void)mkdir(path, 0700);
    }
    snprintf(path, sizeof path, "%s%s", root, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void drop(const char *root)
{
    char command[PATH_SIZE * 4];
    snprintf(command, sizeof command, "rm -rf '%s/proc' '%s/sys'", root, root);
    assert_int_equal(system(command), 0);
}

static void control_groups_limit_threads(void **state)
{
    (void)state;
    const char *root = directory;
    assert_int_equal(espi_processors_allowed(root), 0); /* no control groups at all */
    put(root, "/proc/self/cgroup", "0::/\n");
    assert_int_equal(espi_processors_allowed(root), 0);
    put(root, "/sys/fs/cgroup/cpu.max", "max 100000\n"); /* version 2 */
    assert_int_equal(espi_processors_allowed(root), 0);
    put(root, "/sys/fs/cgroup/cpu.max", "250000 100000\n"); /* a container sees its own group as the root */
    assert_int_equal(espi_processors_allowed(root), 3);
    put(root, "/proc/self/cgroup", "0::/slurm/job_7/step_0\n");
    put(root, "/sys/fs/cgroup/cpu.max", "max 100000\n");
    put(root, "/sys/fs/cgroup/slurm/job_7/cpu.max", "800000 100000\n");
    put(root, "/sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "max 100000\n");
    assert_int_equal(espi_processors_allowed(root), 8); /* of a group around it */
    put(root, "/sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "20000 100000\n");
    assert_int_equal(espi_processors_allowed(root), 1);
    put(root, "/sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "nonsense\n");
    assert_int_equal(espi_processors_allowed(root), 8);
    drop(root);
    put(root, "/proc/self/cgroup", "4:memory:/a\n3:cpu,cpuacct:/a/b\n2:cpuset:/a\n1:name=systemd:/a\nnonsense\n");
    put(root, "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n"); /* version 1 */
    put(root, "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
    assert_int_equal(espi_processors_allowed(root), 0);
    put(root, "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "400000\n");
    put(root, "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
    assert_int_equal(espi_processors_allowed(root), 4);
    drop(root);
}

static void bound_processors_are_counted(void **state)
{
    (void)state;
    uint64_t which = 0, again = 1;
    const int bound = espi_processors_bound(&which);
    assert_true(bound >= 1 && bound <= sysconf(_SC_NPROCESSORS_CONF));
    assert_int_equal(espi_processors_bound(&again), bound);
    assert_true(which == again && which != 0);
    assert_true(espi_processors() >= 1 && espi_processors() <= bound);
    assert_int_equal(espi_worker_count(NULL, SIZE_MAX), espi_processors());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_of_one_keeps_what_it_has), cmocka_unit_test(threads_are_dealt_each_item_once),
        cmocka_unit_test(groups_that_are_not_there),        cmocka_unit_test(a_matrix_in_its_file_has_the_same_bytes),
        cmocka_unit_test(matrices_that_cannot_be_written),  cmocka_unit_test(control_groups_limit_threads),
        cmocka_unit_test(bound_processors_are_counted),
    };
    return cmocka_run_group_tests_name("group", tests, make_directory, remove_directory);
}
