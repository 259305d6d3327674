"""The verbs of the command line, as functions and as commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import typer

from tbsched.cli import app as command_line
from tbsched.cli.sm.verbs import SM_VERBS

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: command_line.verb(name) for name in command_line.VERBS if name != "sm"},
    **{f"sm {verb.__name__}": verb for verb in SM_VERBS},
}


def _commands(group: Any, names: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from _commands(command, (*names, name))
        else:
            yield " ".join((*names, name)), command


COMMANDS: dict[str, Any] = dict(_commands(typer.main.get_command(command_line.app)))
