"""Random groups of launches on small devices, for the search and its reference."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeAlias

from hypothesis import reject
from hypothesis import strategies as st

from advice.together.reference import Case
from contract.random_devices.specs import specs
from contract.sequences import largest_cluster, most_registers, most_threads, some_sms
from helpers import gpu
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Launch, Sequence

Theme: TypeAlias = Mapping[str, tuple[Any, ...]]
MOST_LEAVING = 3  # blocks of an outsider: all sets of them are played

# Hopper in small: two GPCs and a singleton TPC.
HOPPER = gpu(6, "h200", gpcs=((0,), (1,)))
AMPERE = gpu(4)
TURING = gpu(2, configuration_per_tpc=False)


@st.composite
def small_devices(draw: st.DrawFn) -> DeviceSpec:
    """A known architecture with few SMs; sometimes one of which all mechanisms are drawn."""
    known = st.sampled_from([HOPPER, HOPPER, gpu(3, "h200"), AMPERE, TURING])
    spec = draw(known | specs(only=("topology", "mechanisms", "scheduler"), most_sms=4))
    return dataclasses.replace(spec, resident_grids=128, hardware_queues=32, provenance={})


# What the launches of a case may have: mostly a few things, so that they meet.
THEMES: tuple[Theme, ...] = (
    {"shared": (1, 2, 3, 4, 5), "carveout": (None, None, 100), "threads": (32, 128)},
    {"shared": (0, 1, 3), "carveout": (None, 0, 50, 100), "threads": (32, 256)},
    {"threads": (160, 256, 352, 512, 768), "registers": (16, 32, 64, 128)},
    {"threads": (128, 512, 1024), "cluster": (1, 1, 2, 3)},
    {
        "shared": (0, 0, 1, 4),
        "carveout": (None, None, 100),
        "threads": (64, 256, 1024),
        "registers": (16, 64),
        "cluster": (1, 1, 1, 2),
        "priority": (0, 0, -1),
        "stream": (None, None, None, 0),
        "partitions": (True, False),
        "cooperative": (False, False, True),
        "local": (0, 0, 0, 16),
    },
)


@st.composite
def launches(draw: st.DrawFn, spec: DeviceSpec, theme: Theme, most_blocks: int) -> Launch:
    """One that an idle GPU takes whole, if it is not cooperative; often it just fits."""

    def drawn(name: str, usual: Any) -> Any:
        return draw(st.sampled_from(theme.get(name, (usual,))))

    threads = min(drawn("threads", 128), most_threads(spec))
    registers = min(most_registers(spec, threads), drawn("registers", 16))
    shared = spec.shared_memory_per_block * drawn("shared", 0) // 8
    partition = draw(st.sampled_from(some_sms(spec.sms))) if drawn("partitions", False) else None
    cluster = drawn("cluster", 1)
    if cluster > largest_cluster(spec, partition):
        cluster = 1
    one = Launch(
        most_blocks // cluster * cluster or cluster, threads, registers, shared,
        carveout=drawn("carveout", None), cluster=cluster, partition=partition,
        priority=drawn("priority", 0), stream=drawn("stream", None),
        local_memory=spec.local_memory_initial + 16 if drawn("local", 0) else 0,
    )  # fmt: skip
    try:
        fit = predict(Sequence([dataclasses.replace(one, stream=None)]), spec)[0].placed // cluster
    except ValueError:  # clusters, under a policy that places none
        fit = 0
    if fit == 0:
        reject()
    blocks = cluster * draw(st.integers(1, fit) | st.integers(max(1, fit - 1), fit))
    return dataclasses.replace(one, blocks=blocks, cooperative=drawn("cooperative", False))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """One to three launches, of which all, or some, are a group; the device takes each alone."""
    spec, theme = draw(small_devices()), draw(st.sampled_from(THEMES))
    count = draw(st.sampled_from([1, 2, 2, 2, 3, 3]))
    members = draw(st.sets(st.integers(0, count - 1), min_size=1))
    held = []
    for number in range(count):
        # All sets of an outsider's blocks leave, so it has few.
        most = 64 if number in members else MOST_LEAVING
        held.append(draw(launches(spec, theme, most)))
    try:
        Sequence([dataclasses.replace(one, duration=1.0) for one in held])
    except ValueError:  # launches of one stream that do not agree on their partition
        reject()
    after: tuple[tuple[int, int], ...] = ()
    if count > 1 and draw(st.integers(0, 3)) == 3:
        first, second = draw(st.permutations(range(count)))[:2]
        after = ((first, second),)
    return Case(spec, spec.policy, tuple(held), frozenset(members), after)


@st.composite
def large_cases(draw: st.DrawFn) -> Case:
    """Two to six launches on a whole GPU, which together just fit, or just do not."""
    spec = draw(st.sampled_from([HOPPER, device("h200"), device("h100"), device("rtx3090")]))
    spec, theme = dataclasses.replace(spec, provenance={}), draw(st.sampled_from(THEMES[:4]))
    count = draw(st.integers(2, 6))
    members = draw(st.sets(st.integers(0, count - 1), min_size=1))
    held = []
    for _ in range(count):
        one = draw(launches(spec, theme, 4096))
        clusters = one.blocks // one.cluster * draw(st.sampled_from([2, 3, 4, 5])) // (4 * count)
        held.append(dataclasses.replace(one, blocks=max(1, clusters) * one.cluster))
    return Case(spec, spec.policy, tuple(held), frozenset(members))
