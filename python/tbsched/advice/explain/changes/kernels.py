"""Fewer kernels: those that follow each other element by element, and those that only move data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tbsched.advice.explain.changes.proposal import MAX_PAUSE_SECONDS, Proposal, edited
from tbsched.advice.explain.facts import Facts
from tbsched.counting import counted
from tbsched.program.events.transfers import Transfer
from tbsched.program.sequence import Copy, Event, GraphLaunch, Launch, Stream

# Kernels of PyTorch, and of CuPy's and Triton's code for expressions, that compute each element by
# itself.
_BY_ELEMENT = re.compile(r"elementwise_kernel|^triton_poi_|^cupy_\w+__\w+")
# Kernels of PyTorch, cuDNN and cuBLAS for clone(), to(), contiguous(), cat() and other layouts.
_MOVES = re.compile(
    r"_copy_kernel|CatArrayBatchedCopy|nchwToNhwc|nhwcToNchw|convertTensor|transpose_readWrite|"
    r"cublasTransposeKernel|cupy_copy__"
)
# Kernels of cuBLAS, cuDNN and CUTLASS for products of float32 that use no tensor cores.
_FLOAT32_PRODUCTS = re.compile(r"(?<!fp16_)sgemm|gemm_f32f32_f32f32_f32")
# How many times as many products of float32 a second tensor cores do as TF32, dense, by compute
# capability: NVIDIA's white papers on the A100 (156 and 19.5 TFLOPS) and on the H100 (494.7 and
# 66.9). Where they do no more, as on 8.6 and 8.9, nothing is proposed.
_TF32_RATES = {"8.0": 8.0, "9.0": 7.4}
_MAX_KINDS = 3  # that are named, those with most launches


def propose_fusion(facts: Facts) -> Iterator[Proposal]:
    """Proposes each chain of elementwise kernels as one kernel, as long as its longest.

    A chain is of one stream and one number of elements, with nothing in between. Where the kernels
    of it come again and again, each time is a chain of its own: it may work on something else. One
    kernel reads and writes memory once.
    """
    launches, gaps = facts.program.sequence.launches, [*facts.program.host]
    changed: dict[int, Event | None] = {}
    chains = kernels = 0
    for chain in _chains(facts):
        pairs = [(place, launches[number]) for place, number in chain]
        took_ns = [facts.end_ns[number] - facts.start_ns[number] for _, number in chain]
        longest = launches[chain[int(np.argmax(took_ns))][1]]
        place, first = pairs[0]
        changed[place] = replace(first, duration=longest.duration)
        for place, _ in pairs[1:]:
            changed[place] = None
            gaps[place] = 0.0
        chains, kernels = chains + 1, kernels + len(pairs)
    if chains:
        yield edited(
            facts,
            f"{kernels} kernels that compute element by element as {chains}, one for those that "
            "follow each other (torch.compile, or a fused operator or optimizer)",
            changed,
            "if each needs of the others only the same elements",
            tuple(gaps),
        )


def propose_tf32(facts: Facts) -> Iterator[Proposal]:
    """Proposes, as a bound, products of float32 matrices at the rate of tensor cores.

    Only kernels of a block for every second SM or more: others may wait for memory more than they
    compute.
    """
    rate = _TF32_RATES.get(facts.spec.compute_capability)
    products = {
        place: launch
        for place, launch in enumerate(facts.program.sequence)
        if isinstance(launch, Launch)
        and isinstance(launch.duration, float)
        and launch.name
        and _FLOAT32_PRODUCTS.search(launch.name)
        and 2 * launch.blocks >= facts.spec.sms
    }
    if rate is None or not products:
        return

    changed: dict[int, Event | None] = {}
    for place, launch in products.items():
        assert isinstance(launch.duration, float)
        changed[place] = replace(launch, duration=launch.duration / rate)
    proposal = edited(
        facts,
        f"a bound: TF32 in {counted(len(products), 'product')} of float32 matrices, such as "
        f"{_event_name(facts, [*products])}, at the full rate of the tensor cores: "
        'torch.set_float32_matmul_precision("high"), or CUBLAS_COMPUTE_32F_FAST_TF32',
        changed,
        "if 10 bits of mantissa are enough for their factors",
    )
    yield replace(proposal, is_bound=True)


def _chains(facts: Facts) -> Iterator[list[tuple[int, int]]]:
    """Yields chains of launches that repeat: place of the event and number of each launch."""
    launches = facts.program.sequence.launches
    for run in _runs(facts):
        names = [launches[number].name for _, number in run]
        period = next(p for p in range(1, len(run) + 1) if names[p:] == names[:-p])
        if period > 1:
            yield from (run[first : first + period] for first in range(0, len(run), period))


def _runs(facts: Facts) -> Iterator[list[tuple[int, int]]]:
    """Yields runs of similar elementwise launches that follow each other in their streams."""
    sequence, launches = facts.program.sequence, facts.program.sequence.launches
    open_: dict[Stream | None, list[tuple[int, int]]] = {}
    number = 0
    for place, event in enumerate(sequence):
        if isinstance(event, Launch):
            run = open_.get(event.stream)
            is_meant = event.name is not None and _BY_ELEMENT.search(event.name) is not None
            if (
                run
                and is_meant
                and _belongs_to_run(event, launches[run[0][1]], facts.program.host[place])
            ):
                run.append((place, number))
            else:
                if run:
                    yield open_.pop(event.stream)
                if is_meant:
                    open_[event.stream] = [(place, number)]
        elif isinstance(event, GraphLaunch | Transfer):
            if event.stream in open_:
                yield open_.pop(event.stream)
        else:
            yield from open_.values()
            open_.clear()
        number += len(event.launches)
    yield from open_.values()


def _belongs_to_run(launch: Launch, first: Launch, pause: float) -> bool:
    """Returns whether a launch belongs to the run that another one begins."""
    return pause <= MAX_PAUSE_SECONDS and all(
        getattr(launch, field) == getattr(first, field) for field in ("blocks", "threads", "host")
    )


def propose_no_moved_data(facts: Facts) -> Iterator[Proposal]:
    """Proposes the program without all kernels and copies that only move data. One proposal: those
    of a kind are a part of it, and two rows would promise their time twice."""
    kinds: dict[str, list[int]] = {}
    for place, event in enumerate(facts.program.sequence):
        if isinstance(event, Copy) and event.kind == "d2d":
            kinds.setdefault("copies d2d", []).append(place)
        elif isinstance(event, Launch) and event.name and _MOVES.search(event.name):
            kinds.setdefault(event.name, []).append(place)
    places = sorted(place for kind in kinds.values() for place in kind)
    if not places:
        return
    gaps = [*facts.program.host]
    for place in places:
        gaps[place] = 0.0 if gaps[place] <= MAX_PAUSE_SECONDS else gaps[place]
    changed: dict[int, Event | None] = dict.fromkeys(places)
    yield edited(
        facts,
        f"without {len(places)} kernels and copies that only move data on the GPU, "
        f"{_kind_names(facts, [*kinds.values()])}",
        changed,
        "if what follows takes it where and as it is (its type and memory format, a buffer "
        "that is large enough)",
        tuple(gaps),
    )


def _kind_names(facts: Facts, kinds: list[list[int]]) -> str:
    """Returns the kinds of launches in words: the only one, or those with most launches."""
    if len(kinds) == 1:
        return f"such as {_event_name(facts, kinds[0])}"
    most = sorted(kinds, key=len, reverse=True)[:_MAX_KINDS]
    return (
        f"such as {', '.join(f'{_event_name(facts, places)} ({len(places)})' for places in most)}"
    )


def _event_name(facts: Facts, places: list[int]) -> str:
    """Returns the name of the kernel that an event launches, or ``a d2d copy``."""
    if isinstance(facts.program.sequence[places[0]], Copy):
        return "a d2d copy"
    return facts.kernel_name(int(facts.event.searchsorted(places[0])))
