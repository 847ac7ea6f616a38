"""Python faces of the compiled kernels: arrays in, arrays out, no classes of ours."""

from coem._kernels import instruction_set

__all__ = ["instruction_set"]
