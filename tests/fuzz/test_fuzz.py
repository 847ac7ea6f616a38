"""The harness finds what is planted, and nothing in what it attacks."""

import pytest

from tests.fuzz.driver import hunt
from tests.fuzz.mutations import damage_bytes, damage_json, generator
from tests.fuzz.planted import PLANTED
from tests.fuzz.targets import TARGETS

N_CASES = 30  # of each target; `make fuzz` tries as many as there is time for
SIGNS = {
    "crash": "Segmentation fault",
    "hang": "Timeout",
    "hunger": "MemoryError",
    "surprise": "nobody expects this",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_faults_are_found_with_their_seeds(name):
    outcome = hunt(name, 100, n_cases=5, per_case=1, most=1)
    assert outcome.n_cases == 4
    (finding,) = outcome.findings
    assert finding.seed == 103
    assert SIGNS[name] in finding.said
    assert f"--target {name} --seed 103" in str(finding)


@pytest.mark.slow
def test_the_hunt_goes_on_behind_a_finding():
    outcome = hunt("surprise", 0, n_cases=8)
    assert outcome.n_cases == 8
    assert [finding.seed for finding in outcome.findings] == [3, 7]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TARGETS)
def test_hostile_input_is_refused_or_read(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target = TARGETS[name](tmp_path)
    for seed in range(N_CASES):
        target.run(generator(name, seed))


def test_damage_depends_on_the_seed_alone():
    data, document = bytes(range(200)), {"a": [1, {"b": "text"}], "c": None}
    for seed in range(50):
        one, two = (generator("x", seed) for _ in range(2))
        assert damage_bytes(one, data) == damage_bytes(two, data)
        assert repr(damage_json(one, document)) == repr(damage_json(two, document))
    assert document == {"a": [1, {"b": "text"}], "c": None}


def test_all_accidents_change_something():
    data = b"0123456789"
    n_changed = sum(damage_bytes(generator("y", seed), data) != data for seed in range(200))
    assert n_changed > 190
