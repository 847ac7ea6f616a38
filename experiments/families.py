"""What family="auto" chooses between: Gaussians for measurements, and families for weighted words.

The first table has the adjusted Rand index of groups and classes on scikit-learn's small sets, the
second the NMI on posts of 20 Newsgroups whose words are counted or weighted in several ways.
"""

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from coem import MixtureClusterer
from coem.datasets import fetch_20newsgroups
from coem.families import Gaussian, VonMisesFisher

LOADERS = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
}
SEEDS = range(10)
N_POSTS = 3000
WORDS = {
    "multinomial": "multinomial",
    "directions, kappa 20": VonMisesFisher(),
    "directions, kappa fitted": VonMisesFisher("fit"),
}


def main():
    warnings.simplefilter("ignore")  # dead components, TF-IDF for a multinomial, no convergence
    measurements()
    words()


def measurements():
    """Print the groups of measurements by each family."""
    print("adjusted Rand index, mean of", len(SEEDS), "seeds; columns as they are, standardised")
    for name, load in LOADERS.items():
        X, y = load(return_X_y=True)
        for rows in (X, StandardScaler().fit_transform(X)):
            line = [f"{way} {score:.2f}" for way, score in _scores(rows, y).items()]
            print(f"{name:<14}", ", ".join(line), flush=True)


def _scores(X, y):
    k = len(np.unique(y))
    families = {way: Gaussian(way) for way in ("tied", "diag", "spherical")}
    if X.shape[1] < 50:  # for the digits it takes minutes
        families["full"] = Gaussian("full")
    if X.min() >= 0:
        families["multinomial"] = "multinomial"
    ways = {"auto": "auto"} | families
    models = {
        way: lambda seed, family=family: MixtureClusterer(k, family=family, random_state=seed)
        for way, family in ways.items()
    }
    models["KMeans"] = lambda s: KMeans(k, n_init=10, random_state=s)
    models["GaussianMixture diag"] = lambda s: GaussianMixture(
        k, covariance_type="diag", random_state=s
    )
    return {
        way: np.mean([adjusted_rand_score(y, make(s).fit_predict(X)) for s in SEEDS])
        for way, make in models.items()
    }


def words():
    """Print the groups of posts by each family, for counts and for weights."""
    data = fetch_20newsgroups(views=("subject",))
    rows = np.random.default_rng(0).permutation(len(data.text))[:N_POSTS]
    vectorizer = CountVectorizer(stop_words="english", min_df=3)
    counts = vectorizer.fit_transform([data.text[i] for i in rows])
    weighted = {
        "counts": counts,
        "log(1 + count)": np.log1p(counts.astype(np.float64)),
        "TF-IDF, length 1": TfidfTransformer().fit_transform(counts),
        "TF-IDF, total 1": TfidfTransformer(norm="l1").fit_transform(counts),
        "TF-IDF as it is": TfidfTransformer(norm=None).fit_transform(counts),
    }
    print(f"\nNMI on {N_POSTS:,} posts, mean of 5 seeds (and rows of the largest group)")
    for name, X in weighted.items():
        line = []
        for way, family in WORDS.items():
            models = (MixtureClusterer(20, family=family, random_state=s) for s in range(5))
            labels = [model.fit(X).labels_ for model in models]
            nmi = np.mean([normalized_mutual_info_score(data.target[rows], one) for one in labels])
            largest = np.mean([np.bincount(one).max() for one in labels])
            line.append(f"{way} {nmi:.3f} ({largest:,.0f})")
        print(f"{name:<17}", ", ".join(line), flush=True)


if __name__ == "__main__":
    main()
