"""Block sizes for a kernel: what is accepted, and what each other one is rejected for."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from helpers import KB, gpu
from tbsched.advice.launch_configs import Kernel, LaunchConfig, launch_configs
from tbsched.cli.app import app

FOUR = gpu(4)  # an SM holds 16 blocks and 48 warps, on four processing blocks


def config(kernel: Kernel, threads: int, trust_policy: bool = False) -> LaunchConfig:
    rows = launch_configs(FOUR, kernel, trust_policy)
    (row,) = (row for row in rows if row.launch.threads == threads)
    return row


def accepted(kernel: Kernel, trust_policy: bool = False) -> list[int]:
    return [row.launch.threads for row in launch_configs(FOUR, kernel, trust_policy).accepted]


def test_there_is_a_row_for_each_block_size_of_whole_warps() -> None:
    sizes = [row.launch.threads for row in launch_configs(FOUR, Kernel(1, 32))]
    assert sizes == list(range(32, 1025, 32))


def test_blocks_cover_the_threads_and_no_block_is_idle() -> None:
    for row in launch_configs(FOUR, Kernel(1000, 32)):
        blocks, threads = row.launch.blocks, row.launch.threads
        assert (blocks - 1) * threads < 1000 <= blocks * threads


def test_work_that_fills_the_gpu_is_accepted_in_the_sizes_that_fill_it() -> None:
    """4 SMs x 48 warps. Sizes of 96, 128 and 192 threads fill an SM; so do 256 to 768."""
    assert accepted(Kernel(4 * 48 * 32, 32)) == [96, 128, 192, 256, 384, 512, 768]


def test_one_thread_more_is_more_than_a_wave() -> None:
    row = config(Kernel(4 * 48 * 32 + 1, 32), 512)
    assert row.rejected == ("more than one wave, 4 SMs x 3 blocks",)


def test_half_of_that_work_is_even_only_by_the_policy_that_places_it() -> None:
    half = Kernel(4 * 24 * 32, 32)
    assert config(half, 128).rejected == (
        "an SM holds 12 blocks, which leaves room for an uneven spread",
    )
    assert config(half, 128, trust_policy=True).accepted
    assert set(accepted(half)) < set(accepted(half, trust_policy=True))


def test_blocks_of_which_an_sm_holds_one_are_accepted_with_an_sm_left_idle_or_not() -> None:
    """Half of the work again: 4 blocks of 896 threads, 3 of 1024; two of 768 would fit an SM."""
    half = Kernel(4 * 24 * 32, 32)
    assert accepted(half) == [896, 1024]
    shares = [row.evenness and row.evenness.share for row in launch_configs(FOUR, half).accepted]
    assert shares == [(1, 1), (0, 1)]
    assert config(half, 768).rejected == (
        "an SM holds 2 blocks, which leaves room for an uneven spread",
    )


def test_policy_that_fills_sm_after_sm_is_not_trusted() -> None:
    first_fit = gpu(4, policy="first_fit")
    configs = launch_configs(first_fit, Kernel(4 * 24 * 32, 32), trust_policy=True)
    assert [row.launch.threads for row in configs.accepted] == [896, 1024]


def test_warps_of_an_sm_must_be_a_multiple_of_its_processing_blocks() -> None:
    """Four blocks of 30 warps, one per SM, leave two processing blocks with one warp less."""
    assert config(Kernel(4 * 960, 32), 960).rejected == ("30 warps on an SM, not a multiple of 4",)
    assert config(Kernel(4 * 896, 32), 896).accepted


def test_warps_count_per_sm_and_not_per_block() -> None:
    """16 blocks of 3 warps are 48 on an SM; 10 of 3 and 11 of 3 are 30 and 33."""
    assert config(Kernel(4 * 48 * 32, 32), 96).accepted
    some = config(Kernel(41 * 96, 32), 96, trust_policy=True)
    assert some.rejected == ("30 warps on an SM, not a multiple of 4",)


def test_block_that_no_sm_holds_is_rejected_for_what_it_lacks() -> None:
    row = config(Kernel(1024, 255), 1024)
    assert row.evenness is None
    assert row.rejected == (
        "registers: 255 per thread with 1024 threads is more than an SM of rtx3090 holds, 64",
    )
    heavy = config(Kernel(1024, 32, shared_memory_per_thread=100), 1024)
    assert "shared_memory: 102400 is more than rtx3090 allows" in heavy.rejected[0]


def test_shared_memory_per_thread_grows_with_the_block_and_per_block_does_not() -> None:
    kernel = Kernel(1024, 32, shared_memory=KB, shared_memory_per_thread=8)
    assert [kernel.launch(threads).shared_memory for threads in (32, 64)] == [KB + 256, KB + 512]


def test_carveout_and_local_memory_reach_the_launch() -> None:
    made = Kernel(64, 32, local_memory=16, carveout=50).launch(32)
    assert (made.local_memory, made.carveout, made.blocks) == (16, 50, 2)


def test_table_has_the_verdict_of_each_block_size() -> None:
    lines = str(launch_configs(FOUR, Kernel(4 * 48 * 32, 32))).splitlines()
    assert lines[0] == "rtx3090: 7 of 32 block sizes are accepted"
    assert " ".join(lines[1].split()) == "threads blocks per SM fit an SM bound by verdict"
    assert lines[4].split() == ["96", "64", "16", "16", "warps", "accepted"]
    assert lines[5].split()[:4] == ["128", "48", "12", "12"]
    assert lines[6].endswith("more than one wave, 4 SMs x 9 blocks")
    assert len(lines) == 2 + 32


def test_table_shows_the_share_of_each_sm_and_dashes_where_a_block_cannot_run() -> None:
    lines = str(launch_configs(FOUR, Kernel(41 * 96, 255))).splitlines()
    assert lines[2].split()[:3] == ["32", "123", "30-31"]
    assert lines[-1].split()[:5] == ["1024", "4", "-", "-", "-"]


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"threads": 0}, ValueError, r"Kernel\.threads: 0 is outside 1\.\.2147483647"),
        ({"threads": 1.5}, TypeError, r"Kernel\.threads: an integer is needed, got 1\.5"),
        ({"threads": True}, TypeError, r"Kernel\.threads: an integer is needed"),
        ({"shared_memory": -1}, ValueError, r"Kernel\.shared_memory: -1 is outside"),
        (
            {"shared_memory_per_thread": 8193},
            ValueError,
            r"Kernel\.shared_memory_per_thread: 8193 is outside 0\.\.8192",
        ),
    ],
)
def test_bad_kernels_are_refused_by_name(
    fields: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Kernel(**{"threads": 1, "registers": 32, **fields})


def test_fields_of_every_launch_are_refused_by_the_launch_s_own_words() -> None:
    with pytest.raises(ValueError, match=r"Launch\.registers: 256 is outside 1\.\.255"):
        launch_configs(FOUR, Kernel(1, 256))
    with pytest.raises(TypeError, match=r"kernel: a Kernel is needed, got 3"):
        launch_configs(FOUR, 3)  # type: ignore[arg-type]


def test_command_line_prints_the_same_table() -> None:
    words = ["configs", "8448", "-r", "64", "-s", "1024", "--carveout", "100", "-d", "rtx3090"]
    found = CliRunner().invoke(app, [*words, "--trust-policy"])
    kernel = Kernel(8448, 64, shared_memory=1024, carveout=100)
    assert found.exit_code == 0
    assert found.stdout.strip() == str(launch_configs("rtx3090", kernel, trust_policy=True))
