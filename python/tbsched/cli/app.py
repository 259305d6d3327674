"""The command line: the verbs of the library, with exit statuses that scripts can use.

0 agreement (or nothing to disagree with), 1 disagreement found, 2 bad input, 3 no usable GPU.
"""

from __future__ import annotations

import sys
from typing import NoReturn

import typer
from rich.console import Console

from tbsched.cli.campaigns import fuzz, record
from tbsched.cli.compare import compare, verify
from tbsched.cli.configs import configs
from tbsched.cli.console import AGREEMENT, BAD_INPUT, INTERRUPTED, NO_GPU
from tbsched.cli.devices import devices
from tbsched.cli.plot import plot
from tbsched.cli.run import observe, predict
from tbsched.errors import TbschedError

VERBS = (devices, predict, observe, configs, compare, verify, plot, fuzz, record)

app = typer.Typer(
    name="tbsched",
    help="Predicts which SM every thread block of concurrent CUDA kernels lands on, runs the same "
    "on the GPU and compares.\n\nExit status: 0 agreement, 1 disagreement found, 2 bad input, "
    "3 no usable GPU.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in VERBS:
    app.command()(verb)


def main() -> NoReturn:
    """Runs the command line; the installed script ``tbsched``."""
    try:
        status = app(standalone_mode=False)
    except (ValueError, TypeError, FileNotFoundError, ImportError) as error:
        _fail(BAD_INPUT, error)
    except TbschedError as error:
        _fail(NO_GPU, error)
    except KeyboardInterrupt:
        _fail(INTERRUPTED, "interrupted")
    except Exception as error:
        # typer's own errors print themselves and know their status
        show = getattr(error, "show", None)
        if show is None:
            raise
        show()
        sys.exit(getattr(error, "exit_code", BAD_INPUT))
    sys.exit(status if isinstance(status, int) else AGREEMENT)


def _fail(status: int, why: object) -> NoReturn:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"tbsched: {why}", markup=False)
    sys.exit(status)
