"""What a column is called if it is a document: by its title, and not by its id."""

SHARE = 0.5  # of the columns of a view that must be documents
LENGTH = 60


def links_of(columns, documents):
    """Return view -> id -> what to call it, for the views whose columns are documents.

    Parameters
    ----------
    columns : dict of view to sequence of str
        Names of the columns.
    documents : Texts
        Ids, titles and texts of the rows.
    """
    rows = {name: row for row, name in enumerate(documents.ids.tolist())}
    found = {}
    for view, names in columns.items():
        known = [str(name) for name in names if str(name) in rows]
        if not known or len(known) < SHARE * len(names):
            continue
        called = {
            name: documents.title(row) or documents.excerpt(row, LENGTH)
            for name in known
            for row in [rows[name]]
        }
        found[view] = {name: text for name, text in called.items() if text}
    return found
