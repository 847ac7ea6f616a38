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


def draw_variants(axes, table, settings):
    """Draw the accuracy of the variants that a doctor tried."""
    names = [row.variant for row in table]
    colours = ["C1" if row.settings == settings else "C0" for row in table]
    errors = [row.standard_error for row in table]
    axes.barh(names, [row.accuracy for row in table], xerr=errors, color=colours)
    axes.invert_yaxis()
    axes.set_xlabel("accuracy on held-out labelled rows")
    axes.set_title("recommended in orange", loc="left", fontsize="small")


def draw_runs(axes, restarts, correlation):
    """Draw the accuracy of the runs without labels against their objectives."""
    for name in dict.fromkeys(row.variant for row in restarts):
        runs = [row for row in restarts if row.variant == name]
        label = f"{name} (r = {correlation[name]:.2f})" if name in correlation else name
        axes.plot([run.objective for run in runs], [run.accuracy for run in runs], "o", label=label)
    axes.set_xlabel("objective of EM without labels")
    axes.set_ylabel("accuracy on held-out labelled rows")
    axes.locator_params(axis="x", nbins=4)
    if restarts:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.01), frameon=False, fontsize="small")
