"""How much several groupings of the same rows tell about each other."""

import numpy as np
from sklearn.metrics import mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information


class SharedInformation:
    """The information that any two of several groupings share, and the error of its mean.

    Parameters
    ----------
    labels : sequence of arrays of shape (n_rows,)
        The groupings, at least three.

    Attributes
    ----------
    mean : float
        Mean over all pairs, in bits.
    without : array of shape (n_groupings,)
        The mean without the pairs of one grouping, for each.
    """

    def __init__(self, labels):
        n = len(labels)
        pairs = np.zeros((n, n))
        for i in range(n):
            for j in range(i):
                pairs[i, j] = pairs[j, i] = beyond_chance(labels[i], labels[j])
        total = pairs.sum() / 2
        self.mean = float(total / (n * (n - 1) / 2))
        self.without = (total - pairs.sum(axis=1)) / ((n - 1) * (n - 2) / 2)

    @property
    def error(self):
        """The standard error of the mean."""
        return jackknife_error(self.without)

    def above(self, other, share):
        """Return how far the mean is above a share of another one's mean, and the error of that.

        The groupings of the two are paired: number i of both is of the same rows, so what these
        rows do to both means cancels in the error.
        """
        error = jackknife_error(self.without - share * other.without)
        return self.mean - share * other.mean, error


def beyond_chance(a, b):
    """Return the mutual information of two groupings in bits, less what chance gives."""
    both = contingency_matrix(a, b, sparse=True)
    chance = expected_mutual_information(both, int(both.sum()))
    return float((mutual_info_score(None, None, contingency=both) - chance) / np.log(2))


def jackknife_error(without):
    """Return the standard error of a mean over pairs, from its values without each member.

    Pairs are not independent, because each grouping is in several of them; leaving out one
    grouping at a time allows for that (Arvesen, 1969).
    """
    n = len(without)
    return float(np.sqrt((n - 1) / n * np.square(without - without.mean()).sum()))
