"""The groups of launches whose blocks meet, as their names say."""

from __future__ import annotations

from tbsched.errors import shown
from tbsched.program.events.graph import GraphLaunch
from tbsched.program.sequence import Sequence


def meeting_groups(seq: Sequence) -> dict[str, tuple[int, ...]]:
    """Returns, for each name of ``Launch.meets``, its launches' numbers in order.

    Groups in block order are among them, though their launches do not wait for each other.

    Raises:
        ValueError: a group of one block, which waits for nobody; launches of a name that do not
            agree whether they wait in block order; a graph with such a launch that is launched
            twice, as its blocks would have to meet those of a launch that waits for them.
    """
    launches = seq.launches
    groups: dict[str, list[int]] = {}
    for index, launch in enumerate(launches):
        if launch.meets is not None:
            groups.setdefault(launch.meets, []).append(index)
    if not groups:
        return {}
    for name, group in groups.items():
        first = launches[group[0]]
        for index in group:
            if launches[index].in_block_order != first.in_block_order:
                raise ValueError(
                    f"Launch.in_block_order: {launches[index].in_block_order} of launch {index}, "
                    f"but {first.in_block_order} of launch {group[0]}; all launches that meet "
                    f"{shown(name)} agree"
                )
        if len(group) == 1 and first.blocks == 1 and not first.in_block_order:
            raise ValueError(
                f"Launch.meets: {shown(name)} is the name of launch {group[0]} alone, which has "
                "one block; at least two blocks meet"
            )
    _check_graphs(seq)
    return {name: tuple(group) for name, group in groups.items()}


def _check_graphs(seq: Sequence) -> None:
    """Refuses a graph that is launched twice and has launches that meet."""
    launched: set[object] = set()
    for position, event in enumerate(seq):
        if not isinstance(event, GraphLaunch):
            continue
        names = {e.meets for e in event.launches if e.meets is not None and not e.in_block_order}
        if names and event.graph in launched:
            raise ValueError(
                f"Sequence.events[{position}]: a graph with a launch that meets {min(names)!r} is "
                "launched again; a group meets once, so give the second graph other names"
            )
        if names:
            launched.add(event.graph)
