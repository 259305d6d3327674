"""How the driver does the copies and memsets of a program."""

from __future__ import annotations

from tbsched import _core
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.model import policy_of, prepared
from tbsched.program.sequence import Sequence


def transfers_done(
    seq: Sequence, spec: DeviceSpec, policy: str | None
) -> list[tuple[bool, int, int]]:
    """Returns how the driver does each copy and memset that is not a node of a graph.

    Returns:
        Whether a copy engine does it; and of the driver's kernel how many blocks it has, and for
        how many nanoseconds each runs: 0 without a kernel.
    """
    core_model, _, _ = prepared(spec, policy_of(spec, policy))
    return _core.transfers(core_model, _core.Sequence(seq))
