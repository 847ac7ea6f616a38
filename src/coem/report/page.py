"""The page: one HTML file that needs nothing but itself."""

import base64
import hashlib
import json
import math
from functools import cache
from pathlib import Path

import jinja2
import numpy as np
from markupsafe import Markup

from coem.io import new_file
from coem.report import svg
from coem.report.chart import chart
from coem.report.choice import PAGE
from coem.report.facts import facts_of, labels_of, packs_of
from coem.report.story import brief, plain
from coem.report.texts import excerpt
from coem.report.timeline import columns
from coem.report.tree import dendrogram
from coem.report.wording import TRUSTED, VIEWS, trust_in_words

HERE = Path(__file__).parent / "assets"
NONE = "\u2013"
# What parameters of models are called by the program.
SAME = {"n_components": "k", "n_clusters": "k", "n_init": "restarts"}
FIRST = 25  # documents that are there without JavaScript, and on a page of the search


# The script and the style of the page, in this order; each part is a file of its own.
SCRIPTS = (
    *("core.js", "texts.js", "sort.js", "search.js", "filter.js", "documents.js", "read.js"),
    *("map.js", "tree.js", "paper.js"),
)
STYLES = ("page.css", "read.css", "map.css", "tree.css")
ROOM = "<!-- packs -->"  # no document can write it: its first sign is escaped


def render(story, *, full=False):
    """Return the page about a story as HTML.

    Parameters
    ----------
    story : Story
        What `tell` returned.
    full : bool, default=False
        Put all documents with their whole texts on the page, however large it becomes. Otherwise
        it has at most 8 MB, and says what is left out.

    Returns
    -------
    html : str
        One page with its style, pictures and script. Same story, same bytes. It asks for nothing
        from anywhere, and documents are text on it whatever they hold.
    """
    documents = story.library.all() if full and story.library else story.documents
    html, facts = _fill(story, documents), embed(facts_of(story, documents))
    size = sum(len(text.encode("utf-8", "replace")) for text in (html, facts))
    packed = packs_of(story, documents, math.inf if full else PAGE - size)
    both = f"{facts[:-1]},{embed(packed.facts)[1:]}"  # two objects as one
    parts = [element("data", "application/json", both)]
    parts += [element(f"pack-{n}", "text/plain", " ".join(p)) for n, p in packed.packs.items()]
    return html.replace(ROOM, "\n".join(parts))


def _fill(story, documents):
    """Return the page without the data of its script."""
    script, style = joined(SCRIPTS), joined(STYLES)
    template = environment().get_template("page.html")
    return template.render(
        story=story,
        documents_shown=documents,
        noun=story.model["noun"],
        nouns={"class": "classes"}.get(story.model["noun"], f"{story.model['noun']}s"),
        style=Markup(style),
        script=Markup(script),
        allowed={"script": digest(script), "style": digest(style)},
        ranked=_ranked(story),
        room=Markup(ROOM),
        pictures=pictures(story),
        chart=chart(story, documents),
        tree=story.tree and dendrogram(story.tree, [group.name for group in story.groups]),
        made=made(story),
        silent=[view.name for view in story.views if view.silent],
        links=story.library.links if story.library else {},
        trust=TRUSTED,
        labels=labels_of(documents),
        first=FIRST,
        most=svg.MOST,
    )


def element(name, kind, text):
    """Return a script element that holds data."""
    return f'<script type="{kind}" id="{name}">{text}</script>'


def write_report(story, path, *, full=False):
    """Write the page about a story to a file, whole or not at all.

    Parameters
    ----------
    story : Story
        What `tell` returned.
    path : str or Path
        The file; an old one is replaced.
    full : bool, default=False
        All documents with their whole texts, however large the page becomes.

    Returns
    -------
    path : Path
        The file.
    """
    html = render(story, full=full).encode(errors="replace")  # names of files need not be text
    with new_file(path) as file:
        file.write(html)
    return Path(path)


# -- what the template needs --------------------------------------------------------------------


def _ranked(story):
    """Return groups with their numbers, the largest first; classes have an order of their own.

    Groups without documents have no card, nor has a group that was merged into another.
    """
    pairs = [(i, group) for i, group in enumerate(story.groups) if group.size]
    return pairs if story.model["noun"] == "class" else sorted(pairs, key=lambda p: -p[1].share)


def made(story):
    """Return what the model was made with, each thing once and in the words of the caller."""
    given = {name: brief(value) for name, value in story.settings.items()}
    # The seed is what all other random states come from.
    known = {"random_state"} if "seed" in given else set()
    known |= {own for own, name in SAME.items() if given.get(name) == _parameter(story, own)}
    return {k: v for k, v in story.model["parameters"].items() if k not in known} | given


def _parameter(story, name):
    return story.model["parameters"].get(name)


def pictures(story):
    """Return the pictures of a story by name; those that have nothing to show are missing."""
    found = {}
    objective = story.trace["objective"]
    if len(objective) > 1:
        found["trace"] = svg.line(objective, "The objective after every round", y_label="objective")
    if len(story.trace.get("agreement", ())) > 1:
        title = "Share of documents on which the views agree, after every round"
        shares = story.trace["agreement"]
        found["agreeing"] = svg.line(shares, title, y_label="views agree", limits=(0.0, 1.0))
    if story.agreement:
        found |= _agreement_pictures(story)
    if story.stability:
        found["runs"] = _runs_picture(story.stability["agreement"])
        if story.stability.get("reliability"):
            found["support"] = _reliability(
                story.stability["reliability"],
                "Probability, and how probable the other runs find the same",
                said="of the other runs",
            )
    if story.truth:
        found |= _truth_pictures(story)
    return found


def _agreement_pictures(story):
    a = story.agreement
    title = "Share of documents on which two views agree"
    matrix = svg.heat(a.matrix, a.names, a.names, title, text=lambda v: f"{v:.0%}", cell=54)
    kept = _largest(story, [group.size for group in story.groups])
    rows, numbers = _numbered(story, kept), [str(g) for g in kept]
    tables = []
    for pair in a.pairs:
        counts = np.array(pair.table)[np.ix_(kept, kept)]
        title = (
            f"Documents by their group in {pair.views[0]} (down) and in {pair.views[1]} (across)"
        )
        tables.append((pair, _counts(counts, rows, numbers, title)))
    return {"matrix": matrix, "tables": tables}


def _runs_picture(agreement):
    names = [str(i + 1) for i in range(len(agreement))]
    title = "Adjusted Rand index of any two runs"
    return svg.heat(agreement, names, names, title, text=lambda v: f"{v:.2f}", cell=34)


def _truth_pictures(story):
    t = story.truth
    table = np.array(t.table)
    rows = _largest(story, table.sum(axis=1))
    columns = svg.largest(table.sum(axis=0))
    which = "Held-out" if t.held_out else "Labelled"
    title = f"{which} documents by {story.model['noun']} (down) and class (across)"
    names = [t.classes[c] for c in columns]
    found = {
        "confusion": _counts(table[np.ix_(rows, columns)], _numbered(story, rows), names, title)
    }
    if t.reliability:
        found["reliability"] = _reliability(t.reliability, "Probability and share that is right")
    return found


def _largest(story, sizes):
    """Return the places of the largest groups, without those that were merged into others."""
    live = [g for g, group in enumerate(story.groups) if group.gone is None]
    return [live[i] for i in svg.largest([sizes[g] for g in live])]


def _reliability(curve, title, **said):
    parts = curve["confidence"], curve["accuracy"], curve["rows"]
    return svg.reliability(*parts, title, **said)


def _counts(counts, rows, columns, title):
    """Return a heat map of counts, shaded by their share of the row."""
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return svg.heat(counts, rows, columns, title, text=lambda v: f"{v:.0f}", cell=34, shade=share)


def _numbered(story, places):
    return [f"{g} · {story.groups[g].name}" for g in places]


def embed(value):
    r"""Return JSON that stays inside a script element, whatever text it holds.

    Examples
    --------
    >>> str(embed("</script><!--"))
    '"\\u003c/script\\u003e\\u003c!--"'
    """
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


@cache
def environment():
    """Return what templates are filled in with; everything in them is escaped."""
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {"pct": percent, "num": number, "level": level, "brief_text": excerpt}
    env.filters |= {"trust_word": trust_in_words, "day": _day}
    env.globals |= {"bar": svg.bar, "columns": columns, "views_words": VIEWS, "links": {}}
    return env


def _day(days):
    """Return a date from the number of days since 1970."""
    return str(np.datetime64(days, "D"))


@cache
def asset(name):
    """Return the text of a file of the page."""
    return (HERE / name).read_text(encoding="utf-8")


def joined(names):
    """Return the texts of some files of the page, one after the other."""
    return "\n".join(map(asset, names))


def digest(text):
    """Return what lets a browser take this script or style and no other."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def percent(value):
    """Return a share in percent; small ones keep a digit."""
    if value is None or value != value:
        return NONE
    if 0 < value < 0.0005:
        return "<0.1%"
    return f"{value:.0%}" if value >= 0.0995 or value == 0 else f"{value:.1%}"


def number(value, digits=3):
    """Return a number with separators, or with so many digits."""
    if value is None or value != value:
        return NONE
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"


def level(weight, most, levels=5):
    """Return the level, 1 to 5, of a weight beside the largest."""
    share = abs(weight) / abs(most) if most else 0.0
    return max(1, min(levels, int(np.ceil(levels * share))))
