"""Settings of Sphinx: python -m sphinx -W -c docs/python . build-docs"""

import importlib.util
import re

import espalier

project = "Espalier"
version = release = espalier.__version__
root_doc = "docs/python/index"  # the source is the whole project, since pages refer to each other
include_patterns = ["docs/**.md", "bench/results/*.md", "*.md"]
exclude_patterns = ["build*"]
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_heading_anchors = 3

html_title = f"Espalier {release}"
html_theme_options = {"description": "Learning from trees and sequences", "fixed_sidebar": True}
html_show_sphinx = html_show_copyright = html_copy_source = False

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the sources have them all; in signatures this long they hide the names
autodoc_mock_imports = [name for name in ("dask", "cloudpickle") if importlib.util.find_spec(name) is None]
python_maximum_signature_line_length = 100


def skip_foreign(app, what, name, obj, skip, options):
    """Leaves out what scikit-learn adds to all estimators."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing|score", name) else None


def setup(app):
    app.connect("autodoc-skip-member", skip_foreign)
