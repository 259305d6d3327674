"""What cuda-gdb prints, as a real one printed it on an H200, and names with anything in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tbsched.hangs import debugger_text
from tbsched.hangs.snapshot import BlockRange, Gpu

DEVICES = """
  Dev PCI Bus/Dev ID        Name Description SM Type SMs Warps/SM Lanes/Warp Max Regs/Lane  Mask
*   0        00:06.0 NVIDIA H200   GH100GL-A   sm_90 132       64         32           255 0x0ff
"""
KERNELS = """
  Kernel Parent Dev Grid Status                             SMs Mask   GridDim  BlockDim Name
       1      -   0    2 Active 0x000fffffffffffffffffffffffffffaaaa (128,1,1) (256,1,1) workers()
*      0      -   0    1 Active 0x0ff0000000000000000000000000005555  (16,1,1) (128,1,1) schedulers
"""
THREADS = """
  BlockIdx ThreadIdx To BlockIdx ThreadIdx Count                 PC Filename  Line
Kernel 0
*  (0,0,0)   (0,0,0)     (0,0,0)   (0,0,0)     1 0x00007f20a77a00d0              0
   (0,0,0)   (1,0,0)     (0,0,0)  (31,0,0)    31 0x00007f20a77a0100              0
   (1,0,0)   (0,0,0)     (1,0,0)   (0,0,0)     1 0x00007f20a77a00d0              0
   (1,0,0)   (1,0,0)     (1,0,0)  (31,0,0)    31 0x00007f20a77a0100 /home/user/a b.py   8
"""


def test_gpus_have_their_names_and_sizes() -> None:
    assert debugger_text.gpus_in(DEVICES) == (Gpu(0, "NVIDIA H200", 132),)


def test_kernels_come_in_the_order_of_their_launches() -> None:
    first, second = debugger_text.kernels_in(KERNELS)
    assert (first.name, first.grid_id, first.grid, first.block) == (
        "schedulers", 1, (16, 1, 1), (128, 1, 1),
    )  # fmt: skip
    assert len(first.sms) == 16
    assert first.sms[:3] == (0, 2, 4)
    assert (second.number, len(second.sms)) == (1, 116)


def test_no_kernels_are_none() -> None:
    assert debugger_text.kernels_in("No CUDA kernels.\n") == ()
    assert debugger_text.blocks_in("No CUDA blocks.\n") == ()


def test_blocks_are_ranges_or_single_ones_with_their_sm() -> None:
    ranges = "*  (0,0,0)   (115,0,0)   116 running \n"
    assert debugger_text.blocks_in(ranges) == (BlockRange((0, 0, 0), (115, 0, 0), 116),)
    single = "*  (3,0,0) running   0  17 \n   (4,0,0) running   0 131 \n"
    assert [each.sm for each in debugger_text.blocks_in(single)] == [17, 131]


def test_threads_are_counted_by_instruction() -> None:
    most, least = debugger_text.pc_threads_in(THREADS)
    assert (most.pc, most.threads, most.block, most.thread) == (
        0x7F20A77A0100, 62, (0, 0, 0), (1, 0, 0),
    )  # fmt: skip
    assert least.threads == 2


@pytest.mark.parametrize(
    ("invocation", "name"),
    [
        ("workers()", "workers"),
        ("add(float*, int)(a=0x7f, n=3)", "add"),
        ("void at::f<int, g(int)>(float*, int)(a=1)", "at::f<int, g(int)>"),
        ("(anonymous namespace)::k(int)", "(anonymous namespace)::k"),
        ("void (anonymous namespace)::k<3>(int)", "(anonymous namespace)::k<3>"),
        ("grid_barrier", "grid_barrier"),
    ],
)
def test_names_have_no_arguments(invocation: str, name: str) -> None:
    assert debugger_text.bare_name(invocation) == name


@given(st.text(max_size=60))
def test_any_text_is_read(text: str) -> None:
    for read in (
        debugger_text.gpus_in, debugger_text.kernels_in, debugger_text.blocks_in,
        debugger_text.pc_threads_in, debugger_text.threads_in,
    ):  # fmt: skip
        read(text)
    debugger_text.bare_name(text)
    debugger_text.sample_in(1, (0, 0, 0), (0, 0, 0), text, [text], text)


def test_function_that_the_driver_runs_is_told() -> None:
    """Such a thread has nothing outside of the driver but the C library."""
    driver = "#{} 0x00007f6f964fef27 in ?? () from /usr/local/nvidia/lib64/libcuda.so.1"
    begins = "#4  0x00007f6f95a9cb84 in ?? () from /lib/x86_64-linux-gnu/libc.so.6"
    sleeps = "#0  0x00007fb19db1b79d in usleep () from /lib/x86_64-linux-gnu/libc.so.6"
    own = "#1  0x0000562a03ebd308 in write_checkpoint ()"
    main = "#5  0x0000562a03ebd308 in main ()"

    def told(*frames: str) -> str:
        heading = 'Thread 2 (Thread 0x7f6f959ff000 (LWP 3946) "cuda00001400006"):'
        (thread,) = debugger_text.threads_in("\n".join([heading, *frames]))
        return thread.host_function

    assert told(sleeps, own, driver.format(2), driver.format(3), begins) == "write_checkpoint"
    assert told(own.replace("write_checkpoint", "??"), driver.format(2), begins) == "without a name"
    assert told(sleeps, driver.format(2), begins) == ""
    assert told(sleeps, own, driver.format(2), main) == ""
    assert told(sleeps, own, begins) == ""
    assert told() == ""


def test_threads_of_the_debugger_itself_are_left_out() -> None:
    recorded = (Path(__file__).parent / "recorded" / "room_readme.txt").read_text("utf-8")
    part = recorded.split("@@ thread apply all bt 40")[1].split("\n@@ ")[0]
    threads = debugger_text.threads_in(part)
    assert [thread.name for thread in threads] == ["runner", "cuda00001400006"]
    assert threads[0].cuda_call == "cuCtxSynchronize_v2"
    assert threads[0].functions[-2:] == ("cudaDeviceSynchronize", "main")
    assert threads[1].cuda_call is None
