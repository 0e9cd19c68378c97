"""Dependency parses: CoNLL-U, spaCy and stanza, and what looks like the objects of these two."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from test_trees_kinds import DEEP, text_of

from espalier._trees import kind_of, tree

CONLLU = """# text = She saw him.
1\tShe\tshe\tPRON\t_\t_\t2\tnsubj\t_\t_
2-3\tsaw him\t_\t_\t_\t_\t_\t_\t_\t_
2\tsaw\tsee\tVERB\t_\t_\t0\troot\t_\t_
2.1\tx\t_\t_\t_\t_\t_\t_\t_\t_
3\thim\the\tPRON\t_\t_\t2\tobj\t_\t_
4\t(.)\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_

"""
GRCT = r"(root (nsubj (PRON She)) (VERB saw) (obj (PRON him)) (punct (PUNCT \(.\))))"
LCT = r"(saw (She PRON nsubj) (him PRON obj) (\(.\) PUNCT punct) VERB root)"
DEP = r"(saw She him \(.\))"


def test_conllu() -> None:
    assert kind_of(CONLLU) == kind_of("\n\n" + CONLLU.replace("\n", "\r\n")) == "conllu"
    assert text_of(CONLLU) == text_of(CONLLU, policy="grct") == text_of(CONLLU.replace("\n", "\r\n")) == GRCT
    assert text_of(CONLLU, policy="lct") == LCT
    assert text_of(CONLLU, policy="dep") == DEP
    assert text_of(CONLLU.replace("\t2\tobj", "\t0\tobj"), policy="dep") == r"(ROOT (saw She \(.\)) him)"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("\t2\tobj", "\t9\tobj", "word 3: head 9 does not exist; words in the sentence: 4"),
        ("\t0\troot", "\t3\troot", "the sentence has no root; one word needs head 0"),
        ("\t2\tobj", "\t4\tobj", None),
        ("\t2\tnsubj", "\tx\tnsubj", "line 2: 'x' is no head"),
        ("\t2\tnsubj", "\t\u0662\tnsubj", "is no head"),
        ("3\thim", "5\thim", "line 6: '5' is not the number of the next word"),
        ("him\the\tPRON", "\the\tPRON", "line 6: an empty field"),
        ("him\the\t", "him\t", "line 6: 9 fields between TABs"),
        ("\n\n", "\n\n" + CONLLU, "line 10: a second sentence"),
    ],
)
def test_conllu_that_is_wrong(old: str, new: str, reason: str | None) -> None:
    text = CONLLU.replace(old, new)
    assert text != CONLLU
    if reason is None:
        assert text_of(text, policy="dep") == r"(saw She (\(.\) him))"
        return
    with pytest.raises(ValueError, match=reason):
        tree(text, kind="conllu")


def test_conllu_without_words_and_in_circles() -> None:
    with pytest.raises(ValueError, match="the sentence has no words"):
        tree("# nothing\n", kind="conllu")
    circle = CONLLU.replace("\t2\tobj", "\t4\tobj").replace("\t2\tpunct", "\t3\tpunct")
    with pytest.raises(ValueError, match="word 3: the heads go round in a circle"):
        tree(circle)


class Token:
    """Looks like a token of spaCy."""

    def __init__(self, i: int, text: str, pos: str, dep: str) -> None:
        self.i, self.text, self.pos_, self.dep_, self.is_space = i, text, pos, dep, text.isspace()
        self.head, self.subtree = self, [self]


class Parsed:
    """Looks like a Doc of spaCy, or a Span; their sentences are not there for everybody."""

    sents = property(lambda self: 1 / 0)

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens

    def __iter__(self) -> Iterator[Token]:
        return iter(self.tokens)


def spacy_tokens() -> list[Token]:
    tokens = [
        Token(0, "She", "PRON", "nsubj"),
        Token(1, "saw", "VERB", "root"),
        Token(2, "\n ", "SPACE", ""),
        Token(3, "him", "PRON", "obj"),
        Token(4, "(.)", "PUNCT", "punct"),
    ]
    for i, head in ((0, 1), (2, 1), (3, 2), (4, 1)):
        tokens[i].head = tokens[head]
    return tokens


def test_spacy() -> None:
    tokens = spacy_tokens()
    doc = Parsed(tokens)
    assert kind_of(doc) == kind_of(tokens[0]) == "spacy"
    for policy, expected in (("grct", GRCT), ("lct", LCT), ("dep", DEP)):
        assert text_of(doc, policy=policy) == expected
    assert text_of(Parsed(tokens[2:])) == r"(ROOT (obj (PRON him)) (punct (PUNCT \(.\))))"
    tokens[1].subtree = tokens
    assert text_of(tokens[1]) == GRCT
    assert text_of(tokens[0]) == "(nsubj (PRON She))"
    for token in tokens:
        token.dep_ = ""
    with pytest.raises(ValueError, match="the spaCy pipeline needs a parser"):
        tree(doc)
    with pytest.raises(ValueError, match="the sentence has no words"):
        tree(Parsed([]))


def test_real_spacy() -> None:
    tokens = pytest.importorskip("spacy.tokens")
    vocab = pytest.importorskip("spacy.vocab").Vocab()
    words = ["She", "saw", "him", "(.)"]
    doc = tokens.Doc(
        vocab, words=words, heads=[1, 1, 1, 1], pos=["PRON", "VERB", "PRON", "PUNCT"],
        deps=["nsubj", "root", "obj", "punct"],
    )  # fmt: skip
    assert kind_of(doc) == kind_of(doc[1:3]) == kind_of(doc[0]) == "spacy"
    assert text_of(doc) == text_of(doc[:]) == text_of(doc[1]) == GRCT
    assert text_of(doc, policy="lct") == LCT
    assert text_of(doc[2:], policy="dep") == r"(ROOT him \(.\))"
    bare = tokens.Doc(vocab, words=words)
    assert kind_of(bare) == "spacy"
    with pytest.raises(ValueError, match="needs a parser"):
        tree(bare)


def stanza_sentence() -> SimpleNamespace:
    rows = [
        ("She", "PRON", 2, "nsubj"),
        ("saw", "VERB", 0, "root"),
        ("him", "PRON", 2, "obj"),
        ("(.)", "PUNCT", 2, "punct"),
    ]
    words = [SimpleNamespace(id=i, text=t, upos=u, head=h, deprel=r) for i, (t, u, h, r) in enumerate(rows, 1)]
    return SimpleNamespace(words=words, dependencies=[])


def test_stanza() -> None:
    sentence = stanza_sentence()
    assert kind_of(sentence) == "stanza"
    for policy, expected in (("grct", GRCT), ("lct", LCT), ("dep", DEP)):
        assert text_of(sentence, policy=policy) == expected
        assert text_of(SimpleNamespace(sentences=[sentence]), policy=policy) == expected
    both = SimpleNamespace(sentences=[sentence, stanza_sentence()])
    assert text_of(both, policy="dep") == f"(ROOT {DEP} {DEP})"
    sentence.words[0].head = None
    with pytest.raises(ValueError, match="word 1 has no head"):
        tree(sentence)


def test_deep_dependencies() -> None:
    lines = (f"{i}\tw\t_\tX\t_\t_\t{i - 1}\tdep\t_\t_" for i in range(1, DEEP + 1))
    assert text_of("\n".join(lines), policy="dep") == "(w " * (DEEP - 1) + "w" + ")" * (DEEP - 1)
