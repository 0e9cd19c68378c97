/* espalier.h -- learning from trees and sequences with structural kernels.
 *
 * Handles are opaque and have one owner; esp_xxx_free(NULL) does nothing. Const handles may be shared
 * between threads. The library never prints, exits, aborts, reads the environment or keeps global state.
 * A function that can fail returns an esp_status and, if `err` is not NULL, leaves one sentence there that
 * names the value, what is allowed, and file:line:column where input is at fault. On failure the handle
 * written through `out` is NULL. Strings handed out belong to the handle they were asked from. */
#ifndef ESPALIER_H
#define ESPALIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define ESP_API __attribute__((visibility("default")))
#else
#define ESP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define ESP_VERSION "0.2.0"

typedef enum esp_status {
    ESP_OK = 0,
    ESP_ERR_MEMORY,   /* out of memory, or more than esp_run.memory would be needed */
    ESP_ERR_PARAM,    /* an argument, an option or a kernel expression is wrong */
    ESP_ERR_PARSE,    /* the data are wrong; line and column say where, if it is in one place */
    ESP_ERR_IO,       /* the operating system refused */
    ESP_ERR_RANGE,    /* a result is too large for a double */
    ESP_ERR_CANCELLED /* the progress callback asked to stop */
} esp_status;

typedef struct esp_error {
    size_t line, column; /* 1-based place in the input; 0 unless parsing failed */
    int system;          /* errno where the system refused a file; else 0 */
    const char *setting; /* where another value would help: the name of an option or setting ("target"); else NULL */
    char value[256];     /* such a value, if there is one to name that fits; else "" */
    char message[1024];  /* one sentence, with its place in front: "data.jsonl:3:14: ..." */
} esp_error;

/* The version of the library that is running, which may differ from ESP_VERSION of the header. */
ESP_API const char *esp_version(void);

/* The name in names[0..count) nearest to `name`, or NULL if none is near enough to suggest: "did you mean". */
ESP_API const char *esp_nearest(const char *name, const char *const *names, size_t count);

/* A device that does the dense algebra of Gaussian processes, such as a GPU. */
typedef struct esp_device esp_device;

/* Several processes, on one machine or many, that divide the work of a call. */
typedef struct esp_group esp_group;

/* How a long call runs. NULL stands for all zeros. */
typedef struct esp_run {
    int threads;   /* 0: one for each processor that this process may use. Results never depend on it. */
    size_t memory; /* bytes that the result may take; a call that needs more fails before it starts; 0: no limit */
    /* Called now and then, always from the calling thread; `fraction` runs from 0 to 1 within a stage and
     * is negative where the amount of work is not known. A result other than 0 cancels the call. It must not predict
     * with the model that the call is about. */
    int (*progress)(void *user, const char *stage, double fraction);
    void *user;
    /* Where it is not NULL, called with a line about what goes on, for those who want to know: a Gaussian process shows
     * the steps of its search. Always from the calling thread. */
    void (*message)(void *user, const char *line);
    /* Where it is not NULL, a file in which a training that may be long keeps what it has done; if it is there already,
     * the training goes on from it, and ends as it would have ended. It stays there. For learners that keep none
     * (ESP_KEEPS_CHECKPOINTS) it is ESP_ERR_PARAM; calls that do not train leave it alone. */
    const char *checkpoint;
    /* Where it is not NULL, large matrices are factored and inverted there; it must outlive the call. Several threads
     * may share it. Results agree with those of the processor's cores to about 1e-9. */
    esp_device *device;
    /* Where it is not NULL, all processes of the group make this call, in the same order and with the same arguments.
     * esp_gram_file, esp_predict, esp_cross_validate, esp_tune and esp_search divide the work among them, and all of
     * them get the whole result; where kernel, data or settings differ it is ESP_ERR_PARAM. With esp_dataset_read_share
     * and esp_train_share each has a part of the data. All other calls do all of it everywhere. It must outlive the
     * call. */
    esp_group *group;
} esp_run;

/* Opens a device by name: "cuda" is the first GPU that CUDA lists. ESP_ERR_IO, with the reason in one sentence, where
 * there is none to use: the plugin libespalier-cuda.so is not installed (error->system is ENOENT), it belongs to
 * another version, or there is no driver or no GPU (ENODEV). It takes a few tenths of a second: open it once. */
ESP_API esp_status esp_device_open(const char *name, esp_device **out, esp_error *err);
ESP_API const char *esp_device_name(const esp_device *device); /* "NVIDIA H200" */
ESP_API void esp_device_close(esp_device *device);
/* Whether a Gaussian process of so many examples is large enough for opening a GPU to pay. */
ESP_API bool esp_device_pays(size_t examples);
/* ESP_ERR_MEMORY, with both sizes in the sentence, if the matrix of so many examples is larger than the memory that was
 * free when the device was opened: the processor factors it then. */
ESP_API esp_status esp_device_fits(const esp_device *device, size_t examples, esp_error *err);

/* Opens the group that this process belongs to: "mpi" is the one that mpirun or srun started, and waits for its other
 * processes; it can be opened once. "one" is this process alone. ESP_ERR_IO, with the reason in one sentence: the
 * plugin libespalier-mpi.so is not installed (error->system is ENOENT) or of another version, or there is no such group
 * (ENODEV). ESP_ERR_PARAM if the processes run different versions of the library. */
ESP_API esp_status esp_group_open(const char *name, esp_group **out, esp_error *err);
ESP_API int esp_group_rank(const esp_group *group); /* the number of this process, from 0 */
ESP_API int esp_group_size(const esp_group *group);
ESP_API const char *esp_group_host(const esp_group *group, int rank); /* the machine of one; NULL: no such rank */
/* ESP_ERR_PARAM, with the first rank and the first line that differ, unless all ranks of run->group have the same text;
 * `what` names it in the sentence. */
ESP_API esp_status esp_group_agree(const esp_run *run, const char *what, const char *text, esp_error *err);
/* Waits until all have come here. */
ESP_API esp_status esp_group_wait(const esp_run *run, esp_error *err);
/* Tells all others that this process cannot go on, and why: whatever they do together with it fails with this status
 * and sentence. The calls that divide work do this by themselves when they fail. */
ESP_API void esp_group_fail(esp_group *group, esp_status status, const char *sentence);
ESP_API void esp_group_close(esp_group *group);

/* ---------------------------------------------------------------- datasets */

/* Examples as named columns (trees, sequences, vectors) with an optional target. Immutable. */
typedef struct esp_dataset esp_dataset;

typedef enum esp_format {
    ESP_FORMAT_AUTO,   /* by content when reading, by the file's ending when writing */
    ESP_FORMAT_JSONL,  /* JSON Lines */
    ESP_FORMAT_SVMTK,  /* SVM-light-TK */
    ESP_FORMAT_KELP,   /* KeLP */
    ESP_FORMAT_LIBSVM, /* LIBSVM vectors */
    ESP_FORMAT_PENN,   /* bracketed trees: one per line, or treebank .mrg files */
    ESP_FORMAT_CONLLU, /* CoNLL-U (reading only) */
    ESP_FORMAT_SRL     /* trees with predicates (reading only) */
} esp_format;

typedef enum esp_column_type { ESP_COLUMN_TREE, ESP_COLUMN_SEQUENCE, ESP_COLUMN_VECTOR } esp_column_type;

/* How a data file is read. NULL stands for all zeros. */
typedef struct esp_read_options {
    esp_format format;
    const char *target; /* the field that holds the target; NULL: "y", or the label of formats that have one */
    bool clean;         /* drop -NONE- traces and function tags from trees */
    bool skip_bad;      /* skip examples that cannot be read instead of failing */
    bool lowercase;     /* lower-case the factors of sequences */
    bool digits;        /* write every digit in factors of sequences as 0 */
} esp_read_options;

/* Reads a data file, plain or compressed by gzip or zstd; "-" is standard input. Files are streamed. */
ESP_API esp_status esp_dataset_read(const char *path, const esp_read_options *options, const esp_run *run,
                                    esp_dataset **out, esp_error *err);
/* The share of the rank of run->group in the examples of some files: their bytes, one file behind the other, are
 * divided evenly, at ends of lines. Files that are compressed, or whose examples are longer than a line, are not
 * divided. All ranks see the same files. A share may be empty; without a group it is all of the examples. */
ESP_API esp_status esp_dataset_read_share(const char *const *paths, size_t count, const esp_read_options *options,
                                          const esp_run *run, esp_dataset **out, esp_error *err);
/* esp_dataset_read from memory; `name` stands for the file in messages. The bytes are not kept. */
ESP_API esp_status esp_dataset_parse(const void *bytes, size_t size, const char *name, const esp_read_options *options,
                                     const esp_run *run, esp_dataset **out, esp_error *err);
/* Writes to `path` ("-" is standard output); a file appears complete or not at all. A format that cannot
 * hold a column of the dataset is ESP_ERR_PARAM. */
ESP_API esp_status esp_dataset_write(const esp_dataset *data, const char *path, esp_format format, esp_error *err);
ESP_API void esp_dataset_free(esp_dataset *data);

/* Format by name ("jsonl", "svmtk", "kelp", "libsvm", "penn", "conllu", "srl"); false if unknown. */
ESP_API bool esp_format_find(const char *name, esp_format *format);
ESP_API const char *esp_format_name(esp_format format);

/* The formats by index, in the order of their numbers and without AUTO, for help texts and checks: the name of one;
 * NULL past the last. `info` may be NULL. */
typedef struct esp_format_info {
    esp_format format;
    const char *help;           /* what it holds, in a few words */
    const char *const *endings; /* of its files, such as ".klp"; ends with NULL */
    bool written;               /* whether esp_dataset_write takes it; all formats are read */
} esp_format_info;
ESP_API const char *esp_format_at(size_t index, esp_format_info *info);

ESP_API size_t esp_dataset_count(const esp_dataset *data);          /* examples */
ESP_API esp_format esp_dataset_format(const esp_dataset *data);     /* as recognised */
ESP_API size_t esp_dataset_bad_count(const esp_dataset *data);      /* examples left out by skip_bad */
ESP_API const char *esp_dataset_first_bad(const esp_dataset *data); /* why the first was left out, or NULL */
ESP_API size_t esp_dataset_columns(const esp_dataset *data);
ESP_API const char *esp_dataset_column_name(const esp_dataset *data, size_t column);
ESP_API esp_column_type esp_dataset_column_type(const esp_dataset *data, size_t column);

/* The target: its field name (NULL if there is none), its text per example, and whether all are numbers. */
ESP_API const char *esp_dataset_target_name(const esp_dataset *data);
ESP_API const char *esp_dataset_target(const esp_dataset *data, size_t example);
ESP_API bool esp_dataset_target_is_number(const esp_dataset *data);

/* What one column holds, for `espalier info`. Counts that do not apply are 0. */
typedef struct esp_column_summary {
    size_t items;       /* trees: nodes that are not leaves; sequences: tokens; vectors: stored values */
    size_t leaves;      /* trees: leaves */
    size_t distinct;    /* trees: different subtrees; sequences: different words; vectors: different features */
    size_t productions; /* trees: different productions */
    size_t symbols;     /* trees: different labels */
    size_t longest;     /* largest tree (nodes without leaves), sequence or vector */
    size_t deepest;     /* trees: most nodes on a path from the root to a leaf */
    size_t empty;       /* examples whose value is empty */
    size_t bytes;       /* memory held */
} esp_column_summary;
ESP_API esp_status esp_dataset_summarize(const esp_dataset *data, size_t column, esp_column_summary *out,
                                         esp_error *err);

/* One value as text: a tree as brackets, a sequence as tokens, a vector as JSON. The caller releases it with
 * esp_text_free. */
ESP_API esp_status esp_dataset_text(const esp_dataset *data, size_t column, size_t example, char **out, esp_error *err);
ESP_API void esp_text_free(char *text);

/* Draws `count` labelled trees from a probabilistic grammar file (docs/sampling.md): columns tree and words. */
ESP_API esp_status esp_dataset_sample(const char *grammar_path, size_t count, uint64_t seed, const esp_run *run,
                                      esp_dataset **out, esp_error *err);
/* The same trees, written as they are drawn and never held; the rest is as with esp_dataset_write. */
ESP_API esp_status esp_sample_write(const char *grammar_path, size_t count, uint64_t seed, const esp_run *run,
                                    const char *path, esp_format format, esp_error *err);

/* -------------------------------------------------- semantic role labelling */

typedef enum esp_srl_task {
    ESP_SRL_BOUNDARY, /* is a constituent an argument of the predicate? 1 or -1 */
    ESP_SRL_ROLE      /* which one is it? ARG0 .. ARG5, ARGA, ARGM */
} esp_srl_task;

/* What examples are made of sentences with predicates (docs/srl.md). NULL stands for all zeros. */
typedef struct esp_srl_options {
    esp_srl_task task;
    bool unary_all;        /* every node of a unary chain that spans an argument is one, not only the topmost */
    bool no_mark;          /* do not write argument and predicate as LABEL-B and LABEL-P */
    bool split;            /* write the link to the candidate and the candidate as trees of their own, too */
    bool full_roles;       /* keep ARGM-TMP, R-ARG0, C-ARG1 and their kin as they are */
    bool skip_bad;         /* skip bad predicates and sentences instead of failing */
    const char *documents; /* a file that lists the documents to use, a line each; NULL: all */
    size_t limit;          /* examples to write at most; 0: all */
    double sample;         /* the probability that an example is written, drawn from `seed`; 0: all are */
    uint64_t seed;
    esp_format to;        /* ESP_FORMAT_JSONL (also: AUTO) or ESP_FORMAT_SVMTK, whose features have numbers */
    const char *features; /* with SVMTK: where to write "number<TAB>name" of each feature; NULL: nowhere */
} esp_srl_options;

typedef struct esp_srl_counts {
    size_t sentences, predicates; /* of the documents that are wanted */
    size_t examples, positives;   /* written */
    size_t arguments;             /* of these predicates; the next four are among them */
    size_t no_constituent;        /* no node spans them */
    size_t around;                /* they cover the predicate itself */
    size_t repeated;              /* another argument has the same span; the first one counts */
    size_t overlapping;           /* they start inside another one; both count */
    size_t bad;                   /* lines left out by skip_bad, with the predicates of a bad sentence as one */
    char first_bad[1024];         /* why the first was left out */
    size_t unknown_documents;     /* listed, but not met; 0 if `limit` ended the reading */
    char first_unknown[96];       /* the first of them, quoted */
} esp_srl_counts;

/* Writes examples of the sentences in some .srl files ("-": standard input) to `output` ("-": standard output), which
 * appears complete or not at all. Memory does not grow with the input, but for the names of features with SVMTK.
 * `counts` may be NULL. */
ESP_API esp_status esp_srl_write(const char *const *paths, size_t path_count, const esp_srl_options *options,
                                 const esp_run *run, const char *output, esp_srl_counts *counts, esp_error *err);

/* ----------------------------------------------------------------- kernels */

/* A kernel expression with its parameters, e.g. "norm(sst(tree, lambda=0.4)) + 0.3*poly(x, degree=3)". */
typedef struct esp_kernel esp_kernel;

/* An unknown name or a value out of range is ESP_ERR_PARAM; `column` of the error is the place in the text. */
ESP_API esp_status esp_kernel_parse(const char *expression, esp_kernel **out, esp_error *err);
/* The expression, in full: parsing it gives the same kernel. */
ESP_API const char *esp_kernel_text(const esp_kernel *kernel);
ESP_API void esp_kernel_free(esp_kernel *kernel);

/* What the value of a parameter or setting is. */
typedef enum esp_parameter_kind {
    ESP_KIND_NUMBER,
    ESP_KIND_WHOLE,   /* a whole number */
    ESP_KIND_FLAG,    /* 1 or 0 */
    ESP_KIND_CHOICE,  /* one of the words that `range` lists */
    ESP_KIND_WEIGHTS, /* label=weight,... */
    ESP_KIND_RULES,   /* a file of grammar rules, or rules in braces */
    ESP_KIND_TEXT
} esp_parameter_kind;

/* The kernels and their parameters, for help texts; NULL past the last. */
typedef struct esp_parameter_info {
    const char *name, *help;
    const char *default_value; /* as it would be written; "" if there is none */
    const char *range;         /* what is allowed, in words */
    esp_parameter_kind kind;
} esp_parameter_info;
ESP_API const char *esp_kernel_name(size_t index, const char **help);
ESP_API const esp_parameter_info *esp_kernel_parameter(size_t index, size_t parameter);
/* Whether it works on columns of this type. */
ESP_API bool esp_kernel_takes(size_t index, esp_column_type type);

/* Writes K(rows[i], cols[j]) to gram[i * count(cols) + j], which the caller owns; `cols` may be NULL or equal
 * to `rows`, then the matrix is symmetric to the last bit. A value that does not fit a double is
 * ESP_ERR_RANGE and names the pair. O(matched vertices) per row for tree kernels. */
ESP_API esp_status esp_gram(const esp_kernel *kernel, const esp_dataset *rows, const esp_dataset *cols,
                            const esp_run *run, double *gram, esp_error *err);
/* The same in single precision, for half the memory: values are computed in double precision and rounded. */
ESP_API esp_status esp_gram_single(const esp_kernel *kernel, const esp_dataset *rows, const esp_dataset *cols,
                                   const esp_run *run, float *gram, esp_error *err);
/* Writes K(x, x) of every example. */
ESP_API esp_status esp_gram_diagonal(const esp_kernel *kernel, const esp_dataset *data, const esp_run *run,
                                     double *diagonal, esp_error *err);

/* The hyperparameters of a kernel, the numbers in it that can be learned (docs/gp.md), in the order of the expression;
 * weights come last. */
typedef struct esp_hyperparameters esp_hyperparameters;
ESP_API esp_status esp_hyperparameters_new(const esp_kernel *kernel, esp_hyperparameters **out, esp_error *err);
ESP_API void esp_hyperparameters_free(esp_hyperparameters *hyperparameters);
ESP_API size_t esp_hyperparameters_count(const esp_hyperparameters *hyperparameters);
ESP_API const char *esp_hyperparameters_name(const esp_hyperparameters *hyperparameters, size_t index);
/* The value, > 0, and the bounds that learners keep to (may be NULL). */
ESP_API double esp_hyperparameters_value(const esp_hyperparameters *hyperparameters, size_t index, double *low,
                                         double *high);
/* A copy of the kernel with other values, one for each hyperparameter. ESP_ERR_PARAM if one is out of its range. */
ESP_API esp_status esp_kernel_with_values(const esp_kernel *kernel, const double *values, esp_kernel **out,
                                          esp_error *err);
/* Writes dK(i, j)/dp of all examples and hyperparameters to gradient[(i * n + j) * count + p], which the caller owns;
 * symmetric to the last bit. Goes through every pair of examples by itself: "gp" learns without such matrices, at a
 * fraction of the cost. ESP_ERR_RANGE if a derivative does not fit a double. */
ESP_API esp_status esp_gram_gradient(const esp_kernel *kernel, const esp_dataset *data, const esp_run *run,
                                     double *gradient, esp_error *err);

/* Draws a target for every example of a dataset from a Gaussian process with zero mean: f is normal with the kernel's
 * values as covariances, and the target is f plus normal noise of this variance. The result has all columns of `data`;
 * the target takes the place of that of `data`, or is called "y". The same seed gives the same f whatever the noise.
 * Takes n^2 numbers of memory and O(n^3) operations. `jitter` (may be NULL) gets what had to be added to the diagonal
 * where rounding leaves the kernel without a Cholesky factor, as equal examples do; 0: nothing. */
ESP_API esp_status esp_dataset_sample_gp(const esp_kernel *kernel, const esp_dataset *data, double noise, uint64_t seed,
                                         const esp_run *run, esp_dataset **out, double *jitter, esp_error *err);
/* The same, written; the rest is as with esp_dataset_write. What the format cannot hold is told before anything is
 * drawn. */
ESP_API esp_status esp_sample_gp_write(const esp_kernel *kernel, const esp_dataset *data, double noise, uint64_t seed,
                                       const esp_run *run, const char *path, esp_format format, double *jitter,
                                       esp_error *err);

typedef enum esp_gram_format { ESP_GRAM_TEXT, ESP_GRAM_NPY, ESP_GRAM_LIBSVM } esp_gram_format;
/* Writes a matrix of row_count x col_count: TAB-separated text, NumPy's .npy, or LIBSVM's precomputed form,
 * whose labels come from `labels` (may be NULL: all 0). A file appears complete or not at all. */
ESP_API esp_status esp_gram_write(const double *gram, size_t row_count, size_t col_count, const esp_dataset *labels,
                                  esp_gram_format format, const char *path, const esp_run *run, esp_error *err);

/* Computes the matrix of esp_gram straight into a .npy file, a strip of rows at a time, so that it may be larger than
 * the memory. The same bytes as by esp_gram and esp_gram_write. With a group, its ranks take strips in turn and write
 * them into one file, in a folder that they share. `path` must not be a pipe or a device. */
ESP_API esp_status esp_gram_file(const esp_kernel *kernel, const esp_dataset *rows, const esp_dataset *cols,
                                 const char *path, const esp_run *run, esp_error *err);

/* ------------------------------------------------------------------ mining */

/* Which patterns tell one class from the rest: subsequences or tree fragments, by their chi-squared value. The leaves
 * fseq(...) and fsst(...) of a kernel expression say in which columns to look and what to keep. */
typedef struct esp_patterns esp_patterns;

/* NULL stands for all zeros. */
typedef struct esp_mine_options {
    const char *metric;   /* "chi2", "gtest" or "mi"; NULL: chi2 */
    const char *tau;      /* a number >= 0, on the scale of chi2 whatever the metric; NULL: as the leaf says */
    size_t min_support;   /* examples that must contain a pattern; 0: as the leaf says */
    size_t max_length;    /* tokens or productions of a pattern; 0: as the leaf says */
    size_t top;           /* only the best so many; 0: all */
    const char *positive; /* the class to tell from the rest; NULL: the second of two */
    bool no_pruning;      /* do not skip what cannot reach the threshold: the same patterns, to compare */
} esp_mine_options;

/* ESP_ERR_PARAM if no leaf selects, or the target is not two classes and `positive` does not name one.
 * ESP_ERR_MEMORY if what is found needs more than run->memory. */
ESP_API esp_status esp_mine(const esp_kernel *kernel, const esp_dataset *data, const esp_mine_options *options,
                            const esp_run *run, esp_patterns **out, esp_error *err);
ESP_API void esp_patterns_free(esp_patterns *patterns);
/* Patterns, the best first, those of equal value by the bytes of their texts. */
ESP_API size_t esp_patterns_count(const esp_patterns *patterns);
ESP_API double esp_patterns_value(const esp_patterns *patterns, size_t index);
/* In how many examples it is, and in how many positive ones. */
ESP_API size_t esp_patterns_examples(const esp_patterns *patterns, size_t index, size_t *positive);
/* Tokens as in data files; a fragment as brackets in which (NP ...) is a node without its children. */
ESP_API const char *esp_patterns_text(const esp_patterns *patterns, size_t index);
/* The class that was positive. */
ESP_API const char *esp_patterns_positive(const esp_patterns *patterns);
/* What the search did: patterns counted, and those of them that the bound kept from growing. */
ESP_API uint64_t esp_patterns_visited(const esp_patterns *patterns, uint64_t *pruned);

/* Patterns as features: a sparse matrix with a row per example and a column per pattern. */
typedef struct esp_features esp_features;

/* `kernel` is one fseq(...) or fsst(...): it names the column and how an occurrence weighs, which is 1 with lambda=1.
 * `patterns` has one column, of texts as esp_patterns_text gives them; equal ones are one column of the matrix. A value
 * too large for a double is ESP_ERR_RANGE. */
ESP_API esp_status esp_features_new(const esp_kernel *kernel, const esp_dataset *patterns, const esp_dataset *data,
                                    const esp_run *run, esp_features **out, esp_error *err);
ESP_API void esp_features_free(esp_features *features);
ESP_API size_t esp_features_rows(const esp_features *features);
ESP_API size_t esp_features_columns(const esp_features *features);
/* The pattern of a column, as esp_patterns_text writes it. */
ESP_API const char *esp_features_text(const esp_features *features, size_t column);
/* Row i has the entries (*start)[i] .. (*start)[i + 1] - 1, by increasing column. The number of entries. */
ESP_API size_t esp_features_entries(const esp_features *features, const size_t **start, const uint32_t **column,
                                    const double **value);
/* ---------------------------------------------------------- grammar rules */

/* Grammar rules (docs/grammars.md) name children of productions that may be missing, and classes of labels that may
 * stand for each other; the kernel gtk matches trees by them. */

/* How rules are learned. NULL stands for all zeros. */
typedef struct esp_grammar_options {
    const char *column;  /* the trees; NULL: the only such column */
    size_t min_count;    /* a child is optional where its production is seen so often without it; 0: 5 */
    const char *classes; /* "penn", "ud" or "none"; NULL: "none" */
    bool all;            /* also productions seen so often that have no optional child; they have no effect */
} esp_grammar_options;

typedef struct esp_grammar_counts {
    size_t productions; /* different ones in the trees, those of words left out */
    size_t frequent;    /* of these: seen min_count times */
    size_t rules;       /* with optional children */
    size_t optional;    /* their optional children */
    size_t matched;     /* rules that match a production of the trees */
    size_t classes;     /* of labels */
    size_t members;     /* labels in classes ... */
    size_t seen;        /* ... of which so many are labels of pre-terminals of the trees */
    size_t unwritable;  /* productions left out: a label has a control character, which rules cannot name */
} esp_grammar_counts;

/* Learns rules from trees: *text is a file of rules, in a fixed order, each with the number of times it was seen;
 * released with esp_text_free. `counts` may be NULL. O(children of productions). */
ESP_API esp_status esp_grammar_learn(const esp_dataset *data, const esp_grammar_options *options, char **text,
                                     esp_grammar_counts *counts, esp_error *err);
/* Reads a file of rules and tells how they fit trees; `column` as above. */
ESP_API esp_status esp_grammar_check(const char *path, const esp_dataset *data, const char *column,
                                     esp_grammar_counts *counts, esp_error *err);
/* What may be wrong about using a kernel on these data though it can be computed, a sentence per line: rules that match
 * nothing, values for labels or features (lambda.NP, gamma.len) that neither `data` nor `other` (NULL: none) have.
 * *text is NULL if there is nothing to say, else released with esp_text_free. */
ESP_API esp_status esp_kernel_warning(const esp_kernel *kernel, const esp_dataset *data, const esp_dataset *other,
                                      char **text, esp_error *err);

/* ----------------------------------------------------------------- scorers */

/* A weighted sum of kernel values, f(x) = sum_i c_i K(x_i, x), over examples x_i of one dataset: the form in
 * which every learner predicts. Sums of tree kernels collapse into the annotated DAG. */
typedef struct esp_scorer esp_scorer;

/* `examples` must outlive the scorer. */
ESP_API esp_status esp_scorer_new(const esp_kernel *kernel, const esp_dataset *examples, esp_scorer **out,
                                  esp_error *err);
/* c_example += coefficient. */
ESP_API esp_status esp_scorer_add(esp_scorer *scorer, size_t example, double coefficient, esp_error *err);
/* Writes f of every example of `data` to `scores`. */
ESP_API esp_status esp_scorer_score(const esp_scorer *scorer, const esp_dataset *data, const esp_run *run,
                                    double *scores, esp_error *err);
ESP_API void esp_scorer_free(esp_scorer *scorer);

/* ---------------------------------------------------------------- learners */

/* Learners and their settings, for help texts; NULL past the last. */
ESP_API const char *esp_learner_name(size_t index, const char **help);
ESP_API const esp_parameter_info *esp_learner_setting(size_t index, size_t setting);

/* A setting by name and value as text, checked against the learner's table. A flag is "1" or "0". */
typedef struct esp_setting {
    const char *name, *value;
} esp_setting;

/* What a learner can do. */
typedef enum esp_capability {
    ESP_LEARNS_CLASSES = 1,        /* targets are classes */
    ESP_LEARNS_NUMBERS = 2,        /* targets are numbers */
    ESP_NEEDS_TARGET = 4,          /* it cannot learn from data without targets */
    ESP_LEARNS_ONLINE = 8,         /* it takes one example after the other: esp_online */
    ESP_LEARNS_KERNEL = 16,        /* it learns the hyperparameters of the kernel too */
    ESP_NEEDS_MATRIX = 32,         /* the whole Gram matrix must fit the memory */
    ESP_GIVES_VARIANCES = 64,      /* predictions have variances */
    ESP_GIVES_PROBABILITIES = 128, /* predictions of classes have probabilities, or have them if settings ask for it */
    ESP_FINDS_OUTLIERS = 256,      /* it learns from examples alone which ones are unlike them: classes 1 and -1 */
    ESP_KEEPS_CHECKPOINTS = 512    /* esp_train goes on from esp_run.checkpoint, at least with some settings */
} esp_capability;
/* The sum of what a learner can do with these settings, those apart that it refuses; without any (NULL), of what it can
 * do with some. 0 if the learner is unknown. */
ESP_API unsigned esp_learner_capabilities(const char *learner, const esp_setting *settings, size_t count);

/* What was learned: kernel, learner, classes, support examples with their coefficients. Immutable. */
typedef struct esp_model esp_model;

/* Trains on a dataset with a target. `learner` is one that esp_learner_name names. The rows of the Gram matrix are
 * kept in at most run->memory bytes (0: all of them); "gp" needs a whole matrix there (two for two classes, three for
 * more), or with the setting inducing so many rows of it, and says so before it starts; with the setting solver "auto"
 * or "iterative" it does without where it does not fit, and is ESP_ERR_RANGE if that does not converge, unless
 * keep-partial is set. A run that stops at its limit of iterations is a result: esp_model_summary says so. Cancelled:
 * ESP_ERR_CANCELLED, or the model so far with the setting keep-partial; "gp" keeps the best so far in any case, if
 * there is one. */
ESP_API esp_status esp_train(const char *learner, const esp_kernel *kernel, const esp_dataset *data,
                             const esp_setting *settings, size_t count, const esp_run *run, esp_model **out,
                             esp_error *err);
/* The same by all ranks of run->group, each of which has a share of the examples (esp_dataset_read_share), in the order
 * of the ranks; one that is empty will do unless all are. The model is the first rank's, which learns while the others
 * score their examples for it; they get NULL. For learners with folded sums ("svm", "svr"): it is the model of one
 * process that has all examples, with the setting solver "folded". `share` can only be freed afterwards: it has lost
 * its targets and the columns that the kernel does not use, and has examples of other ranks. Without a group, or with
 * one of one rank, this is esp_train. */
ESP_API esp_status esp_train_share(const char *learner, const esp_kernel *kernel, esp_dataset *share,
                                   const esp_setting *settings, size_t count, const esp_run *run, esp_model **out,
                                   esp_error *err);
ESP_API void esp_model_free(esp_model *model);

/* The file appears complete or not at all; the same model gives the same bytes. */
ESP_API esp_status esp_model_write(const esp_model *model, const char *path, esp_error *err);
/* The bytes of that file in memory; released with esp_text_free. */
ESP_API esp_status esp_model_bytes(const esp_model *model, char **bytes, size_t *size, esp_error *err);
/* A damaged, truncated or hostile file, or one of a later version, is ESP_ERR_PARSE. */
ESP_API esp_status esp_model_read(const char *path, esp_model **out, esp_error *err);
ESP_API esp_status esp_model_parse(const void *bytes, size_t size, const char *name, esp_model **out, esp_error *err);
/* Whether a file starts like a model; false also if it cannot be read. */
ESP_API bool esp_model_recognise(const char *path);

ESP_API const char *esp_model_kernel(const esp_model *model); /* the expression */
ESP_API const char *esp_model_learner(const esp_model *model);
/* Classes in the order of outputs; 0 for a regression. */
ESP_API size_t esp_model_classes(const esp_model *model);
ESP_API const char *esp_model_class(const esp_model *model, size_t index);
/* False for the model of a run that stopped before its end: a checkpoint. */
ESP_API bool esp_model_is_finished(const esp_model *model);
/* Facts about the model as "key<TAB>value" lines, for `espalier info`; released with esp_text_free. Long grammars in
 * its kernel are shortened there; esp_model_kernel has all. */
ESP_API esp_status esp_model_summary(const esp_model *model, char **out, esp_error *err);
/* The hyperparameters of a Gaussian process, learned or fixed, as "name<TAB>value" lines, the largest first; empty for
 * models of other learners. Released with esp_text_free. */
ESP_API esp_status esp_model_hyperparameters(const esp_model *model, char **out, esp_error *err);

/* Predictions for a number of examples. */
typedef struct esp_predictions esp_predictions;

/* A dataset whose columns do not fit the model is ESP_ERR_PARAM and says which is missing. The first prediction
 * prepares the model (some microseconds per support example; of a Gaussian process the factor of a matrix, n x n
 * numbers in O(n^3)) and keeps that; several threads may predict with one model. */
ESP_API esp_status esp_predict(const esp_model *model, const esp_dataset *data, const esp_run *run,
                               esp_predictions **out, esp_error *err);
ESP_API void esp_predictions_free(esp_predictions *predictions);
ESP_API size_t esp_predictions_count(const esp_predictions *predictions);
ESP_API bool esp_predictions_are_classes(const esp_predictions *predictions);
/* Class: its name; regression: NULL. */
ESP_API const char *esp_predictions_label(const esp_predictions *predictions, size_t example);
/* Binary: signed score of the positive (second) class; several classes: the winner's score; regression: the value. */
ESP_API double esp_predictions_score(const esp_predictions *predictions, size_t example);
/* One column per class (two classes: one column, the signed score), or one for a regression. */
ESP_API size_t esp_predictions_columns(const esp_predictions *predictions);
ESP_API const char *esp_predictions_column_name(const esp_predictions *predictions, size_t column);
ESP_API double esp_predictions_column(const esp_predictions *predictions, size_t example, size_t column);
/* Probability of a class, if the model was trained with them or is a Gaussian process, else -1. */
ESP_API double esp_predictions_probability(const esp_predictions *predictions, size_t example, size_t class_index);
/* Of a Gaussian process: the variance of the target around its prediction, noise included, and of the function without
 * noise; for classes both are that of the latent function, whose mean is the score. -1 for other models. */
ESP_API double esp_predictions_variance(const esp_predictions *predictions, size_t example);
ESP_API double esp_predictions_latent_variance(const esp_predictions *predictions, size_t example);
ESP_API size_t esp_predictions_classes(const esp_predictions *predictions);
ESP_API const char *esp_predictions_class(const esp_predictions *predictions, size_t class_index);

/* The joint posterior of a Gaussian process at all examples of a dataset; ESP_ERR_PARAM for other models. Both take n x
 * n numbers and n x support examples twice, and are ESP_ERR_MEMORY where that is beyond run->memory.
 *
 * The covariances of the targets or, if `latent`, of the function without noise: covariance[(c * n + i) * n + j] for
 * column c of the predictions, which the caller owns. Of classes both are that of the latent functions. */
ESP_API esp_status esp_predict_covariance(const esp_model *model, const esp_dataset *data, bool latent,
                                          const esp_run *run, double *covariance, esp_error *err);
/* What is drawn from it, jointly for all examples. */
typedef enum esp_draw {
    ESP_DRAW_TARGET,     /* the target: a number with noise, or the number of a class; one per example */
    ESP_DRAW_FUNCTION,   /* the function, without noise: one per column of the predictions */
    ESP_DRAW_PROBABILITY /* the probabilities of the classes that it gives: one per class */
} esp_draw;
/* Number v of `width` per example, of example i in draw s: out[(i * width + v) * samples + s], which the caller owns.
 * The same seed gives the same draws, whatever the threads and whatever follows them. */
ESP_API esp_status esp_predict_samples(const esp_model *model, const esp_dataset *data, size_t samples, uint64_t seed,
                                       esp_draw what, const esp_run *run, double *out, esp_error *err);

/* The log likelihood of the targets under a Gaussian process ("gp"), which esp_train would raise, at the values of the
 * kernel and of the setting noise: that of the targets as they are in the data; of classes Laplace's approximation, the
 * sum over one class against the rest where there are more than two. Unless `gradient` is NULL, it gets the derivatives
 * in the hyperparameters of the kernel as esp_hyperparameters lists them, and of numbers then that in the noise. The
 * setting inducing is refused. ESP_ERR_RANGE where there is no likelihood. */
ESP_API esp_status esp_log_likelihood(const char *learner, const esp_kernel *kernel, const esp_dataset *data,
                                      const esp_setting *settings, size_t count, const esp_run *run, double *value,
                                      double *gradient, esp_error *err);

/* How good predictions are, where targets are known: accuracy, precision, recall and F1 per class, their macro and
 * micro means and the confusion matrix; or RMSE, MAE and Pearson's correlation. Of a Gaussian process also how
 * well its uncertainty fits. */
typedef struct esp_metrics esp_metrics;
/* ESP_ERR_PARAM if the dataset has no target or another number of examples. */
ESP_API esp_status esp_metrics_new(const esp_predictions *predictions, const esp_dataset *data, esp_metrics **out,
                                   esp_error *err);
ESP_API void esp_metrics_free(esp_metrics *metrics);
/* By name: "accuracy", "macro-f1", "micro-f1", "known" (the part of the examples whose class the model knows), "rmse",
 * "mae", "pearson"; NaN-free: -1 if it does not apply. "pearson" is 0 where there is no correlation, all predictions or
 * all targets being the same; in JSON it is null then. "nlpd", the mean negative logarithm of the predictive density
 * (or probability) of the targets, only for a Gaussian process: else 0. */
ESP_API double esp_metrics_value(const esp_metrics *metrics, const char *name);
/* An aligned table for people, and JSON; released with esp_text_free. */
ESP_API esp_status esp_metrics_text(const esp_metrics *metrics, char **out, esp_error *err);
ESP_API esp_status esp_metrics_json(const esp_metrics *metrics, char **out, esp_error *err);

/* Cross-validation: every example predicted by a model that has not seen it; folds are stratified and drawn from
 * the seed. The Gram matrix is computed once; a Gaussian process learns its kernel anew in every fold. */
ESP_API esp_status esp_cross_validate(const char *learner, const esp_kernel *kernel, const esp_dataset *data,
                                      const esp_setting *settings, size_t count, size_t folds, uint64_t seed,
                                      const esp_run *run, esp_predictions **out, esp_error *err);

/* The folds of that: fold[i], from 0, is the one in which example i is predicted. The target of a learner for numbers
 * is not stratified. */
ESP_API esp_status esp_folds(const char *learner, const esp_dataset *data, size_t folds, uint64_t seed, uint32_t *fold,
                             esp_error *err);

/* A grid search by cross-validation. A grid line names a setting of the learner or a parameter of the kernel (set in
 * every leaf that has it) and its values. */
typedef struct esp_grid {
    const char *name;
    const char *values; /* separated by commas */
} esp_grid;
typedef struct esp_tuning esp_tuning;
/* What is best: "accuracy" or "rmse", "nlpd" (learners with ESP_GIVES_VARIANCES only), or NULL for one of the first two
 * by the targets. ESP_ERR_PARAM if `metric` is another or does not fit. */
ESP_API esp_status esp_tune(const char *learner, const esp_kernel *kernel, const esp_dataset *data,
                            const esp_setting *settings, size_t count, const esp_grid *grid, size_t grid_count,
                            const char *metric, size_t folds, uint64_t seed, const esp_run *run, esp_tuning **out,
                            esp_error *err);
ESP_API void esp_tuning_free(esp_tuning *tuning);
ESP_API size_t esp_tuning_count(const esp_tuning *tuning); /* combinations, in the order they were tried */
/* The value of grid line `line` in a combination, and its score (accuracy, minus RMSE, or minus NLPD). */
ESP_API const char *esp_tuning_value(const esp_tuning *tuning, size_t combination, size_t line);
ESP_API double esp_tuning_score(const esp_tuning *tuning, size_t combination);
ESP_API size_t esp_tuning_best(const esp_tuning *tuning);
/* The kernel of a combination; belongs to the tuning. */
ESP_API const esp_kernel *esp_tuning_kernel(const esp_tuning *tuning, size_t combination);

/* ------------------------------------------------------- online learning */

/* A learner ("perceptron") that sees one example after the other, holds no more than its model, and can be asked for
 * that at any time. */
typedef struct esp_online esp_online;

ESP_API esp_status esp_online_new(const char *learner, const esp_kernel *kernel, const esp_setting *settings,
                                  size_t count, esp_online **out, esp_error *err);
/* Goes on from a model that was learned online, with its kernel; settings that are given replace those of the model.
 * Average and vote replace each other; epochs 0, for a model that only predicts in another way, learns nothing and is
 * not kept. ESP_ERR_PARAM if the model was not learned online. */
ESP_API esp_status esp_online_resume(const esp_model *model, const esp_setting *settings, size_t count,
                                     const esp_run *run, esp_online **out, esp_error *err);
/* Goes on from a checkpoint, which is the model of an unfinished run: the next esp_online_learn or esp_online_read
 * passes over the examples it has seen, and ends as the undisturbed run would have, to the last bit. The run is told
 * again as it was begun: by its kernel, or by the model that it resumed (then `kernel` is NULL). ESP_ERR_PARAM, with
 * what differs, if that or a setting is not as it was. */
ESP_API esp_status esp_online_continue(const esp_model *checkpoint, const esp_kernel *kernel, const esp_model *resumed,
                                       const esp_setting *settings, size_t count, const esp_run *run, esp_online **out,
                                       esp_error *err);
ESP_API void esp_online_free(esp_online *online);

/* Learns from all examples, as often as the setting epochs says, in their order or shuffled. */
ESP_API esp_status esp_online_learn(esp_online *online, const esp_dataset *data, const esp_run *run, esp_error *err);
/* The same from a file that is read once per epoch and never held; standard input allows one epoch. With shuffle the
 * file is read into memory. */
ESP_API esp_status esp_online_read(esp_online *online, const char *path, const esp_read_options *options,
                                   const esp_run *run, esp_error *err);

typedef struct esp_online_stats {
    uint64_t examples, mistakes; /* seen in all epochs; predicted wrongly before learning from them */
    uint64_t updates;
    size_t epoch;    /* the present one, from 1 */
    uint64_t bad;    /* examples that skip_bad left out */
    double accuracy; /* of the predictions before learning */
    double f1;       /* of the positive class; the mean over classes from three on; 0 if undefined */
    size_t classes;
    size_t nodes, vertices; /* tree nodes in the model; different subtrees among them */
    size_t bytes;           /* memory of the model */
} esp_online_stats;
ESP_API void esp_online_measure(const esp_online *online, esp_online_stats *out);
/* Examples seen in all epochs; at no cost, unlike the above. */
ESP_API uint64_t esp_online_examples(const esp_online *online);
/* `watch` is called after every `every`-th example (0: never) of a run, and when a run that continues has passed over
 * all examples that it had seen, from the calling thread; a status other than ESP_OK ends the run with it. */
typedef esp_status (*esp_online_watcher)(void *user, const esp_online *online, esp_error *err);
ESP_API void esp_online_watch(esp_online *online, uint64_t every, esp_online_watcher watch, void *user);

/* The model as it stands; also the checkpoint. ESP_ERR_PARAM before the first example, ESP_ERR_PARSE before the second
 * class. */
ESP_API esp_status esp_online_model(const esp_online *online, esp_model **out, esp_error *err);

/* ------------------------------------------------------------ explanations */

/* What decides in a model (docs/explain.md). A decision function is a bias and a sum of terms, one for each summand of
 * the kernel expression, and a term is a sum over features u:
 *
 *     f(x) = bias + sum over terms of  sum over u of weight(u) * value_u(x)
 *
 * The value of a feature is how often x has it; under norm(...) it is divided by sqrt(K(x, x)). Where a term has no
 * such features (ptk, gtk, poly, rbf, products, powers, norms of sums), the support examples stand in their place: the
 * weight is the coefficient of one, the value its kernel value with x. */
typedef enum esp_feature_kind {
    ESP_FEATURE_FRAGMENT, /* of trees (st, sst, sasst, fsst); value: nodes of x at which it matches */
    ESP_FEATURE_WORD,     /* a leaf of trees (bow=...); value: how often x has it */
    ESP_FEATURE_PATTERN,  /* of sequences (seq, fseq); value: the sum over its places of lambda^gaps */
    ESP_FEATURE_VALUE,    /* of vectors (linear), by its name; value: that of x */
    ESP_FEATURE_EXAMPLE   /* a support example; value: its kernel value with x */
} esp_feature_kind;
/* "fragment", "word", "pattern", "value" or "example". */
ESP_API const char *esp_feature_kind_name(esp_feature_kind kind);

/* A model made ready to be explained. */
typedef struct esp_explainer esp_explainer;

/* `model` must outlive the explainer. ESP_ERR_PARAM if its decisions are no sums (a voted perceptron), ESP_ERR_RANGE if
 * a weight does not fit a double. About the cost of the first prediction. */
ESP_API esp_status esp_explainer_new(const esp_model *model, const esp_run *run, esp_explainer **out, esp_error *err);
ESP_API void esp_explainer_free(esp_explainer *explainer);

/* The terms of the kernel, in its order: their expressions with weights in front
 * ("0.3*norm(sst(tree, lambda=0.4))"). */
ESP_API size_t esp_explainer_terms(const esp_explainer *explainer);
ESP_API const char *esp_explainer_term(const esp_explainer *explainer, size_t term);
/* What its features are; st, sst and sasst with bow have words besides fragments. */
ESP_API esp_feature_kind esp_explainer_kind(const esp_explainer *explainer, size_t term);
/* Why a term has support examples in place of features, and what can be shown instead: a sentence. NULL where it has
 * features. */
ESP_API const char *esp_explainer_reason(const esp_explainer *explainer, size_t term);
/* The column that a term with features works on; NULL for the others. */
ESP_API const char *esp_explainer_column(const esp_explainer *explainer, size_t term);

/* NULL stands for all zeros. */
typedef struct esp_explain_options {
    /* The class to speak for: with two classes the first one turns all signs, one-vs-one leaves its pairs alone, each
     * as a function that is positive for it. NULL: all decision functions as they are; of two classes that is the
     * second. */
    const char *class_name;
    size_t top;      /* features of a list at most; 0: 20 */
    size_t max_size; /* productions of a fragment, tokens of a pattern; 0: any number */
    int sign;        /* of the weights in esp_explain: 1 or -1 for those above or below 0; 0: both, by absolute value */
    uint64_t effort; /* fragments and patterns that the search for one list may grow; 0: 1,000,000 for a model, 20,000
                        for an example. Beyond, or where what waits to be grown for all lists takes more than
                        run->memory (0: 512 MB for each), the list is what was found until then */
    bool shares;     /* also the shares of nodes, in esp_explain_example; ESP_ERR_MEMORY
                      * if they need more than run->memory */
} esp_explain_options;

typedef struct esp_feature {
    size_t output; /* the decision function, in the order of esp_explanation_output */
    size_t term;
    esp_feature_kind kind;
    /* A fragment as brackets in which (NP ...) is a node without its children, as esp_patterns_text gives them; a word
     * as it is; tokens as in data files; the name of a value; the number of a support example from 1 on, and its
     * columns. */
    const char *text;
    size_t size;         /* productions of a fragment, tokens of a pattern; else 1 */
    double weight;       /* of an example: its coefficient */
    double value;        /* in the example that is explained; 0 in esp_explain */
    double contribution; /* weight * value */
    size_t examples;     /* support examples that have it */
    double occurrences;  /* how often these have it: the sum of its values without norms; of vectors, as examples */
} esp_feature;

/* Features of a model or of an example. Texts belong to it. */
typedef struct esp_explanation esp_explanation;

/* The features with the largest weights: for each decision function and each term with features a list of its own, the
 * largest first, of equal ones the smaller, then by the bytes of their texts. The search is best-first and exact unless
 * effort or memory are spent; weights that differ by less than 1e-9 of themselves count as equal, and of many equal
 * ones at the end of a list any may be left out. ESP_ERR_PARAM if no term has features, with what can be explained
 * instead, or if the class is unknown; ESP_ERR_RANGE if a weight is too large for a number. */
ESP_API esp_status esp_explain(const esp_explainer *explainer, const esp_explain_options *options, const esp_run *run,
                               esp_explanation **out, esp_error *err);
/* One example: for each decision function the features of all terms that push its score up, the largest contribution
 * first, then those that push it down, the lowest first, `top` of each at most. ESP_ERR_PARAM if the data do not fit
 * the model or have no such example; ESP_ERR_RANGE if a weight or the score is too large for a number. */
ESP_API esp_status esp_explain_example(const esp_explainer *explainer, const esp_dataset *data, size_t example,
                                       const esp_explain_options *options, const esp_run *run, esp_explanation **out,
                                       esp_error *err);
ESP_API void esp_explanation_free(esp_explanation *explanation);

/* The decision functions: their names are those of the class they speak for, "A against B" of a pair, or "value". */
ESP_API size_t esp_explanation_outputs(const esp_explanation *explanation);
ESP_API const char *esp_explanation_output(const esp_explanation *explanation, size_t output);
ESP_API size_t esp_explanation_terms(const esp_explanation *explanation); /* as of the explainer */
/* Its features: by decision function, then by term (esp_explain), or those that push up before the others. NULL past
 * the last. */
ESP_API size_t esp_explanation_count(const esp_explanation *explanation);
ESP_API const esp_feature *esp_explanation_feature(const esp_explanation *explanation, size_t index);
/* The weight of a feature in any of the decision functions; of fseq and fsst, 0 where that one did not select it. */
ESP_API double esp_explanation_weight(const esp_explanation *explanation, size_t index, size_t output);
/* Whether the lists of a decision function are exact. If not, no feature that is left out has a weight (of an example:
 * a contribution) above *bound in absolute value; if so, *bound is 0. `bound` may be NULL. */
ESP_API bool esp_explanation_is_exact(const esp_explanation *explanation, size_t output, double *bound);

/* Of an example, 0 otherwise: score = bias + the scores of the terms = bias + all contributions listed + rest. */
ESP_API double esp_explanation_score(const esp_explanation *explanation, size_t output);
ESP_API double esp_explanation_bias(const esp_explanation *explanation, size_t output);
ESP_API double esp_explanation_term_score(const esp_explanation *explanation, size_t output, size_t term);
ESP_API double esp_explanation_rest(const esp_explanation *explanation, size_t output);

/* A node of the tree that a term with fragments works on, in preorder, leaves included. */
typedef struct esp_node {
    const char *label; /* as it is, not escaped */
    size_t parent;     /* its number; SIZE_MAX for the root */
    bool leaf;
} esp_node;
/* The nodes of an example's tree; 0 unless shares were asked for and the term has fragments. */
ESP_API size_t esp_explanation_nodes(const esp_explanation *explanation, size_t term);
ESP_API const esp_node *esp_explanation_node(const esp_explanation *explanation, size_t term, size_t node);
/* A node's share: every place of a fragment divides its contribution equally among the nodes whose productions it
 * holds, a leaf has what bow gives. The shares of a tree add up to the score of the term. */
ESP_API double esp_explanation_share(const esp_explanation *explanation, size_t term, size_t node, size_t output);

/* The explanation as JSON Lines, for programs: a line per feature, or one line per decision function of an example,
 * whose number is told (docs/explain.md). Released with esp_text_free. */
ESP_API esp_status esp_explanation_json(const esp_explanation *explanation, char **out, esp_error *err);

/* ------------------------------------------------------------------ search */

/* A collection of examples prepared for search (docs/search.md): which of them are most like a query, and which are
 * alike? Similarity is the kernel's value, mostly of norm(...), told to 41 binary digits, so that values that differ by
 * rounding errors alone are equal. Immutable. */
typedef struct esp_index esp_index;

/* `id` names the field of the data (or their target) that names examples; NULL: none. ESP_ERR_PARSE if a name occurs
 * twice. The data are not needed afterwards. */
ESP_API esp_status esp_index_new(const esp_kernel *kernel, const esp_dataset *data, const char *id, const esp_run *run,
                                 esp_index **out, esp_error *err);
/* An index of the examples of another one and of more, with the same kernel and names: the same, to the last byte, as
 * if all had come at once. */
ESP_API esp_status esp_index_add(const esp_index *index, const esp_dataset *data, const esp_run *run, esp_index **out,
                                 esp_error *err);
ESP_API void esp_index_free(esp_index *index);

/* The file appears complete or not at all; the same index gives the same bytes. */
ESP_API esp_status esp_index_write(const esp_index *index, const char *path, esp_error *err);
/* The bytes of that file in memory; released with esp_text_free. */
ESP_API esp_status esp_index_bytes(const esp_index *index, char **bytes, size_t *size, esp_error *err);
/* A damaged, truncated or hostile file, or one of a later version, is ESP_ERR_PARSE, here or where what is wrong is
 * met. Of st, sst and sasst the file is mapped: it must not be changed in place while it is in use (to replace it by
 * another, as esp_index_write does, is harmless). Indexes of other kernels are read and prepared again. */
ESP_API esp_status esp_index_read(const char *path, const esp_run *run, esp_index **out, esp_error *err);
ESP_API esp_status esp_index_parse(const void *bytes, size_t size, const char *name, const esp_run *run,
                                   esp_index **out, esp_error *err);
/* Whether a file starts like an index; false also if it cannot be read. */
ESP_API bool esp_index_recognise(const char *path);

ESP_API size_t esp_index_count(const esp_index *index);       /* examples */
ESP_API const char *esp_index_kernel(const esp_index *index); /* the expression */
/* The field that names examples, and the name of one; NULL if there are none. */
ESP_API const char *esp_index_id_field(const esp_index *index);
ESP_API const char *esp_index_id(const esp_index *index, size_t example);
/* Facts about the index as "key<TAB>value" lines; released with esp_text_free. */
ESP_API esp_status esp_index_summary(const esp_index *index, char **out, esp_error *err);

/* NULL stands for all zeros. */
typedef struct esp_search_options {
    size_t top;     /* examples per query at most; 0: all */
    bool threshold; /* only those whose similarity is `above` or more */
    double above;
    const char *id; /* the field that names queries; NULL: that of the index, if the queries have it */
    bool others;    /* leave out the example that has the name of the query */
    bool no_bounds; /* compute every similarity: the same result, to compare */
} esp_search_options;

typedef struct esp_hit {
    size_t example;
    double similarity;
} esp_hit;

/* What was found. */
typedef struct esp_hits esp_hits;
/* For each query the most similar examples, the best first, of equal ones the first in the collection. Exact, and the
 * same for any number of threads. ESP_ERR_PARAM if the queries lack a column of the kernel; ESP_ERR_RANGE if a
 * similarity is too large for a number. */
ESP_API esp_status esp_search(const esp_index *index, const esp_dataset *queries, const esp_search_options *options,
                              const esp_run *run, esp_hits **out, esp_error *err);
ESP_API void esp_hits_free(esp_hits *hits);
ESP_API size_t esp_hits_queries(const esp_hits *hits);
/* Those of one query, and how many; they belong to `hits`. */
ESP_API const esp_hit *esp_hits_of(const esp_hits *hits, size_t query, size_t *count);
/* The name of a query; NULL if queries have none. */
ESP_API const char *esp_hits_id(const esp_hits *hits, size_t query);
/* Similarities that were computed, and those that bounds made needless. */
ESP_API uint64_t esp_hits_computed(const esp_hits *hits, uint64_t *skipped);

/* Pairs of examples of an index. */
typedef struct esp_pair {
    size_t first, second; /* first < second */
    double similarity;
} esp_pair;
typedef struct esp_pairs esp_pairs;
/* All pairs whose similarity is at least `above`, the best first, then by their examples. Equal examples are found by
 * identity. ESP_ERR_MEMORY if the list needs more than run->memory. */
ESP_API esp_status esp_pairs_find(const esp_index *index, double above, bool no_bounds, const esp_run *run,
                                  esp_pairs **out, esp_error *err);
ESP_API void esp_pairs_free(esp_pairs *pairs);
ESP_API const esp_pair *esp_pairs_list(const esp_pairs *pairs, size_t *count);
ESP_API uint64_t esp_pairs_computed(const esp_pairs *pairs, uint64_t *skipped);

/* The connected components of these pairs, those of one example left out: the largest first, then by their first
 * example. */
typedef struct esp_clusters esp_clusters;
ESP_API esp_status esp_clusters_find(const esp_index *index, double above, bool no_bounds, const esp_run *run,
                                     esp_clusters **out, esp_error *err);
ESP_API void esp_clusters_free(esp_clusters *clusters);
ESP_API size_t esp_clusters_count(const esp_clusters *clusters);
/* The examples of one, the representative first, with their similarity to it: that example whose similarities in the
 * list of pairs have the largest sum. The others follow in their order. */
ESP_API const esp_hit *esp_clusters_of(const esp_clusters *clusters, size_t cluster, size_t *count);
ESP_API uint64_t esp_clusters_computed(const esp_clusters *clusters, uint64_t *skipped);

/* Judgements: which examples are relevant to which queries, in TREC's form ("query 0 example relevance" per line). */
typedef struct esp_qrels esp_qrels;
ESP_API esp_status esp_qrels_read(const char *path, esp_qrels **out, esp_error *err);
ESP_API void esp_qrels_free(esp_qrels *qrels);

/* How good a search was, as trec_eval counts: means over the queries that have a relevant example in the judgements,
 * whose list is what was found. */
typedef struct esp_search_metrics {
    size_t queries;          /* judged ones; the means are over these */
    size_t unjudged;         /* queries without a relevant example */
    size_t unknown_queries;  /* queries in the judgements that were not asked */
    size_t unknown_examples; /* examples in the judgements of queries asked that the index does not have */
    double mrr, map, ndcg;   /* of the whole lists */
    double ndcg_10;          /* of the first 10 */
    double precision_1, precision_5, precision_10;
} esp_search_metrics;
/* ESP_ERR_PARAM if index or queries have no names. */
ESP_API esp_status esp_hits_measure(const esp_hits *hits, const esp_index *index, const esp_qrels *qrels,
                                    esp_search_metrics *out, esp_error *err);

/* ----------------------------------------------------------------- reports */

/* What a report shows. NULL stands for all zeros. */
typedef struct esp_report_options {
    const char *title;     /* NULL: "Report" */
    const char *data_name; /* what the data are called, such as their file; NULL: not told */
    size_t examples;       /* examples to explain at most; 0: 40 */
    size_t top;            /* features of a list at most; 0: 12 */
} esp_report_options;

/* Writes a page (HTML) about a model to `path` ("-" is standard output), which appears complete or not at all: what the
 * model is, the features that decide in it, and with data (or NULL) how good it is on them where they have targets, how
 * its scores are spread, examples with what decided about them, and what the data are like (docs/report.md). The page
 * needs nothing besides itself; it holds texts of the data, so it is as confidential as they are. The same arguments
 * give the same bytes. The cost is that of predicting the data and explaining some of them. ESP_ERR_PARAM if the data
 * do not fit the model or are empty. */
ESP_API esp_status esp_report_write(const esp_model *model, const esp_dataset *data, const esp_report_options *options,
                                    const char *path, const esp_run *run, esp_error *err);

/* Writes a page about pairs of trees side by side, with what they share. `pairs` is a file with lines of
 * `espalier pairs` (first, second, similarity; or groups) or, with queries, of `espalier search` (query, rank, example,
 * similarity); fields are separated by TABs. Examples are named by the field `id`, or are numbers from 1 (NULL). Of the
 * lines, the first options->examples are shown. ESP_ERR_PARSE if a line is none or names no example. */
ESP_API esp_status esp_report_pairs(const char *pairs, const esp_dataset *data, const esp_dataset *queries,
                                    const char *id, const esp_report_options *options, const char *path,
                                    const esp_run *run, esp_error *err);

#ifdef __cplusplus
}
#endif
#endif
