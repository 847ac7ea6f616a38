"""How a hidden Markov model is fitted: its start, its runs, and the attributes that a fit sets."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_choice
from coem.coupling import Joint
from coem.engine.sessions import WholeSession
from coem.estimators._base import BaseMixture
from coem.estimators._chain_model import ChainModel
from coem.estimators._restarts import Draw, RestartTask, Starts, warn_dead_components
from coem.estimators._starts import as_responsibilities
from coem.families.named import shape_of
from coem.initialise import INITS, Init, Start, starter, stored_starter
from coem.initialise.chains import draw_parts, in_numbers, in_order, pin, to_labels
from coem.io.checkpoint import Checkpoint
from coem.io.packing import ChainPacking, flat_theta
from coem.kernels import chain as kernel
from coem.kernels import threads
from coem.latent.chain import Chain, ChainState, ChainSummary, ChainTheta, numbered
from coem.latent.markov import MarkovTheta
from coem.latent.mixture import Mixture
from coem.latent.sequences import SequenceBlock, Sequences
from coem.latent.stored_sequences import SequenceRows
from coem.protocols import Clock, Engine
from coem.row_store import RowStore
from coem.runs import Phase, drive
from coem.schedules import Constant, as_schedule, max_rounds
from coem.sequences import (
    choices_of_codes,
    naming_impossible,
    naming_sequences,
    read_codes,
    read_weights,
)
from coem.typing import Array, Rng

ChainTask = RestartTask[ChainTheta, ChainState, ChainSummary, Sequences]


ChainRows = Sequences | SequenceRows
"""All sequences of a fit, in memory or in a corpus."""

CHAIN_INITS = ("auto", "segments", *INITS)


class ChainFit(ChainModel):
    """The fit of `HiddenMarkovModel`."""

    def _read(self, X: Any, y: Any, lengths: Any, sequence_weight: Any) -> ChainRows:
        """Check the parameters and the sequences, and return the rows encoded."""
        self._check_params()
        views, offsets = self._views(X, lengths, reset=True)
        if self.n_components > len(views):
            raise ValueError(
                f"n_samples={len(views)} rows cannot fill n_components={self.n_components} states"
            )
        weight = read_weights(sequence_weight, len(offsets) - 1)
        weight = None if weight is None else np.repeat(weight, np.diff(offsets))
        codes = read_codes(y, offsets, self.n_components)
        choices, markov = choices_of_codes(self.n_components), MarkovTheta.of(*self._first_markov())
        with naming_sequences(offsets):
            if isinstance(views, RowStore):
                rows = self._survey(views, weight)
                encoding = replace(rows.encoding, choices=choices)
                known = rows.corpus, encoding, weight, codes, rows.empty
                stored = SequenceRows(*known, offsets=offsets)
                outlines = [part.outline() for part in stored.parts()]
                part: ChainRows = stored
            else:
                encoded = self._encode(views, reset=True, weight=weight)
                allowed = None if codes is None else choices[codes]
                part = Sequences(*encoded, weight, allowed, offsets=offsets)
                outlines = [part]
        with naming_impossible():
            for outline in outlines:
                _check_possible(outline, markov)
        return part

    def _fit_whole(self, X: Any, y: Any, lengths: Any, sequence_weight: Any) -> None:
        """Fit the model to all sequences, and remove the checkpoint."""
        saved = self._fit(self._read(X, y, lengths, sequence_weight))
        if saved:
            saved.clear()

    def _fit(self, part: ChainRows) -> Checkpoint[ChainTheta] | None:
        """Run EM from all starts, keep the best run, and label the rows.

        Return the checkpoint, to be cleared when the estimator is complete, or None.
        """
        chain = self._chain()
        saved = self._open_checkpoint(ChainPacking(chain), lambda: self._data(part))
        with saved or nullcontext(), self._engine() as engine, naming_impossible():
            starts = self._starts(part, engine)
            self._say_sample(starts, part.n_rows)
            seeds, begin = self._draw(starts, self.random_state, engine, saved)
            beta = as_schedule(self.beta, "beta")
            task: ChainTask = RestartTask(
                latent=chain,
                n_runs=len(seeds),
                eta=Constant(1.0),
                beta=beta,
                phases=[
                    Phase(max_rounds(self.max_iter, Constant(1.0), beta), self.tol, self.patience)
                ],
                label=type(self).__name__,
                verbose=self.verbose,
                part=part,
                begin=begin,
                saved=saved,
            )
            best = self._keep_run([run.end for run in drive(task, engine)], seeds)
            self._set_theta(best.theta)
            self._stats = None
            self._set_labels(part, engine)
        self._warn(best, "states")
        return saved

    def _set_labels(self, part: ChainRows, engine: Engine) -> None:
        """Set the states of the rows and their shares, and warn of states without rows."""
        fitted = self._fitted()

        def work(block: SequenceBlock) -> tuple[Array, Array, Array]:
            states, proba = fitted.read(block)
            weight = block.row_weight()
            return states, weight @ proba, np.bincount(states, weight, minlength=proba.shape[1])

        def each(own: Sequences) -> list[tuple[Array, Array, Array]]:
            return threads.spread(work, own.sequence_blocks)

        found = [block for blocks in engine.each_part(each, part.parts()) for block in blocks]
        states, masses, numbers = zip(*found, strict=True)
        self.labels_ = np.concatenate(states)
        mass = np.asarray(sum(masses))
        self.weights_ = mass / mass.sum() if mass.sum() > 0 else np.full(len(mass), 1 / len(mass))
        # With hard posteriors, a state is dead if no path goes through it.
        dead_by = np.asarray(sum(numbers)) if self.posterior == "hard" else mass
        warn_dead_components(dead_by, part.n_rows, "states")

    def _data(self, part: ChainRows) -> list[Any]:
        """Return all that a fit depends on beside its parameters, for a checkpoint."""
        parts: list[Any] = [*part.content(), part.offsets]
        if isinstance(self.init, ChainModel | BaseMixture):
            theta = self._theta_of(self.init)
            parts += [*flat_theta(theta.of_views), *vars(theta.of_chain).values()]
        else:
            parts.append(np.asarray(self.init))
        return parts

    # -- starts ------------------------------------------------------------------------------

    def _starts(self, part: ChainRows, engine: Engine) -> Starts[ChainTheta]:
        """Return the given start, or starts that are drawn as `init` says."""
        chain = self._chain()
        if isinstance(self.init, str):
            check_choice("init", self.init, CHAIN_INITS)
            draw, early = self._named_start(chain, part, engine), self.init != "random"
            return Starts(draw, self.n_init, early, part.sample.n_rows if early else part.n_rows)
        if isinstance(self.init, ChainModel | BaseMixture):
            theta = self._theta_of(self.init)
            return Starts(lambda rng: Start(theta), 1)
        resp = as_responsibilities(self.init, part.n_rows, self.n_components)
        return Starts(lambda rng: Start(chain.unknown(), resp), 1)

    def _named_start(self, chain: Chain, rows: ChainRows, engine: Engine) -> Draw[ChainTheta]:
        """Return a function that draws emissions; start and transitions are those of the user.

        Transitions are not estimated from the partition: those that it does not show would have a
        probability of zero, and EM would never find them. For a corpus, the M step on what is
        drawn is done here, on the sample: the start has parameters.
        """
        markov = MarkovTheta.of(*self._first_markov())
        order, part = in_order(chain.prior.can_follow), rows.sample
        if self.init == "segments" or (self.init == "auto" and order is not None):
            draw = self._parts_start(chain, part, markov, order)
        else:
            draw = self._mixture_start(chain, rows, markov, engine)
        if not isinstance(rows, SequenceRows):
            return draw

        def learnt(rng: Rng) -> Start[ChainTheta]:
            start = draw(rng)
            if start.given is None:
                return start
            session = WholeSession(chain, part.starting_from(start.given), start.theta)
            session.m_step(0, Clock(0, (1.0,), 1.0))
            return Start(session.theta)

        return learnt

    def _mixture_start(
        self, chain: Chain, rows: ChainRows, markov: MarkovTheta, engine: Engine
    ) -> Draw[ChainTheta]:
        """Return a function that draws emissions as a mixture does, and numbers them by labels."""
        mixture = Mixture(chain.emissions, chain.n_components, Joint(), dtype=chain.dtype)
        name: Init = "spherical" if self.init == "auto" else self.init
        part = rows.sample
        if name == "random" and isinstance(rows, SequenceRows):
            of_mixture = stored_starter(mixture, rows, name, engine, Clock(0, (1.0,), 1.0))
        else:
            of_mixture = starter(mixture, part, name)

        def draw(rng: Rng) -> Start[ChainTheta]:
            theta, given = of_mixture(rng)
            if given is None:
                params = in_numbers(chain.emissions, theta.of_views, part)
                return Start(ChainTheta(params, markov, 1))
            return Start(chain.unknown(markov), to_labels(given.reshape(-1), part.allowed))

        return draw

    def _parts_start(
        self, chain: Chain, part: Sequences, markov: MarkovTheta, order: Array | None
    ) -> Draw[ChainTheta]:
        """Return a function that draws parts of the sequences, one per state.

        The transitions of a left-right model say which part has which number. Otherwise labels do.
        """
        states = np.arange(self.n_components) if order is None else order
        if order is not None or part.allowed is None:
            return lambda rng: Start(
                chain.unknown(markov), pin(draw_parts(part, states, rng), part.allowed)
            )

        def draw(rng: Rng) -> Start[ChainTheta]:
            resp = np.eye(self.n_components, dtype=chain.dtype)[draw_parts(part, states, rng)]
            views = range(len(part.views))
            params = tuple(chain.emissions.maximise(part, v, resp, None) for v in views)
            return Start(ChainTheta(in_numbers(chain.emissions, params, part), markov, 1))

        return draw

    def _theta_of(self, other: Any) -> ChainTheta:
        """Return the parameters of another fitted model as a start for this one.

        A mixture is a chain whose next state does not depend on the last.
        """
        check_is_fitted(other)
        same = other.view_names_ == self.view_names_ and other.view_widths_ == self.view_widths_
        if not same or len(other.weights_) != self.n_components:
            raise ValueError(
                "init: the fitted model has other views, features or components "
                f"({list(other.view_names_)}, {list(other.view_widths_)}, {len(other.weights_)})"
            )
        mine, theirs = self.families_.values(), other.families_.values()
        if [shape_of(family) for family in mine] != [shape_of(family) for family in theirs]:
            raise ValueError("init: the fitted model has other families than this one")
        if isinstance(other, ChainModel):
            start, transition = other.startprob_, other.transmat_
        else:
            k = self.n_components
            start, transition = other.weights_, np.broadcast_to(other.weights_, (k, k))
        prior = self._markov()
        markov = MarkovTheta.of(
            _among(start, prior.can_start), _among(transition, prior.can_follow)
        )
        return ChainTheta(tuple(other.theta_[name] for name in self.view_names_), markov, 1)


def _among(prob: Array, possible: Array) -> Array:
    """Return probabilities with zeros where nothing is possible; equal ones if nothing is left."""
    kept = np.where(possible, prob, 0.0)
    total = kept.sum(axis=-1, keepdims=True)
    kept = np.where(total > 0, kept, possible)
    return np.asarray(kept / kept.sum(axis=-1, keepdims=True))


def _check_possible(part: Sequences, markov: MarkovTheta) -> None:
    """Raise if zeros and labels leave a sequence without a path, before any work is done."""
    if np.isfinite(markov.log_start).all() and np.isfinite(markov.log_transition).all():
        return
    for block in part.sequence_blocks:
        nothing = np.zeros((block.n_rows, len(markov.log_start)))
        with numbered(block):
            chain = block.offsets, markov.log_start, markov.log_transition
            kernel.evidence(nothing, *chain, block.allowed)
