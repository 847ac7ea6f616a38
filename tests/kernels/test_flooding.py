"""Nobody can choose words that make the table of words slow, and no seed changes what is counted.

Probes are counted, and no time is measured.
"""

import numpy as np
import pytest

from coem.kernels import _compiled
from tests.kernels.test_words import pack

MASK = 2**64 - 1
SLOTS = 4096  # of a table of N words
N = 1500


def secrets(seed):
    """Return the secrets of a seed: four numbers of SplitMix64."""
    found = []
    for _ in range(4):
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = ((seed ^ seed >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        found.append((z ^ z >> 31) | 1)
    return found


def mix(a, b):
    return (a * b & MASK) ^ (a * b >> 64)


def slot(word, secret):
    """Return where a word of eight letters wants to be, if one knows the secrets."""
    value = int.from_bytes(word, "little")
    return mix(8 ^ mix(value ^ secret[0], value ^ secret[1]), secret[2]) % SLOTS


def words(rng, n):
    letters = rng.integers(ord("a"), ord("z") + 1, (n, 8)).astype(np.uint8)
    return [row.tobytes() for row in np.unique(letters, axis=0)]


@pytest.fixture(scope="module")
def crafted():
    """Return words that want one of 64 slots, of a table whose seed is 0."""
    secret, found = secrets(0), words(np.random.default_rng(0), 64 * N + 20_000)
    found = [word for word in found if slot(word, secret) < 64 * 1.2]
    assert len(found) >= N
    return [word.decode() for word in found[:N]]


def counter_of(texts, seed):
    counter = _compiled.WordCounter(1, 1, seed)
    rule = np.arange(128, dtype=np.int32)
    rule[ord(" ")] = -1
    counter.text(*pack(texts), None, rule, 0, len(texts))
    return counter


def test_words_that_are_crafted_for_a_seed_are_slow_with_that_seed_alone(crafted):
    text = [" ".join(crafted)]
    assert counter_of(text, 0).n_probes > 200 * N  # so that the test sees a flood if there is one
    for seed in (None, 1, 2, 2**64 - 1):
        assert counter_of(text, seed).n_probes < 3 * N


def test_other_words_need_few_probes_with_any_seed():
    rng = np.random.default_rng(1)
    lists = {
        "random": [word.decode() for word in words(rng, N)],
        "numbers": [str(10**6 + i) for i in range(N)],
        "long": [f"the-same-beginning-{i:06}-and-the-same-end" for i in range(N)],
        "short": [a + b + c for a in "abcdefghijkl" for b in "mnopqrstuvwx" for c in "0123456789"],
        "two parts": [f"{i:08x}{N - i:08x}" for i in range(N)],
        "first byte": [chr(97 + i % 26) + "0" * (i // 26 + 1) for i in range(N // 4)],
    }
    for name, found in lists.items():
        for seed in (None, *range(5)):
            probes = counter_of([" ".join(found)], seed).n_probes
            assert len(found) <= probes < 3 * len(found), (name, seed)


def test_no_seed_changes_what_is_counted(crafted):
    texts = [" ".join(crafted[i::7]) + " again again" for i in range(7)] + ["", "again"]
    results = []
    for seed in (0, 1, 2**63, None):
        counters = [counter_of(texts[:4], seed), counter_of(texts[4:], seed)]
        for counter in counters:
            counter.sort()
        merged = _compiled.merge_words(counters)
        columns = np.arange(len(merged[2]), dtype=np.int32)
        for counter in counters:
            sizes = np.empty(counter.n_rows, np.int64)
            counter.count_kept(columns, sizes)
            indptr = np.append(0, np.cumsum(sizes)).astype(np.int32)
            indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
            counter.fill(columns, indptr, indices, data)
            merged += (indptr, indices, data)
        results.append(merged)
    for other in results[1:]:
        for mine, theirs in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)
