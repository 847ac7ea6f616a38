"""Defaults of the program that differ from those of the library, because measurements say so.

docs/measurements.md, "Groups of the program", has the figures; benchmarks/groups.py repeats them.
For segments it is docs/segmenting.md and benchmarks/segmentation.py.
"""

TOL = 1e-4  # a fit ends when the objective changes by less, relative; groups hardly change then
LENGTH = 150.0  # words that a text counts at most

SEGMENT_LENGTH = 10.0  # paragraphs that a segment is expected to have
EVIDENCE = 3.0  # words that a paragraph counts at most
PARAGRAPH = 40  # words of a run of sentences that stands for a paragraph
