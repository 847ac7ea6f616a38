"""What a doctor says."""


def advise(best, table, correlation):
    """Return the recommendation in words."""
    naive, plain = table[0], table[1]
    against = f"held-out accuracy {best.accuracy:.3f}, naive Bayes {naive.accuracy:.3f}"
    if best is naive:
        others = max(table[1:], key=lambda row: row.accuracy)
        advice = (
            "Use plain naive Bayes on the labelled rows (unlabeled_weight=0): the unlabelled rows "
            "do not help by more than chance (held-out accuracy "
            f"{naive.accuracy:.3f}, at most {others.accuracy:.3f} with them)."
        )
    elif best is plain:
        advice = f"Use the unlabelled rows as they are ({against})."
    elif "components_per_class" in best.settings:
        spec = best.settings["components_per_class"]
        advice = (
            f"Use the unlabelled rows with more components: components_per_class={spec!r} "
            f"({against}, one component per class {plain.accuracy:.3f})."
        )
    else:
        weight = best.settings["unlabeled_weight"]
        advice = (
            f"Use the unlabelled rows with less weight: unlabeled_weight={weight} ({against}, with "
            f"full weight {plain.accuracy:.3f})."
        )
    if best is not naive and abs(best.gain) <= 2 * best.gain_standard_error:
        advice += " There are too few labelled rows to be sure: the gain may be chance."
    for name, r in correlation.items():
        trend = "more" if r > 0.3 else "less" if r < -0.3 else "neither more nor less"
        advice += f" {name}: a more probable model is {trend} accurate (r = {r:.2f})."
    return advice
