/* Probabilistic grammars that trees are drawn from, and the file that holds one (docs/sampling.md):
 *
 *     class NAME [weight] -> SYMBOL               one line per class
 *     SYMBOL -> item ... [weight] | item ...      item: SYMBOL, "word" or (LABEL item ...)
 *
 * A grammar that was read is ready to draw from: every symbol has a rule and can come to an end, and the
 * alternatives of a symbol lie side by side. */
#ifndef ESPI_TASK_GRAMMAR_H
#define ESPI_TASK_GRAMMAR_H

#include "base/symbols.h"
#include "espalier.h"

typedef struct espi_grammar_place {
    size_t line, column;
} espi_grammar_place;

#define ESPI_GRAMMAR_WORD UINT32_C(0x80000000) /* set in an item that is a word and no symbol */

typedef struct espi_alternative {
    uint32_t symbol;
    size_t items, count; /* where its items start, and how many they are */
    double weight;       /* once read: the sum of the weights up to and with this one */
    espi_grammar_place place;
} espi_alternative;

typedef struct espi_rule {
    size_t first, count;        /* its alternatives */
    espi_grammar_place used;    /* first mention */
    espi_grammar_place defined; /* first rule; line 0: none */
} espi_rule;

typedef struct espi_grammar_class {
    const char *name;
    size_t size;
    uint32_t start;
    double weight; /* once read: running sum, as above */
} espi_grammar_class;

typedef struct espi_grammar {
    const char *file; /* for messages; as long as the path lives */
    espi_symbols symbols, words, class_names;
    espi_rule *rule; /* one per symbol */
    size_t rule_capacity;
    espi_alternative *alternative;
    size_t alternatives, alternative_capacity;
    uint32_t *item;
    size_t items, item_capacity;
    espi_grammar_class *class;
    size_t classes, class_capacity;
} espi_grammar;

/* Reads and checks a grammar file; on failure `grammar` is empty. O(size of the file). */
esp_status espi_grammar_read(const char *path, const esp_run *run, espi_grammar *grammar, esp_error *err);
/* The second half of reading: refuses a grammar without classes, symbols without rules and symbols that never
 * end, and brings rules and weights into the form described above. `end` is the place behind the last line. */
esp_status espi_grammar_prepare(espi_grammar *grammar, espi_grammar_place end, esp_error *err);
void espi_grammar_free(espi_grammar *grammar);

/* The part of a symbol's name that trees show: all before the first "." that is not its first byte. 0 if the
 * symbol makes no node and its children take its place: its name starts with "_". */
size_t espi_grammar_label_size(const espi_symbol *symbol);

#endif
