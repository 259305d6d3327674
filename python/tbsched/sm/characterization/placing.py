"""Launches with known placement: a number of warps on one SM, or on each."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from tbsched.errors import on_one_line
from tbsched.hardware.catalogue import device_titled
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.arrays import Int32Array
from tbsched.program.sequence import Launch, Sequence
from tbsched.traces.placement import DeviceInfo

REGISTERS = 32  # per thread, so that an SM holds 64 warps
SHARED_MEMORY = 128  # bytes; at least those of the ring that shared-memory loads go around
NOBODY = 2**32 - 1
_WARP = 32


class Scope(StrEnum):
    """SMs whose warps measure at the same time."""

    ONE_SM = "one SM"
    ALL_SMS = "all SMs"


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A launch of the loop's kernel, and where the predictor says that its blocks go.

    Attributes:
        scope: where its warps measure.
        warps: that measure, on each such SM.
        blocks: of the grid.
        threads: of a block.
        target: the only SM where blocks measure; ``NOBODY``: all.
        measuring: how many blocks measure.
        short_block: of those that measure, by their arrival, the one of which only some warps do;
            ``NOBODY``: none.
        short_warps: how many of its warps measure.
        smid: the predicted SM of each block.
        possible: the same from each latent state of the GPU.
    """

    scope: Scope
    warps: int
    blocks: int
    threads: int
    target: int
    measuring: int
    short_block: int
    short_warps: int
    smid: Int32Array
    possible: tuple[Int32Array, ...]


def known_as(info: DeviceInfo) -> DeviceSpec:
    """Returns the shipped device of that name.

    Raises:
        ValueError: there is none.
    """
    spec = device_titled(info.name, info.sms)
    if spec is None:
        name = on_one_line(info.name)
        raise ValueError(f"gpu: no shipped device is called {name}; give its device file")
    return spec


def placed(spec: DeviceSpec, scope: Scope, warps: int) -> Placed | None:
    """Returns a launch with a number of warps on one SM, or on each.

    Up to the limit of a block they are one block. More are two blocks; if one SM is wanted, the
    grid fills all of them, and blocks of the others hold their places until it is done.

    Args:
        spec: the GPU.
        scope: one SM, or all.
        warps: on each such SM.

    Returns:
        None if the predictor knows no such launch.
    """
    max_warps = spec.threads_per_block // _WARP
    per_sm = 1 if warps <= max_warps else 2
    per_block = -(-warps // per_sm)
    alone = scope is Scope.ONE_SM and per_sm == 1
    if not 1 <= warps <= spec.warps_per_sm or (scope is Scope.ALL_SMS and warps % per_sm):
        return None
    blocks = 1 if alone else per_sm * spec.sms
    launch = Launch(blocks, _WARP * per_block, REGISTERS, shared_memory=SHARED_MEMORY)
    smid, *sms_by_state = _sms_by_state(spec, launch)
    if not alone and set(np.bincount(smid, minlength=spec.sms)) != {per_sm}:
        return None
    is_single = scope is Scope.ONE_SM and not alone
    target = int(smid[0]) if is_single else NOBODY
    target_blocks = np.flatnonzero(smid == target) if is_single else np.arange(blocks)
    is_odd = per_block * per_sm != warps
    return Placed(
        scope, warps, blocks, _WARP * per_block, target, len(target_blocks),
        len(target_blocks) - 1 if is_odd else NOBODY, per_block - 1 if is_odd else NOBODY, smid,
        (smid, *sms_by_state),
    )  # fmt: skip


@functools.lru_cache(maxsize=64)
def _sms_by_state(spec: DeviceSpec, launch: Launch) -> tuple[Int32Array, ...]:
    """Returns the SM of each block, from each latent state of the GPU."""
    placements = (predict(Sequence([launch]), spec, None, s)[0].smid for s in spec.initial_states())
    return tuple({smid.tobytes(): smid for smid in placements}.values())
