/* The gapped sequence kernel (Suzuki et al. 2004): three ways to one value.
 *
 *     K(S, T) = sum over u, 1 <= |u| <= n, of phi_u(S) phi_u(T)
 *     phi_u(S) = sum over the places i of u in S of lambda^(gaps of i)
 *
 * A place picks one factor of each of its tokens; n may be infinite. Contiguous places only are lambda = 0 (0^0 = 1).
 *
 * - espi_seq_value: the recursion over all pairs of tokens of one pair of sequences.
 * - espi_seq_row (seq_match.c): a row of values; the recursion over the pairs of tokens that match, found by an
 *   inverted index, so that columns without a common symbol cost nothing.
 * - espi_seq_mine (seq_mine.c): phi itself. The u that at least two sequences have, with their phi as inverted lists,
 * give a row by adding up; a weight per u gives a scorer. */
#ifndef ESPI_KERNEL_SEQUENCE_SEQUENCE_H
#define ESPI_KERNEL_SEQUENCE_SEQUENCE_H

#include "data/bag.h"
#include "kernel/expression/kernel.h"

#define ESPI_ANY_LENGTH SIZE_MAX

/* A weight that gaps made smaller than this is taken as 0: whatever it adds to K, the same without what came before the
 * gap adds more by a factor of 1 / this. Numbers much smaller slow processors down a hundred times. */
#define ESPI_SEQ_TINY 1e-250
enum { ESPI_SEQ_STRETCH = 64 }; /* tokens after which to look */

typedef struct espi_seq_rule {
    size_t n;      /* ESPI_ANY_LENGTH: infinite */
    double lambda; /* 0: no gaps */
} espi_seq_rule;

/* Tokens k: factors factor[token[k]] .. factor[token[k+1]-1]. */
typedef struct espi_seq {
    size_t length;
    const size_t *token;
    const uint32_t *factor;
} espi_seq;

/* All sequences of a side; symbols in one numbering. Borrowed from the dataset. */
typedef struct espi_seqs {
    size_t count;
    const size_t *row, *token;
    const uint32_t *factor;
    size_t symbols; /* factors are below this, or ESPI_NO_SYMBOL, which occurs on one side only */
} espi_seqs;

static inline espi_seq espi_seq_of(const espi_seqs *s, size_t i)
{
    return (espi_seq){.length = s->row[i + 1] - s->row[i], .token = s->token + s->row[i], .factor = s->factor};
}
espi_seqs espi_seqs_of(const espi_column *column);
size_t espi_seqs_longest(const espi_seqs *s);

/* ---- pair by pair */

typedef struct espi_seq_scratch { /* starts as zeros; grows and is used again */
    double *value;
    size_t capacity;
    size_t work;        /* pairs of tokens since `run` was asked */
    const esp_run *run; /* the calling thread's, or NULL */
} espi_seq_scratch;

/* Bytes that the recursion takes for sequences of these lengths. */
double espi_seq_bytes(const espi_seq_rule *rule, size_t a, size_t b);
/* O(n |a| |b|) time, O(n min(|a|, |b|)) memory; for n infinite or at least as long as the shorter one without the n.
 * Not finite where it overflows. */
esp_status espi_seq_value(const espi_seq_rule *rule, const espi_seq *a, const espi_seq *b, espi_seq_scratch *scratch,
                          double *value, esp_error *err);
/* The same for `count` <= ESPI_LANES sequences b at once, all without several factors in a token and not longer than
 * ESPI_LANE_LENGTH (seq_lanes.c). */
enum { ESPI_LANES = 16, ESPI_LANE_LENGTH = 2048 };
esp_status espi_seq_values(const espi_seq_rule *rule, const espi_seq *a, const espi_seq *b, size_t count,
                           espi_seq_scratch *scratch, double *value, esp_error *err);
/* Symbol j of every sequence side by side; -1, which is no symbol, behind their ends. */
void espi_seq_interleave(const espi_seq *b, size_t count, size_t length, double *symbol);
/* match[j] = the number of pairs of equal factors of tokens a_i and b_j; `plain`: both sequences are. */
void espi_seq_match_row(const espi_seq *a, size_t i, const espi_seq *b, bool plain, double *match);
void espi_seq_drop_tiny(double *value, size_t count);
/* The same of values whose derivatives are small too. */
void espi_seq_drop_tiny_pairs(double *value, double *slope, size_t count);
static inline bool espi_seq_plain(const espi_seq *s) { return s->token[s->length] - s->token[0] == s->length; }
/* The same in wide numbers. False if memory is out. */
bool espi_seq_wide(const espi_seq_rule *rule, const espi_seq *a, const espi_seq *b, espi_wide *value);
/* K(S, S) for all. */
esp_status espi_seq_self_values(const espi_seq_rule *rule, const espi_seqs *seqs, const esp_run *run, double *value,
                                esp_error *err);

/* Room for so many numbers, at an address where lanes are fast; NULL if memory is out. */
double *espi_seq_room(espi_seq_scratch *scratch, size_t count);

/* ---- values and their derivatives in lambda, pair by pair (seq_slope.c, seq_slope_lanes.c): as those above,
 * lambda > 0, in twice the memory and little more than twice the time */

esp_status espi_seq_slope(const espi_seq_rule *rule, const espi_seq *a, const espi_seq *b, espi_seq_scratch *scratch,
                          double *value, double *slope, esp_error *err);
esp_status espi_seq_slopes(const espi_seq_rule *rule, const espi_seq *a, const espi_seq *b, size_t count,
                           espi_seq_scratch *scratch, double *value, double *slope, esp_error *err);
esp_status espi_seq_self_slopes(const espi_seq_rule *rule, const espi_seqs *seqs, const esp_run *run, double *slope,
                                esp_error *err);

/* ---- a row at a time */

typedef struct espi_seq_index { /* symbol x: at[start[x]] .. at[start[x+1]-1], by sequence and position */
    size_t *start;
    struct espi_seq_place {
        uint32_t seq, position;
    } * at;
    double *power; /* lambda^k; all k from powers - 1 on have the last value */
    size_t powers;
    double matches; /* pairs of equal factors, over all pairs of sequences */
} espi_seq_index;

/* `longest`: of any sequence that will be matched with these. False if memory is out. */
bool espi_seq_index_make(espi_seq_index *index, const espi_seqs *seqs, const espi_seq_rule *rule, size_t longest);
void espi_seq_index_free(espi_seq_index *index);

typedef struct espi_seq_matcher espi_seq_matcher;
/* What one thread needs; both must outlive it. NULL if memory is out. */
espi_seq_matcher *espi_seq_matcher_new(const espi_seq_rule *rule, const espi_seqs *cols, const espi_seq_index *index,
                                       const esp_run *run);
void espi_seq_matcher_free(espi_seq_matcher *matcher);
/* value[j - from] = K(a, column j), j = from .. to-1. */
esp_status espi_seq_row(espi_seq_matcher *matcher, const espi_seq *a, size_t from, size_t to, double *value,
                        esp_error *err);
/* The same and slope[j - from] = its derivative in lambda > 0. */
esp_status espi_seq_slope_row(espi_seq_matcher *matcher, const espi_seq *a, size_t from, size_t to, double *value,
                              double *slope, esp_error *err);

/* ---- patterns */

typedef struct espi_seq_posting {
    uint32_t seq;
    double phi;
} espi_seq_posting;

/* Takes a pattern u = (parent, symbol); its postings by increasing sequence. ESPI_NO_NODE is the parent of those of
 * length 1. Sets the number under which longer patterns name it as their parent, and adds what it will cost to
 * *effort. False if memory is out. */
typedef bool (*espi_seq_sink)(void *context, uint32_t parent, uint32_t symbol, const espi_seq_posting *posting,
                              size_t postings, uint32_t *number, double *effort);

typedef struct espi_seq_mining {
    const espi_seqs *seqs;
    const espi_seq_rule *rule;
    size_t support; /* only patterns of so many sequences */
    double effort;  /* give up beyond: tokens visited, and what the sink adds */
    size_t places;  /* give up beyond: places of patterns at work at the same time, 16 bytes each */
    bool slopes;    /* postings have the derivative of phi in lambda; the patterns and their order are the same */
    espi_seq_sink sink;
    void *context;
} espi_seq_mining;

/* All patterns, depth first, parents before children. *done is false where it was given up. */
esp_status espi_seq_mine(const espi_seq_mining *mining, const esp_run *run, bool *done, esp_error *err);

/* ---- a symmetric matrix by patterns (seq_block.c) */

typedef struct espi_seq_block {
    size_t count, vectors;
    espi_lists lists;  /* patterns of few sequences */
    espi_bag bag;      /* the same by sequence */
    double *vector;    /* patterns of many: `vectors` times phi per sequence */
    espi_bag frequent; /* the same by sequence */
    double *self;      /* K(S, S); NULL: the block is empty, or of slopes */
} espi_seq_block;

/* Takes the patterns that two sequences have, or stays empty where they are too many for the memory, or where making
 * them and the whole matrix is more effort (as in espi_seq_mining). */
esp_status espi_seq_block_make(espi_seq_block *block, const espi_seq_rule *rule, const espi_seqs *seqs, double effort,
                               const esp_run *run, esp_error *err);
/* The same patterns with their derivatives in lambda, for a block that is not empty; `effort` as it had. */
esp_status espi_seq_block_make_slopes(espi_seq_block *slopes, const espi_seq_rule *rule, const espi_seqs *seqs,
                                      double effort, const esp_run *run, esp_error *err);
void espi_seq_block_free(espi_seq_block *block);
/* out[j - from] = K(row, j), j = from .. to-1. */
void espi_seq_block_row(const espi_seq_block *block, size_t row, size_t from, size_t to, double *out);
/* The same of derivatives in lambda, but not for j = row, where out gets no meaning. */
void espi_seq_block_slope_row(const espi_seq_block *block, const espi_seq_block *slopes, size_t row, size_t from,
                              size_t to, double *out);

/* ---- scores by a weight per pattern (seq_fold.c) */

typedef struct espi_seq_trie espi_seq_trie;
/* *out is NULL where the sequences have too many patterns. */
esp_status espi_seq_fold(const espi_seq_rule *rule, const espi_seqs *seqs, const double *coefficient, size_t outputs,
                         espi_seq_trie **out, esp_error *err);
void espi_seq_trie_free(espi_seq_trie *trie);
typedef struct espi_seq_walk espi_seq_walk; /* what one thread needs to score */
void espi_seq_walk_free(espi_seq_walk *walk);
/* score[k] = sum over patterns of phi of `a` times the pattern's weight; *walk is made when it is NULL. */
esp_status espi_seq_score(const espi_seq_trie *trie, espi_seq_walk **walk, const espi_seq *a, double *score,
                          esp_error *err);

#endif
