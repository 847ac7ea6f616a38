"""How the runs of aspect and traffic models take over what others have learnt."""

from collections.abc import Sequence

from coem.latent.aspect import AspectTheta
from coem.latent.traffic import TrafficTheta
from coem.latent.transitions import HubLink, Link, couple_hubs, couple_runs
from coem.run_coupling import RunCoupling
from coem.typing import CSR


def couple_aspects(
    runs: Sequence[AspectTheta], coupling: RunCoupling, counts: CSR | None, number: int
) -> tuple[list[AspectTheta], list[Link]]:
    """Return the coupled parameters of all runs, and the transitions."""
    coupled, links = couple_runs([run.plain for run in runs], coupling, counts, number)
    pairs = zip(coupled, runs, strict=True)
    return [AspectTheta.of(new, old.x.dtype) for new, old in pairs], links


def couple_traffic(
    runs: Sequence[TrafficTheta], coupling: RunCoupling, counts: CSR | None, number: int
) -> tuple[list[TrafficTheta], list[HubLink]]:
    """Return the coupled parameters of all runs, and the transitions."""
    coupled, links = couple_hubs([run.plain for run in runs], coupling, counts, number)
    pairs = zip(coupled, runs, strict=True)
    return [TrafficTheta.of(new, old.x.dtype) for new, old in pairs], links
