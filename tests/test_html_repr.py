"""What notebooks show: small tables in which every cell is text."""

import re

import numpy as np
import scipy.sparse as sp

from coem import MixtureClusterer, SphericalKMeans, Views
from coem.records import Records


def cells(html, tag="td"):
    return re.findall(f"<{tag}>(.*?)</{tag}>", html)


def test_views_show_their_shapes_and_empty_rows():
    words = sp.csr_array(np.array([[1, 0, 2, 0], [0, 0, 0, 0]], dtype=np.float32))
    html = Views(words=words, price=np.ones((2, 1)))._repr_html_()
    assert cells(html) == [
        *("words", "4", "sparse float32", "25.00%", "1"),
        *("price", "1", "dense float64", "100.00%", "0"),
    ]
    assert "<caption>Views of 2 rows</caption>" in html


def test_names_of_views_are_text():
    html = Views({"<script>alert(1)</script>": np.eye(2)})._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_views_without_rows_or_columns_can_be_shown():
    assert cells(Views(a=np.empty((0, 2)), b=np.empty((0, 0)))._repr_html_())[3] == "0.00%"


def test_history_shows_every_round_with_a_column_for_each_view():
    X = np.random.default_rng(0).poisson(2.0, (30, 6))
    model = MixtureClusterer(2, max_iter=4, tol=0, random_state=0).fit(Views(a=X, b=X))
    html = model.history_._repr_html_()
    head = cells(html, "th")
    assert {"objective", "log_likelihood_a", "log_likelihood_b"} <= set(head)
    column = cells(html)[head.index("objective") :: len(head)]
    assert column == [f"{record.objective:.6g}" for record in model.history_]
    assert len(cells(model.runs_._repr_html_(), "tr")) == 2
    assert "view_objective_a" in SphericalKMeans(2).fit(Views(a=X)).history_._repr_html_()


def test_long_records_show_both_ends():
    html = Records([{"round": i} for i in range(100)])._repr_html_()
    shown = cells(html)
    assert shown[:2] == ["0", "1"]
    assert shown[10] == "…"
    assert shown[-1] == "99"
    assert len(shown) == 21
    assert "100 records" in html


def test_fields_of_records_are_text_and_short():
    html = Records([{"a": "<b>", "c": None}, {"a": "x" * 100, "d": 1}])._repr_html_()
    assert cells(html) == ["&lt;b&gt;", "", "", "x" * 59 + "…", "", "1"]
    assert Records()._repr_html_().count("<td>") == 0
