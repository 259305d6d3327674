"""More hardware queues, so that streams do not share one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.explain.changes.proposal import Proposal
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts

_MOST = 32  # CUDA C++ Programming Guide, CUDA_DEVICE_MAX_CONNECTIONS


def more_connections(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """``CUDA_DEVICE_MAX_CONNECTIONS`` of 16 and of 32."""
    for queues in (_MOST // 2, _MOST):
        if queues > facts.spec.hardware_queues:
            yield Proposal(
                f"CUDA_DEVICE_MAX_CONNECTIONS={queues}, a hardware queue each for more streams",
                facts.program.sequence,
                facts.program.host,
                spec=replace(facts.spec, hardware_queues=queues),
            )
