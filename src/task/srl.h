/* Examples for semantic role labelling, from sentences with predicates and arguments (docs/srl.md).
 *
 * A sentence is read into arrays (srl_tree.c, srl_head.c), each of its predicates with its arguments behind it
 * (srl_read.c). For a predicate and a candidate node, srl_paf.c writes the piece of the tree that connects them and
 * srl_features.c the named features; srl.c chooses the candidates, labels them and writes examples. */
#ifndef ESPI_TASK_SRL_H
#define ESPI_TASK_SRL_H

#include "base/text.h"
#include "data/reader.h"

#define ESPI_SRL_NONE UINT32_MAX

/* A piece of one of the texts of a tree. */
typedef struct espi_srl_piece {
    size_t at, size;
} espi_srl_piece;

typedef struct espi_srl_leaf {
    uint32_t parent;     /* its pre-terminal */
    espi_srl_piece name; /* in names, in lower case (ASCII letters) */
    espi_srl_piece text; /* in text */
    bool word;           /* false: the leaf is "_", which stands for a word that is not given */
} espi_srl_leaf;

typedef struct espi_srl_node {
    uint32_t parent;      /* ESPI_SRL_NONE: the root */
    uint32_t left, right; /* neighbours below the same parent, leaves left out, or ESPI_SRL_NONE */
    uint32_t child;       /* first child that is no leaf, or ESPI_SRL_NONE */
    uint32_t first, last; /* leaves */
    uint32_t depth;
    uint32_t head;       /* the leaf that stands for it */
    espi_srl_piece name; /* its label, in names */
    espi_srl_piece text; /* "(LABEL ...)", in text */
    size_t label_end;    /* in text: behind the label */
} espi_srl_node;

/* A sentence. Nodes stand in preorder; leaves are none of them. `text` is the tree in brackets, labels escaped, as the
 * output needs it; `names` are labels and words as they are part of the names of features: inside of a JSON string. */
typedef struct espi_srl_tree {
    espi_srl_node *node;
    size_t nodes, node_capacity;
    espi_srl_leaf *leaf;
    size_t leaves, leaf_capacity;
    espi_text text, names;
    /* private */
    struct espi_srl_frame *frame;
    size_t frames, frame_capacity;
    espi_text part;
} espi_srl_tree;

/* Fills a tree, which may hold an older one, from a tree with at least one inner node; with `json`, text is the inside
 * of a JSON string. False if memory is out. O(nodes). A zeroed tree is empty. */
bool espi_srl_tree_set(espi_srl_tree *tree, const espi_forest *forest, espi_ref root, bool json);
void espi_srl_tree_free(espi_srl_tree *tree);
/* Sets the head of every node by Collins-style rules (srl_head.c). */
void espi_srl_heads(espi_srl_tree *tree);

/* Whether a label or word is this string. */
bool espi_srl_is(const espi_srl_tree *tree, espi_srl_piece name, const char *string);
static inline bool espi_srl_covers(const espi_srl_node *node, uint32_t leaf)
{
    return node->first <= leaf && leaf <= node->last;
}
/* Whether a node spans the same leaves as its parent, so that it is not the topmost of a unary chain. */
static inline bool espi_srl_below_unary(const espi_srl_tree *tree, const espi_srl_node *node)
{
    if (node->parent == ESPI_SRL_NONE) return false;
    const espi_srl_node *parent = &tree->node[node->parent];
    return parent->first == node->first && parent->last == node->last;
}

/* ----------------------------------------------------------------- reading */

typedef struct espi_srl_argument {
    espi_srl_piece role;  /* in the predicate's roles */
    espi_srl_piece plain; /* the same without R-, C- and tags: ARG0, ARGM */
    uint32_t first, last;
} espi_srl_argument;

typedef struct espi_srl_predicate {
    uint32_t token;
    espi_text lemma;             /* the inside of a JSON string */
    espi_srl_argument *argument; /* without V, C-V and R-V, which are the predicate itself */
    size_t arguments, argument_capacity;
    espi_text roles;
} espi_srl_predicate;

typedef enum espi_srl_event { ESPI_SRL_END, ESPI_SRL_SENTENCE, ESPI_SRL_PREDICATE } espi_srl_event;

/* A zeroed reader is ready to be opened; it keeps its buffers from file to file. */
typedef struct espi_srl_reader {
    espi_srl_tree tree;
    espi_srl_predicate predicate;
    bool json; /* how tree.text is to be written */
    /* Whether a document is wanted; NULL: all are. The lines of others are passed over unread. */
    bool (*wanted)(void *user, const char *document, size_t size);
    void *user;
    /* private */
    espi_reader reader;
    espi_column column; /* holds the trees that were read last; emptied now and then */
    espi_text field;
    bool sentence; /* there is one for predicates to belong to */
    bool passing;  /* it is not wanted */
} espi_srl_reader;

/* Opens a file; "-" is standard input. */
esp_status espi_srl_open(espi_srl_reader *reader, const char *path, const esp_run *run, esp_error *err);
/* The next sentence (reader->tree) or predicate of it (reader->predicate). A bad line is ESP_ERR_PARSE; the next call
 * goes on behind it, and behind the predicates of a bad sentence. Other failures are final. */
esp_status espi_srl_next(espi_srl_reader *reader, espi_srl_event *event, esp_error *err);
void espi_srl_close(espi_srl_reader *reader);
void espi_srl_reader_free(espi_srl_reader *reader);

/* ------------------------------------------------- predicate and candidate */

/* A predicate's way from its pre-terminal up to the root, which all its candidates share, and where the way up from one
 * candidate meets it. A zeroed spine is empty. */
typedef struct espi_srl_spine {
    uint32_t token;
    uint32_t *node; /* node[0]: the pre-terminal; node[nodes - 1]: the root */
    size_t nodes, node_capacity;
    uint32_t candidate;
    size_t up;     /* node[up] is where they meet */
    uint32_t *way; /* way[0]: the candidate; way[down - 1]: a child of node[up] */
    size_t down, way_capacity;
    /* private */
    bool marks;
    espi_text text;  /* "(ROOT (LABEL ... (LABEL-P word" */
    size_t *text_at; /* where the bracket of node[k] stands in it */
    size_t text_capacity;
} espi_srl_spine;

/* `marks`: the pre-terminal of the predicate is written LABEL-P, and candidates LABEL-B. False if memory is out. */
bool espi_srl_spine_set(espi_srl_spine *spine, const espi_srl_tree *tree, uint32_t token, bool marks);
/* Sets the candidate, which must not cover the predicate's token. O(its depth). */
void espi_srl_spine_meet(espi_srl_spine *spine, const espi_srl_tree *tree, uint32_t candidate);
/* The piece of the tree that connects predicate and candidate; the same with the word "*" for all below the candidate;
 * and the candidate with all below it. */
typedef enum espi_srl_part { ESPI_SRL_WHOLE, ESPI_SRL_PATH, ESPI_SRL_CANDIDATE } espi_srl_part;
/* Appends a part. */
void espi_srl_spine_text(const espi_srl_spine *spine, const espi_srl_tree *tree, espi_srl_part part, espi_text *out);
void espi_srl_spine_free(espi_srl_spine *spine);

/* Names of features; name i is text.bytes[end[i - 1] .. end[i]), the first from 0. */
typedef struct espi_srl_names {
    espi_text text;
    size_t *end;
    size_t count, capacity;
} espi_srl_names;

/* Of a node: whether it is an NP, NPs among its neighbours to the left and its children, the nearest S or VP above. */
typedef struct espi_srl_trace {
    bool np;
    uint32_t np_left, np_below, governor;
} espi_srl_trace;

/* Of the k-th node of a spine. */
typedef struct espi_srl_level {
    size_t up_end;              /* behind its label in espi_srl_features.up */
    size_t np_before, np_after; /* NPs beside the spine up to here, by side */
} espi_srl_level;

/* Features come in three parts: of a node, of a predicate, and of both. The first two are made once. */
typedef struct espi_srl_features {
    espi_srl_names names; /* of the pair made last; none comes twice */
    bool passive;         /* the voice of the predicate made last */
    /* private */
    espi_srl_names of_node; /* of all nodes; those of node i are of_node_first[i] .. of_node_first[i + 1] */
    size_t *of_node_first;
    size_t of_node_capacity;
    espi_srl_names of_predicate;
    espi_srl_trace *trace; /* per node */
    size_t trace_capacity;
    espi_text up; /* "VBD^VP^S^TOP": the labels of the spine */
    espi_srl_level *level;
    size_t level_capacity;
} espi_srl_features;

/* Each is false if memory is out. */
bool espi_srl_features_sentence(espi_srl_features *features, const espi_srl_tree *tree);
bool espi_srl_features_predicate(espi_srl_features *features, const espi_srl_tree *tree,
                                 const espi_srl_predicate *predicate, const espi_srl_spine *spine);
/* For the candidate that was set last. */
bool espi_srl_features_pair(espi_srl_features *features, const espi_srl_tree *tree, const espi_srl_predicate *predicate,
                            const espi_srl_spine *spine);
void espi_srl_features_free(espi_srl_features *features);

/* ----------------------------------------------------------------- writing */

/* A zeroed writer writes SVM-light-TK. */
typedef struct espi_srl_writer {
    bool json;
    bool split;                 /* write all three parts, not only the whole */
    struct espi_output *output; /* the caller's */
    espi_text text;
    espi_symbols features; /* by number - 1 */
    uint32_t *number;
    size_t number_capacity;
} espi_srl_writer;

/* Writes one example, or some of those before it. `number`: the target is one. */
bool espi_srl_writer_add(espi_srl_writer *writer, const char *target, size_t target_size, bool number,
                         const espi_srl_spine *spine, const espi_srl_tree *tree, const espi_srl_names *names);
bool espi_srl_writer_end(espi_srl_writer *writer);
/* "number<TAB>name" of each feature. */
bool espi_srl_writer_features(const espi_srl_writer *writer, struct espi_output *output);
void espi_srl_writer_free(espi_srl_writer *writer);

/* A list of documents, read from a file with a name in each line. */
typedef struct espi_srl_documents {
    espi_symbols names;
    bool *met;      /* per name */
    char other[96]; /* the first document that was asked for and is not on the list, quoted; "": none was */
} espi_srl_documents;
esp_status espi_srl_documents_read(espi_srl_documents *documents, const char *path, const esp_run *run, esp_error *err);
/* Whether a document is on the list (a void *, for espi_srl_reader.wanted): its name, or the part of it behind some
 * '/', is a line of the file, apart from a ".conllu" at its end. */
bool espi_srl_documents_has(void *documents, const char *name, size_t size);
/* How many names were not met; *first is one of them. */
size_t espi_srl_documents_unmet(const espi_srl_documents *documents, const espi_symbol **first);
void espi_srl_documents_free(espi_srl_documents *documents);

/* Whether the predicate is in the passive voice (docs/srl.md has the rule). */
bool espi_srl_passive(const espi_srl_tree *tree, const espi_srl_spine *spine);

#endif
