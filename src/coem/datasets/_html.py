"""The text of web pages."""

import re
from html.parser import HTMLParser
from typing import Any

WORD = r"[^\W\d_]{2,}"
_INLINE = frozenset(("b", "big", "em", "font", "i", "small", "strong", "sub", "sup", "tt", "u"))
_HIDDEN = frozenset(("script", "style"))


def page_text(content: str) -> str:
    """Return what a reader of the page would see, with blanks where lines and cells end."""
    body = content
    if not content.lstrip().startswith("<"):  # the headers of HTTP, which a few pages lack
        body = re.split(r"\r?\n\r?\n", content, maxsplit=1)[-1]
    parser = Reader()
    try:
        parser.feed(body)
        parser.close()
    except AssertionError:  # what the standard library says to a malformed "<![...]"
        return " ".join(re.sub(r"<[^>]*>", " ", body).split())
    return " ".join("".join(parser.parts).split())


class Reader(HTMLParser):
    """Collect the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """Part the words around a tag, unless it only changes the type."""
        self._hidden = tag in _HIDDEN
        if tag not in _INLINE:
            self.parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        """Part the words around a tag, unless it only changes the type."""
        self._hidden = False
        if tag not in _INLINE:
            self.parts.append(" ")

    def handle_data(self, data: str) -> None:
        """Keep text that is not a program or a style sheet."""
        if not self._hidden:
            self.parts.append(data)
