/* A seeded generator (xoshiro256**, Blackman & Vigna 2021, seeded by splitmix64): the same numbers everywhere. */
#ifndef ESPI_BASE_RANDOM_H
#define ESPI_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct espi_random {
    uint64_t state[4];
} espi_random;

void espi_random_seed(espi_random *random, uint64_t seed);
uint64_t espi_random_bits(espi_random *random);
/* Uniform in [0, 1), 53 bits. */
double espi_random_unit(espi_random *random);
/* `count` independent standard normal numbers. */
void espi_random_normal(espi_random *random, double *z, size_t count);
/* Uniform in 0 .. bound-1, without bias; bound > 0. */
uint64_t espi_random_below(espi_random *random, uint64_t bound);
/* Puts numbers into random order. */
void espi_random_shuffle(espi_random *random, uint32_t *number, size_t count);

#endif
