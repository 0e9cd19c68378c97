"""XML elements as trees: those of xml.etree, of lxml and of anything that looks like them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    from xml.etree import ElementTree

    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"the XML text is wrong: {error}") from None
    except UnicodeEncodeError as error:
        raise ValueError(f"the XML text has a lone surrogate at position {error.start}") from None
