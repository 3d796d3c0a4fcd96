"""MkDocs hook: links between the two sites, and the home page of the second one.

mkdocs.yml builds the users' pages under build/site, mkdocs.developers.yml the developers' pages under
build/site/developers. Each site searches only its own pages. A link to a page of the other site becomes the address of
that page, and a page or heading that does not exist is a warning, so that `make docs` fails.
"""

from __future__ import annotations

import logging
import posixpath
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import markdown as python_markdown
from mkdocs.utils import get_relative_url

log = logging.getLogger("mkdocs.plugins.docs_sites")

DOCS = Path(__file__).resolve().parent.parent / "docs"
HOME = "developers.md"
"""The home page of the developers' site."""
DEVELOPERS = ("design/", "adr/", "notes/", HOME)
PREFIX = "developers/"
"""The developers' site below the users' site."""
_LINK = re.compile(r"\]\((?P<path>[^()\s:#]+\.md)(?:#(?P<anchor>[^()\s]+))?\)")


def on_files(files: Any, config: Any) -> None:
    """Write the developers' home page as the index of their site."""
    home = files.get_file_from_path(HOME)
    if home is not None and _builds_developers(config):
        home.dest_uri = "index.html"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Return the page with links to the other site as addresses."""
    source = page.file.src_uri
    here = (PREFIX if _builds_developers(config) else "") + page.url

    def replaced(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found["path"]))
        if _is_developers(target) == _is_developers(source):
            return found.group()
        if not (DOCS / target).exists() or (found["anchor"] and found["anchor"] not in _anchors(target)):
            log.warning("Doc file '%s' links to '%s', which does not exist.", source, found.group()[2:-1])
        anchor = f"#{found['anchor']}" if found["anchor"] else ""
        return f"]({get_relative_url(_url(target), here)}{anchor})"

    return _LINK.sub(replaced, markdown)


def _builds_developers(config: Any) -> bool:
    return Path(config.config_file_path).name == "mkdocs.developers.yml"


def _is_developers(path: str) -> bool:
    return path.startswith(DEVELOPERS)


def _url(path: str) -> str:
    """Address of a page, from the root of the users' site."""
    below = PREFIX if _is_developers(path) else ""
    if path == HOME:
        return below
    name = path.removesuffix(".md")
    return below + (posixpath.dirname(name) if posixpath.basename(name) == "index" else name) + "/"


@lru_cache
def _anchors(path: str) -> frozenset[str]:
    page = python_markdown.markdown((DOCS / path).read_text(), extensions=["toc", "tables", "fenced_code"])
    return frozenset(re.findall(r'\bid="([^"]+)"', page))
