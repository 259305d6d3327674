"""The command line: the verbs of the library, with exit statuses that scripts can use.

0 agreement or success, 1 a disagreement found, 2 bad input or output, 3 no usable GPU, 130
interrupted.
"""

from __future__ import annotations

import contextlib
import io
import os
import platform
import sys
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module, metadata, util
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from tbsched.cli.at_once import INTERRUPTED
from tbsched.cli.console import AGREEMENT, BAD_INPUT, DISAGREEMENT, NO_GPU, note, show
from tbsched.cli.hints import hint
from tbsched.cli.interrupts import (
    ending_at_once,
    is_interruption,
    not_swallowed,
    sigterm_as_ctrl_c,
)
from tbsched.cli.spellings import Verb
from tbsched.errors import NoGpuError, TbschedError
from tbsched.views.terminal import visible

_COMPLETING = "_TBSCHED_COMPLETE"  # typer's variable
_WITHOUT_GPU = (
    "Without a GPU: predict, explain, show and coresident need none, with a --device of `tbsched "
    "devices`; fuzz, record and calibrate take --oracle rtx3090, a model that plays one."
)
# By verb: the module of its function, below tbsched.cli.
VERBS: Mapping[str, str] = {
    "devices": "devices",
    "predict": "run",
    "observe": "run",
    "configs": "configs",
    "explain": "programs.explain",
    "capacity": "together.capacity",
    "coresident": "together.coresident",
    "compare": "compare",
    "verify": "compare",
    "show": "show",
    "fuzz": "campaigns",
    "record": "campaigns",
    "describe": "devices",
    "calibrate": "calibrate",
    "capture": "programs.capture",
    "hang": "programs.hang",
    "sm": "sm.verbs",
}


def verb(name: str) -> Callable[..., int | None] | typer.Typer:
    """Returns the function of a verb, which it imports; for ``sm`` an app with verbs of its own."""
    with ending_at_once():
        module = import_module(f"tbsched.cli.{VERBS[name]}")
    function_or_app: Callable[..., int | None] | typer.Typer = getattr(module, name)
    return function_or_app


class Verbs(TyperGroup):
    """The verbs; each is imported when it is asked for, so that none waits for the others."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: dict[str, Any] = dict.fromkeys(VERBS)

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names of the verbs."""
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Returns the command of a verb, or None if there is no such verb."""
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _command(cmd_name)
        return self.commands.get(cmd_name)


def _command(name: str) -> Any:
    """Returns the command of a verb."""
    function_or_app = verb(name)
    if isinstance(function_or_app, typer.Typer):
        return typer.main.get_command(function_or_app)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(cls=Verb, short_help=(function_or_app.__doc__ or "").partition("\n")[0])(
        function_or_app
    )
    return typer.main.get_command(alone)


app = typer.Typer(
    name="tbsched",
    cls=Verbs,
    help="Predicts which SM every thread block of concurrent CUDA kernels lands on, runs the same "
    "on the GPU and compares.\n\nExit status: 0 agreement or success, 1 a disagreement found, "
    "2 bad input or output, 3 no usable GPU, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its help cuts names in narrow windows
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    """Shows the versions and ends, if that is wanted."""
    if wanted:
        built = util.find_spec("tbsched._launcher") is not None
        launcher = "with" if built else "without"
        version = metadata.version("tbsched")
        show(f"tbsched {version}, {launcher} the CUDA launcher, Python {platform.python_version()}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Takes the options before the verb."""


def main() -> NoReturn:
    """Runs the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a title that the terminal has no letters for
    try:
        with sigterm_as_ctrl_c(), not_swallowed():
            status = _flushed(_status())
    except KeyboardInterrupt:  # pressed again, while the first is explained
        status = INTERRUPTED
    sys.exit(status)


def _status() -> int:
    """Runs the verb of the arguments, and says what was wrong with it."""
    try:
        if sys.stdout is None:
            raise ValueError("standard output is closed")
        # Not app(): it exits with status 1 where a pipe is closed or Ctrl-C was pressed.
        command = typer.main.get_command(app)
        if _COMPLETING in os.environ:
            command.main(prog_name="tbsched")  # exits: a shell asks what can follow
        with command.make_context("tbsched", sys.argv[1:]) as context:
            status = command.invoke(context)
    except SystemExit as error:
        # A progress bar of rich ends so, too, where a pipe is closed.
        return BAD_INPUT if error.code else AGREEMENT
    except (Exception, KeyboardInterrupt) as error:
        return _failure(error)
    return status if isinstance(status, int) else AGREEMENT


def _failure(error: BaseException) -> int:
    """Explains an error on standard error; returns its exit status."""
    if is_interruption(error):
        return _report_error(INTERRUPTED, "interrupted")
    if isinstance(error, typer.Exit):
        return int(error.exit_code)
    if isinstance(error, NoGpuError):
        return _report_error(NO_GPU, f"{error}\n{_WITHOUT_GPU}")
    if isinstance(error, TbschedError):
        return _report_error(NO_GPU, error)
    if isinstance(error, OSError):
        if isinstance(error, BrokenPipeError) and error.filename is None:
            return BAD_INPUT  # who reads the output has had enough of it
        file_and_reason = [str(part) for part in (error.filename, error.strerror) if part]
        return _report_error(BAD_INPUT, visible(": ".join(file_and_reason) or str(error)))
    if isinstance(error, MemoryError):
        return _report_error(BAD_INPUT, "out of memory")
    show = getattr(error, "show", None)
    if show is not None:  # typer's own errors print themselves and know their status
        meant = hint(error)
        with contextlib.suppress(OSError):
            show()
            if meant:
                note(f"tbsched: {meant}")
        return int(getattr(error, "exit_code", BAD_INPUT))
    if not isinstance(error, ValueError | TypeError | ImportError):
        traceback.print_exception(error)
    return _report_error(BAD_INPUT, visible(str(error)))


def _report_error(status: int, why: object) -> int:
    with contextlib.suppress(OSError):  # nobody hears it
        note(f"tbsched: {why}")
    return status


def _flushed(status: int) -> int:
    """Returns the status; another one if what was printed could not be written."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError as error:
            # Python tries again when it ends, and would exit with a status of its own.
            with open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())
            if status <= DISAGREEMENT:
                if not isinstance(error, BrokenPipeError):
                    note(f"tbsched: standard output: {error.strerror}")
                status = BAD_INPUT
    return status
