"""Python faces of the compiled kernels: arrays in, arrays out, no classes of ours."""

from coem.kernels._compiled import instruction_set

__all__ = ["instruction_set"]
