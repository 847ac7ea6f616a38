"""Whether what a paper says is so."""

from collections.abc import Iterable
from typing import NamedTuple

HOLDS, IN_PART, NOT = "holds", "holds in part", "does not hold"


class Claim(NamedTuple):
    """A sentence that a paper states or implies, with the figures that were measured."""

    text: str
    holds: bool


class Verdict(NamedTuple):
    """A verdict and the claims that it follows from.

    Examples
    --------
    >>> from coem.experiments import Claim, Verdict
    >>> verdict = Verdict.of(
    ...     [Claim("co-EM is below EM on Cora: 1.60 < 2.24", True),
    ...      Claim("co-EM is below EM on WebKB: 1.80 < 1.75", False)]
    ... )
    >>> verdict.verdict
    'holds in part'
    """

    verdict: str
    claims: list[Claim]

    @classmethod
    def of(cls, claims: Iterable[Claim]) -> "Verdict":
        """Return that it holds if all claims do, in part if some do, and else that it does not."""
        claims = [Claim(text, bool(holds)) for text, holds in claims]
        if not claims:
            raise ValueError("a verdict needs at least one claim")
        true = sum(claim.holds for claim in claims)
        return cls(HOLDS if true == len(claims) else IN_PART if true else NOT, claims)

    @property
    def reason(self) -> str:
        """Return the claims in words."""
        return "\n".join(f"{HOLDS if c.holds else NOT}: {c.text}" for c in self.claims)


def chance(p: float) -> str:
    """Return the probability of chance in words: "p = 0.023", or "p < .001"."""
    return "p < .001" if p < 0.001 else f"p = {p:.3f}"
