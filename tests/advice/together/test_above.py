"""Hangs that arise above the thread block scheduler."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tbsched as tb
from helpers import gpu
from tbsched.advice.together.fixes.fix import Fix

KERNEL = tb.Launch(8, 128, 32, duration=1e-3)


def kinds(found: tb.Coresidency) -> dict[str, Fix]:
    return {fix.kind: fix for fix in found.fixes}


def test_kernel_that_is_loaded_while_its_partner_spins() -> None:
    first, second = replace(KERNEL, name="a"), replace(KERNEL, name="b", first_use=True)
    found = tb.coresident([first, second], "h200")
    assert (found.safe, found.cause, found.stranded, found.waiting) == (False, "first_use", 1, 8)
    assert found.witness is not None
    assert found.witness.timed
    assert found.order == (0, 1)
    assert found.behind == 0  # not itself, though its own kernel is what is loaded
    assert "never start (first_use), behind a" in str(found)
    assert not kinds(found)["loading"].launches[1].first_use
    assert "CUDA_MODULE_LOADING=EAGER" in kinds(found)["loading"].text
    # It is loaded before the other spins.
    assert tb.coresident([first, second], "h200", after=[(1, 0)]).safe is True


def test_legacy_stream() -> None:
    other = replace(KERNEL, stream=1)
    found = tb.coresident([replace(KERNEL, stream=tb.LEGACY_STREAM), other], "h200")
    assert (found.safe, found.cause) == (False, "legacy_stream")
    (changed, _) = kinds(found)["streams"].launches
    assert (changed.stream, changed.non_blocking) == (None, True)
    free = replace(KERNEL, stream=1, non_blocking=True)
    assert tb.coresident([replace(KERNEL, stream=tb.LEGACY_STREAM), free], "h200").safe is True


def test_streams_that_share_a_hardware_queue() -> None:
    asked = [replace(KERNEL, stream=stream) for stream in (0, 0, 1)]
    given = {"groups": [[0, 2]], "after": [(0, 1)]}
    assert tb.coresident(asked, "h200", **given).safe is True  # type: ignore[arg-type]
    found = tb.coresident(asked, "h200", connections=1, **given)  # type: ignore[arg-type]
    assert (found.safe, found.cause, found.stranded) == (False, "hardware_queue", 2)
    more = kinds(found)["set_up"]
    assert more.text == "CUDA_DEVICE_MAX_CONNECTIONS=32"
    assert more.device is not None
    assert more.device.hardware_queues == 32


def test_local_memory_that_grows_while_its_partner_spins() -> None:
    small, large = tb.Launch(8, 128, 32), tb.Launch(8, 128, 32, local_memory=4096)
    found = tb.coresident([small, large], "h200")
    assert (found.safe, found.cause, found.stranded) == (False, "local_memory", 1)
    assert "cudaLimitStackSize, 4096" in kinds(found)["set_up"].text
    assert kinds(found)["order"].after == ((1, 0),)


def test_more_grids_than_the_gpu_takes() -> None:
    spec = gpu(4, resident_grids=3, hardware_queues=32)
    found = tb.coresident([tb.Launch(1, 32, 16)] * 4, spec)
    assert (found.safe, found.cause) == (False, "grids")
    assert tb.coresident([tb.Launch(1, 32, 16)] * 3, spec).safe is True


def test_more_launches_than_orders_are_never_called_safe_without_proof() -> None:
    launches = [replace(KERNEL, stream=k, non_blocking=True, blocks=1) for k in range(7)]
    assert tb.coresident(launches, "h200").safe is True
    legacy = replace(KERNEL, stream=tb.LEGACY_STREAM, blocks=1)
    found = tb.coresident([*launches, legacy], "h200")
    assert found.safe is None


@pytest.mark.parametrize("spinning", [1, 3])
def test_witness_has_as_few_launches_as_show_it(spinning: int) -> None:
    others = [replace(KERNEL, name=f"k{k}") for k in range(spinning)]
    found = tb.coresident([*others, replace(KERNEL, name="new", first_use=True)], "h200")
    assert found.witness is not None
    assert len(found.witness.launches) == 2
