/* Bracketed trees into a forest, piece by piece: the text of a tree may arrive in chunks of any size, and none
 * of it is kept. No recursion; memory is O(depth + widest node).
 *
 *     tree  = "(" label child* ")"     child = tree | leaf
 *
 * Labels and leaves are runs of bytes other than blanks and brackets; a backslash before "(", ")", a blank or a
 * backslash makes it part of the label, before anything else it stands for itself (treebanks write 1\/2). `(A)`
 * inside a tree is the leaf A. An outer bracket without a label around one tree is taken off. */
#ifndef ESPI_DATA_TREE_PARSER_H
#define ESPI_DATA_TREE_PARSER_H

#include "data/forest.h"

typedef enum espi_tree_state {
    ESPI_TREE_BEFORE,   /* no bracket yet: feed more, or give up if the input is over (there is no tree) */
    ESPI_TREE_MORE,     /* inside a tree: feed more */
    ESPI_TREE_COMPLETE, /* the closing bracket was the last byte used */
    ESPI_TREE_WRONG,    /* parser->reason says why; the byte at *used is at fault */
    ESPI_TREE_NO_MEMORY
} espi_tree_state;

typedef struct espi_tree_frame {
    uint32_t label;   /* ESPI_NO_SYMBOL until it is read */
    uint32_t removed; /* children dropped by `clean` */
    size_t first;     /* index of its first child in parser->node */
} espi_tree_frame;

typedef struct espi_tree_parser {
    espi_forest *forest;
    bool clean;         /* drop -NONE- subtrees and what they leave empty; cut function tags off inner labels */
    espi_ref root;      /* when complete; ESPI_NO_NODE if `clean` left nothing */
    const char *reason; /* when wrong: a clause such as "a bracket closes that was never opened" */
    /* private */
    int mode;
    bool escaped; /* the last byte fed was a backslash inside a label */
    espi_tree_frame *frame;
    size_t frames, frame_capacity;
    espi_ref *node;
    size_t nodes, node_capacity;
    char *token;
    size_t token_size, token_capacity;
} espi_tree_parser;

/* Gets ready for a tree; a zeroed parser is made usable by this. Keeps its buffers from tree to tree. */
void espi_tree_begin(espi_tree_parser *parser, espi_forest *forest, bool clean);
/* Takes bytes of the tree. *used says how many were taken. */
espi_tree_state espi_tree_feed(espi_tree_parser *parser, const char *bytes, size_t size, size_t *used);
void espi_tree_parser_free(espi_tree_parser *parser);

/* How many brackets are open. */
static inline size_t espi_tree_open(const espi_tree_parser *parser) { return parser->frames; }

#endif
