"""HTML in text and of BeautifulSoup, sentences of the package conllu, lemmas and tags of dependency parses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import espalier
from espalier import Kernel, tree

PAGES = [
    ("<html><body><p>Hi</p></body></html>", "(html (body p))"),
    ("<!DOCTYPE html>\n<HTML><body><br>a<br>b</body></HTML>", "(html (body br br))"),
    ("<html><ul><li>a<li>b</ul><p>c", "(html (ul li li) p)"),
    ("<html><table><tr><td>1<td>2<tr><th>3</table>", "(html (table (tr td td) (tr th)))"),
    ("<html></b><i>x</i></html>", "(html i)"),
    ("<html><!-- no --><script>if (a < b) c()</script></html>", "(html script)"),
]


@pytest.mark.parametrize("page, expected", PAGES)
def test_pages(page, expected):
    assert str(tree(page)) == expected
    assert (Kernel("norm(ptk)")([page, expected]) == 1).all()


def test_parts_of_pages():
    assert str(tree("<p>a</p><p>b</p>", kind="html")) == "(html p p)"
    assert str(tree("<p>A <b>big</b> cat &amp; dog", kind="html", text="words")) == "(p A (b big) cat & dog)"
    assert str(tree('<a href="x" hidden>y</a>', kind="html", attributes="keep")) == "(a @hidden (@href x))"
    with pytest.raises(ValueError, match="the XML text is wrong.*kind='html' reads pages that are no XML"):
        tree("<p>a<br>b</p>")
    with pytest.raises(ValueError, match="the HTML text has no element"):
        tree("nothing here", kind="html")


@pytest.mark.parametrize(
    "page", [page for page, _ in PAGES if "</b>" not in page and "<li>" not in page and "<td>" not in page]
)
@pytest.mark.parametrize("options", [{}, {"text": "words"}, {"text": "keep"}])
def test_beautiful_soup(page, options):
    bs4 = pytest.importorskip("bs4")
    assert tree(bs4.BeautifulSoup(page, "html.parser"), **options) == tree(page, **options)


def test_tags_of_beautiful_soup():
    bs4 = pytest.importorskip("bs4")
    soup = bs4.BeautifulSoup('<div class="a b"><p>x<!-- no --></p>y</div>', "html.parser")
    assert str(tree(soup.div, attributes="keep", text="keep")) == "(div (@class a\\ b) (p x) y)"
    assert str(tree(soup.p)) == "(p)"
    assert (Kernel("norm(ptk)")([soup, soup.div]) == 1).all()


def test_pages_of_lxml():
    html = pytest.importorskip("lxml.html")
    page = html.document_fromstring("<p>a<br>b<!-- no --><p>c")
    assert str(tree(page, text="words")) == "(html (body (p a br b) (p c)))"


# ----------------------------------------------------------------- dependencies

SENTENCE = "\n".join(
    "\t".join(word)
    for word in [
        ("1", "Cats", "cat", "NOUN", "NNS", "_", "2", "nsubj:pass", "_", "_"),
        ("2", "slept", "sleep", "VERB", "VBD", "_", "0", "root", "_", "_"),
    ]
)


def test_lemmas_and_tags():
    assert str(tree(SENTENCE)) == "(root (nsubj:pass (NOUN Cats)) (VERB slept))"
    assert str(tree(SENTENCE, word="lemma")) == "(root (nsubj:pass (NOUN cat)) (VERB sleep))"
    assert str(tree(SENTENCE, tag="xpos", relation="plain")) == "(root (nsubj (NNS Cats)) (VBD slept))"
    assert str(tree(SENTENCE, policy="dep", word="lemma")) == "(sleep cat)"
    with pytest.raises(ValueError, match="word"):
        tree(SENTENCE, word="stem")


def test_the_same_of_objects():
    """What spaCy and stanza call these fields."""
    fields = [("Cats", "cat", "NOUN", "NNS", "nsubj:pass", 2), ("slept", "sleep", "VERB", "VBD", "root", 0)]
    stanza = SimpleNamespace(
        words=[
            SimpleNamespace(id=i, text=form, lemma=lemma, upos=upos, xpos=xpos, deprel=rel, head=head)
            for i, (form, lemma, upos, xpos, rel, head) in enumerate(fields, 1)
        ],
        dependencies=[],
    )
    spacy = [
        SimpleNamespace(i=i, text=form, lemma_=lemma, pos_=upos, tag_=xpos, dep_=rel, is_space=False)
        for i, (form, lemma, upos, xpos, rel, _) in enumerate(fields)
    ]
    for token in spacy:
        token.head = spacy[1]
    for options in ({}, {"word": "lemma", "tag": "xpos"}, {"relation": "plain", "policy": "lct"}):
        assert tree(stanza, kind="stanza", **options) == tree(SENTENCE, **options)
        assert tree(spacy, kind="spacy", **options) == tree(SENTENCE, **options)


def test_sentences_of_conllu():
    conllu = pytest.importorskip("conllu")
    sentences = conllu.parse(SENTENCE + "\n\n" + SENTENCE + "\n\n")
    assert espalier.tree(sentences[0], word="lemma") == tree(SENTENCE, word="lemma")
    assert (Kernel("norm(sst)")(sentences) == 1).all()
