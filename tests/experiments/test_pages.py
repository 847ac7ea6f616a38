"""Places of pages get verdict, figure and table."""

import json

import pytest

from coem.experiments.pages import fill_pages, filled, places

PAGE = "# A paper\n\n<!-- result figure-1 -->\n{}<!-- end -->\n\nWords of a person.\n"
TOLD = {
    "experiment": "paper/figure-1",
    "title": "Fig. 1",
    "verdict": "holds in part",
    "claims": [{"text": "1 < 2", "holds": True}, {"text": "3 < 2", "holds": False}],
    "trials": 40,
    "quick": False,
}
TABLE = "data,k,EM,EM error,p\nCora,2,1.60341,0.0391,1e-05\nWebKB,10,1.5,,\n"


@pytest.fixture
def page(tmp_path):
    folder = tmp_path / "results" / "paper" / "figure-1"
    folder.mkdir(parents=True)
    (folder / "verdict.json").write_text(json.dumps(TOLD))
    (folder / "table.csv").write_text(TABLE)
    page = tmp_path / "paper.md"
    page.write_text(PAGE.format("what was here before\n"))
    return page


def test_a_place_is_filled_once_and_stays(page):
    assert fill_pages(page.parent) == [page]
    text = page.read_text()
    assert "what was here before" not in text
    assert text.startswith("# A paper\n\n<!-- result figure-1 -->\n\nFig. 1. **Holds in part**")
    assert text.endswith("<!-- end -->\n\nWords of a person.\n")
    assert "- holds: 1 < 2\n- does not hold: 3 < 2\n" in text
    assert "(results/paper/figure-1/figure.svg)" in text
    assert "| data | k | EM | p |" in text
    assert "| Cora | 2 | 1.603 ± 0.039 | 0.000 |" in text
    assert "| WebKB | 10 | 1.500 |  |" in text
    assert fill_pages(page.parent) == []
    assert filled(text, page) == text


def test_a_name_with_a_slash_is_of_any_paper(page):
    text = page.read_text().replace("figure-1", "paper/figure-1")
    other = page.with_name("other.md")
    assert places(text, other) == ["paper/figure-1"]
    assert "results/paper/figure-1/figure.svg" in filled(text, other)


def test_a_long_table_is_folded(page):
    lines = ["k,EM", *(f"{k},0.5" for k in range(13))]
    (page.parent / "results" / "paper" / "figure-1" / "table.csv").write_text("\n".join(lines))
    assert "<summary>The 13 rows of the table</summary>" in filled(page.read_text(), page)


def test_results_that_are_missing_or_quick_are_errors(page):
    verdict = page.parent / "results" / "paper" / "figure-1" / "verdict.json"
    verdict.write_text(json.dumps(TOLD | {"quick": True}))
    with pytest.raises(ValueError, match="those of a quick run"):
        fill_pages(page.parent)
    verdict.unlink()
    with pytest.raises(ValueError, match=r"paper\.md has a place for paper/figure-1, which has no"):
        fill_pages(page.parent)
