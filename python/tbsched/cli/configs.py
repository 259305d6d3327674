"""``tbsched configs``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tbsched import views
from tbsched.advice.launch_configs import Kernel, launch_configs
from tbsched.cli.console import show, show_json
from tbsched.cli.options import CARVEOUT, AsJson, DeviceName, KernelName, SharedMemory


def configs(
    threads: Annotated[
        int, typer.Argument(help="Items in all, with a thread for each.", metavar="ITEMS")
    ],
    registers: Annotated[int, typer.Option("--registers", "-r", help="Registers per thread.")] = 32,
    shared_memory: SharedMemory = 0,
    shared_memory_per_thread: Annotated[
        int,
        typer.Option(
            "--shared-memory-per-thread",
            help="Shared memory on top for each thread of a block, in bytes.",
        ),
    ] = 0,
    carveout: Annotated[
        int | None,
        typer.Option("--carveout", help=f"{CARVEOUT} The driver's choice by default."),
    ] = None,
    trust_policy: Annotated[
        bool, typer.Option(help="Also accept what is even under the device's own policy.")
    ] = False,
    loops: Annotated[
        bool, typer.Option("--loops", help="Threads loop over the items, so that any grid works.")
    ] = False,
    blocks: Annotated[
        int | None, typer.Option(help="Blocks of the grid, whatever their size.")
    ] = None,
    cubin: Annotated[
        Path | None, typer.Option(help="The kernel's machine code: adds reasons and advice.")
    ] = None,
    kernel: KernelName = None,
    device: DeviceName = "h200",
    as_json: AsJson = False,
) -> None:
    """List block sizes for a kernel, and what speaks against each.

    Accepted: on an idle GPU, certain to spread evenly over the SMs, in one wave, and with as many
    warps on each processing block of an SM.

    With the machine code, each row also has an estimate of its time, and one is advised:

    \b
      tbsched configs 4194304 --registers 16 --cubin stencil.cubin --kernel stencil_5
    """
    if kernel is not None and cubin is None:
        raise ValueError("configs: --kernel: needs --cubin, the file that it is in")
    described = Kernel(
        threads,
        registers,
        shared_memory=shared_memory,
        shared_memory_per_thread=shared_memory_per_thread,
        carveout=carveout,
        loops=loops,
        blocks=blocks,
    )
    rows = launch_configs(
        device, described, trust_policy, code=None if cubin is None else (cubin, kernel)
    )
    if as_json:
        show_json(views.data(rows))
    else:
        show(rows)
