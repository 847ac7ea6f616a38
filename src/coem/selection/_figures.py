"""Figures of what was selected."""


def one_panel():
    """Return a figure and its axes."""
    figure = _figure(6)
    return figure, figure.subplots()


def two_panels():
    """Return a figure and its two axes."""
    figure = _figure(11)
    return figure, figure.subplots(1, 2)


def _figure(width):
    """Return a figure; matplotlib is loaded here and not before."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plot needs matplotlib: pip install coem[plot]") from error
    return Figure(figsize=(width, 4.5), layout="constrained")
