"""Damage: bytes and JSON documents that somebody cut, repeated, overwrote or filled with traps."""

import copy

import numpy as np

NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, (1 << 63) - 1)
TRAPS = (
    None,
    True,
    -1,
    0,
    1 << 31,
    1 << 63,
    10**15,
    10**400,
    -0.0,
    1e308,
    float("nan"),
    float("-inf"),
    "",
    "x" * 100_000,
    "../../outside",
    "x/../../../outside/data.csv",
    "a\0b",
    "\x1b[2J",
    "\ud800",
    "(a+)+$",
    [],
    {},
    [[]] * 1_000,
    {"": {"": {}}},
)


def damage_bytes(rng, data, tokens=()):
    """Return `data` after one to six accidents; some of them insert one of the `tokens`."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 7)):
        accident = ACCIDENTS[rng.integers(len(ACCIDENTS))]
        accident(rng, data, tokens)
    return bytes(data)


def _flip(rng, data, tokens):
    if data:
        data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))


def _overwrite(rng, data, tokens):
    size = int(rng.choice([1, 2, 4, 8]))
    at = int(rng.integers(len(data) + 1))
    number = NUMBERS[rng.integers(len(NUMBERS))] & ((1 << 8 * size) - 1)
    data[at : at + size] = number.to_bytes(size, "little")


def _cut(rng, data, tokens):
    del data[_piece(rng, data)]


def _end(rng, data, tokens):
    del data[int(rng.integers(len(data) + 1)) :]


def _repeat(rng, data, tokens):
    piece = bytes(data[_piece(rng, data)])
    times = int(2 ** rng.integers(0, 9))
    at = int(rng.integers(len(data) + 1))
    data[at:at] = (piece * times)[: 1 << 16]


def _move(rng, data, tokens):
    place = _piece(rng, data)
    piece = bytes(data[place])
    del data[place]
    at = int(rng.integers(len(data) + 1))
    data[at:at] = piece


def _insert(rng, data, tokens):
    at = int(rng.integers(len(data) + 1))
    data[at:at] = tokens[rng.integers(len(tokens))] if tokens else rng.bytes(4)


ACCIDENTS = (_flip, _flip, _overwrite, _overwrite, _cut, _end, _repeat, _move, _insert, _insert)


def _piece(rng, data):
    start = int(rng.integers(len(data) + 1))
    return slice(start, start + int(rng.exponential(20)) + 1)


def damage_json(rng, document, traps=TRAPS):
    """Return a copy of a JSON document in which one to four values are something else."""
    document = {"document": copy.deepcopy(document)}
    for _ in range(rng.integers(1, 5)):
        places = list(_places(document))
        holder, key = places[rng.integers(len(places))]
        way = rng.integers(8)
        if way == 0 and holder is not document:
            del holder[key]
        elif way == 1:
            other, its_key = places[rng.integers(len(places))]
            holder[key] = copy.deepcopy(other[its_key])
        elif way == 2:
            holder[key] = [holder[key]] * int(rng.integers(1, 4))
        elif way == 3 and isinstance(holder[key], int | float):
            holder[key] = holder[key] * int(rng.choice([-1, 2, 1000])) + int(rng.integers(-1, 2))
        elif way == 4 and isinstance(holder[key], str):
            damaged = damage_bytes(rng, holder[key].encode(errors="surrogatepass"))
            holder[key] = damaged.decode(errors="replace")
        else:
            holder[key] = copy.deepcopy(traps[rng.integers(len(traps))])
    return document["document"]


def _places(value):
    """Yield where the values of a document are: what holds them, and the key."""
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def generator(name, seed):
    """Return the random numbers of one case."""
    return np.random.default_rng([*name.encode(), seed])
