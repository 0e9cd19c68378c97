"""Trees of source code and XML as JSON Lines, for espalier: python3 examples/trees.py FILE... >data.jsonl

Of a Python file each function is an example, of an XML file the whole document. The target `y` is the name of the
folder that the file is in, `name` says where the example comes from. Only what is in Python itself is used; the
package espalier converts many more kinds of trees, with more choices.
"""

import ast
import json
import os
import re
import sys
from xml.etree import ElementTree


def escaped(text):
    return re.sub(r"([\s()\\])", r"\\\1", text)


def code(node):
    """A node has the name of its kind; names of variables, attributes, arguments are leaves, constants are left out."""
    name = next(
        (getattr(node, field) for field in ("id", "attr", "arg") if isinstance(getattr(node, field, None), str)), None
    )
    children = [escaped(name)] if name else []
    children += [code(child) for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context)]
    return f"({' '.join([type(node).__name__, *children])})"


def markup(element):
    """Elements and the names of their attributes, without any text."""
    children = [f"(@{escaped(name)})" for name in element.attrib] + [markup(child) for child in element]
    return f"({' '.join([escaped(element.tag.rpartition('}')[2]), *children])})"


for path in sys.argv[1:]:
    if path.endswith(".py"):
        with open(path, "rb") as file:
            found = [node for node in ast.walk(ast.parse(file.read())) if isinstance(node, ast.FunctionDef)]
        trees = [(f"{os.path.basename(path)}:{node.name}", code(node)) for node in found]
    else:
        trees = [(os.path.basename(path), markup(ElementTree.parse(path).getroot()))]
    folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
    for name, tree in trees:
        print(json.dumps({"y": folder, "name": name, "tree": tree}))
