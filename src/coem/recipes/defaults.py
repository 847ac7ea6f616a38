"""The defaults of recipes and program, in one place; this module imports nothing.

Where they differ from those of the estimators, measurements say so: docs/measurements.md, "Groups
of the program", has the figures, and experiments/groups.py repeats them. For segments it is
docs/segmenting.md and experiments/segmentation.py.
"""

# -- views -----------------------------------------------------------------------------------------

STOP_WORDS = "auto"  # the lists of the languages of the texts
MIN_DF = 2  # rows that a word must be in
MAX_DF = 1.0  # the largest share of the rows
NGRAMS = 1  # the longest run of words that counts as one
LENGTH = 150.0  # words that a text counts at most
CLASS_LENGTH = 20.0  # the same in classify
SMOOTHING = 600.0  # pseudo-counts of classify: one of each word in this number of words
CORRELATED = 256  # columns of numbers whose correlations are looked at; their cost is cubic

# -- fits ------------------------------------------------------------------------------------------

METHODS = ("em", "k-means")  # of cluster
STARTS = 8  # of a run of k-means, of which the best is kept; the start of EM has as many
TOL = 1e-4  # a fit ends when the objective changes by less, relative; groups hardly change then
MAX_ITER = 200  # rounds
RESTARTS = 10  # runs of which the central one is kept
UNLABELED_WEIGHT = "auto"  # of a row without a label: found by held-out labels
FOLDS = 5  # of the labelled rows, to estimate the accuracy

TOPICS = 50
COUPLING = "c"  # of the two runs of topics
TOPIC_ROUNDS = 50  # before the coupling, and after it

# -- segments --------------------------------------------------------------------------------------

SEGMENT_LENGTH = 10.0  # paragraphs that a segment is expected to have
EVIDENCE = 3.0  # words that a paragraph counts at most
PARAGRAPH = 40  # words of a run of sentences that stands for a paragraph
SEGMENT_RESTARTS = 5

# -- folders ---------------------------------------------------------------------------------------

FORMATS = ("csv", "jsonl", "parquet")  # of the assignments
