"""Types for those who use the package; `make lint` lets mypy check a script of theirs."""

from pathlib import Path

import coem


def test_the_package_says_that_it_has_types():
    assert (Path(coem.__file__).parent / "py.typed").is_file()
