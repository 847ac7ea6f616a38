"""Words for figures, which the page shows before the figures."""

STRONGLY = 3.0  # nats of disagreement: odds of twenty to one
VIEWS = ("agree", "differ", "differ strongly")
TRUST = ((0.8, "high"), (0.5, "fair"), (0.2, "low"), (0.0, "hardly any"))
TRUSTED = (
    "Trust says how far the other runs keep the same documents together: 1 is always the same "
    "documents, 0 is as by chance; that of a group is the mean of its documents."
)


def trust_in_words(trust):
    """Return a word for a trust from 0 to 1.

    Examples
    --------
    >>> trust_in_words(0.85), trust_in_words(0.1)
    ('high', 'hardly any')
    """
    return next(word for least, word in TRUST if trust >= least)


def views_in_words(differ, disagreement, dissent):
    """Return which of `VIEWS` the views of a document do.

    Parameters
    ----------
    differ : bool
        Whether two of them choose different groups.
    disagreement : float
        How much they disagree.
    dissent : {"nats", "share"}
        What that is measured in.

    Examples
    --------
    >>> VIEWS[views_in_words(True, 7.5, "nats")]
    'differ strongly'
    """
    if not differ:
        return 0
    return 2 if disagreement >= (STRONGLY if dissent == "nats" else 0.5) else 1
