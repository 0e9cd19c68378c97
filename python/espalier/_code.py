"""Source files as trees, through tree-sitter; what stands in a tree is decided in trees/source.py."""

from __future__ import annotations

import importlib
import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from .trees.options import choose
from .trees.source import Policy, Unit, count_errors, functions, is_function, write_source
from .trees.tree import Tree

Path = str | os.PathLike[str]

# Endings of files by language. Another language works too, if its files or endings are given.
_SUFFIXES = {
    "bash": (".sh", ".bash"),
    "c": (".c", ".h"),
    "c_sharp": (".cs",),
    "cpp": (".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".h"),
    "go": (".go",),
    "java": (".java",),
    "javascript": (".js", ".mjs", ".cjs", ".jsx"),
    "kotlin": (".kt",),
    "php": (".php",),
    "python": (".py",),
    "ruby": (".rb",),
    "rust": (".rs",),
    "scala": (".scala",),
    "typescript": (".ts",),
}


class Code:
    """The functions or files of source code, as :func:`read_code` gives them: pairs ``(id, tree)``, with these
    names, of a text and a :class:`Tree`. As examples, it and its pairs stand for their trees everywhere; ids are
    read where they are asked for, as by ``Index(id="id")``.

    Each loop over it reads the files again, one at a time. After a loop the counts tell what was read: ``files``,
    ``units`` (pairs that were given), ``broken`` (units with syntax errors, kept or skipped), ``errors`` (the errors
    in these) and ``skipped`` (units left out because of errors). Units that are too small are in none of them.
    ``broken_files`` counts files with errors outside of functions, ``outside`` these errors: what stands there may be
    functions that could not be parsed. With ``unit="file"`` both are 0, since a file is a unit.
    """

    def __init__(self, files: list[str], language: Any, unit: str, policy: Policy, errors: str, min_nodes: int) -> None:
        self._files, self._language, self._unit = files, language, unit
        self._policy, self._errors, self._min_nodes = policy, errors, min_nodes
        self._reset()

    def _reset(self) -> None:
        self.files = self.units = self.broken = self.errors = self.skipped = self.broken_files = self.outside = 0

    def __iter__(self) -> Iterator[Unit]:
        from tree_sitter import Parser

        parser = Parser(self._language)
        self._reset()
        for path in self._files:
            with open(path, "rb") as file:
                root = parser.parse(file.read()).root_node
            self.files += 1
            outside = count_errors(root, outside=True) if self._unit == "function" else 0
            self.outside += outside
            self.broken_files += outside > 0
            taken: set[str] = set()
            for node in functions(root) if self._unit == "function" else [root]:
                text = self._text(node)
                if text is not None:
                    self.units += 1
                    yield Unit(self._id(path, node, taken), Tree._from_canonical(text))

    def _text(self, node: Any) -> str | None:
        """The tree of a unit; None where it is left out."""
        made = write_source(node, self._policy)
        if made.nodes < self._min_nodes:
            return None
        errors = count_errors(node)
        self.broken += errors > 0
        self.errors += errors
        if errors > 0 and self._errors == "skip":
            self.skipped += 1
            return None
        return made.text

    def _id(self, path: str, node: Any, taken: set[str]) -> str:
        # A text that starts with a bracket would be read as a tree.
        name = (f"./{path}" if path.startswith("(") else path).encode("utf-8", "backslashreplace").decode()
        if self._unit == "function":
            name += f":{node.start_point[0] + 1}-{node.end_point[0] + 1}"
        if name in taken:  # several functions in a line
            name += f":{node.start_point[1] + 1}"
        taken.add(name)
        return name

    def rows(self) -> Iterator[dict[str, Any]]:
        """The same as dicts with ``"id"`` and ``"tree"``."""
        for name, tree in self:
            yield {"id": name, "tree": tree}

    def to_jsonl(self, path: Path) -> Code:
        """Writes JSON Lines with the fields ``id`` and ``tree``; the file appears complete or not at all."""
        target = os.fspath(path)
        if os.path.exists(target) and not os.path.isfile(target):  # a pipe or a device
            self._write(target)
        else:
            part = f"{target}.{os.getpid()}.part"
            try:
                self._write(part)
                os.replace(part, target)
            except BaseException:
                if os.path.exists(part):
                    os.unlink(part)
                raise
        if self.units == 0:
            warnings.warn(f"{target} is empty: no {self._unit} was found in {self.files} files", stacklevel=2)
        return self

    def _write(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            for unit, tree in self:
                file.write(json.dumps({"id": unit, "tree": str(tree)}, ensure_ascii=False) + "\n")

    def __repr__(self) -> str:
        return f"<Code in {len(self._files)} files, by {self._unit}>"


def read_code(
    paths: Path | Iterable[Path],
    language: Any,
    *,
    unit: str = "function",
    names: str = "keep",
    constants: str = "keep",
    comments: str = "drop",
    errors: str = "keep",
    min_nodes: int = 0,
    suffixes: Iterable[str] | None = None,
) -> Code:
    """Source code as trees: an iterable of pairs ``(id, tree)`` that reads one file at a time.

    It needs the package ``tree-sitter`` (0.22 or later) and that of the language: ``pip install tree-sitter
    tree-sitter-c``. ``language`` is its name (``"c"``, ``"python"``, ``"java"`` ...) or a ``tree_sitter.Language``.
    ``paths`` are files and folders; of folders, all files below that end as files of the language do, or in
    ``suffixes``. Hidden folders are passed over.

    ``unit``
        ``"function"``: each function that is not inside another one, with the id ``path:first-last``, its lines;
        ``"file"``: each file, with its path as id.
    ``names``
        Of variables, functions, types and members: ``"keep"``, ``"abstract"`` (a leaf ``name``), ``"number"`` (in the
        order of their first occurrence in the unit, so that trees of consistently renamed copies are equal) or
        ``"drop"``.
    ``constants``
        Strings and numbers: ``"keep"``, ``"abstract"`` (a leaf ``constant``) or ``"drop"``.
    ``comments``
        ``"drop"``, ``"abstract"`` (``comment`` alone) or ``"keep"``.
    ``errors``
        What is done with units that have syntax errors: ``"keep"`` (with nodes ``ERROR``) or ``"skip"``. Both are
        counted, and so are errors outside of functions, as of a function that could not be parsed at all.
    ``min_nodes``
        Smaller trees are left out.

    Operators and keywords are leaves. Brackets, commas and quotes are left out, and so is a keyword that is part of the
    name of its node, such as ``if`` of ``if_statement``. Colons and semicolons stay where a part is missing beside
    them.

    Write them to a file with :meth:`Code.to_jsonl`, or give them to an index:
    ``Index("norm(sst)", id="id").fit(read_code("src", "c"))``.
    """
    choose("unit", unit, ("function", "file"))
    choose("errors", errors, ("keep", "skip"))
    choose("names", names, ("keep", "abstract", "number", "drop"))
    choose("constants", constants, ("keep", "abstract", "drop"))
    choose("comments", comments, ("keep", "abstract", "drop"))
    grammar, endings = _load(language)
    if suffixes is not None:
        endings = (suffixes,) if isinstance(suffixes, str) else tuple(suffixes)
    if not hasattr(min_nodes, "__index__") or min_nodes < 0:
        raise ValueError(f"min_nodes is {min_nodes!r}; allowed is a whole number >= 0")
    files = _find(_paths(paths), endings)
    kinds = [grammar.node_kind_for_id(i) for i in range(grammar.node_kind_count)]
    if unit == "function" and not any(map(is_function, filter(None, kinds))):
        raise ValueError("the grammar of this language has no functions that are known here; unit='file' takes files")
    return Code(files, grammar, unit, Policy(names, constants, comments), errors, min_nodes)


def _load(language: Any) -> tuple[Any, tuple[str, ...] | None]:
    """The grammar, and the endings of its files if they are known."""
    name = re.sub("[ -]", "_", language.lower()) if isinstance(language, str) else None
    if name is not None and not name.isidentifier():
        raise ValueError(f"language={language!r} is no name of a language")
    package = "tree-sitter" if name is None else f"tree-sitter-{name.replace('_', '-')}"
    try:
        from tree_sitter import Language

        module = None if name is None else importlib.import_module(f"tree_sitter_{name}")
    except ImportError as error:
        wanted = "tree-sitter" if name is None else f"tree-sitter {package}"
        raise ImportError(f"read_code needs packages that are not installed: pip install {wanted}") from error
    if name is None:
        if not isinstance(language, Language):
            raise ValueError(f"language is a value of type {type(language).__name__}; allowed is a name or a Language")
        return language, None
    # Packages with several grammars name their functions after them.
    make = getattr(module, "language", None) or getattr(module, f"language_{name}", None)
    if make is None:
        raise ValueError(f"the package {package} has several grammars; give one as tree_sitter.Language(...)")
    return Language(make()), _SUFFIXES.get(name)


def _paths(paths: Any) -> list[Path]:
    if isinstance(paths, (str, os.PathLike)):
        return [paths]
    each = list(paths) if isinstance(paths, Iterable) else [paths]
    for path in each:
        if not isinstance(path, (str, os.PathLike)):
            raise ValueError(
                f"paths has a value of type {type(path).__name__}; allowed are names of files and folders"
                if isinstance(paths, Iterable)
                else f"paths is {paths!r}; allowed are names of files and folders"
            )
    return each


def _find(paths: list[Path], endings: tuple[str, ...] | None) -> list[str]:
    """The files, each once, those of folders in the order of their names."""
    found: dict[str, None] = {}
    for path in [os.fspath(path) for path in paths]:
        if not os.path.isdir(path):
            if not os.path.exists(path):
                raise FileNotFoundError(f"there is no file or folder {path}")
            found[os.path.normpath(path)] = None
            continue
        if endings is None:
            raise ValueError(f"{path} is a folder; suffixes must say how files of this language end")
        for folder, below, files in os.walk(path):
            below[:] = sorted(name for name in below if not name.startswith("."))
            for name in sorted(files):
                if name.endswith(endings) and os.path.isfile(os.path.join(folder, name)):
                    found[os.path.normpath(os.path.join(folder, name))] = None
    if not found:
        raise ValueError("there are no source files" + (f" that end in {', '.join(endings)}" if endings else ""))
    return list(found)
