"""A device file says everything, says it once, and says where it comes from."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from tbsched.hardware.spec import DeviceSpec, ablations, device, devices
from tbsched.hardware.spec_rows import PROVENANCES
from tbsched.program.sequence import Launch, Release, Sequence

SHIPPED = ("a100", "h200", "pegasus", "rtx3090", "tx2", "v100", "xavier")
RTX3090 = (resources.files("tbsched.hardware") / "devices" / "rtx3090.toml").read_text("utf-8")

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes ``mine.toml`` (or another name) and gives its path."""

    def to_file(text: str, name: str = "mine.toml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return to_file


def row(value: str) -> str:
    return f'{{ value = {value}, provenance = "assumed", source = "a test" }}'


def variant(path: str, value: str, base: str = "rtx3090") -> str:
    section, key = path.split(".")
    return f'extends = "{base}"\n[{section}]\n{key} = {row(value)}\n'


def refusal(path: Path) -> str:
    """The message with which a file is refused; it always names the file."""
    with pytest.raises(ValueError, match=re.escape(path.name)) as caught:
        device(path)
    return str(caught.value)


# -- what is shipped ------------------------------------------------------------------------------


def test_shipped_devices_are_listed_in_order() -> None:
    assert devices() == SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_device_loads_under_its_own_name(name: str) -> None:
    spec = device(name)
    assert spec.name == name
    assert hash(spec) == hash(device(name))
    assert device(spec) is spec


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_value_has_a_provenance_and_a_source(name: str) -> None:
    spec = device(name)
    keys = {path.split(".")[1] for path in spec.provenance}
    fields = {field.name for field in dataclasses.fields(DeviceSpec)}
    switches = {field.name for field in dataclasses.fields(spec.mechanisms)}
    assert keys == (fields - {"name", "mechanisms", "provenance"}) | switches
    for origin in spec.provenance.values():
        assert origin.kind in PROVENANCES
        assert origin.source.strip()


@pytest.mark.parametrize("name", sorted(set(SHIPPED) - {"h200"}))
def test_only_the_h200_claims_measurements(name: str) -> None:
    assert not [
        path for path, origin in device(name).provenance.items() if origin.kind == "measured"
    ]


@pytest.mark.parametrize(("name", "ablation"), [*itertools.product(SHIPPED, ablations())])
def test_every_ablation_of_every_shipped_device_loads(name: str, ablation: str) -> None:
    spec = device(f"{name}-{ablation}")
    assert spec.name == f"{name}-{ablation}"
    assert spec.title == device(name).title


@pytest.mark.parametrize(
    ("name", "sms", "tpcs", "gpcs", "warps", "blocks"),
    [
        ("a100", 108, 54, 0, 64, 32),
        ("h200", 132, 66, 8, 64, 32),
        ("pegasus", 44, 22, 0, 32, 16),
        ("rtx3090", 82, 41, 0, 48, 16),
        ("tx2", 2, 2, 1, 64, 32),
        ("v100", 80, 40, 0, 64, 32),
        ("xavier", 8, 4, 1, 64, 32),
    ],
)
def test_shipped_sizes(name: str, sms: int, tpcs: int, gpcs: int, warps: int, blocks: int) -> None:
    spec = device(name)
    assert (spec.sms, spec.tpcs, len(spec.gpcs)) == (sms, tpcs, gpcs)
    assert (spec.warps_per_sm, spec.blocks_per_sm) == (warps, blocks)


@pytest.mark.parametrize("name", sorted(set(SHIPPED) - {"h200"}))
def test_all_but_the_h200_prefer_even_sms_then_odd_ones(name: str) -> None:
    spec = device(name)
    assert spec.sm_preference == (*range(0, spec.sms, 2), *range(1, spec.sms, 2))


@pytest.mark.parametrize("name", SHIPPED)
def test_runtime_reserves_1_kb_per_block_from_compute_capability_8_and_0_before(name: str) -> None:
    spec = device(name)
    assert spec.shared_memory_reserve == (1024 if float(spec.compute_capability) >= 8 else 0)


@pytest.mark.parametrize("name", SHIPPED)
def test_shared_memory_unit_is_128_bytes_from_compute_capability_8_and_256_before(
    name: str,
) -> None:
    spec = device(name)
    assert spec.shared_memory_unit == (128 if float(spec.compute_capability) >= 8 else 256)


@pytest.mark.parametrize("name", SHIPPED)
def test_only_the_h200_has_circular_shared_memory_and_asks_for_headroom(name: str) -> None:
    mechanisms = device(name).mechanisms
    assert (mechanisms.shared_memory == "circular") == (name == "h200")
    assert mechanisms.configuration_headroom == (name == "h200")


def test_tpc_of_no_gpc_is_a_singleton() -> None:
    gpc_of_tpc = device("h200").gpc_of_tpc
    assert gpc_of_tpc[60:] == (6, 7, -1, -1, -1, -1)


def test_unknown_gpc_map_puts_every_tpc_outside_the_gpcs() -> None:
    assert set(device("rtx3090").gpc_of_tpc) == {-1}


def test_odd_number_of_sms_leaves_one_alone_in_the_last_tpc(write: Write) -> None:
    text = variant("topology.sms", "81") + f"sm_preference = {row('[[0, 81, 1]]')}\n"
    assert device(write(text)).tpcs == 41


# -- ablations ------------------------------------------------------------------------------------


def test_ablation_changes_what_it_names_and_nothing_else() -> None:
    whole, ablated = device("h200"), device("h200-no-warp-skip")
    mechanisms = dataclasses.replace(whole.mechanisms, warp_skip=False)
    assert ablated == dataclasses.replace(whole, name="h200-no-warp-skip", mechanisms=mechanisms)


def test_ablated_value_no_longer_claims_the_source_of_the_one_it_replaces() -> None:
    whole, ablated = device("h200").provenance, device("h200-free-warps").provenance
    changed = {path for path in whole if whole[path] != ablated[path]}
    assert changed == {"mechanisms.strict_round_robin", "mechanisms.warp_skip"}
    assert {ablated[path].kind for path in changed} == {"assumed"}
    assert device("h200-paper-order").provenance["topology.sm_preference"].kind == "assumed"
    assert device("h200").provenance["topology.sm_preference"].kind == "measured"


def test_paper_order_of_the_h200_is_even_then_odd() -> None:
    assert device("h200-paper-order").sm_preference == (*range(0, 132, 2), *range(1, 132, 2))


def test_unknown_ablation_names_the_ones_there_are() -> None:
    with pytest.raises(ValueError, match=r"'h200' has no ablation 'no-warps'.*no-warp-skip"):
        device("h200-no-warps")


def test_ablation_of_an_ablation_is_refused() -> None:
    with pytest.raises(ValueError, match="no ablation 'no-warp-skip-paper-order'"):
        device("h200-no-warp-skip-paper-order")


# -- names and paths ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "h100", "H200", "h200 ", "ablations", "no-warp-skip"])
def test_unknown_name_is_refused_with_the_names_there_are(name: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(name)) + r" is unknown.*a100, h200"):
        device(name)


@pytest.mark.parametrize("wrong", [None, 1, 1.5, b"h200", ["h200"], object(), DeviceSpec])
def test_neither_name_nor_path_nor_spec_is_a_type_error(wrong: object) -> None:
    with pytest.raises(TypeError, match="a name, a path or a DeviceSpec is needed"):
        device(wrong)  # type: ignore[arg-type]


def test_path_of_bytes_is_a_type_error() -> None:
    class BytesPath(os.PathLike[bytes]):
        def __fspath__(self) -> bytes:
            return b"mine.toml"

    with pytest.raises(TypeError, match="a name, a path or a DeviceSpec is needed"):
        device(BytesPath())  # type: ignore[arg-type]


def test_path_may_be_a_string_or_a_path(write: Write) -> None:
    path = write(RTX3090)
    assert device(path) == device(str(path))
    assert device(path) == dataclasses.replace(device("rtx3090"), name="mine")


def test_missing_file_is_named(tmp_path: Path) -> None:
    assert "no file" in refusal(tmp_path / "absent.toml")


def test_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    assert "cannot be read" in refusal(tmp_path / "folder.toml")


@pytest.mark.parametrize(
    "text", ["[", "a = 1\na = 2", "x = " + "9" * 5000, "x = " + "[" * 100_000], ids=range(4)
)
def test_what_is_not_toml_is_refused(write: Write, text: str) -> None:
    assert "not TOML" in refusal(write(text))


def test_bytes_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes(b'title = "\xe9"')
    assert "not TOML" in refusal(path)


# -- keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("sms = 132", "sms"),
        ("[topologie]", "topologie"),
        (f"[topologie]\nsms = {row('132')}", "topologie"),
        (f"[topology]\nsm = {row('132')}", "topology.sm"),
        (f"[limits]\nsms = {row('132')}", "limits.sms"),
        (f"[device]\nname = {row('1')}", "device.name"),
    ],
)
def test_unknown_key_is_named(write: Write, text: str, key: str) -> None:
    assert f"unknown key '{key}'" in refusal(write(f'extends = "rtx3090"\n{text}\n'))


ALL_KEYS = [f"{section}.{key}" for section, rows in tomllib.loads(RTX3090).items() for key in rows]


@pytest.mark.parametrize("path", ALL_KEYS)
def test_missing_key_is_named(write: Write, path: str) -> None:
    section, key = path.split(".")
    before, rest = RTX3090.split(f"[{section}]\n")
    without = re.sub(rf"^{key} = .*\n", "", rest, count=1, flags=re.MULTILINE)
    assert f"'{path}' is missing" in refusal(write(f"{before}[{section}]\n{without}"))


@pytest.mark.parametrize(
    "value",
    [
        "82",
        "{ value = 82 }",
        '{ value = 82, provenance = "paper" }',
        '{ value = 82, source = "Table I" }',
        '{ value = 82, provenance = "paper", source = "Table I", note = "" }',
    ],
)
def test_value_needs_exactly_provenance_and_source(write: Write, value: str) -> None:
    message = refusal(write(f'extends = "rtx3090"\n[topology]\nsms = {value}\n'))
    assert "topology.sms" in message
    assert "{ value, provenance, source } is needed" in message


@pytest.mark.parametrize("kind", ['"guessed"', '"Paper"', '""', "1", "[]"])
def test_unknown_provenance_names_the_four_there_are(write: Write, kind: str) -> None:
    text = (
        f'extends = "rtx3090"\n[topology]\nsms = {{ value = 82, provenance = {kind}, source = "" }}'
    )
    message = refusal(write(text))
    assert "topology.sms: provenance" in message
    assert "paper, vendor, measured, assumed" in message


def test_source_must_be_text(write: Write) -> None:
    text = 'extends = "rtx3090"\n[topology]\nsms = { value = 82, provenance = "paper", source = 1 }'
    assert "topology.sms.source: a string is needed, got 1" in refusal(write(text))


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


def test_spec_built_in_python_is_validated_too() -> None:
    with pytest.raises(ValueError, match=r"sms: 0 is outside 1\.\.65536"):
        dataclasses.replace(device("h200"), sms=0)
    with pytest.raises(TypeError, match="blocks_per_sm: an integer is needed, got True"):
        dataclasses.replace(device("h200"), blocks_per_sm=True)


# -- extends --------------------------------------------------------------------------------------


def test_variant_changes_its_own_keys_and_keeps_the_others(write: Write) -> None:
    spec = device(write(variant("limits.blocks_per_sm", "8")))
    assert spec == dataclasses.replace(device("rtx3090"), name="mine", blocks_per_sm=8)
    assert spec.provenance["limits.blocks_per_sm"].source == "a test"
    assert (
        spec.provenance["limits.warps_per_sm"]
        == device("rtx3090").provenance["limits.warps_per_sm"]
    )


def test_variant_without_keys_is_its_parent_under_its_own_name(write: Write) -> None:
    assert device(write('extends = "h200"')) == dataclasses.replace(device("h200"), name="mine")


def test_one_mechanism_of_the_parent_can_be_switched_off(write: Write) -> None:
    spec = device(write(variant("mechanisms.warp_skip", "false")))
    assert spec.mechanisms == dataclasses.replace(device("rtx3090").mechanisms, warp_skip=False)


def test_ablation_can_be_extended(write: Write) -> None:
    spec = device(write(variant("limits.blocks_per_sm", "8", base="h200-no-warp-skip")))
    assert (spec.mechanisms.warp_skip, spec.blocks_per_sm) == (False, 8)


def test_file_extends_one_beside_it_wherever_it_is_read_from(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(variant("limits.blocks_per_sm", "8"), "boards/base.toml")
    child = write('extends = "base.toml"', "boards/child.toml")
    monkeypatch.chdir(tmp_path)
    assert device(child).blocks_per_sm == device(Path("boards/child.toml")).blocks_per_sm == 8


def test_file_may_have_the_name_of_the_device_it_extends(write: Write) -> None:
    assert device(write('extends = "h200"', "h200.toml")) == device("h200")


@pytest.mark.parametrize("spelling", ["a.toml", "./a.toml", "../boards/a.toml", "b.toml"])
def test_file_that_extends_itself_is_refused(write: Write, spelling: str) -> None:
    path = write(f'extends = "{spelling}"', "boards/a.toml")
    write('extends = "../boards/a.toml"', "boards/b.toml")
    assert "extends itself" in refusal(path)


@pytest.mark.parametrize("parent", ["absent.toml", "h300", "h200-no-such", ""])
def test_unknown_parent_is_named_with_the_file_that_extends_it(write: Write, parent: str) -> None:
    message = refusal(write(f'extends = "{parent}"'))
    assert "mine.toml: extends: " in message
    assert parent.removeprefix("h200-") in message


def test_mistake_in_a_parent_names_both_files(write: Write) -> None:
    write(variant("topology.sm", "1"), "base.toml")
    message = refusal(write('extends = "base.toml"'))
    assert "mine.toml: extends: " in message
    assert "base.toml: unknown key 'topology.sm'" in message


@pytest.mark.parametrize("value", ["1", "[]", '["h200"]', "true"])
def test_extends_takes_one_name(write: Write, value: str) -> None:
    assert "extends: a string is needed" in refusal(write(f"extends = {value}"))


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
                Launch(1, spec.threads_per_block, 64),
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


def test_warp_of_a_block_that_fits_the_sm_but_not_its_processing_blocks_is_refused() -> None:
    # 17 warps of 96 registers need 5 x 3072 of the 16384 registers of a processing block.
    fits, one_more = Launch(1, 544, 96), Launch(1, 544, 97)
    device("h200").check(Sequence([fits]))
    with pytest.raises(ValueError, match=r"registers: 97 per thread with 544 threads.* 96$"):
        device("h200").check(Sequence([one_more]))
