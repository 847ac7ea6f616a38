"""The words of web pages and of Markdown, without their marks."""

import re
from html import unescape
from html.parser import HTMLParser
from typing import Any

_INLINE = frozenset(("b", "big", "em", "font", "i", "small", "strong", "sub", "sup", "tt", "u"))
_HIDDEN = frozenset(("script", "style"))
_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "body", "div", "dl", "dt", "fieldset"),
        *("figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr"),
        *("li", "main", "nav", "ol", "p", "pre", "section", "table", "title", "tr", "ul"),
    )
)
_BREAK = "\n\n"
_UNENDED = re.compile(r"<!--[^>]*>")

# Each takes a time that grows with the length of a text, whatever is in it: where it looks in vain,
# it stops where the next match may begin. So an address ends at the next "](".
_MARKS = (
    (re.compile(r"\A---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL), ""),  # about it
    (re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE), ""),
    (re.compile(r"^[ \t]{0,3}\[[^\]\n]+\]:[ \t]*\S+.*$", re.MULTILINE), ""),  # [1]: address
    *[(re.compile(r"!?\[([^\[\]]*)\]\([^)\n\]]*+(?:\](?!\()[^)\n\]]*+)*+\)"), r"\1")]
    * 2,  # [words](address), [![a](b)](c)
    (re.compile(r"!?\[([^\[\]]*)\]\[[^\[\]\n]*\]"), r"\1"),
    (re.compile(r"</?[a-zA-Z][^<>\n]*>|<[a-z]+:[^<>\s]+>"), " "),
    (re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+|\d+[.)][ \t]+)+", re.MULTILINE), ""),
    (re.compile(r"^[-=*_|: \t]{3,}(?:\n|\Z)", re.MULTILINE), ""),  # rules, lines of tables
    (re.compile(r"[*`]+|~~|(?<!\w)_+|(?<!_)_+(?!\w)"), ""),
    (re.compile(r"(?<![ \t])[ \t]*\|[ \t]*"), " "),
)


def page_text(content: str, *, paragraphs: bool = False) -> str:
    """Return what a reader of a web page would see, with blanks where lines and cells end.

    Parameters
    ----------
    content : str
        HTML.
    paragraphs : bool, default=False
        Put an empty line between paragraphs, headings and cells.
    """
    parser = _Reader()
    # The parser looks for the end of each tag and comment. If there is none it would look through
    # the rest again and again, so that the rest is text: words are better than none.
    head, mark, tail = content.rpartition(">")
    page = head + mark
    ended = page.rfind("-->") + 1
    rest = _UNENDED.sub(lambda found: found[0].replace("<", "&lt;"), page[ended:])
    try:
        parser.feed(page[:ended] + rest)
        parser.close()
        parser.handle_data(unescape(tail))
    except AssertionError:  # what the standard library says to a malformed "<![...]"
        return " ".join(re.sub(r"<[^<>]*>", " ", content).split())
    text = "".join(parser.parts)
    if not paragraphs:
        return " ".join(text.split())
    return _BREAK.join(filter(None, (" ".join(part.split()) for part in text.split(_BREAK))))


def markdown_text(content: str) -> str:
    """Return the words of Markdown: without front matter, addresses, tags and marks."""
    content = _without_comments(content)
    for mark, instead in _MARKS:
        content = mark.sub(instead, content)
    return content.strip()


def _without_comments(content: str) -> str:
    """Return Markdown with a blank for each comment; one without an end is kept."""
    parts, at = [], 0
    while (begin := content.find("<!--", at)) >= 0 and (end := content.find("-->", begin)) >= 0:
        parts.append(content[at:begin])
        at = end + len("-->")
    return " ".join([*parts, content[at:]])


class _Reader(HTMLParser):
    """Collect the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """Part the words around a tag, unless it only changes the type."""
        self._hidden = tag in _HIDDEN
        self._part(tag)

    def handle_endtag(self, tag: str) -> None:
        """Part the words around a tag, unless it only changes the type."""
        self._hidden = False
        self._part(tag)

    def _part(self, tag: str) -> None:
        if tag not in _INLINE:
            self.parts.append(_BREAK if tag in _BLOCKS else " ")

    def handle_data(self, data: str) -> None:
        """Keep text that is not a program or a style sheet."""
        if not self._hidden:
            self.parts.append(data)
