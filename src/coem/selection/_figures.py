"""Figures of what was selected."""


def two_panels():
    """Return a figure and its two axes; matplotlib is loaded here and not before."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plot needs matplotlib: pip install coem[plot]") from error
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    return figure, figure.subplots(1, 2)
