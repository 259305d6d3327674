"""Every device that validation accepts, under every policy: predictions that can be."""

from __future__ import annotations

import dataclasses

import pytest

from contract.random_devices.properties import ONCE, PROPERTIES, Property, checked
from contract.random_devices.replay import check_held
from contract.sequences import largest_cluster
from tbsched.hardware.catalogue import device
from tbsched.program.sequence import Launch, Sequence

H200 = device("h200")


@pytest.mark.parametrize(
    "gpcs",
    [((0, 1), ()), ((), (0, 1)), ((),), ((), (), (3,), ()), ((65,), (), (64, 0, 5), ())],
    ids=str,
)
@pytest.mark.parametrize("cluster", [1, 2, 4])
def test_gpcs_may_be_empty(gpcs: tuple[tuple[int, ...], ...], cluster: int) -> None:
    spec = dataclasses.replace(H200, gpcs=gpcs)
    cluster = min(cluster, largest_cluster(spec))
    for shared_memory in (0, 200_000):  # with so much, clusters are balanced
        held = Sequence([Launch(132, 512, 32, shared_memory, cluster=cluster)] * 2)
        for state in spec.initial_states()[:2]:
            check_held(held, spec, "hopper", state)


@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda holds: holds.__name__)
def test_property_holds_on_random_devices(holds: Property) -> None:
    checked(holds, ONCE)()
