#include "kernel/vector/postings.h"

#include "base/alloc.h"
#include "base/hot.h"

#include <string.h>

enum {
    BLOCK_WORDS = ESPI_BLOCK / 64,
    CHUNK = ESPI_SLICE, /* words; bitsets are whole chunks */
    EIGHT = 8,          /* bitsets added at once */
    LEAST = 3,          /* planes they give */
    MOST_PLANES = 8,
    FEW_HIGH = 12,  /* columns that are counted one by one */
    FREQUENT = 256, /* a bitset costs as much as a list of one column in so many ... */
    FEW = 32        /* ... but not below this number */
};

typedef struct tally { /* of s: columns that have all of its bits, in planes that add up the words of many blocks */
    uint64_t ones[BLOCK_WORDS], twos[BLOCK_WORDS], fours[BLOCK_WORDS];
} tally;

void espi_postings_free(espi_postings *p)
{
    for (size_t f = 0; f < p->features; f++) {
        espi_free(p->feature[f].column);
        espi_free(p->feature[f].bits);
        espi_free(p->feature[f].value);
    }
    espi_free(p->feature);
    *p = (espi_postings){0};
}

size_t espi_postings_bytes(const espi_postings *p)
{
    size_t bytes = p->feature_capacity * sizeof *p->feature;
    for (size_t f = 0; f < p->features; f++) {
        const espi_posting *q = &p->feature[f];
        bytes += q->capacity * (q->bits != NULL ? sizeof *q->bits : sizeof *q->column);
        if (q->value != NULL) bytes += q->capacity * sizeof *q->value;
    }
    return bytes;
}

void espi_planes_free(espi_planes *p)
{
    espi_free(p->plane);
    *p = (espi_planes){0};
}

size_t espi_planes_bytes(const espi_planes *p) { return p->capacity * sizeof *p->plane; }

/* ------------------------------------------------------------------ growing */

static bool reserve_bits(espi_posting *q, size_t words)
{
    size_t capacity = q->capacity;
    if (words <= capacity) return true;
    if (words < capacity + capacity / 4) words = capacity + capacity / 4;
    words = (words + CHUNK - 1) / CHUNK * CHUNK;
    if (words > UINT32_MAX || !espi_reserve(&q->bits, &capacity, words, sizeof *q->bits)) return false;
    /* Only whole chunks are used; espi_reserve may have taken a little more. */
    memset(q->bits + q->capacity, 0, (words - q->capacity) * sizeof *q->bits);
    q->capacity = (uint32_t)words;
    return true;
}

static bool to_bits(espi_posting *q, size_t columns)
{
    espi_posting made = {.count = q->count};
    if (!reserve_bits(&made, (columns + 63) / 64)) return false;
    for (size_t i = 0; i < q->count; i++) made.bits[q->column[i] / 64] |= UINT64_C(1) << q->column[i] % 64;
    espi_free(q->column);
    *q = made;
    return true;
}

static bool to_list(espi_posting *q)
{
    espi_posting made = {.capacity = q->count + q->count / 4};
    made.column = espi_alloc(made.capacity, sizeof *made.column);
    if (made.column == NULL) return false;
    for (size_t w = 0; w < q->capacity; w++)
        for (uint64_t bits = q->bits[w]; bits != 0; bits &= bits - 1)
            made.column[made.count++] = (uint32_t)(w * 64 + (size_t)__builtin_ctzll(bits));
    espi_free(q->bits);
    *q = made;
    return true;
}

static bool append(espi_posting *q, size_t column, double value)
{
    if (q->count == q->capacity) { /* most features come once: not much room at first */
        const size_t capacity = q->capacity + q->capacity / 2u + 2u;
        uint32_t *columns = espi_realloc(q->column, capacity, sizeof *columns);
        if (columns == NULL) return false;
        q->column = columns;
        double *values = q->value == NULL ? NULL : espi_realloc(q->value, capacity, sizeof *values);
        if (values == NULL && q->value != NULL) return false;
        q->value = values;
        q->capacity = (uint32_t)capacity;
    }
    if (value != 1.0 && q->value == NULL) {
        q->value = espi_alloc(q->capacity, sizeof *q->value);
        if (q->value == NULL) return false;
        for (size_t i = 0; i < q->count; i++) q->value[i] = 1.0;
    }
    if (q->value != NULL) q->value[q->count] = value;
    q->column[q->count++] = (uint32_t)column;
    return true;
}

static bool add(espi_posting *q, size_t columns, size_t column, double value)
{
    if (q->bits != NULL) {
        /* A bitset that would have to grow has perhaps become rare since it was made. */
        const bool rare = column / 64 >= q->capacity && (uint64_t)q->count * FREQUENT * 2 < columns;
        if ((rare || value != 1.0) && !to_list(q)) return false;
    }
    if (q->bits != NULL) {
        if (!reserve_bits(q, column / 64 + 1)) return false;
        q->bits[column / 64] |= UINT64_C(1) << column % 64;
        q->count++;
        return true;
    }
    if (!append(q, column, value)) return false;
    const bool frequent = q->count >= FEW && (uint64_t)q->count * FREQUENT >= columns;
    return !frequent || q->value != NULL || to_bits(q, columns);
}

bool espi_postings_add(espi_postings *p, espi_sparse_row x, size_t column)
{
    if (column >= UINT32_MAX) return false;
    if (x.entries > 0 && x.feature[x.entries - 1] >= p->features) {
        const size_t features = (size_t)x.feature[x.entries - 1] + 1;
        if (!espi_reserve(&p->feature, &p->feature_capacity, features, sizeof *p->feature)) return false;
        memset(p->feature + p->features, 0, (features - p->features) * sizeof *p->feature);
        p->features = features;
    }
    if (column >= p->columns) p->columns = column + 1;
    for (size_t i = 0; i < x.entries; i++) {
        if (x.value[i] == 0.0) continue;
        if (x.value[i] != 1.0) p->valued = true;
        if (!add(&p->feature[x.feature[i]], p->columns, column, x.value[i])) return false;
    }
    return true;
}

/* --------------------------------------------------------------------- dots */

void espi_postings_dots(const espi_postings *p, espi_sparse_row x, double *dot)
{
    for (size_t c = 0; c < p->columns; c++) dot[c] = 0.0;
    for (size_t i = 0; i < x.entries && x.feature[i] < p->features; i++) {
        const espi_posting *q = &p->feature[x.feature[i]];
        const double value = x.value[i];
        for (size_t w = 0; q->bits != NULL && w < q->capacity; w++)
            for (uint64_t bits = q->bits[w]; bits != 0; bits &= bits - 1)
                dot[w * 64 + (size_t)__builtin_ctzll(bits)] += value;
        if (q->bits != NULL) continue;
        for (size_t k = 0; q->value == NULL && k < q->count; k++) dot[q->column[k]] += value;
        for (size_t k = 0; q->value != NULL && k < q->count; k++) dot[q->column[k]] += value * q->value[k];
    }
}

/* ------------------------------------------------------------------ counting */

/* A full adder for every bit: a + b + c = 2 * carry + sum. */
#define ADD(carry, sum, a, b, c)                                                                                       \
    do {                                                                                                               \
        const uint64_t half = (a) ^ (b), both = (a) & (b), third = (c);                                                \
        (carry) = both | (half & third);                                                                               \
        (sum) = half ^ third;                                                                                          \
    } while (0)

/* Adds groups of EIGHT bitsets to a chunk of planes. */
HOT static void add_bits(uint64_t *restrict plane, size_t planes, const uint64_t *const *in, size_t groups)
{
    uint64_t eights[CHUNK];
    for (size_t g = 0; g < groups; g++, in += EIGHT) {
        const uint64_t *restrict a = in[0], *restrict b = in[1], *restrict c = in[2], *restrict d = in[3];
        const uint64_t *restrict e = in[4], *restrict f = in[5], *restrict h = in[6], *restrict i = in[7];
        for (size_t w = 0; w < CHUNK; w++) {
            uint64_t ones = plane[w], twos = plane[CHUNK + w], fours = plane[2 * CHUNK + w];
            uint64_t two, another, four, last;
            ADD(two, ones, ones, a[w], b[w]);
            ADD(another, ones, ones, c[w], d[w]);
            ADD(four, twos, twos, two, another);
            ADD(two, ones, ones, e[w], f[w]);
            ADD(another, ones, ones, h[w], i[w]);
            ADD(last, twos, twos, two, another);
            ADD(eights[w], fours, fours, four, last);
            plane[w] = ones;
            plane[CHUNK + w] = twos;
            plane[2 * CHUNK + w] = fours;
        }
        for (size_t k = LEAST; k < planes; k++)
            for (size_t w = 0; w < CHUNK; w++) {
                const uint64_t carry = plane[k * CHUNK + w] & eights[w];
                plane[k * CHUNK + w] ^= eights[w];
                eights[w] = carry;
            }
    }
}

static void add_list(uint64_t *plane, size_t planes, const uint32_t *column, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t word = column[i] / 64;
        uint64_t *at = plane + word / CHUNK * planes * CHUNK + word % CHUNK;
        uint64_t carry = UINT64_C(1) << column[i] % 64;
        for (size_t k = 0; k < planes; k++, at += CHUNK) {
            const uint64_t old = *at;
            *at = old ^ carry;
            carry &= old;
        }
    }
}

static size_t chunks_of(const espi_planes *p) { return (p->columns + CHUNK * 64 - 1) / (CHUNK * 64); }

bool espi_postings_count(const espi_postings *p, espi_sparse_row x, espi_planes *out)
{
    static const uint64_t nothing[CHUNK];
    const espi_posting *dense[ESPI_MOST_COUNTED], *rare[ESPI_MOST_COUNTED];
    const uint64_t *in[ESPI_MOST_COUNTED + EIGHT];
    size_t denses = 0, rares = 0;
    for (size_t i = 0; i < x.entries && x.feature[i] < p->features; i++) {
        const espi_posting *q = &p->feature[x.feature[i]];
        if (x.value[i] == 0.0) continue;
        if (q->bits != NULL) dense[denses++] = q;
        else if (q->count > 0) {
            __builtin_prefetch(q->column); /* far away mostly, and wanted when the bitsets are added */
            rare[rares++] = q;
        }
    }
    out->columns = p->columns;
    out->planes = LEAST;
    while (denses + rares >= (size_t)1 << out->planes) out->planes++;
    const size_t chunks = chunks_of(out), size = out->planes * CHUNK;
    /* Behind the planes there is room for what espi_planes_histogram needs. */
    const size_t numbers = (size_t)1 << out->planes;
    const size_t room = numbers / 2 * CHUNK + numbers * sizeof(tally) / sizeof *out->plane;
    if (!espi_reserve(&out->plane, &out->capacity, chunks * size + room, sizeof *out->plane)) return false;
    for (size_t c = 0; c < chunks; c++) {
        uint64_t *plane = out->plane + c * size;
        size_t inputs = 0;
        for (size_t i = 0; i < denses; i++)
            if (c * CHUNK < dense[i]->capacity) in[inputs++] = dense[i]->bits + c * CHUNK;
        while (inputs % EIGHT != 0) in[inputs++] = nothing;
        memset(plane, 0, size * sizeof *plane);
        add_bits(plane, out->planes, in, inputs / EIGHT);
    }
    for (size_t i = 0; i < rares; i++) add_list(out->plane, out->planes, rare[i]->column, rare[i]->count);
    return true;
}

/* ----------------------------------------------------------- what is counted */

static const uint64_t *planes_of(const espi_planes *p, size_t word)
{
    return p->plane + word / CHUNK * p->planes * CHUNK + word % CHUNK;
}

/* The number of a column as a set of bits: sum[s] += columns of the block that have all bits of s, for all s > 0. */
HOT static void add_block(const uint64_t *restrict plane, size_t planes, uint64_t *restrict sum)
{
    uint64_t all[(ESPI_MOST_COUNTED + 1) / 2][BLOCK_WORDS]; /* of s: columns that have all of its bits */
    for (size_t w = 0; w < BLOCK_WORDS; w++) all[0][w] = ~UINT64_C(0);
    for (size_t k = 0; k < planes; k++)
        for (size_t s = 0; s >> k == 0; s++) {
            uint64_t both[BLOCK_WORDS], count = 0;
            for (size_t w = 0; w < BLOCK_WORDS; w++) both[w] = all[s][w] & plane[k * CHUNK + w];
            if (k + 1 < planes) memcpy(all[s | (size_t)1 << k], both, sizeof both);
            for (size_t w = 0; w < BLOCK_WORDS; w++) count += (uint64_t)__builtin_popcountll(both[w]);
            sum[s | (size_t)1 << k] += count;
        }
}

/* The same for EIGHT blocks side by side. Words are counted when there are eight of them. */
HOT static void add_blocks(const uint64_t *restrict plane, size_t planes, uint64_t *restrict all,
                           tally *restrict tallies, uint64_t *restrict sum)
{
    for (size_t w = 0; w < CHUNK; w++) all[w] = ~UINT64_C(0);
    for (size_t k = 0; k < planes; k++)
        for (size_t s = 0; s >> k == 0; s++) {
            const uint64_t *restrict a = all + s * CHUNK, *restrict b = plane + k * CHUNK;
            const size_t to = s | (size_t)1 << k;
            tally *restrict t = &tallies[to];
            uint64_t eights[BLOCK_WORDS], count = 0;
            for (size_t w = 0; w < BLOCK_WORDS; w++) {
                uint64_t ones = t->ones[w], twos = t->twos[w], fours = t->fours[w];
                uint64_t two, another, four, last;
#define WORD(j) (a[(j)*BLOCK_WORDS + w] & b[(j)*BLOCK_WORDS + w])
                ADD(two, ones, ones, WORD(0), WORD(1));
                ADD(another, ones, ones, WORD(2), WORD(3));
                ADD(four, twos, twos, two, another);
                ADD(two, ones, ones, WORD(4), WORD(5));
                ADD(another, ones, ones, WORD(6), WORD(7));
                ADD(last, twos, twos, two, another);
                ADD(eights[w], fours, fours, four, last);
#undef WORD
                t->ones[w] = ones;
                t->twos[w] = twos;
                t->fours[w] = fours;
            }
            for (size_t w = 0; w < BLOCK_WORDS; w++) count += (uint64_t)__builtin_popcountll(eights[w]);
            sum[to] += EIGHT * count;
            if (k + 1 == planes) continue;
            uint64_t *restrict next = all + to * CHUNK;
            for (size_t w = 0; w < CHUNK; w++) next[w] = a[w] & b[w];
        }
}

HOT static void end_tallies(const tally *t, size_t planes, uint64_t *restrict sum)
{
    for (size_t s = 1; s >> planes == 0; s++)
        for (size_t w = 0; w < BLOCK_WORDS; w++)
            sum[s] += (uint64_t)(__builtin_popcountll(t[s].ones[w]) + 2 * __builtin_popcountll(t[s].twos[w]) +
                                 4 * __builtin_popcountll(t[s].fours[w]));
}

/* Planes of the block that are not empty, from the lowest on: the highest often are. */
static size_t planes_in_use(const uint64_t *plane, size_t planes)
{
    for (; planes > 0; planes--) {
        uint64_t any = 0;
        for (size_t w = 0; w < BLOCK_WORDS; w++) any |= plane[(planes - 1) * CHUNK + w];
        if (any != 0) break;
    }
    return planes;
}

/* The planes of some blocks side by side. */
static void gather(const espi_planes *p, const uint32_t *block, uint64_t *gathered)
{
    for (size_t k = 0; k < p->planes; k++)
        for (size_t j = 0; j < EIGHT; j++)
            memcpy(gathered + k * CHUNK + j * BLOCK_WORDS, planes_of(p, (size_t)block[j] * BLOCK_WORDS) + k * CHUNK,
                   BLOCK_WORDS * sizeof *gathered);
}

/* Few columns have numbers so high that they need the last plane: these are counted one by one in number[] and taken
 * out, as every plane doubles the work. Returns the planes that are left. */
static size_t take_high(uint64_t *plane, size_t planes, uint64_t *number)
{
    const uint64_t *top = plane + (planes - 1) * CHUNK;
    size_t high = 0;
    for (size_t w = 0; w < CHUNK; w++)
        for (uint64_t bits = top[w]; bits != 0; bits &= bits - 1)
            if (++high > FEW_HIGH) return planes;
    for (size_t w = 0; high > 0 && w < CHUNK; w++)
        for (uint64_t bits = top[w]; bits != 0; bits &= bits - 1) {
            size_t n = 0;
            for (size_t k = 0; k < planes; k++) {
                n |= (size_t)(plane[k * CHUNK + w] >> __builtin_ctzll(bits) & 1) << k;
                plane[k * CHUNK + w] &= ~(bits & -bits);
            }
            number[n]++;
            high--;
        }
    return planes - 1;
}

void espi_planes_histogram(espi_planes *p, const uint32_t *block, size_t blocks, uint64_t *number)
{
    const size_t numbers = (size_t)1 << p->planes;
    uint64_t gathered[MOST_PLANES * CHUNK], sum[ESPI_MOST_COUNTED + 1] = {0};
    uint64_t *all = p->plane + chunks_of(p) * p->planes * CHUNK;
    tally *t = (tally *)(void *)(all + numbers / 2 * CHUNK);
    size_t i = 0, most = 0, high = 0;
    memset(number, 0, numbers * sizeof *number);
    if (blocks >= EIGHT) memset(t, 0, numbers * sizeof *t);
    for (; i + EIGHT <= blocks; i += EIGHT) {
        gather(p, block + i, gathered);
        const size_t planes = take_high(gathered, p->planes, number);
        if (planes > most) most = planes;
        add_blocks(gathered, planes, all, t, sum);
    }
    end_tallies(t, most, sum);
    for (; i < blocks; i++) {
        const uint64_t *plane = planes_of(p, (size_t)block[i] * BLOCK_WORDS);
        add_block(plane, planes_in_use(plane, p->planes), sum);
    }
    for (size_t n = 0; n < numbers; n++) high += number[n];
    sum[0] = blocks * ESPI_BLOCK - high;
    /* From "at least these bits" to "exactly these". */
    for (size_t half = 1; half < numbers; half *= 2)
        for (size_t s = 0; s < numbers; s++)
            if ((s & half) == 0) sum[s] -= sum[s | half];
    for (size_t n = 0; n < numbers; n++) number[n] += sum[n];
}

/* Swaps bits of x with bits of y that stand `shift` lower: of every 2 * shift bits the upper half with the lower. */
#define SWAP(x, y, shift)                                                                                              \
    do {                                                                                                               \
        const uint64_t mask = ~UINT64_C(0) / ((UINT64_C(1) << (shift)) + 1);                                           \
        const uint64_t differ = ((x) >> (shift) ^ (y)) & mask;                                                         \
        (x) ^= differ << (shift);                                                                                      \
        (y) ^= differ;                                                                                                 \
    } while (0)

/* Of each word of a chunk, which has eight rows of 64 bits: transposes matrices of eight by eight bits (step 1) or
 * bytes (step 8) (Warren, Hacker's Delight, 7-3). */
HOT static void transpose(uint64_t *restrict row, unsigned step)
{
    const unsigned half = 4 * step, quarter = 2 * step;
    for (size_t w = 0; w < CHUNK; w++) {
        uint64_t a = row[w], b = row[CHUNK + w], c = row[2 * CHUNK + w], d = row[3 * CHUNK + w];
        uint64_t e = row[4 * CHUNK + w], f = row[5 * CHUNK + w], g = row[6 * CHUNK + w], h = row[7 * CHUNK + w];
        SWAP(a, e, half);
        SWAP(b, f, half);
        SWAP(c, g, half);
        SWAP(d, h, half);
        SWAP(a, c, quarter);
        SWAP(b, d, quarter);
        SWAP(e, g, quarter);
        SWAP(f, h, quarter);
        SWAP(a, b, step);
        SWAP(c, d, step);
        SWAP(e, f, step);
        SWAP(g, h, step);
        row[w] = a, row[CHUNK + w] = b, row[2 * CHUNK + w] = c, row[3 * CHUNK + w] = d;
        row[4 * CHUNK + w] = e, row[5 * CHUNK + w] = f, row[6 * CHUNK + w] = g, row[7 * CHUNK + w] = h;
    }
}

void espi_planes_slices(const espi_planes *p, size_t chunk, uint64_t *slice)
{
    const size_t size = p->planes * CHUNK;
    memcpy(slice, p->plane + chunk * size, size * sizeof *slice);
    memset(slice + size, 0, (MOST_PLANES * CHUNK - size) * sizeof *slice);
    transpose(slice, 1);
}

/* Written out, so that compilers make one store of it where bytes lie in this order. */
static void put(uint8_t *at, uint64_t eight)
{
    at[0] = (uint8_t)eight;
    at[1] = (uint8_t)(eight >> 8);
    at[2] = (uint8_t)(eight >> 16);
    at[3] = (uint8_t)(eight >> 24);
    at[4] = (uint8_t)(eight >> 32);
    at[5] = (uint8_t)(eight >> 40);
    at[6] = (uint8_t)(eight >> 48);
    at[7] = (uint8_t)(eight >> 56);
}

void espi_planes_counts(const espi_planes *p, uint8_t *count)
{
    const size_t words = (p->columns + 63) / 64;
    uint64_t number[ESPI_SLICES * CHUNK];
    for (size_t from = 0; from < words; from += CHUNK) {
        espi_planes_slices(p, from / CHUNK, number);
        transpose(number, 8);
        for (size_t b = 0; b < 8; b++)
            for (size_t w = 0; w < CHUNK && from + w < words; w++)
                put(count + (from + w) * 64 + b * 8, number[b * CHUNK + w]);
    }
}
