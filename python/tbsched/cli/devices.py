"""``tbsched devices``."""

from __future__ import annotations

from typing import Annotated

import typer

from tbsched.cli.console import console, show
from tbsched.hardware.catalogue import ablations
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.catalogue import devices as device_names
from tbsched.hardware.export import cpp_header
from tbsched.prediction.predict import launch_orders, policies
from tbsched.show.text.tables import table_of


def devices(
    name: Annotated[str | None, typer.Argument(help="Show this device's values.")] = None,
    cpp: Annotated[bool, typer.Option("--cpp", help="Print it as a C++ header.")] = False,
) -> None:
    """List the devices, their ablations and the policies; or show one device."""
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
    if cpp:
        show(cpp_header(spec))
        return
    show(spec)


def _rows(rows: list[tuple[str, str]]) -> None:
    width = max(len(name) for name, _ in rows)
    for name, words in rows:
        show(f"  {name:<{width}}  {words}")
