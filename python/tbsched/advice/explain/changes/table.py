"""Which changes might have let a launch run that waited: a row per cause."""

from __future__ import annotations

from collections.abc import Mapping

from tbsched.advice.explain.changes.blocks import other_block_size
from tbsched.advice.explain.changes.carveouts import other_carveout
from tbsched.advice.explain.changes.copies import other_copy
from tbsched.advice.explain.changes.events import without_edge, without_event
from tbsched.advice.explain.changes.hosts import no_pauses, warmed_up, without_synchronisation
from tbsched.advice.explain.changes.orders import issued_first, more_urgent
from tbsched.advice.explain.changes.proposal import Proposer
from tbsched.advice.explain.changes.queues import more_connections
from tbsched.advice.explain.changes.streams import other_stream
from tbsched.advice.explain.explanation import FIRST_USE, HOST, LONG_CALL, ON_ITS_WAY, SYNCHRONIZE

_ROOM: tuple[Proposer, ...] = (other_block_size, issued_first, more_urgent)
PROPOSERS: Mapping[str, tuple[Proposer, ...]] = {
    HOST: (warmed_up, no_pauses),
    SYNCHRONIZE: (without_synchronisation, no_pauses),
    LONG_CALL: (warmed_up, no_pauses),
    ON_ITS_WAY: (no_pauses,),
    "stream": (other_stream, other_copy),
    "event": (without_event, other_copy),
    "node": (without_edge,),
    "legacy_stream": (other_stream, other_copy),
    "hardware_queue": (more_connections, issued_first),
    FIRST_USE: (warmed_up,),
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
