"""What a device must look like, whether it was read from a file or made in Python."""

from __future__ import annotations

import dataclasses
import re
import types
from typing import Any

import pytest

from hardware.files import SHIPPED, Write, refusal, variant
from tbsched import _core
from tbsched.hardware.catalogue import device
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.field import Field
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Launch, Release, Sequence

# -- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value", "needed"),
    [
        ("device.title", "1", "a string"),
        ("device.compute_capability", "8.6", "a string"),
        ("topology.sms", '"82"', "an integer"),
        ("topology.sms", "82.0", "an integer"),
        ("topology.sms", "true", "an integer"),
        ("topology.gpcs", "1", "a list of lists"),
        ("topology.gpcs", "[1, 2]", "a list"),
        ("topology.gpcs", '[["0"]]', "an integer"),
        ("topology.sm_preference", '"even_then_odd"', "a list of [start, stop, step]"),
        ("topology.sm_preference", "[0, 82, 2]", "a list"),
        ("topology.sm_preference", "[[0, 82]]", "[start, stop, step]"),
        ("topology.sm_preference", "[[0, 82, 0]]", "[start, stop, step]"),
        ("topology.sm_preference", "[[0, 1000001, 1]]", "[start, stop, step]"),
        ("allocation.shared_memory_configurations", "8192", "a list"),
        ("allocation.shared_memory_configurations", "[8192.5]", "an integer"),
        ("mechanisms.warp_skip", "1", "true or false"),
        ("mechanisms.configuration_per_tpc", "0", "true or false"),
        ("mechanisms.configuration_headroom", '"no"', "true or false"),
        ("mechanisms.registers", "true", "a string"),
        ("scheduler.policy", "[]", "a string"),
    ],
)
def test_value_of_the_wrong_type_is_named(write: Write, path: str, value: str, needed: str) -> None:
    message = refusal(write(variant(path, value)))
    assert path in message
    assert needed in message


RANGES = [
    ("topology.sms_per_tpc", 0, 65),
    ("limits.processing_blocks", 0, 5),
    ("limits.blocks_per_sm", 0, 1025),
    ("limits.warps_per_sm", 0, 65),
    ("limits.registers_per_sm", 0, 2**24 + 1),
    ("limits.threads_per_block", 0, 1025),
    ("limits.registers_per_thread", 0, 1025),
    ("limits.max_cluster", 0, 65),
    ("allocation.register_unit", 0, 65537),
    ("allocation.shared_memory_unit", 0, 65537),
    ("allocation.shared_memory_reserve", -1, 65537),
    ("allocation.shared_memory_per_block", -1, 2**24 + 1),
    ("allocation.local_memory_initial", -1, 2**24 + 1),
    ("allocation.local_memory_unit", 0, 65537),
    ("scheduler.hardware_queues", 0, 1025),
    ("scheduler.copy_engine_count", 0, 3),
    ("scheduler.copy_channels", 0, 1025),
    ("scheduler.resident_grids", 0, 2**20 + 1),
    ("scheduler.launch_latency_ns", -1, 10**9 + 1),
    ("scheduler.completion_latency_ns", -1, 10**9 + 1),
    ("scheduler.exit_latency_ns", -1, 10**9 + 1),
    ("topology.sms", 0, 65537),
]


@pytest.mark.parametrize(
    ("path", "value"),
    [(path, value) for path, *values in RANGES for value in (*values, 2**70, -(2**70))],
)
def test_number_outside_its_range_is_refused_with_value_and_limits(
    write: Write, path: str, value: int
) -> None:
    message = refusal(write(variant(path, str(value))))
    assert re.search(rf"{path.split('.')[1]}: {value} is outside \d+\.\.\d+", message)


@pytest.mark.parametrize("key", ["registers", "shared_memory"])
def test_layout_is_contiguous_circular_or_pooled(write: Write, key: str) -> None:
    for layout in ("contiguous", "circular", "pooled"):
        spec = device(write(variant(f"mechanisms.{key}", f'"{layout}"')))
        assert getattr(spec.mechanisms, key) == layout
    message = refusal(write(variant(f"mechanisms.{key}", '"scattered"')))
    assert f"mechanisms.{key}: 'scattered' is not one of contiguous, circular, pooled" in message


@pytest.mark.parametrize("key", ["warps_per_sm", "registers_per_sm"])
def test_processing_blocks_share_an_sm_evenly(write: Write, key: str) -> None:
    message = refusal(write(variant(f"limits.{key}", "46")))
    assert f"{key}: 46 is not a multiple of processing_blocks, 4" in message


@pytest.mark.parametrize(
    "ranges",
    ["[]", "[[0, 82, 2]]", "[[0, 82, 1], [0, 1, 1]]", "[[0, 83, 1]]", "[[-1, 81, 1]]"],
    ids=["none", "even only", "twice", "one too many", "negative"],
)
def test_sm_preference_must_name_every_sm_once(write: Write, ranges: str) -> None:
    message = refusal(write(variant("topology.sm_preference", ranges)))
    assert "sm_preference: must name each of the 82 SMs once" in message


def test_sm_preference_may_run_backwards(write: Write) -> None:
    spec = device(write(variant("topology.sm_preference", "[[81, -1, -1]]")))
    assert spec.sm_preference == tuple(reversed(range(82)))


@pytest.mark.parametrize(
    "gpcs",
    ["[[0, 1], [1, 2]]", "[[0, 0]]", "[[41]]", "[[-1]]"],
    ids=["in two", "twice in one", "no such TPC", "negative"],
)
def test_gpcs_name_each_tpc_at_most_once(write: Write, gpcs: str) -> None:
    message = refusal(write(variant("topology.gpcs", gpcs)))
    assert "gpcs: must name TPCs of 0..40, each at most once" in message


@pytest.mark.parametrize("sizes", ["[]", "[2, 1]", "[1, 1]", "[-1, 102400]", "[102400, 16777217]"])
def test_shared_memory_configurations_ascend(write: Write, sizes: str) -> None:
    message = refusal(write(variant("allocation.shared_memory_configurations", sizes)))
    assert "shared_memory_configurations: must ascend" in message


def test_largest_block_fits_the_largest_configuration_and_one_unit_more_does_not(
    write: Write,
) -> None:
    key = "allocation.shared_memory_per_block"
    assert device(write(variant(key, str(99 * 1024)))).shared_memory_per_block == 99 * 1024
    message = refusal(write(variant(key, str(99 * 1024 + 1))))
    assert "shared_memory_per_block: 101377 with its reserve is more than" in message
    assert "102400" in message


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("processing_blocks", 8, "processing_blocks: 8 is outside 1..4"),
        ("sm_preference", (), "sm_preference: must name each of the 132 SMs once"),
        ("shared_memory_configurations", (2, 1), "must ascend within 0..16777216, got (2, 1)"),
        ("shared_memory_configurations", (), "must ascend within 0..16777216, got ()"),
        ("gpcs", ((0, 2**40),), f"gpcs: {2**40} is outside -2147483648..2147483647"),
        ("gpcs", ((0, 66),), "gpcs: must name TPCs of 0..65, each at most once"),
        ("sms", -(2**70), f"sms: {-(2**70)} is outside 1..65536"),
    ],
)
def test_core_refuses_by_itself_what_would_crash_it(
    field: str, value: object, message: str
) -> None:
    spec = device("h200")
    fields = {item.name: getattr(spec, item.name) for item in dataclasses.fields(DeviceSpec)}
    with pytest.raises(ValueError, match=re.escape(message)):
        _core.Model(types.SimpleNamespace(**{**fields, field: value}), "hopper")


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_value_of_another_type_is_a_type_error_that_names_it(field: Field) -> None:
    spec = device("h200")
    wrong = 1.5 if field.type in ("string", "layout") else "1"
    changes: dict[str, Any] = {field.name: wrong}
    if field.is_mechanism:
        changes = {"mechanisms": dataclasses.replace(spec.mechanisms, **changes)}
    with pytest.raises(TypeError, match=rf"{field.name}: .* is needed, got "):
        dataclasses.replace(spec, **changes)


def test_spec_built_in_python_is_validated_too() -> None:
    with pytest.raises(ValueError, match=r"sms: 0 is outside 1\.\.65536"):
        dataclasses.replace(device("h200"), sms=0)
    with pytest.raises(TypeError, match="blocks_per_sm: an integer is needed, got True"):
        dataclasses.replace(device("h200"), blocks_per_sm=True)


# -- what the runtime would refuse ----------------------------------------------------------------


def test_check_takes_a_sequence_only() -> None:
    with pytest.raises(TypeError, match="sequence: a Sequence is needed"):
        device("h200").check([Launch(1, 32, 32)])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SHIPPED)
def test_launch_at_every_limit_passes(name: str) -> None:
    spec = device(name)
    device(name).check(
        Sequence(
            [
                Launch(1, spec.threads_per_block, spec.registers_per_sm // spec.threads_per_block),
                Launch(1, 32, spec.registers_per_thread),
                Launch(1, 32, 32, shared_memory=spec.shared_memory_per_block),
                Launch(spec.max_cluster, 32, 32, cluster=spec.max_cluster),
            ]
        )
    )


@pytest.mark.parametrize(
    ("name", "launch", "field", "value", "limit"),
    [
        ("rtx3090", Launch(1, 32, 32, shared_memory=101377), "shared_memory", 101377, 101376),
        ("h200", Launch(1, 32, 32, shared_memory=232449), "shared_memory", 232449, 232448),
        ("tx2", Launch(1, 32, 32, shared_memory=49153), "shared_memory", 49153, 49152),
        ("xavier", Launch(1, 32, 32, shared_memory=98305), "shared_memory", 98305, 98304),
        ("rtx3090", Launch(2, 32, 32, cluster=2), "cluster", 2, 1),
        ("h200", Launch(1, 1024, 65), "registers", 65, 64),
        ("h200", Launch(1, 544, 255), "registers", 255, 96),
    ],
)
def test_launch_above_a_limit_is_refused_with_field_value_and_limit(
    name: str, launch: Launch, field: str, value: int, limit: int
) -> None:
    sequence = Sequence([Launch(1, 32, 32), Release(0), launch])
    with pytest.raises(ValueError, match=rf"^launch 1: {field}: {value} .*{name}.* {limit}$"):
        device(name).check(sequence)


@pytest.mark.parametrize(
    ("key", "limit", "launch", "field"),
    [
        ("limits.threads_per_block", 512, Launch(1, 513, 32), "threads"),
        ("limits.warps_per_sm", 16, Launch(1, 513, 32), "threads"),
        ("limits.registers_per_thread", 63, Launch(1, 32, 64), "registers"),
    ],
)
def test_limit_lower_than_cuda_allows_at_all_is_checked(
    write: Write, key: str, limit: int, launch: Launch, field: str
) -> None:
    spec = device(write(variant(key, str(limit))))
    asked = getattr(launch, field)
    shown = 512 if field == "threads" else limit
    with pytest.raises(
        ValueError, match=rf"launch 0: {field}: {asked} is more than mine allows, {shown}"
    ):
        spec.check(Sequence([launch]))


@pytest.mark.parametrize(("threads", "registers"), [(384, 168), (1024, 128)])
def test_refusal_has_the_name_of_the_launch(threads: int, registers: int) -> None:
    gemm = Launch(108, threads, registers, 200 * 1024, name="gemm")
    with pytest.raises(ValueError, match=r"launch 1 \(gemm\): (shared_memory|registers): "):
        device("a100").check(Sequence([Launch(1, 32, 32), gemm]))


def test_warp_of_a_block_that_fits_the_sm_but_not_its_processing_blocks_is_refused() -> None:
    # 17 warps of 96 registers need 5 x 3072 of the 16384 registers of a processing block.
    fits, one_more = Launch(1, 544, 96), Launch(1, 544, 97)
    device("h200").check(Sequence([fits]))
    with pytest.raises(ValueError, match=r"registers: 97 per thread with 544 threads.* 96$"):
        device("h200").check(Sequence([one_more]))
