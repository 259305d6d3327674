"""Which changes might have let a launch run that waited: a row per cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tbsched.advice.account.idle import FIRST_USE, HOST, SYNCHRONIZE
from tbsched.advice.explain.changes.copies import (
    propose_copies_ahead,
    propose_copies_to_gpu_first,
    propose_joined_copies,
    propose_pinned_memory,
)
from tbsched.advice.explain.changes.events import propose_no_edge, propose_no_event_wait
from tbsched.advice.explain.changes.graphs import propose_graphs
from tbsched.advice.explain.changes.hosts import (
    propose_no_host_work,
    propose_no_memory_calls,
    propose_no_pauses,
    propose_no_synchronisation,
    warmed_up,
)
from tbsched.advice.explain.changes.kernels import (
    propose_fusion,
    propose_no_moved_data,
    propose_tf32,
)
from tbsched.advice.explain.changes.launches import (
    propose_block_size,
    propose_carveout,
    propose_connections,
    propose_earlier_issue,
    propose_other_stream,
    propose_priority,
    propose_several_streams,
)
from tbsched.advice.explain.changes.operators import propose_no_checks, propose_no_nonzero
from tbsched.advice.explain.changes.proposal import Proposal, Proposer
from tbsched.advice.explain.changes.waits import propose_later_waits, propose_no_reads
from tbsched.advice.explain.explanation import COPY
from tbsched.advice.explain.facts import Facts

_ROOM: tuple[Proposer, ...] = (propose_block_size, propose_earlier_issue, propose_priority)
PROPOSERS: Mapping[str, tuple[Proposer, ...]] = {
    HOST: (
        propose_no_memory_calls,
        propose_no_host_work,
        propose_no_synchronisation,
        propose_later_waits,
        propose_no_reads,
        propose_pinned_memory,
        propose_graphs,
        propose_no_pauses,
    ),
    SYNCHRONIZE: (propose_no_synchronisation, propose_later_waits, propose_no_reads),
    COPY: (propose_copies_to_gpu_first, propose_pinned_memory, propose_copies_ahead),
    "stream": (
        propose_other_stream,
        propose_several_streams,
        propose_copies_to_gpu_first,
        propose_pinned_memory,
        propose_copies_ahead,
    ),
    "event": (propose_no_event_wait, propose_pinned_memory),
    "node": (propose_no_edge,),
    "legacy_stream": (propose_other_stream, propose_several_streams, propose_pinned_memory),
    "hardware_queue": (propose_connections, propose_earlier_issue),
    FIRST_USE: (warmed_up, propose_no_pauses),
    "queue": (propose_earlier_issue, propose_priority),
    "turn": (propose_earlier_issue, propose_priority),
    "priority": (propose_earlier_issue, propose_priority),
    "local_memory": (propose_earlier_issue,),
    "configuration": (propose_carveout, propose_earlier_issue),
    "shared_memory": (propose_carveout, *_ROOM),
    "cooperative": _ROOM,
    "registers": _ROOM,
    "slots": _ROOM,
    "warps": _ROOM,
}
# What these propose is the same for every launch.
OF_PROGRAM: frozenset[Proposer] = frozenset(
    {
        propose_connections,
        propose_copies_ahead,
        propose_copies_to_gpu_first,
        propose_graphs,
        propose_no_pauses,
        propose_pinned_memory,
        warmed_up,
    }
)
# Tried whatever waited for what: other work, of which there is less.
LESS_WORK: tuple[Callable[[Facts], Iterator[Proposal]], ...] = (
    propose_fusion,
    propose_no_nonzero,
    propose_no_checks,
    propose_tf32,
    propose_no_moved_data,
    propose_joined_copies,
)
