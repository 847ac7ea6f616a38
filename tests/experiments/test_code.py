"""The code of an experiment is what its `measure` uses."""

import pytest

from coem.experiments.code import digest

HELPER = '''"""Shared."""
import numpy as np

SCALE = 2


def doubled(x):
    """Return twice as much."""
    return SCALE * np.sum(x)


def unused(x):
    return x
'''
MODULE = '''"""Title."""
from functools import cache

from coem.experiments.paper._shared import doubled, unused
from coem.metrics import dissent

K, L = 3, 4


def trials(quick):
    """Return trials."""
    return [{"k": L}]


def measure(k):
    """Return k."""
    # Why.
    return {"k": _own(k) + doubled(K)}


@cache
def _own(k):
    return k


def judge(results):
    return _claim(results)


def _claim(results):
    return unused(dissent)
'''


@pytest.fixture
def of(tmp_path):
    """Return the digest of a module and of the one beside it, with parts replaced."""

    def of(old="", new="", helper=("", "")):
        (tmp_path / "figure_1.py").write_text(MODULE.replace(old, new) if old else MODULE)
        (tmp_path / "_shared.py").write_text(HELPER.replace(*helper) if helper[0] else HELPER)
        return digest(tmp_path / "figure_1.py")

    return of


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Title.", "Another title."),
        ("    # Why.\n", ""),
        ("Return k.", "Return something."),
        ("K, L = 3, 4", "# A comment.\n\nK, L = 3, 4"),
        ('[{"k": L}]', '[{"k": 7}]'),
        ("return _claim(results)", "return None"),
        ("unused(dissent)", "None"),
        ("import dissent", "import pk as dissent"),
        ("import doubled, unused", "import doubled"),
    ],
)
def test_what_does_not_measure_makes_no_difference(of, old, new):
    assert old in MODULE
    assert of(old, new) == of()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("_own(k) + doubled(K)", "_own(k) - doubled(K)"),
        ("K, L = 3, 4", "K, L = 2, 4"),
        ("    return k\n", "    return -k\n"),
        ("@cache\n", ""),
        ("from functools import cache", "from functools import lru_cache as cache"),
        ("import doubled, unused", "import unused as doubled"),
    ],
)
def test_what_measures_does(of, old, new):
    assert old in MODULE
    assert of(old, new) != of()


@pytest.mark.parametrize(
    ("helper", "same"),
    [
        (("SCALE = 2", "SCALE = 3"), False),
        (("np.sum", "np.max"), False),
        (("import numpy as np", "import scipy as np"), False),
        (("Return twice as much.", "Double."), True),
        (("return x\n", "return -x\n"), True),
    ],
)
def test_private_modules_beside_it_are_followed(of, helper, same):
    assert (of(helper=helper) == of()) is same
