"""What the script of the page knows of the documents."""

from coem.report.library import Packed
from coem.report.wording import VIEWS


def facts_of(story, documents):
    """Return what the script knows of documents, column by column."""
    d, labels = documents, labels_of(documents)
    place = {label: i for i, label in enumerate(labels)}
    columns = {
        "id": [x.id for x in d],
        "title": [x.title for x in d] if any(x.title for x in d) else None,
        "group": [x.group for x in d],
        "p": [_thousandths(x.probability) for x in d],
        "second": [x.second for x in d],
        "p2": [_thousandths(x.second_probability) for x in d],
        "apart": [None if x.disagreement is None else round(x.disagreement, 2) for x in d],
        "said": [x.said for x in d],
        "label": [place.get(x.label) for x in d],
        "day": [x.day for x in d],
    }
    for name in ("p", "second", "p2", "apart", "said", "label", "day"):
        if all(value is None for value in columns[name]):
            columns[name] = None
    rows = None if len(d) == story.n_rows else [x.row for x in d]
    names = [group.name for group in story.groups]
    return {
        **columns,
        "row": rows,
        "rows": story.n_rows,
        "names": names,
        "labels": labels,
        "words": list(VIEWS),
    }


def labels_of(documents):
    """Return the labels of documents, each once, in order."""
    return sorted({d.label for d in documents if d.label is not None})


def packs_of(story, documents, room):
    """Return the texts, words and marks of documents, as many as there is room for."""
    if story.library is None:
        return Packed({}, {"index": None, "blocks": [], "cut": 0, "texts": False, "telling": []})
    shown = [d.row for g in story.groups for d in (*g.typical, *g.doubtful)]
    shown += [d.row for d in story.agreement.documents] if story.agreement else []
    return story.library.packed(documents, set(shown), room)


def _thousandths(probability):
    """Return a probability in thousandths that the script shows as the page does, in per cent.

    What is rounded twice may go up twice: .9949 would become 99.5%, and so 100%.
    """
    if probability is None:
        return None
    if probability < 0.0995:  # it is shown in tenths of a per cent
        return 0 if probability < 0.0005 else round(10 * float(f"{probability:.1%}"[:-1]))
    found = round(1000 * probability)
    down = found % 10 == 5 and f"{probability:.0%}" == f"{found // 10}%"
    return found - 1 if down else found
