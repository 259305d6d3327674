"""``tbsched sm``: what runs inside the SMs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tbsched import storage, views
from tbsched.cli.console import show, show_json
from tbsched.cli.files import check_output, note_written
from tbsched.cli.options import (
    THREADS,
    AsJson,
    DeviceName,
    Evidence,
    GpuIndex,
    KernelName,
    Seconds,
    SharedMemory,
    output_option,
)
from tbsched.cli.spellings import Verb
from tbsched.counting import counted
from tbsched.sm.characterization import OPCODES, load_characterization
from tbsched.sm.characterization import characterize as characterization_of
from tbsched.sm.generator import presets
from tbsched.sm.parameters import config as config_named
from tbsched.sm.rewriting import variants as variants_of
from tbsched.sm.running import schedulers, simulate_many

sm = typer.Typer(
    name="sm",
    help="What runs inside the SMs: simulated, or measured.",
    short_help="Simulate or measure what runs inside the SMs.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)


def simulate(
    workloads: Annotated[
        list[str],
        typer.Argument(
            help=f"Presets ({', '.join(presets())}), or .npz files.", metavar="WORKLOADS"
        ),
    ],
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            "--scheduler",
            help=f"Of {', '.join(row.name for row in schedulers())}; all by default. The others "
            "are compared with the first.",
        ),
    ] = None,
    config: Annotated[
        str, typer.Option("--config", "-c", help="A simulated GPU, or the path of a .toml.")
    ] = "owl-table1",
    values: Annotated[
        list[str] | None,
        typer.Option("--set", help="Another value for a parameter of the config: banks=8."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate kernels with warp schedulers, caches, a network and DRAM.

    Example: what does each scheduler do to k-means, with eight banks instead of four?

    \b
      tbsched sm simulate KMN --set banks=8
    """
    changes = dict(map(_assignment, values or ()))
    gpu = config_named(config)
    simulations = simulate_many(workloads, scheduler, gpu.changed(**changes) if changes else gpu)
    if as_json:
        show_json({"simulations": views.data(simulations)})
    else:
        show(simulations)


def characterize(
    evidence: Evidence = None,
    opcode: Annotated[
        list[str] | None,
        typer.Option("--opcode", help=f"Of {', '.join(OPCODES)}; all by default."),
    ] = None,
    seconds: Seconds = 300.0,
    gpu: GpuIndex = 0,
    replay: Annotated[
        bool, typer.Option("--replay", help="Run nothing: the figures of what --evidence holds.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure instructions on the GPU: throughput, waits, warps needed, skew.

    Every loop is proved in the machine code before it runs. It needs ptxas and nvdisasm.

    Example: two opcodes, with all runs kept.

    \b
      tbsched sm characterize --opcode fp32.fma --opcode fp64.fma --evidence h200.jsonl
    """
    if replay and evidence is None:
        raise ValueError("--replay: --evidence is needed, too")
    if replay and evidence is not None:
        characterization = load_characterization(evidence)
    else:
        characterization = characterization_of(gpu, opcode, seconds, raw=evidence)
    if as_json:
        show_json(views.data(characterization))
    else:
        show(characterization)


def variants(
    cubin: Annotated[
        Path, typer.Argument(help="A cubin, as nvcc -cubin writes it.", metavar="CUBIN")
    ],
    output: Annotated[
        Path | None,
        output_option("A folder, which gets a cubin per variant and variants.json."),
    ] = None,
    kernel: KernelName = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            "-t",
            help=f"{THREADS} Only registers that change how many blocks an SM holds.",
        ),
    ] = None,
    shared_memory: SharedMemory = 0,
    draws: Annotated[
        int,
        typer.Option("--draws", help="How many random orders to add.", metavar="COUNT"),
    ] = 0,
    every: Annotated[
        int,
        typer.Option(
            "--every", help="All orders, if the kernel has at most this number.", metavar="COUNT"
        ),
    ] = 0,
    device: DeviceName = "h200",
    as_json: AsJson = False,
) -> None:
    """Write variants of a kernel that compute the same, to be timed.

    Some have more registers for a thread, so that fewer blocks share an SM. Others have the
    instructions in another order. It needs nvdisasm. In Python, tb.sm.search times them.

    Example: the variants of the only kernel in a cubin, for blocks of 256 threads.

    \b
      tbsched sm variants stencil.cubin --threads 256 -o variants
    """
    variants_made = variants_of(
        cubin if kernel is None else (cubin, kernel),
        device,
        threads=threads,
        shared_memory=shared_memory,
        draws=draws,
        every=every,
    )
    table = views.data(variants_made)
    files = {}
    for row, variant in zip(table["variants"], variants_made, strict=True):
        row["file"] = f"{variant.name.replace(', ', '-').replace(' ', '-')}.cubin"
        files[row["file"]] = variant.cubin
    if as_json:
        show_json(table)
    else:
        show(variants_made)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        files["variants.json"] = f"{json.dumps(table, indent=2)}\n".encode()
        are_there = [check_output(output / name, cubin) for name in files]
        for name, content in files.items():
            with storage.replacing(output / name) as file:
                file.write(content)
        note_written(output, any(are_there), counted(len(files), "file"))


def _assignment(text: str) -> tuple[str, int]:
    """Returns the name and the value of ``--set name=value``."""
    name, _, value = text.partition("=")
    try:
        return name.strip(), int(value)
    except ValueError:
        raise ValueError(f"--set {text}: a parameter=integer is needed") from None


SM_VERBS = (simulate, characterize, variants)
for _verb in SM_VERBS:
    sm.command(cls=Verb, short_help=(_verb.__doc__ or "").partition("\n")[0])(_verb)


@sm.callback()
def _root() -> None:
    """Takes the options before the verb."""
