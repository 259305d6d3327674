"""``tbsched sm``: what runs inside the SMs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tbsched import storage, views
from tbsched.cli.console import show, show_json
from tbsched.cli.files import check_output
from tbsched.cli.options import AsJson, DeviceName, GpuIndex
from tbsched.sm.characterization import OPCODES, load_characterization
from tbsched.sm.characterization import characterize as characterization_of
from tbsched.sm.generator import presets
from tbsched.sm.parameters import config as config_named
from tbsched.sm.rewriting import variants as variants_of
from tbsched.sm.running import schedulers, simulate_many

sm = typer.Typer(
    help="What runs inside the SMs: simulated, or measured.",
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
            "-s",
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
    found = simulate_many(workloads, scheduler, gpu.changed(**changes) if changes else gpu)
    if as_json:
        show_json({"simulations": views.data(found)})
    else:
        show(found)


def characterize(
    raw: Annotated[
        Path | None,
        typer.Option(
            "--raw", "-r", help="A .jsonl file that keeps every run, and is gone on with."
        ),
    ] = None,
    opcode: Annotated[
        list[str] | None,
        typer.Option("--opcode", "-c", help=f"Of {', '.join(OPCODES)}; all by default."),
    ] = None,
    seconds: Annotated[float, typer.Option(help="For how long.")] = 300.0,
    gpu: GpuIndex = 0,
    replay: Annotated[
        bool, typer.Option("--replay", help="Run nothing: the figures of what --raw holds.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure instructions on the GPU: throughput, waits, warps needed, skew.

    Every loop is proved in the machine code before it runs. It needs ptxas and nvdisasm.

    Example: two opcodes, with all runs kept.

    \b
      tbsched sm characterize -c fp32.fma -c fp64.fma --raw h200.jsonl
    """
    if replay and raw is None:
        raise ValueError("--replay: --raw is needed, too")
    if replay and raw is not None:
        found = load_characterization(raw)
    else:
        found = characterization_of(gpu, opcode, seconds, raw=raw)
    if as_json:
        show_json(views.data(found))
    else:
        show(found)


def variants(
    cubin: Annotated[Path, typer.Argument(help="A cubin, as nvcc -cubin writes it.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A folder for a cubin per variant and variants.json."),
    ] = None,
    kernel: Annotated[
        str | None, typer.Option("--kernel", "-k", help="Its name, if the cubin has several.")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            "-t",
            help="Of a block: only registers that change how many blocks an SM holds.",
        ),
    ] = None,
    shared_memory: Annotated[
        int, typer.Option("--shared-memory", "-s", help="Bytes for each block.")
    ] = 0,
    draws: Annotated[
        int, typer.Option(help="How many orders are drawn by chance, in addition.")
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
    found = variants_of(
        cubin if kernel is None else (cubin, kernel),
        device,
        threads=threads,
        shared_memory=shared_memory,
        draws=draws,
    )
    table = views.data(found)
    files = {}
    for row, variant in zip(table["variants"], found, strict=True):
        row["file"] = f"{variant.name.replace(', ', '-').replace(' ', '-')}.cubin"
        files[row["file"]] = variant.cubin
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        files["variants.json"] = f"{json.dumps(table, indent=2)}\n".encode()
        for name in files:
            check_output(output / name, cubin)
        for name, content in files.items():
            with storage.replacing(output / name) as file:
                file.write(content)
    if as_json:
        show_json(table)
    else:
        show(found)


def _assignment(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    try:
        return name.strip(), int(value)
    except ValueError:
        raise ValueError(f"--set {text}: a parameter=integer is needed") from None


SM_VERBS = (simulate, characterize, variants)
for _verb in SM_VERBS:
    sm.command(short_help=(_verb.__doc__ or "").partition("\n")[0])(_verb)


@sm.callback()
def _root() -> None:
    """What comes before the verb."""
