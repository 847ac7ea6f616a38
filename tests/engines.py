"""Engines for tests: each breaks a habit that only works within one process."""

import pickle
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from coem.engine import LocalEngine
from coem.engine.corpus import KEPT, StreamedSession
from coem.engine.sessions import PartedSession


def uneven(n_rows, n_parts):
    """Return where to cut rows into parts of which each is about twice as large as the last."""
    n_parts = min(n_parts, n_rows)
    shares = 2.0 ** np.minimum(np.arange(n_parts), 40)
    spare = n_rows - n_parts  # rows beyond one per part
    sizes = 1 + (shares / shares.sum() * spare).astype(int)
    return list(accumulate(sizes[:-1].tolist()))


class CutEngine(LocalEngine):
    """An engine that cuts all rows into uneven partitions, and never takes the fast path."""

    def __init__(self, n_parts=2, n_jobs=None):
        super().__init__(n_jobs)
        self.n_parts = n_parts

    def open_parts(self, latent, parts, theta):
        pieces = [p for part in parts for p in part.cut(uneven(part.n_rows, self.n_parts))]
        return self.session(latent, pieces, theta)

    def session(self, latent, pieces, theta):
        return PartedSession(latent, pieces, theta)


class PicklingEngine(CutEngine):
    """An engine as on another machine: every call and every result is pickled."""

    def session(self, latent, pieces, theta):
        return PartedSession(latent, pieces, theta, elsewhere)


def elsewhere(function, *args):
    """Call a function on copies, and return a copy of the result."""
    function, args = pickle.loads(pickle.dumps((function, args)))
    return pickle.loads(pickle.dumps(function(*args)))


class ForgetfulEngine(CutEngine):
    """An engine that loses states at random, in the middle of a round too."""

    def session(self, latent, pieces, theta):
        return ForgetfulSession(latent, pieces, theta)


class ForgetfulSession(PartedSession):
    def __init__(self, latent, pieces, theta):
        super().__init__(latent, pieces, theta)
        self.rng = np.random.default_rng(len(pieces))
        self.n_lost = 0

    def _sum(self, work, *args):
        self.forget()
        result = super()._sum(work, *args)
        self.forget()
        return result

    def forget(self):
        for i, state in enumerate(self._states):
            if state is not None and self.rng.random() < 0.4:
                self._states[i] = None
                self.n_lost += 1


@dataclass(frozen=True)
class Pickled:
    """A partition that is stored."""

    n_rows: int
    content: bytes

    def load(self):
        return pickle.loads(self.content)


class StoringEngine(CutEngine):
    """An engine that stores all partitions, and keeps `room` bytes of their states."""

    def __init__(self, n_parts=2, room=KEPT):
        super().__init__(n_parts)
        self.room = room

    def session(self, latent, pieces, theta):
        stored = [Pickled(piece.n_rows, pickle.dumps(piece)) for piece in pieces]
        return StreamedSession(latent, stored, theta, self.room)


ENGINES = {
    "threads": lambda: LocalEngine(2),
    "two parts": lambda: CutEngine(2),
    "pickles, seven parts": lambda: PicklingEngine(7),
    "forgets, one part": lambda: ForgetfulEngine(1),
    "forgets, seven parts": lambda: ForgetfulEngine(7),
    "stores, one part": lambda: StoringEngine(1),
    "stores, seven parts": lambda: StoringEngine(7),
    "stores, keeps some states": lambda: StoringEngine(7, room=2000),
    "stores, keeps no state": lambda: StoringEngine(3, room=0),
}
