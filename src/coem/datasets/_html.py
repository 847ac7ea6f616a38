"""The text of the pages of WebKB."""

import re

from coem.io import markup

WORD = r"[^\W\d_]{2,}"


def page_text(content: str) -> str:
    """Return what a reader of the page would see; the headers of HTTP are left out."""
    body = content
    if not content.lstrip().startswith("<"):  # a few pages have no headers
        body = re.split(r"\r?\n\r?\n", content, maxsplit=1)[-1]
    return markup.page_text(body)
