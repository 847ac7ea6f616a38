"""Bytes as a page can hold them: deflated, and written in base64."""

import base64
import zlib

import numpy as np

ROWS = 100_000  # numbers whose bits are taken apart at a time
PIECE = 1 << 18  # bytes that are deflated at a time: Ctrl-C is heard between two pieces


def pack(data):
    """Return bytes, deflated, as text.

    Examples
    --------
    >>> unpack(pack(b"to be or not to be"))
    b'to be or not to be'
    """
    deflate, whole = zlib.compressobj(9), memoryview(data)
    pieces = [deflate.compress(whole[at : at + PIECE]) for at in range(0, len(data), PIECE)]
    return base64.b64encode(b"".join([*pieces, deflate.flush()])).decode("ascii")


def unpack(text):
    """Return the bytes that `pack` was given."""
    return zlib.decompress(base64.b64decode(text))


def plain_pack(data):
    """Return bytes as text, without deflating what is dense already."""
    return base64.b64encode(data).decode("ascii")


def varints(values):
    """Return numbers in seven bits a byte, the lowest first; the eighth bit says there are more.

    Examples
    --------
    >>> varints(np.array([1, 300])).hex()
    '01ac02'
    """
    left = np.asarray(values, dtype=np.int64)
    n_bytes = np.maximum(1, -(-_bit_lengths(left) // 7))
    ends = n_bytes.cumsum()
    out = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
    starts = ends - n_bytes
    for place in range(int(n_bytes.max(initial=0))):
        there = n_bytes > place
        more = (n_bytes[there] > place + 1).astype(np.int64) << 7
        out[starts[there] + place] = ((left[there] >> (7 * place)) & 127) | more
    return out.tobytes()


def bits(values, widths):
    """Return numbers one after the other, each in so many bits, the highest bit first.

    Examples
    --------
    >>> bits(np.array([1, 2, 0]), np.array([3, 2, 0])).hex()
    '30'
    """
    most = int(widths.max(initial=0))
    places = np.arange(most - 1, -1, -1)
    found = [np.zeros(0, dtype=np.uint8)]
    for first in range(0, len(values), ROWS):
        rows = slice(first, first + ROWS)
        table = (values[rows, np.newaxis] >> places) & 1
        found.append(table[places < widths[rows, np.newaxis]].astype(np.uint8))
    return np.packbits(np.concatenate(found)).tobytes()


def rising(counts, values, n):
    """Return lists of rising numbers below n as bits, all lists at once.

    The middle number of a list is written in as many bits as its range needs, then those of both
    halves, level after level (binary interpolative coding, breadth first). Neighbours that follow
    each other cost nothing.

    Parameters
    ----------
    counts : int array of shape (n_lists,)
        The lengths of the lists.
    values : int array
        The lists, one after the other.
    n : int
        Above every number.

    Examples
    --------
    >>> len(rising(np.array([8]), np.arange(8), 8)), len(rising(np.array([1]), np.array([7]), 8))
    (0, 1)
    """
    place = np.concatenate([[0], counts.cumsum()[:-1]]).astype(np.int64)
    size = np.asarray(counts, dtype=np.int64)
    low, high = np.zeros_like(size), np.full_like(size, n - 1)
    written = []
    while len(size):
        half = size >> 1
        rest = size - 1 - half
        least, value = low + half, values[place + half]
        written.append((value - least, _bit_lengths(high - rest - least)))
        halves = (place, half, low, value - 1), (place + half + 1, rest, value + 1, high)
        # The left half of a list comes before its right one.
        place, size, low, high = (
            np.stack(pair, axis=1).ravel() for pair in zip(*halves, strict=True)
        )
        kept = size > 0
        place, size, low, high = place[kept], size[kept], low[kept], high[kept]
    if not written:
        return b""
    numbers, widths = (np.concatenate(part) for part in zip(*written, strict=True))
    return bits(numbers, widths)


def _bit_lengths(values):
    """Return in how many bits numbers can be written; 0 needs none."""
    return np.frexp(values.astype(np.float64))[1].astype(np.int64)
