"""Partitions: the SMs of one."""

from __future__ import annotations

from typing import Any

from tbsched.counting import counted
from tbsched.program.partition import Partition, partition_to_data
from tbsched.traces.placement import DeviceInfo
from tbsched.views.cards import card
from tbsched.views.layout.topology import topology_of
from tbsched.views.svg.sm_map import Fill, Tile, map_html
from tbsched.views.words import sms_words


def partition_short(partition: Partition) -> str:
    """Returns how many SMs it has, and which part of which split it is."""
    words = counted(len(partition), "SM")
    if partition.split is None:
        return words
    part = "what is left over" if partition.group is None else f"group {partition.group}"
    return f"{words}, {part} of {partition.split}"


def partition_text(partition: Partition) -> str:
    """Its SMs."""
    return f"{partition_short(partition)}\nSM {sms_words(partition.sms) or 'none'}"


_OWN = Fill(1.0, style="p0")  # of an SM of a partition


def partition_html(partition: Partition) -> str:
    """Returns HTML: a map of the SMs up to its last one; it does not know of which GPU they are."""
    sms = set(partition.sms)
    tiles = [
        Tile(f"SM {sm}", (_OWN,) if sm in sms else (), str(sm), "on" if sm in sms else "in")
        for sm in range(max(sms, default=0) + 1)
    ]
    topology = topology_of(DeviceInfo("", len(tiles)))
    return card(partition_short(partition), map_html(topology, tiles, "The SMs of the partition"))


def partition_data(partition: Partition) -> dict[str, Any]:
    """The partition as trace files hold it."""
    return partition_to_data(partition)
