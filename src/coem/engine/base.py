"""What an engine is: it maps and reduces over blocks, in their order."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, Self


class Engine(Protocol):
    """Where blocks live, and who works on them. A context manager that owns its workers."""

    n_workers: int

    def __enter__(self) -> Self:
        """Start the workers."""
        ...

    def __exit__(self, *exception: object) -> None:
        """Stop them."""
        ...

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Return the results of `function` in the order of the items."""
        ...

    def reduce(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Any:
        """Return the sum of the results, added in an order that depends on the items alone."""
        ...
