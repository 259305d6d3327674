"""``tbsched devices`` and ``tbsched describe``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from tbsched import storage, views
from tbsched.calibration.boards.describe import describe as describe_gpu
from tbsched.calibration.boards.describe import heading
from tbsched.cli.console import AGREEMENT, DISAGREEMENT, console, show, show_json
from tbsched.cli.files import check_device_output, note_written
from tbsched.cli.options import (
    AsJson,
    OptionalGpuIndex,
    complete_capability,
    complete_device,
    output_option,
)
from tbsched.hardware.catalogue import ablations
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.catalogue import devices as device_names
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.differences import compare_devices
from tbsched.hardware.export import cpp_header
from tbsched.hardware.spec import DeviceSpec
from tbsched.hardware.written import save_device
from tbsched.prediction.predict import launch_orders, policies
from tbsched.views.device_differences import differences_table
from tbsched.views.tables import table_of


def devices(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Show this device's values.", metavar="DEVICE", autocompletion=complete_device
        ),
    ] = None,
    cpp: Annotated[bool, typer.Option("--cpp", help="Print it as a C++ header.")] = False,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--diff",
            help="Show in which values two devices differ, and where these come from.",
            metavar="A B",
            autocompletion=complete_device,
        ),
    ] = None,
    sources: Annotated[
        bool,
        typer.Option(
            "--sources", help="With --diff: also list equal values that come from elsewhere."
        ),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """List the devices, their ablations and the policies; or show one device, or compare two.

    The exit status of --diff is 1 if a value differs.
    """
    if cpp and as_json:
        raise ValueError("devices: --cpp and --json: give one of them")
    if diff is not None:
        if name is not None or cpp:
            raise ValueError(f"devices: --diff and {'--cpp' if cpp else name}: give one of them")
        return _compare(*diff, sources, as_json)
    if sources:
        raise ValueError("devices: --sources: needs --diff")
    if name is None:
        show_json(_everything()) if as_json else _list()
    elif as_json:
        show_json(views.data(find_device(name)))
    else:
        spec = find_device(name)
        show(cpp_header(spec) if cpp else spec)
    return AGREEMENT


def describe(
    output: Annotated[Path, output_option("A device file (.toml).")],
    gpu: OptionalGpuIndex = None,
    compute_capability: Annotated[
        str | None,
        typer.Option(
            help="Describe a GPU that is not here, of this compute capability, such as 8.9.",
            autocompletion=complete_capability,
        ),
    ] = None,
    sms: Annotated[int | None, typer.Option(help="How many SMs that GPU has.")] = None,
    title: Annotated[str | None, typer.Option(help="The vendor's name of that GPU.")] = None,
    as_json: AsJson = False,
) -> int:
    """Write a first device file of a GPU from queries and documents, without measuring it.

    The driver says how many SMs there are and what an SM has, and NVIDIA documents more. All other
    values are assumed to be those of the nearest shipped device, and the file says so.
    With --compute-capability and --sms no GPU is needed.
    """
    name = check_device_output(output)
    is_there = storage.check_writable(output)
    spec = describe_gpu(
        gpu,
        compute_capability=compute_capability,
        sms=sms,
        title=title,
        name=name,
    )
    save_device(output, spec, heading=heading(spec))
    note_written(output, is_there, "a device file")
    if as_json:
        show_json(views.data(spec))
    else:
        _show_known(spec)
    return AGREEMENT


def _show_known(spec: DeviceSpec) -> None:
    """Shows the values of a device that are not assumed."""
    rows = [
        (field.path, str(field.of(spec)))
        for field in FIELDS
        if field.section and spec.provenance[field.path].kind != "assumed"
    ]
    show(table_of(("value", "said or documented"), rows))
    show(heading(spec))


def _compare(a: str, b: str, sources: bool, as_json: bool) -> int:
    """Shows how two devices differ; returns the exit status."""
    differences = compare_devices(a, b)
    if as_json:
        show_json(views.data(differences))
    else:
        show(differences)
        if sources and differences.sources:
            show(differences_table(differences.sources))
    return AGREEMENT if differences.same else DISAGREEMENT


def _list() -> None:
    """Shows all devices, ablations, policies and orders of launches."""
    rows = [(s.name, s.title, str(s.sms), s.policy) for s in map(find_device, device_names())]
    show(table_of(("device", "GPU", "SMs", "policy"), rows))
    console.print("\n[bold]ablations[/], to append to a device's name:")
    _rows(list(ablations().items()))
    console.print("\n[bold]policies[/]:")
    _rows([(row.name, f"{row.summary} ({row.source})") for row in policies()])
    console.print("\n[bold]orders of launches[/]:")
    _rows([(row.name, f"{row.summary} ({row.source})") for row in launch_orders()])


def _everything() -> dict[str, Any]:
    """Returns all devices, ablations, policies and orders of launches, as JSON data."""
    keys = ("name", "title", "sms", "policy")
    specs = map(find_device, device_names())
    return {
        "devices": [{key: getattr(spec, key) for key in keys} for spec in specs],
        "ablations": [{"name": name, "summary": words} for name, words in ablations().items()],
        "policies": [asdict(row) for row in policies()],
        "launch_orders": [asdict(row) for row in launch_orders()],
    }


def _rows(rows: list[tuple[str, str]]) -> None:
    width = max(len(name) for name, _ in rows)
    for name, words in rows:
        show(f"  {name:<{width}}  {words}")
