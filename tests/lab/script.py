"""What the scripts that run on a GPU share: their command line."""

from __future__ import annotations

import argparse
from pathlib import Path


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The command line, with ``--out``: the folder for whatever is written, which is made."""
    parser.add_argument("--out", type=Path, required=True, help="folder for whatever is written")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    return arguments


def parse_draw(
    parser: argparse.ArgumentParser, what: str, count: int, seconds: float = 60
) -> argparse.Namespace:
    """:func:`parse` of a script that draws at random, runs, and compares with a model.

    Args:
        parser: has the options that only this script has.
        what: is drawn.
        count, seconds: unless the command line says otherwise.
    """
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--count", type=int, default=count, help=what)
    parser.add_argument(
        "--seconds", type=float, default=seconds, help="after which no more are run"
    )
    parser.add_argument("--device", default="h200", help="whose model predicts")
    return parse(parser)
