"""Pages of the console in tests: the parsed page, and what holds for every page."""

from __future__ import annotations

from typing import Final

import httpx
from selectolax.lexbor import LexborHTMLParser

from memstream.api.console.frame import CONTENT_POLICY
from tests.support.api_server import called

__all__ = ["HOSTILE", "called", "page_of", "shape", "words"]

HOSTILE: Final = (
    "<script>alert(1)</script>",
    "</p></main><img src=x onerror=alert(1)>",
    '" autofocus onfocus=alert(1) x="',
    "' onmouseover='alert(1)",
    "</textarea><script>alert(1)</script>",
    "</title></style><svg onload=alert(1)>",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% include 'base.html' %}",
    "&lt;b&gt; &#60;b&#62; &amp;",
    "Works at \u202eelgooG\u202c\u2066\u200b\u00ad",
    "w" * 300,
    "<!-- -->]]><![CDATA[<b>",
)
"""Texts that break out of a page which does not escape them."""


def page_of(answer: httpx.Response) -> LexborHTMLParser:
    """Parse a page, and check what holds for each page: the headers, one script file, nothing from elsewhere, names of
    fields."""
    assert answer.headers["content-type"] == "text/html; charset=utf-8", answer.text
    assert answer.headers["content-security-policy"] == CONTENT_POLICY
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in answer.headers
    page = LexborHTMLParser(answer.text)
    assert page.css_first("main") is not None
    assert page.css("style, iframe, object, embed, base, img, svg") == []
    (script,) = page.css("script")
    assert str(script.attributes["src"]).endswith("/console/static/console.js")
    assert script.text() == ""
    for node in page.css("*"):
        for name, value in node.attributes.items():
            assert not name.startswith("on"), node.html
            assert name != "style", node.html
            if name in ("href", "src", "action"):
                assert value is not None, node.html
                assert value.startswith(("/console", "#", "/memory/console")), node.html
    named = {label.attributes.get("for") for label in page.css("label")}
    for field in page.css("input, select, textarea"):
        if field.attributes.get("type") != "hidden":
            assert field.attributes.get("id") in named, f"a field without a label: {field.html}"
    forms = page.css("form[method=post]")
    for form in forms:
        if not str(form.attributes["action"]).endswith("/sign-in"):
            assert form.css_first("input[name=csrf]") is not None, form.html
    identities = [node.attributes["id"] for node in page.css("[id]")]
    assert len(identities) == len(set(identities)), "an id occurs twice"
    return page


def shape(page: LexborHTMLParser) -> list[str]:
    """Return the elements of a page, without the marks of invisible characters. Stored text must not change them."""
    return [str(node.tag) for node in page.css("*") if node.attributes.get("class") != "unseen"]


def words(page: LexborHTMLParser, selector: str = "main") -> str:
    """Return the text of a part of a page, with single spaces."""
    node = page.css_first(selector)
    assert node is not None, selector
    return " ".join(node.text(separator=" ").split())
