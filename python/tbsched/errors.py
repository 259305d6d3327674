"""The errors that tbsched raises beside ``ValueError`` and ``TypeError``.

Bad input is a ``ValueError`` (or ``TypeError``) that names the field, the value and the limit.
"""

from __future__ import annotations


class TbschedError(Exception):
    """Base of the errors that are nobody's bad input."""


class NoGpuError(TbschedError):
    """No usable GPU; the message says what was looked for and what was found."""


class CudaError(TbschedError):
    """A CUDA driver call failed.

    Attributes:
        call: the driver function, such as ``cuLaunchKernelEx``.
        code: the driver's name of the error, such as ``CUDA_ERROR_INVALID_VALUE``.
    """

    def __init__(self, call: str, code: str, detail: str = "") -> None:
        super().__init__(f"{call}: {code}" + (f" ({detail})" if detail else ""))
        self.call = call
        self.code = code


class UnstableMeasurement(TbschedError):
    """The hardware did not agree with itself when the same sequence ran again."""


class SharedGpu(UnstableMeasurement):
    """Another process uses the GPU: in every run its turns interrupted the blocks observed.

    What was measured says nothing about either program. A campaign counts it as unstable, never as
    a disagreement.
    """


class DeadlineExceeded(TbschedError):
    """A run on the GPU took longer than its deadline; every block has been told to leave.

    The message says whether they have left. What blocks may still use is not given back before.
    """
