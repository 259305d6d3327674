"""Kernels of PyTorch's compiler. Its other operators choose kernels when they are called."""

from __future__ import annotations

from typing import Any

from tbsched.launcher.kernels.triton_kernels import TRITON
from tbsched.launcher.kernels.usage import Library, Usage, is_of


def _takes(kernel: object) -> bool:
    owner = getattr(kernel, "__self__", kernel)  # of torch.relu, and others of its builtins
    modules = (str(getattr(item, "__module__", "")) for item in (kernel, owner))
    return is_of(kernel, "torch") or any(f"{name}.".startswith("torch.") for name in modules)


def _usage(kernel: Any) -> Usage:
    """Returns what a kernel of PyTorch's compiler uses."""
    launchers = getattr(kernel, "launchers", None)
    if not isinstance(launchers, list):
        raise TypeError(
            "kernel: an operator of PyTorch chooses its kernels when it is called, by shapes and "
            "types: capture the program, with tb.capture() or tbsched capture, and look at "
            "program.sequence.launches"
        )
    if len(launchers) != 1:
        raise ValueError(
            f"kernel: PyTorch's compiler has {len(launchers)} candidates of it: call it once, so "
            "that one is chosen"
        )
    return TRITON.usage(launchers[0].bin)


TORCH = Library("PyTorch: a Triton kernel of torch.compile", _takes, _usage)
