/* How many processors this process may use: fewer than the machine has, where somebody has bound it to some of them
 * (taskset, mpirun, Slurm) or given its group of processes a share of their time (containers, Slurm, systemd). */
#ifndef ESPI_BASE_PROCESSORS_H
#define ESPI_BASE_PROCESSORS_H

#include <stddef.h>
#include <stdint.h>

/* At least 1. The system is asked once: callers count workers, make room for them and then start them. */
int espi_processors(void);

/* The processors that the process is bound to, and a number that tells such sets apart (may be NULL). 0: unknown. */
int espi_processors_bound(uint64_t *which);
/* Processors' worth of time that control groups allow, version 1 or 2, rounded up; 0: no limit. `root` is "", or a
 * folder in which a test keeps other /proc/self/cgroup and /sys/fs/cgroup. */
int espi_processors_allowed(const char *root);

#endif
