"""Python faces of the compiled kernels: arrays in, arrays out, no classes of ours."""

import os

from coem.kernels._compiled import instruction_set

__all__ = ["instruction_set"]


def _check_wish() -> None:
    """Refuse an instruction set that was asked for and cannot be had: it is asked for its bits."""
    wish = os.environ.get("COEM_ISA") or instruction_set()
    if wish != instruction_set():
        raise ImportError(
            f"COEM_ISA is {wish!r:.40} in the environment, and this processor, or this build of "
            "coem, has no such instruction set; take baseline, avx2 or avx512 if it has it, or "
            "unset it for the best"
        )


_check_wish()
