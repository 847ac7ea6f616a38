"""Groups by the program's defaults against KMeans on TF-IDF rows, on the CLUTO document sets."""

import warnings

from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import normalized_mutual_info_score

from coem import MixtureClusterer
from coem.cli._job import TOL
from coem.datasets import fetch_cluto
from coem.metrics import cluster_entropy
from coem.selection import stability

SETS = ("re0", "fbis", "la1", "hitech", "tr11", "wap")


def main():
    print("set      k   KMeans: bits    NMI   coem cluster: bits    NMI")
    for name in SETS:
        data = fetch_cluto(name)
        k = len(data.target_names)
        rows = TfidfTransformer().fit_transform(data.views["words"])
        theirs = KMeans(k, n_init=10, random_state=0).fit_predict(rows)
        model = MixtureClusterer(k, max_iter=200, tol=TOL)
        ours = stability(model, data.views, keep="central", random_state=0, n_jobs=2).labels
        figures = [
            score(data.target, labels)
            for labels in (theirs, ours)
            for score in (cluster_entropy, normalized_mutual_info_score)
        ]
        print("{:<7} {:>2}   {:>12.2f}  {:.3f}   {:>18.2f}  {:.3f}".format(name, k, *figures))


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()
