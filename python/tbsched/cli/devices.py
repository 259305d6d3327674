"""``tbsched devices``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from tbsched import views
from tbsched.cli.console import AGREEMENT, DISAGREEMENT, console, show, show_json
from tbsched.cli.options import AsJson, complete_device
from tbsched.hardware.catalogue import ablations
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.catalogue import devices as device_names
from tbsched.hardware.differences import compare_devices
from tbsched.hardware.export import cpp_header
from tbsched.prediction.predict import launch_orders, policies
from tbsched.show.text.devices import differences_table
from tbsched.show.text.tables import render, table_of


def devices(
    name: Annotated[
        str | None,
        typer.Argument(help="Show this device's values.", autocompletion=complete_device),
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


def _compare(a: str, b: str, sources: bool, as_json: bool) -> int:
    found = compare_devices(a, b)
    if as_json:
        show_json(views.data(found))
    else:
        show(found)
        if sources and found.sources:
            show(render(differences_table(found.sources)))
    return AGREEMENT if found.same else DISAGREEMENT


def _list() -> None:
    rows = [(s.name, s.title, str(s.sms), s.policy) for s in map(find_device, device_names())]
    console.print(table_of(("device", "GPU", "SMs", "policy"), rows))
    console.print("\n[bold]ablations[/], to append to a device's name:")
    _rows(list(ablations().items()))
    console.print("\n[bold]policies[/]:")
    _rows([(row.name, f"{row.summary} ({row.source})") for row in policies()])
    console.print("\n[bold]orders of launches[/]:")
    _rows([(row.name, f"{row.summary} ({row.source})") for row in launch_orders()])


def _everything() -> dict[str, Any]:
    """What the list holds, as JSON has it."""
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
