#define _GNU_SOURCE /* sched_getaffinity */
#include "base/processors.h"

#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int espi_processors_bound(uint64_t *which)
{
    enum { MOST = 1 << 16 }; /* processors; the kernel refuses a mask that is smaller than its own */
    int count = 0;
    if (which != NULL) *which = 0;
    for (size_t most = 1024; most <= MOST && count == 0; most *= 4) {
        cpu_set_t *set = CPU_ALLOC(most);
        const size_t size = CPU_ALLOC_SIZE(most);
        if (set == NULL) return 0;
        if (sched_getaffinity(0, size, set) == 0) {
            count = CPU_COUNT_S(size, set);
            for (size_t i = 0; which != NULL && i < most; i++)
                if (CPU_ISSET_S(i, size, set)) *which = (*which ^ (i + 1)) * 0x9E3779B97F4A7C15u;
        }
        CPU_FREE(set);
    }
    return count;
}

/* --------------------------------------------------------- control groups */

/* The first line of a file, without its end; false: there is none. */
static bool read_line(const char *path, char *line, int room)
{
    FILE *file = fopen(path, "re");
    const bool ok = file != NULL && fgets(line, room, file) != NULL;
    if (file != NULL) fclose(file);
    if (ok) line[strcspn(line, "\n")] = '\0';
    return ok;
}

static int whole(double quota, double period)
{
    const double count = quota / period;
    if (!(quota > 0.0) || !(period > 0.0) || count > 1e6) return 0;
    return (int)count + ((double)(int)count < count);
}

/* What one folder of a hierarchy allows. Version 2: "quota period" or "max period" in one file; version 1: two files.
 */
static int limit_of(const char *folder)
{
    char path[PATH_MAX + 32], line[64], *end;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (read_line(path, line, sizeof line)) {
        const double quota = strtod(line, &end);
        return end == line ? 0 : whole(quota, strtod(end, NULL));
    }
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_line(path, line, sizeof line)) return 0;
    const double quota = strtod(line, NULL);
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    return read_line(path, line, sizeof line) ? whole(quota, strtod(line, NULL)) : 0;
}

/* The least of what a group and those around it allow. A container may see its own group as the root, under a path that
 * it does not have. */
static int limit_along(const char *mount, const char *group)
{
    char folder[PATH_MAX];
    int least = limit_of(mount);
    const int size = snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (size < 0 || size >= (int)sizeof folder) return least;
    for (char *slash; strlen(folder) > strlen(mount) && (slash = strrchr(folder, '/')) != NULL; *slash = '\0') {
        const int limit = limit_of(folder);
        if (limit > 0 && (least == 0 || limit < least)) least = limit;
    }
    return least;
}

/* Whether a list such as "cpu,cpuacct" names the controller of processors. */
static bool has_cpu(const char *list, size_t size)
{
    for (size_t at = 0; at < size;) {
        const size_t name = strcspn(list + at, ",:");
        if (name == 3 && strncmp(list + at, "cpu", 3) == 0) return true;
        at += name + 1;
    }
    return false;
}

int espi_processors_allowed(const char *root)
{
    char path[PATH_MAX], line[PATH_MAX];
    int least = 0;
    if (strlen(root) > PATH_MAX / 4) return 0;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    if (file == NULL) return 0;
    while (fgets(line, sizeof line, file) != NULL) { /* "number:controllers:/group"; version 2 has "0::/group" */
        line[strcspn(line, "\n")] = '\0';
        const char *controllers = strchr(line, ':');
        const char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL) continue;
        const size_t size = (size_t)(group - controllers - 1);
        if (size > 256 || (size > 0 && !has_cpu(controllers + 1, size))) continue;
        snprintf(path, sizeof path, "%s/sys/fs/cgroup%s%.*s", root, size > 0 ? "/" : "", (int)size, controllers + 1);
        const int limit = limit_along(path, strcmp(group + 1, "/") == 0 ? "" : group + 1);
        if (limit > 0 && (least == 0 || limit < least)) least = limit;
    }
    fclose(file);
    return least;
}

int espi_processors(void)
{
    static atomic_int known;
    int count = atomic_load(&known);
    if (count > 0) return count;
    const int allowed = espi_processors_allowed("");
    count = espi_processors_bound(NULL);
    if (count <= 0) count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (allowed > 0 && allowed < count) count = allowed;
    int none = 0; /* whoever is first decides for all */
    if (!atomic_compare_exchange_strong(&known, &none, count < 1 ? 1 : count)) return none;
    return count < 1 ? 1 : count;
}
