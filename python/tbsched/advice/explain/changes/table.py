"""Which changes might have let a launch run that waited: a row per cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tbsched.advice.account.idle import FIRST_USE, HOST, SYNCHRONIZE
from tbsched.advice.explain.changes.copies import (
    copies_ahead,
    copies_together,
    pinned_memory,
    to_gpu_first,
)
from tbsched.advice.explain.changes.events import without_edge, without_event
from tbsched.advice.explain.changes.graphs import as_graphs
from tbsched.advice.explain.changes.hosts import (
    no_pauses,
    warmed_up,
    without_calls,
    without_synchronisation,
    without_work,
)
from tbsched.advice.explain.changes.kernels import fused, without_moved_data
from tbsched.advice.explain.changes.launches import (
    issued_first,
    more_connections,
    more_urgent,
    other_block_size,
    other_carveout,
    other_stream,
    several_streams,
)
from tbsched.advice.explain.changes.operators import without_nonzero
from tbsched.advice.explain.changes.proposal import Proposal, Proposer
from tbsched.advice.explain.explanation import COPY
from tbsched.advice.explain.facts import Facts

_ROOM: tuple[Proposer, ...] = (other_block_size, issued_first, more_urgent)
PROPOSERS: Mapping[str, tuple[Proposer, ...]] = {
    HOST: (
        without_calls,
        without_work,
        without_synchronisation,
        pinned_memory,
        as_graphs,
        no_pauses,
    ),
    SYNCHRONIZE: (without_synchronisation,),
    COPY: (to_gpu_first, pinned_memory, copies_ahead),
    "stream": (other_stream, several_streams, to_gpu_first, pinned_memory, copies_ahead),
    "event": (without_event, pinned_memory),
    "node": (without_edge,),
    "legacy_stream": (other_stream, several_streams, pinned_memory),
    "hardware_queue": (more_connections, issued_first),
    FIRST_USE: (warmed_up, no_pauses),
    "queue": (issued_first, more_urgent),
    "turn": (issued_first, more_urgent),
    "priority": (issued_first, more_urgent),
    "local_memory": (issued_first,),
    "configuration": (other_carveout, issued_first),
    "shared_memory": (other_carveout, *_ROOM),
    "cooperative": _ROOM,
    "registers": _ROOM,
    "slots": _ROOM,
    "warps": _ROOM,
}
# Tried whatever waited for what: other work, of which there is less.
LESS_WORK: tuple[Callable[[Facts], Iterator[Proposal]], ...] = (
    fused,
    without_nonzero,
    without_moved_data,
    copies_together,
)
