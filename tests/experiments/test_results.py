"""Means, errors, pairs and verdicts."""

import numpy as np
import pytest

from coem.experiments import Claim, Estimate, Results, Verdict, chance

VALUES = {("EM", 0): 2.0, ("EM", 1): 2.5, ("co-EM", 1): 1.75, ("co-EM", 0): 1.5}
ROWS = [{"method": m, "seed": s, "entropy": e} for (m, s), e in VALUES.items()]


@pytest.fixture
def results():
    return Results(ROWS)


def test_mean_and_standard_error(results):
    values = np.array(list(VALUES.values()))
    found = results.mean("entropy")
    assert found.mean == pytest.approx(values.mean())
    assert found.error == pytest.approx(values.std(ddof=1) / 2)
    assert found.n == 4


def test_one_value_has_no_error():
    assert f"{Results(ROWS[:1]).mean('entropy'):.1f}" == "2.0"
    assert f"{Estimate(2.0, 0.25, 4)}" == "2.000 ± 0.250"


def test_rows_without_a_value_are_left_out():
    found = Results([*ROWS, {"entropy": None}, {}]).mean("entropy")
    assert found.n == 4
    with pytest.raises(ValueError, match="no row has a value of 'nmi'"):
        Results(ROWS).mean("nmi")


def test_where(results):
    assert results.where(method="EM", seed=[0, 1]).values("entropy").tolist() == [2.0, 2.5]
    assert len(results.where(seed=(5,))) == 0
    assert results.unique("seed") == [0, 1]
    assert [row["seed"] for row in results] == [0, 1, 1, 0]


def test_pairs_are_matched_by_their_seed(results):
    first, second = results.paired("entropy", method=("EM", "co-EM"), on=["seed"])
    assert first.tolist() == [2.0, 2.5]
    assert second.tolist() == [1.5, 1.75]


@pytest.mark.parametrize("rows", [ROWS[:3], [*ROWS, ROWS[0]]])
def test_what_does_not_pair_is_an_error(rows):
    with pytest.raises(ValueError, match="'EM' and 'co-EM' do not pair by seed"):
        Results(rows).paired("entropy", method=("EM", "co-EM"), on=["seed"])


def test_summary_and_pivot(results):
    table = results.summary("entropy", by=["method"])
    assert table.columns == ["method", "entropy", "entropy error", "n"]
    assert table.rows == [["EM", 2.25, 0.25, 2], ["co-EM", 1.625, 0.125, 2]]
    wide = Results(ROWS[:3]).pivot("entropy", by=["seed"], across="method")
    assert wide.columns == ["seed", "EM", "EM error", "co-EM", "co-EM error", "n"]
    assert wide.rows[0][:2] == [0, 2.0]
    assert wide.rows[0][3:5] == [None, None]
    assert wide.rows[1][3] == 1.75
    by_seed = Results(ROWS).pivot("entropy", by=["method"], across="seed")
    assert by_seed.columns[:4] == ["method", "seed = 0", "seed = 0 error", "seed = 1"]


@pytest.mark.parametrize(
    ("held", "verdict"),
    [([True, True], "holds"), ([True, False], "holds in part"), ([False], "does not hold")],
)
def test_a_verdict_follows_from_its_claims(held, verdict):
    found = Verdict.of(Claim(f"claim {i}", np.bool_(h)) for i, h in enumerate(held))
    assert found.verdict == verdict
    assert found.reason.splitlines()[-1].startswith("holds" if held[-1] else "does not hold")
    assert all(type(claim.holds) is bool for claim in found.claims)


def test_a_verdict_needs_a_claim():
    with pytest.raises(ValueError, match="at least one claim"):
        Verdict.of([])


def test_chance_in_words():
    assert chance(0.0231) == "p = 0.023"
    assert chance(0.001) == "p = 0.001"
    assert chance(0.00099) == "p < .001"
