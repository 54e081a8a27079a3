"""The documentation: `tox -e docs` builds it, warnings are errors."""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parents[1]))
from docs import generated

project = "Fallow"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["README.md", "examples", "_build"]
html_theme = "furo"
html_title = "Fallow"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
default_role = "code"  # in docstrings, `x` is code
autodoc_member_order = "bysource"
autodoc_typehints = "description"


def _insert(_app: Sphinx, _name: str, source: list[str]) -> None:
    """Put generated text where a page has the line `% generated: NAME`."""
    source[0] = re.sub(
        r"^% generated: (\w+)$", lambda found: generated.PAGES[found[1]](), source[0], flags=re.MULTILINE
    )


def setup(app: Sphinx) -> None:
    """What Sphinx calls."""
    app.connect("source-read", _insert)
