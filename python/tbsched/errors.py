"""The errors that tbsched raises, apart from ``ValueError`` and ``TypeError``.

Bad input is a ``ValueError`` (or ``TypeError``) that names the field, the value and the limit.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST_SHOWN = 200  # characters of a value in a message


class TbschedError(Exception):
    """Base of the errors that bad input does not cause.

    Example:
        >>> issubclass(tb.NoGpuError, tb.TbschedError)
        True
    """


class NoGpuError(TbschedError):
    """No usable GPU; the message says what was looked for and what was found.

    Example:
        >>> try:  # doctest: +SKIP
        ...     tb.observe(sequence)
        ... except tb.NoGpuError as error:
        ...     print(error)
        looked for the CUDA driver, libcuda.so.1: cannot open shared object file ...
    """


class CudaError(TbschedError):
    """A CUDA driver call failed.

    Attributes:
        call: the driver function, such as ``cuLaunchKernelEx``.
        code: the driver's name of the error, such as ``CUDA_ERROR_INVALID_VALUE``.

    Example:
        >>> error = tb.CudaError("cuCtxCreate", "CUDA_ERROR_OUT_OF_MEMORY")
        >>> print(error)
        cuCtxCreate: CUDA_ERROR_OUT_OF_MEMORY
    """

    def __init__(self, call: str, code: str, detail: str = "") -> None:
        super().__init__(f"{call}: {code}" + (f" ({detail})" if detail else ""))
        self.call = call
        self.code = code
        self._detail = detail

    def __reduce__(self) -> tuple[type[CudaError], tuple[str, str, str]]:
        return type(self), (self.call, self.code, self._detail)


class UnstableMeasurement(TbschedError):
    """The same sequence ran differently when it ran again, or what the GPU wrote is impossible.

    Such a measurement says nothing about a prediction, so it is never reported as a disagreement.

    Example:
        >>> try:  # doctest: +SKIP
        ...     tb.observe(sequence, repeats=3)
        ... except tb.UnstableMeasurement as error:
        ...     print(error)
        launch 1 had 2 blocks on SM 7 before the next event in the first run and 1 in run 3
    """


class SharedGpu(UnstableMeasurement):
    """Another process uses the GPU: it interrupted the observed blocks in every run.

    The measurement says nothing about either program. A campaign counts it as unstable, never as a
    disagreement.

    Example:
        >>> issubclass(tb.SharedGpu, tb.UnstableMeasurement)
        True
    """


class DeadlineExceeded(TbschedError):
    """A run on the GPU took longer than its deadline. Every block has been told to leave.

    The message says whether all blocks have left. Memory that a block may still use is kept until
    it has.

    Example:
        >>> try:  # doctest: +SKIP
        ...     tb.observe(sequence, deadline=0.5)
        ... except tb.DeadlineExceeded as error:
        ...     print(error)
        observe: not done after 500 ms; every block has been told to leave, and has left
    """


def shown(value: object) -> str:
    """Returns a value in a message, on one line, however large it is."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no integers of thousands of digits
        return f"{type(value).__name__} of thousands of digits"
    except RecursionError:
        return f"{type(value).__name__} that is nested too deeply"
    text = " ".join(line.strip() for line in text.splitlines())
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def printable(name: str) -> str:
    """Returns a name in which nothing ends a line, or is obeyed by a terminal."""
    return name if name.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in name)


def on_one_line(name: str) -> str:
    """Returns a name in a message: printable, and cut if it is long."""
    text = printable(name[: _MOST_SHOWN + 1])
    if len(name) <= _MOST_SHOWN:
        return text
    return f"{text[:_MOST_SHOWN]}… ({len(name)} characters)"


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Returns a message's end for an unknown name: the most similar known one, if there is any."""
    by_lower = {name.lower(): name for name in known}
    if not isinstance(given, str) or given in by_lower.values():
        return ""
    alike = difflib.get_close_matches(given[:100].lower(), by_lower, n=1)
    return f"; did you mean {by_lower[alike[0]]!r}?" if alike else ""


def missing(needy: str, library: str, package: str) -> ImportError:
    """Returns the error for a missing library: who needs it, and the command that installs it."""
    return ImportError(f"{needy} need {library}: pip install {package}", name=package)
