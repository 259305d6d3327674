"""Partitions as HTML: their SMs among those of the GPU."""

from __future__ import annotations

from tbsched.program.partition import Partition
from tbsched.show.html.pages import card
from tbsched.show.html.svg.sm_map import Fill, Tile, map_html
from tbsched.show.layout.topology import topology_of
from tbsched.show.text.partitions import partition_short
from tbsched.traces.placement import DeviceInfo

_OWN = Fill(1.0, style="p0")


def partition_html(partition: Partition) -> str:
    """A map of the SMs up to its last one; it does not know of which GPU they are."""
    own = set(partition.sms)
    tiles = [
        Tile(f"SM {sm}", (_OWN,) if sm in own else (), str(sm), "on" if sm in own else "in")
        for sm in range(max(own, default=0) + 1)
    ]
    topology = topology_of(DeviceInfo("", len(tiles)))
    return card(partition_short(partition), map_html(topology, tiles, "The SMs of the partition"))
