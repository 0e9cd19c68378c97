/* Heads of phrases: the child that stands for its parent is found by a rule for the parent's label, and the head of a
 * node is that child's head, down to a leaf. The rules are in the manner of M. Collins, Head-Driven Statistical Models
 * for Natural Language Parsing (1999), appendix A, for the labels of the Penn Treebank and its successors.
 *
 * An order is read from left to right: its first item that some child has decides. Of several such children, the
 * first (<) or the last (>) is taken; A|B is either. If no item is found, the first or last child is taken, as the
 * rule's last sign says. */
#include "task/srl.h"

#include <string.h>

typedef struct rule {
    const char *label, *order;
} rule;

static const rule rules[] = {
    {"ADJP", "<NNS <QP <NN <$ <ADVP <JJ <VBN <VBG <ADJP <JJR <NP <JJS <DT <FW <RBR <RBS <SBAR <RB <"},
    {"ADVP", ">RB >RBR >RBS >FW >ADVP >TO >CD >JJR >JJ >IN >NP >JJS >NN >"},
    {"CONJP", ">CC >RB >IN >"},
    {"FRAG", "<VP|S|NP|SBAR >"},
    {"INTJ", "<"},
    {"LST", ">LS >: >"},
    {"NAC", "<NN|NNS <NNP|NNPS <NP <NAC <EX <$ <CD <QP <PRP <VBG <JJ <JJS <JJR <ADJP <FW <"},
    {"NML", ">NN|NNS|NNP|NNPS|NX|JJR <NML|NP >$|ADJP|PRN >CD >JJ|JJS|RB|QP >"},
    {"NP", ">NN|NNS|NNP|NNPS|NX|JJR|ADD|PRP <NP|NML|WHNP >$|ADJP|PRN >CD >JJ|JJS|RB|QP|DT|POS >"},
    {"NX", ">NN|NNS|NNP|NNPS|NX|JJR <NP|NML >$|ADJP|PRN >CD >JJ|JJS|RB|QP >"},
    {"PP", "<IN <TO <VBG <VBN <RP <FW <PP >"},
    {"PRN", "<VP|S|NP|PP|SBAR|ADVP|ADJP <"},
    {"PRT", ">RP >"},
    {"QP", "<$ <IN <NNS <NN <JJ <RB <DT <CD <QP <JJR <JJS <"},
    {"RRC", ">VP >NP >ADVP >ADJP >PP >"},
    {"S", "<VP <TO <IN <S <SBAR <ADJP <UCP <NP <"},
    {"SBAR", "<WHNP <WHPP <WHADVP <WHADJP <IN <DT <S <SQ <SINV <SBAR <FRAG <"},
    {"SBARQ", "<SQ <S <SINV <SBARQ <FRAG <"},
    {"SINV", "<VBZ <VBD <VBP <VB <MD <VP <S <SINV <ADJP <NP <"},
    {"SQ", "<VBZ <VBD <VBP <VB <MD <VP <SQ <"},
    {"TOP", "<S|SINV|SQ|SBARQ|SBAR|VP|NP|FRAG <"},
    {"UCP", ">"},
    {"VP", "<TO <VBD <VBN <MD <VBZ <VB <VBG <VBP <VP <ADJP <NN <NNS <NP <"},
    {"WHADJP", "<WRB <JJ <ADJP >"},
    {"WHADVP", ">WRB <"},
    {"WHNP", "<WDT|WP <WP$ <WHADJP <WHPP <WHNP <"},
    {"WHPP", "<IN <TO <FW >"},
};

static const char *const any_child = "<";

/* The length of a label without function tags: NP-SBJ counts as NP, -LRB- as itself. */
static size_t plain_size(const char *label, size_t size)
{
    size_t n = size > 0;
    if (size == 0 || label[0] == '-') return size;
    while (n < size && label[n] != '-' && label[n] != '=') n++;
    return n;
}

static const char *order_of(const char *label, size_t size)
{
    size = plain_size(label, size);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strlen(rules[i].label) == size && memcmp(rules[i].label, label, size) == 0) return rules[i].order;
    return any_child;
}

/* Whether a label is one of "A|B|C"; all are where nothing is listed. */
static bool listed(const char *list, size_t list_size, const char *label, size_t size)
{
    if (list_size == 0) return true;
    for (const char *end = list + list_size; list < end;) {
        const char *bar = memchr(list, '|', (size_t)(end - list));
        const size_t n = (size_t)((bar != NULL ? bar : end) - list);
        if (n == size && memcmp(list, label, n) == 0) return true;
        list += n + 1;
    }
    return false;
}

static uint32_t find_child(const espi_srl_tree *t, const espi_srl_node *n, const char *list, size_t size, bool last)
{
    uint32_t found = ESPI_SRL_NONE;
    for (uint32_t c = n->child; c != ESPI_SRL_NONE; c = t->node[c].right) {
        const char *label = t->names.bytes + t->node[c].name.at;
        if (!listed(list, size, label, plain_size(label, t->node[c].name.size))) continue;
        found = c;
        if (!last) break;
    }
    return found;
}

static uint32_t head_child(const espi_srl_tree *t, const espi_srl_node *n)
{
    const char *order = order_of(t->names.bytes + n->name.at, n->name.size);
    uint32_t found = ESPI_SRL_NONE;
    while (found == ESPI_SRL_NONE) { /* the last item lists nothing and is met by any child */
        const size_t size = strcspn(order + 1, " ");
        found = find_child(t, n, order + 1, size, *order == '>');
        order += size + 2;
    }
    return found;
}

void espi_srl_heads(espi_srl_tree *t)
{
    for (size_t i = t->nodes; i-- > 0;) { /* children before parents */
        espi_srl_node *n = &t->node[i];
        n->head = n->child == ESPI_SRL_NONE ? n->first : t->node[head_child(t, n)].head;
    }
}
