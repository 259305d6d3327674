"""``tbsched devices``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from tbsched import views
from tbsched.cli.console import console, show, show_json
from tbsched.cli.options import AsJson, complete_device
from tbsched.hardware.catalogue import ablations
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.catalogue import devices as device_names
from tbsched.hardware.export import cpp_header
from tbsched.prediction.predict import launch_orders, policies
from tbsched.show.text.tables import table_of


def devices(
    name: Annotated[
        str | None,
        typer.Argument(help="Show this device's values.", autocompletion=complete_device),
    ] = None,
    cpp: Annotated[bool, typer.Option("--cpp", help="Print it as a C++ header.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the devices, their ablations and the policies; or show one device."""
    if cpp and as_json:
        raise ValueError("devices: --cpp and --json: give one of them")
    if name is None and as_json:
        show_json(_everything())
        return
    if name is None:
        rows = [(s.name, s.title, str(s.sms), s.policy) for s in map(find_device, device_names())]
        console.print(table_of(("device", "GPU", "SMs", "policy"), rows))
        console.print("\n[bold]ablations[/], to append to a device's name:")
        _rows(list(ablations().items()))
        console.print("\n[bold]policies[/]:")
        _rows([(row.name, f"{row.summary} ({row.source})") for row in policies()])
        console.print("\n[bold]orders of launches[/]:")
        _rows([(row.name, f"{row.summary} ({row.source})") for row in launch_orders()])
        return
    spec = find_device(name)
    if as_json:
        show_json(views.data(spec))
    else:
        show(cpp_header(spec) if cpp else spec)


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
