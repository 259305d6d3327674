"""What is most likely meant by a word that the command line refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# The option that a verb may have in the place of one that it has not.
_OPTION: Mapping[str, str] = {
    "--gpu": "--device", "-g": "--device", "-o": "--html", "--output": "--html",
}  # fmt: skip
# What an option's value is called where its name in Python is that of something else: the list
# of an option that may be repeated, and arguments of campaigns.
_ALSO: Mapping[str, str] = {
    "streams": "stream", "max_examples": "sequences", "count": "sequences",
    "max_seconds": "seconds", "predictor": "device", "corpus": "evidence",
}  # fmt: skip
# Verbs of functions whose messages name the argument alone, first.
_CAMPAIGNS = ("fuzz", "record")
# What there is in the place of a verb.
_VERB: Mapping[str, str] = {
    "budget": "tbsched capacity --budget",
    "characterize": "tbsched sm characterize",
    "draw": "tbsched show FILE -o picture.png",
    "gantt": "tbsched show FILE -o picture.png",
    "plot": "tbsched show FILE -o picture.png",
    "profile": "tbsched capture -o FILE -- PROGRAM",
    "simulate": "tbsched sm simulate",
    "variants": "tbsched sm variants",
}


def hint(error: Any) -> str:
    """Returns what is meant, in a line, or brings the options that the error offers up to date.

    Args:
        error: a usage error of typer, which knows its verb.
    """
    verb = getattr(error, "ctx", None)
    if verb is None:
        return ""
    option = getattr(error, "option_name", None)
    if option is not None:
        return _hint_for_option(error, option)
    if verb.command.name == "devices" and "unexpected extra" in error.message:
        return "to compare two devices: tbsched devices --diff A B"
    match = re.search(r"No such command '([\w-]+)'", error.message)
    meant = _VERB.get(match[1]) if match and verb.parent is None else None
    return f"did you mean {meant}?" if meant else ""


def _hint_for_option(error: Any, option: str) -> str:
    """Returns a hint for an unknown option, or adds one to the error's possibilities."""
    known = options_of(error.ctx.command).values()
    meant = _OPTION.get(option)
    if meant in known:
        error.possibilities = [meant]
        return ""
    if error.ctx.command.name == "capture":
        return "write -- before the program: tbsched capture -o FILE -- python program.py"
    return ""


def options_of(command: Any) -> dict[str, str]:
    """Returns the options of a verb, by the names that their values have in Python."""
    return {
        param.name: param.opts[0] for param in command.params if param.param_type_name == "option"
    }


def in_options(message: str, command: Any) -> str:
    """Returns the message of a function with options in the place of its arguments.

    Only arguments of ``load_program``, of the function with the verb's name and of campaigns are
    meant.
    """
    options = options_of(command)
    owners = rf"\b(?:load_program|{re.escape(command.name)})\."
    before = rf"(?:^|{owners})" if command.name in _CAMPAIGNS else owners
    return re.sub(
        rf"{before}(\w+)(?=[\[:])",
        lambda match: options.get(_ALSO.get(match[1], match[1]), match[0]),
        message,
    )
