"""Dependency parses as trees. With the words w_1 .. w_n and D(i) the dependents of word i in the order of the sentence:

    dep(i)  = (form_i  dep(j) for j in D(i))
    grct(i) = (rel_i   grct(j) for j in D(i), j < i,  (UPOS_i form_i),  grct(j) for j in D(i), j > i)
    lct(i)  = (form_i  lct(j) for j in D(i),  UPOS_i  rel_i)

These are the columns that the C library makes of CoNLL-U. Several roots come under a node ROOT. GRCT and LCT: Croce,
Moschitti, Basili, "Structured lexical similarity via convolution kernels on dependency trees", EMNLP 2011.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from .options import choose
from .text import Made, write


class Word(NamedTuple):
    form: str
    upos: str
    rel: str
    head: int  # counted from 1; 0: a root


def from_words(words: list[Word], policy: str) -> str:
    """Brackets for the words of a sentence."""
    choose("policy", policy, ("dep", "grct", "lct"))
    below = _dependents(words)

    def expand(i: int) -> tuple[str, Sequence[Any]]:
        word = words[i - 1]
        if policy == "dep":
            return word.form, below[i]
        if policy == "lct":
            return word.form, [*below[i], word.upos, word.rel]
        left = [j for j in below[i] if j < i]
        return word.rel, [*left, Made(word.upos, [word.form]), *below[i][len(left) :]]

    roots = below[0]
    return write(roots[0] if len(roots) == 1 else Made("ROOT", roots), expand)


def _dependents(words: list[Word]) -> list[list[int]]:
    """The dependents of each word; at 0 the roots."""
    if not words:
        raise ValueError("the sentence has no words")
    below: list[list[int]] = [[] for _ in range(len(words) + 1)]
    for i, word in enumerate(words, 1):
        if not 0 <= word.head <= len(words):
            raise ValueError(f"word {i}: head {word.head} does not exist; words in the sentence: {len(words)}")
        below[word.head].append(i)
    if not below[0]:
        raise ValueError("the sentence has no root; one word needs head 0")
    reached = list(below[0])
    for i in reached:  # grows on the way
        reached += below[i]
    if len(reached) < len(words):
        lost = min(set(range(1, len(words) + 1)) - set(reached))
        raise ValueError(f"word {lost}: the heads go round in a circle and never reach the root")
    return below


# ------------------------------------------------------------------ CoNLL-U

_RANGE = re.compile(r"[0-9]+[-.][0-9]+")  # a token of several words, or a word that is not in the text
_NUMBER = re.compile(r"[0-9]+")


def looks_like_conllu(text: str) -> bool:
    """Whether the first line that is neither blank nor a comment has ten fields."""
    lines = re.finditer(r"^(?![ \t\r\v\f]*$|#).*", text, re.M)
    first = next(lines, None)
    return first is not None and first.group().count("\t") == 9


def _choose_fields(word: str, tag: str, relation: str) -> None:
    choose("word", word, ("form", "lemma"))
    choose("tag", tag, ("upos", "xpos"))
    choose("relation", relation, ("full", "plain"))


def _relation(name: str | None, relation: str) -> str:
    """The relation, plain without its subtype: ``nsubj`` of ``nsubj:pass``."""
    return (name if not name or relation == "full" else name.partition(":")[0]) or "_"


def from_conllu(
    text: Any, *, policy: str = "grct", word: str = "form", tag: str = "upos", relation: str = "full"
) -> str:
    """The text of one sentence in CoNLL-U, or a sentence of the package conllu."""
    _choose_fields(word, tag, relation)
    text = text if isinstance(text, str) else text.serialize()
    words: list[Word] = []
    ended = False
    for number, line in enumerate(text.split("\n"), 1):  # splitlines would also end lines at characters of forms
        line = line.removesuffix("\r")
        if line == "" or (not words and line.isspace()):
            ended = bool(words)
            continue
        if line[0] == "#":
            continue
        if ended:
            raise ValueError(
                f"line {number}: a second sentence; a tree is made of one, so split the text at blank lines"
            )
        read = _read_word(line, number, len(words) + 1, (1 if word == "form" else 2, 3 if tag == "upos" else 4))
        if read is not None:
            words.append(read._replace(rel=_relation(read.rel, relation)))
    return from_words(words, policy)


def _read_word(line: str, number: int, expected: int, columns: tuple[int, int]) -> Word | None:
    fields = line.split("\t")
    if len(fields) != 10:
        raise ValueError(f"line {number}: {len(fields)} fields between TABs; a line of CoNLL-U has 10")
    index, form, upos, head, rel = (fields[i] for i in (0, *columns, 6, 7))
    if _RANGE.fullmatch(index):
        return None
    if not _NUMBER.fullmatch(index) or int(index) != expected:
        raise ValueError(f"line {number}: {index!r} is not the number of the next word; they run 1, 2, 3 ...")
    if not _NUMBER.fullmatch(head):
        raise ValueError(f"line {number}: {head!r} is no head; it must be the number of a word, or 0 for the root")
    if not (form and upos and rel):
        raise ValueError(f"line {number}: an empty field; write _ where there is nothing to say")
    return Word(form, upos, rel, int(head))


# ------------------------------------------------------------ spaCy, stanza


def from_spacy(obj: Any, *, policy: str = "grct", word: str = "form", tag: str = "upos", relation: str = "full") -> str:
    """A Doc, a Span, or a Token with all that depends on it."""
    _choose_fields(word, tag, relation)
    tokens = list(obj.subtree if hasattr(obj, "subtree") and hasattr(obj, "dep_") else obj)
    tokens = [token for token in tokens if not getattr(token, "is_space", False)]
    if tokens and not any(token.dep_ for token in tokens):
        raise ValueError("the words have no dependencies; the spaCy pipeline needs a parser")
    place = {token.i: position for position, token in enumerate(tokens, 1)}

    def head(token: Any) -> int:
        above = token.head
        while getattr(above, "is_space", False) and above.head.i != above.i:
            above = above.head
        # Roots are their own heads; the head of a span's root is outside of it.
        return 0 if above.i == token.i else place.get(above.i, 0)

    def label(token: Any) -> str:
        return str(token.text if word == "form" else token.lemma_ or "_")

    def part(token: Any) -> str:
        return (token.pos_ if tag == "upos" else token.tag_) or "_"

    return from_words([Word(label(t), part(t), _relation(t.dep_, relation), head(t)) for t in tokens], policy)


def from_stanza(
    obj: Any, *, policy: str = "grct", word: str = "form", tag: str = "upos", relation: str = "full"
) -> str:
    """A Sentence, or a Document."""
    _choose_fields(word, tag, relation)
    words: list[Word] = []
    for sentence in getattr(obj, "sentences", None) or [obj]:
        before = len(words)
        for own in sentence.words:
            if own.head is None:
                raise ValueError(f"word {own.id} has no head; the stanza pipeline needs the processor depparse")
            label = own.text if word == "form" else own.lemma
            part = own.upos if tag == "upos" else own.xpos
            head = before + own.head if own.head else 0
            words.append(Word(label or "_", part or "_", _relation(own.deprel, relation), head))
    return from_words(words, policy)
