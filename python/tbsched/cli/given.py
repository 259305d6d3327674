"""What the command line gives to a verb: values that are not empty, and no file for two things."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tbsched import storage
from tbsched.traces.files import is_trace_file

# Parameters of verbs, by their names in Python: those that name what is written; all others that
# name files are read. What --evidence names is read, too, but only to go on with it.
_WRITTEN = ("output", "evidence", "html", "perfetto", "report")
_MAY_BE_EMPTY = ("program",)  # words for another program, which can take an empty one


def check_not_empty(command: Any, values: Mapping[str, object]) -> None:
    """Refuses an empty value, as of a shell variable that is not set.

    Args:
        command: the verb.
        values: of its parameters, as they were written, by their names in Python.

    Raises:
        ValueError: naming the option or argument.
    """
    for param in command.params:
        value = values.get(param.name)
        parts = value if isinstance(value, list | tuple) else [value]
        if "" in parts and param.name not in _MAY_BE_EMPTY:
            raise ValueError(f"{_name_of(param)}: '' is empty; give a value, or leave it out")


def check_apart(command: Any, values: Mapping[str, object]) -> None:
    """Refuses an output that another option names, too, or that the verb reads.

    Args:
        command: the verb.
        values: of its parameters, by their names in Python.

    Raises:
        ValueError: naming the file and the option or options.
    """
    names = {param.name: _name_of(param) for param in command.params}
    written: dict[Path, str] = {}
    for name in _WRITTEN:
        output = values.get(name)
        if not isinstance(output, Path):
            continue
        other_option = written.setdefault(_real(output), names[name])
        if other_option != names[name]:
            raise ValueError(
                f"{names[name]}: {output} is what {other_option} writes; write another file"
            )
        if any(_is_read(output, read_path) for read_path in _read(values)):
            raise ValueError(f"{names[name]}: {output} is what is read; write another file")


def _read(values: Mapping[str, object]) -> Iterator[Path]:
    """Yields the files that a verb reads: those of sequences, of devices and of oracles."""
    for name, value in values.items():
        for part in value if isinstance(value, list | tuple) else [value]:
            if name in _WRITTEN:
                continue
            if isinstance(part, Path):
                yield part
            elif isinstance(part, str) and (part.endswith(".toml") or is_trace_file(Path(part))):
                yield Path(part)


def _is_read(output: Path, path: Path) -> bool:
    """Returns whether an output is a file that a verb reads. ``path``: what it reads, a file or a
    folder with all files in it."""
    if storage.is_same_file(path, output):
        return True
    return path.is_dir() and output.is_file() and _real(output).parent == _real(path)


def _real(path: Path) -> Path:
    """Returns the path without symbolic links, but for links in a circle."""
    return Path(os.path.realpath(path))


def _name_of(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    return str(parameter.opts[0] if is_option else parameter.metavar).removesuffix("...")
