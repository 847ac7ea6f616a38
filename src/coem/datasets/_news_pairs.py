"""Pairs of Usenet posts: two views that have nothing in common but their class."""

from collections import defaultdict
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state

from coem.datasets._newsgroups import Post, read_posts
from coem.datasets._text import count_words
from coem.views import Views

PAIRS = (
    ("comp.graphics", "rec.autos"),
    ("rec.motorcycles", "sci.med"),
    ("sci.space", "misc.forsale"),
    ("rec.sport.hockey", "soc.religion.christian"),
    ("comp.sys.ibm.pc.hardware", "comp.os.ms-windows.misc"),
)
"""The two groups of every class (Bickel & Scheffer 2004, Sec. 3)."""

_DESCR = """Pairs of 20 Newsgroups posts

{n} rows in 5 classes of {each}. A class is a pair of groups: every row has a post of the one in
the view "first" and a post of the other in the view "second",

{classes}

The posts of a group are drawn at random without replacement, and so is which goes with which:
given the class, the views are independent. Both views count the words of the bodies over one
vocabulary, that of all the posts drawn, with scikit-learn's CountVectorizer,
stop_words={stop_words!r} and min_df={min_df!r}. A post without a word has a row of zeros.

The design is that of S. Bickel, T. Scheffer, "Multi-View Clustering", ICDM 2004, after K. Nigam,
R. Ghani, "Analyzing the effectiveness and applicability of co-training", CIKM 2000. The posts were
collected by Ken Lang ("NewsWeeder: learning to filter netnews", ICML 1995) and published for
research at http://qwone.com/~jason/20Newsgroups/ without an explicit licence.
"""


def fetch_news_pairs(
    *,
    n_per_class: int = 200,
    stop_words: Any = "english",
    min_df: float = 2,
    random_state: Any = 0,
) -> Bunch:
    """Build two independent views in five classes from pairs of 20 Newsgroups posts.

    The archive of the original 19,997 posts is looked for in the directory ``COEM_DATA``, then in
    the user's cache, and is then downloaded (``pip install coem[datasets]``).

    Parameters
    ----------
    n_per_class : int, default=200
        Number of rows of a class, and so of the posts drawn from each of its two groups.
    stop_words : {"english"}, list or None, default="english"
        Words to leave out, as scikit-learn's `CountVectorizer` takes them.
    min_df : int or float, default=2
        Leave out words in fewer of the posts drawn (a fraction if a float), both views together.
    random_state : int, RandomState or None, default=0
        Which posts are drawn, and which go together; None draws others at every call.

    Returns
    -------
    data : sklearn.utils.Bunch
        ``views``, a `Views` of CSR counts in float32 named ``first`` and ``second``; ``target``,
        the class of each row as an int array; ``target_names``, the classes as "group + group";
        ``ids``, the posts of each row as "group/number + group/number"; ``feature_names``, a dict
        of view to array of words, the same for both; ``DESCR``, a description.

    Notes
    -----
    The artificial data of Bickel & Scheffer (2004), Section 3. Their vectors are built before they
    are paired, so that both views have the same words for columns; here too, and what one view
    never says is a column of zeros there. The columns of the two views stay apart in
    ``views.concat()``; ``views.merge({"both": ["first", "second"]})`` adds them up. Counts are
    raw: weighting them is left to the caller.

    Examples
    --------
    >>> from coem.datasets import fetch_news_pairs
    >>> data = fetch_news_pairs(random_state=1)  # doctest: +SKIP
    >>> len(data.views), data.views.names  # doctest: +SKIP
    (1000, ('first', 'second'))
    """
    posts = _draw(read_posts("19997"), n_per_class, check_random_state(random_state))
    bodies = [post.body for pair in posts for post in pair]
    counts, words = count_words({"posts": bodies}, stop_words, min_df)
    names = np.array([" + ".join(pair) for pair in PAIRS])
    return Bunch(
        views=Views(first=counts["posts"][::2], second=counts["posts"][1::2]),
        target=np.repeat(np.arange(len(PAIRS)), n_per_class),
        target_names=names,
        ids=np.array([" + ".join(f"{p.group}/{p.number}" for p in pair) for pair in posts]),
        feature_names={"first": words["posts"], "second": words["posts"]},
        DESCR=_DESCR.format(
            n=len(posts),
            each=n_per_class,
            classes="\n".join(f"{a:<26}{b}" for a, b in PAIRS),
            stop_words=stop_words,
            min_df=min_df,
        ),
    )


def _draw(
    posts: Sequence[Post], n_per_class: int, rng: np.random.RandomState
) -> list[tuple[Post, Post]]:
    """Return `n_per_class` pairs of posts of every class, one class after the other."""
    by_group = defaultdict(list)
    for post in posts:
        by_group[post.group].append(post)
    fewest = min(len(by_group[group]) for pair in PAIRS for group in pair)
    if not isinstance(n_per_class, Integral) or not 1 <= n_per_class <= fewest:
        raise ValueError(
            f"n_per_class must be an integer between 1 and {fewest}, the posts of the smallest "
            f"group; got {n_per_class!r}"
        )
    pairs = []
    for groups in PAIRS:
        # A draw without replacement comes in random order, so that partners are random too.
        chosen = [rng.choice(len(by_group[g]), n_per_class, replace=False) for g in groups]
        drawn = ([by_group[g][i] for i in rows] for g, rows in zip(groups, chosen, strict=True))
        pairs.extend(zip(*drawn, strict=True))
    return pairs
