#include "base/random.h"

#include <math.h>

static uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

void espi_random_seed(espi_random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++) { /* splitmix64 */
        seed += 0x9E3779B97F4A7C15u;
        uint64_t z = seed;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        random->state[i] = z ^ (z >> 31);
    }
}

uint64_t espi_random_bits(espi_random *random)
{
    uint64_t *s = random->state;
    const uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

double espi_random_unit(espi_random *random) { return (double)(espi_random_bits(random) >> 11) * 0x1p-53; }

/* Pairs of normal numbers from pairs of uniform ones (Box & Muller 1958). */
void espi_random_normal(espi_random *random, double *z, size_t count)
{
    for (size_t i = 0; i < count; i += 2) {
        const double radius = sqrt(-2.0 * log(1.0 - espi_random_unit(random)));
        const double angle = 6.283185307179586 * espi_random_unit(random);
        z[i] = radius * cos(angle);
        if (i + 1 < count) z[i + 1] = radius * sin(angle);
    }
}

uint64_t espi_random_below(espi_random *random, uint64_t bound)
{
    const uint64_t reject = -bound % bound; /* 2^64 mod bound: values below it would be too frequent */
    uint64_t bits;
    do bits = espi_random_bits(random);
    while (bits < reject);
    return bits % bound;
}

void espi_random_shuffle(espi_random *random, uint32_t *number, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        const size_t k = espi_random_below(random, i);
        const uint32_t other = number[k];
        number[k] = number[i - 1];
        number[i - 1] = other;
    }
}
