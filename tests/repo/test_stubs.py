"""``_core.pyi`` is written from the compiled module's own signatures, and compared with them.

A mismatch leaves the right stub beside the old one, as ``.new``.
"""

from __future__ import annotations

import ast
import inspect
import re
from types import ModuleType, WrapperDescriptorType

import pytest

from helpers import ROOT
from tbsched import _core

STUB = ROOT / "python" / "tbsched" / "_core.pyi"
WIDTH = 100

# What the extension calls list, and what is in it.
_SNAPSHOT = (
    "tuple[\n    tuple[_Ints, _Ints, _Ints, _Ints, npt.NDArray[np.uint64]],\n"
    "    tuple[_Ints, _Ints, _Ints, _Ints],\n    _Ints,\n    _Ints,\n    _Ints,\n    _Ints,\n]"
)
_TIMELINE = (
    "tuple[\n    tuple[_Ints, _Longs, _Longs],\n"
    "    tuple[_Ints, _Ints, _Longs, _Longs, _Ints, npt.NDArray[np.uint32]],\n"
    "    _Ints,\n    _Longs | None,\n"
    "    tuple[_Longs, _Longs],\n    tuple[_Longs, _Longs],\n"
    "    tuple[\n        list[tuple[int, int, str | None, int]],\n        list[int],\n"
    "        list[tuple[int, str, int, int]],\n    ]\n    | None,\n]"
)
RETURNS = {
    "predict": (
        "list[\n    tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], str | None, "
        "npt.NDArray[np.int32] | None]\n]"
    ),
    "predict_many": "list[Any]",
    "allowed_at_once": "list[int]",
    "predict_processes": "tuple[list[Any], _Ints, _Longs, _Longs]",
    "predict_as_recorded": "list[Any]",
    "outcomes": "list[tuple[list[Any], int, bool]]",
    "predict_until_refused": "list[tuple[_Ints, int, str | None]]",
    "capacities": (
        "list[tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.uint32]]]"
    ),
    "capacity": "tuple[_Ints, npt.NDArray[np.uint8], npt.NDArray[np.uint32]]",
    "coresident": (
        "tuple[\n    str,\n    str,\n    list[tuple[int, float, int]],\n"
        "    list[tuple[int, list[int]]],\n    int,\n    int,\n    int,\n    str,\n"
        "    int,\n    int,\n]"
    ),
    "contention_times": "list[list[float]]",
    "policies": "list[tuple[str, str, str]]",
    "launch_orders": "list[tuple[str, str, str]]",
    "sm_cache": "tuple[_Bytes, _Longs, _Bytes]",
    "sm_counters": "list[tuple[str, str]]",
    "sm_dram_commands": "tuple[Any, ...]",
    "sm_parameters": "list[tuple[str, str, int, int, int, str]]",
    "sm_schedulers": "list[tuple[str, str]]",
    "sm_simulate": "tuple[dict[str, int], _Ints, _Longs, _Longs, tuple[Any, ...], tuple[Any, ...]]",
    "split_sms": "tuple[list[list[int]], list[int]]",
    "state_names": "list[tuple[str, ...]]",
    "states": "list[tuple[InitialState, dict[str, int]]]",
    "snapshot_after": _SNAPSHOT,
    "snapshot_at": _SNAPSHOT,
    "snapshot_of_gpu_at": _SNAPSHOT,
    "predict_timeline": _TIMELINE,
    "predict_gpus": _TIMELINE,
    "predict_launches": _TIMELINE,
}
CONSTANTS = {
    "CAUSES": "tuple[str, ...]",
    "INSIDE_RESOURCES": "tuple[str, ...]",
    "MAX_TIMED_BLOCKS": "int",
    "OUTSIDE_RESOURCES": "tuple[str, ...]",
}
HEADER = """\
# Written by tests/repo/test_stubs.py.
from collections.abc import Callable as _Callable
from collections.abc import Iterable as _Iterable
from collections.abc import Mapping as _Mapping
from collections.abc import Sequence as _Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tbsched.program.partition import Partition as _Partition
from tbsched.program.sequence import Event as _Event

_Ints = npt.NDArray[np.int32]
_Longs = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]
"""


def plain(annotation: str) -> str:
    """pybind11's annotation, which differs between its versions, as a user would write it."""
    text = annotation.replace("tbsched._core.", "").replace("collections.abc.", "")
    text = re.sub(r"typing\.SupportsInt( \| typing\.SupportsIndex)?", "int", text)
    text = re.sub(r"typing\.SupportsFloat( \| typing\.SupportsIndex)?", "float", text)
    text = re.sub(
        r"typing\.Annotated\[numpy\.typing\.\w+(?:\[numpy\.\w+\])?, numpy\.(uint\d+)\]",
        r"npt.NDArray[np.\1]",
        text,
    )
    text = re.sub(
        r"typing\.Annotated\[numpy\.typing\.(ArrayLike|NDArray\[numpy\.int32\])"
        r", (numpy\.int32|\"[^\"]*\")\]",
        "npt.NDArray[np.int32]",
        text,
    )
    text = re.sub(
        r"typing\.Annotated\[numpy\.typing\.\w+(?:\[numpy\.\w+\])?, numpy\.(uint\d+)\]",
        r"npt.NDArray[np.\1]",
        text,
    )
    text = re.sub(
        r"typing\.Annotated\[numpy\.typing\.(ArrayLike|NDArray\[numpy\.int64\]), .*\]",
        "npt.NDArray[np.int64]",
        text,
    )
    text = re.sub(r"typing\.Optional\[(.*)\]", r"\1 | None", text)
    text = re.sub(r"\bIterable\b", "_Iterable[_Event]", text)
    text = re.sub(r"\btuple$", "tuple[_Partition, ...]", text)
    text = re.sub(r"\bCallable\b", "_Callable[..., Any]", text)
    text = re.sub(r"\bMapping\[", "_Mapping[", text)
    return re.sub(r"\bSequence\[", "_Sequence[", text)


def definition(docstring: str | None, indent: str) -> str:
    """``name(self: …, a: int) -> None`` as a stub, its lines no longer than WIDTH."""
    assert docstring is not None
    tree = ast.parse(f"def {docstring.splitlines()[0]}: ...").body[0]
    assert isinstance(tree, ast.FunctionDef)
    parameters: list[str] = []
    for argument in tree.args.args:
        assert argument.annotation is not None
        kind = "" if argument.arg == "self" else f": {plain(ast.unparse(argument.annotation))}"
        parameters.append(argument.arg + kind)
    if tree.args.kwonlyargs:
        parameters.append("*")
    for argument in tree.args.kwonlyargs:
        assert argument.annotation is not None
        parameters.append(f"{argument.arg}: {plain(ast.unparse(argument.annotation))}")
    assert tree.returns is not None
    returns = RETURNS.get(tree.name, plain(ast.unparse(tree.returns)))
    start, end = f"{indent}def {tree.name}(", f") -> {returns}: ..."
    row = ", ".join(parameters)
    if len(start + row + end) <= WIDTH:
        return f"{start}{row}{end}\n"
    if len(f"{indent}    {row}") <= WIDTH and "*" not in parameters:
        return f"{start}\n{indent}    {row}\n{indent}{end}\n"
    lines = "".join(f"{indent}    {short(parameter, indent)},\n" for parameter in parameters)
    return f"{start}\n{lines}{indent}{end}\n"


def short(parameter: str, indent: str) -> str:
    """The same, what it is a sequence of in a line of its own if it is too long for one."""
    if len(f"{indent}    {parameter},") <= WIDTH:
        return parameter
    of, what = parameter.split("[", 1)
    return f"{of}[\n{indent}        {what.removesuffix(']')}\n{indent}    ]"


def stub_of(module: ModuleType) -> str:
    text = HEADER
    members = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    text += "\n" + "".join(f"{name}: {kind}\n" for name, kind in CONSTANTS.items())
    for name, value in sorted(members.items()):
        if isinstance(value, type):
            methods = "".join(
                definition(method.__doc__, "    ")
                for key, method in vars(value).items()
                if key == "__init__" or not key.startswith("_")
                if not isinstance(method, WrapperDescriptorType)  # the one of a class never made
            )
            text += f"\nclass {name}:\n{methods}" if methods else f"\nclass {name}: ...\n"
    text += "\n"
    for _, value in sorted(members.items()):
        if inspect.isroutine(value):
            text += definition(value.__doc__, "")
    return text


def test_stub_is_that_of_the_compiled_module() -> None:
    text = stub_of(_core)
    if not STUB.exists() or STUB.read_text("utf-8") != text:
        STUB.with_name("_core.pyi.new").write_text(text, "utf-8")
        pytest.fail("python/tbsched/_core.pyi is out of date; _core.pyi.new is beside it")


def test_package_says_that_it_is_typed() -> None:
    assert (STUB.with_name("py.typed")).exists()
