"""XML and HTML as trees: elements of xml.etree, of lxml, of BeautifulSoup and of anything like them, or text.

The text of a page is read by Python's HTML parser, which finds tags and nothing else. Here elements without an end,
such as <br>, end at once, <li>, <td> and their kin end where the next begins, end tags of what is not open are passed
over, and scripts are no text. All else that is wrong in a page is mended by BeautifulSoup and lxml.html, whose objects
are taken, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

from .options import choose
from .text import Made, shorten, write


def from_xml(obj: Any, *, attributes: str = "drop", text: str = "drop", namespaces: bool = False) -> str:
    """An element, an ElementTree, or the text of a document."""
    choose("attributes", attributes, ("keep", "abstract", "drop"))
    choose("text", text, ("keep", "words", "abstract", "drop"))
    if isinstance(obj, (str, bytes)):
        obj = _load(obj)
    elif hasattr(obj, "getroot"):
        obj = obj.getroot()
    if not isinstance(getattr(obj, "tag", None), str):
        raise ValueError(f"a value {shorten(obj)} is no XML element; it has no tag that is a string")

    def name(tag: str) -> str:
        return tag if namespaces or tag[:1] != "{" else tag.rpartition("}")[2]

    def add_text(children: list[Any], content: str | None) -> None:
        words = content.split() if content and text != "drop" else []
        if words:
            children += words if text == "words" else ["text" if text == "abstract" else " ".join(words)]

    def expand(element: Any) -> tuple[str, Sequence[Any]]:
        children: list[Any] = []
        if attributes != "drop":
            for key, value in sorted(element.attrib.items()):  # XML gives them no order
                children.append(Made("@" + name(key), [value] if value and attributes == "keep" else []))
        add_text(children, element.text)
        for child in element:
            if isinstance(child.tag, str):  # comments and processing instructions have a function there
                children.append(child)
            add_text(children, child.tail)
        return name(element.tag), children

    return write(obj, expand)


def _load(text: str | bytes) -> Any:
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"the XML text is wrong: {error}; kind='html' reads pages that are no XML") from None
    except UnicodeEncodeError as error:
        raise ValueError(f"the XML text has a lone surrogate at position {error.start}") from None


# ------------------------------------------------------------------------ HTML

_EMPTY = {
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
}  # fmt: skip
_CELLS = {"td", "th"}
_ENDED_BY = {
    "li": {"li"}, "option": {"option"}, "p": {"p"}, "dt": {"dt", "dd"}, "dd": {"dt", "dd"}, "td": _CELLS, "th": _CELLS,
    "tr": {"tr", *_CELLS},
}  # fmt: skip


def from_html(obj: Any, *, attributes: str = "drop", text: str = "drop") -> str:
    """The text of a page, or an object of BeautifulSoup."""
    root = _parse_page(obj) if isinstance(obj, str) else _from_soup(obj)
    return from_xml(root, attributes=attributes, text=text)


class _Page(HTMLParser):
    """Builds elements below a root of its own."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [ElementTree.Element("html")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        while self.open[-1].tag in _ENDED_BY.get(tag, ()) and len(self.open) > 1:
            self.open.pop()
        made = ElementTree.SubElement(self.open[-1], tag, {name: value or "" for name, value in attrs})
        if tag not in _EMPTY:
            self.open.append(made)

    def handle_endtag(self, tag: str) -> None:
        places = [i for i, element in enumerate(self.open) if i > 0 and element.tag == tag]
        if places:
            del self.open[places[-1] :]

    def handle_data(self, data: str) -> None:
        if self.open[-1].tag not in ("script", "style"):
            _append_text(self.open[-1], data)


def _append_text(element: ElementTree.Element, data: str) -> None:
    if len(element):
        element[-1].tail = (element[-1].tail or "") + data
    else:
        element.text = (element.text or "") + data


def _only_element(root: ElementTree.Element) -> ElementTree.Element:
    """The element below the root, if there is nothing beside it."""
    texts = [root.text, *(child.tail for child in root)]
    return root[0] if len(root) == 1 and not any(text and text.strip() for text in texts) else root


def _parse_page(text: str) -> ElementTree.Element:
    page = _Page()
    page.feed(text)
    page.close()
    root = _only_element(page.open[0])
    if root is page.open[0] and not len(root):
        raise ValueError("the HTML text has no element")
    return root


def _from_soup(soup: Any) -> ElementTree.Element:
    """The same elements as objects of xml.etree."""
    root = ElementTree.Element("html")
    walk = [(root, iter([soup]))]
    while walk:
        above, rest = walk[-1]
        tag = next(rest, None)
        if tag is None:
            walk.pop()
        elif isinstance(tag, str):
            if type(tag).__name__ == "NavigableString":  # comments and declarations are of other classes
                _append_text(above, str(tag))
        else:
            own = {name: value if isinstance(value, str) else " ".join(value) for name, value in tag.attrs.items()}
            made = above if tag.name == "[document]" else ElementTree.SubElement(above, tag.name, own)
            walk.append((made, iter(tag.contents)))
    return _only_element(root)
