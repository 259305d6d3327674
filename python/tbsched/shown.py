"""Values that show themselves: which file of ``tbsched.views`` has the views of a value's class.

Values ask here and do not know who shows them. So nothing of the package is imported until a view
is needed. A class is a row of the table. The view ``html`` of a ``Trace`` is the function
``trace_html`` in ``tbsched/views/traces.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# The class, the file that has its views, and the first word of their names.
SHOWN: Mapping[str, tuple[str, str]] = {
    "BestOrder": ("best_orders", "best_order"),
    "Calibration": ("calibrations", "calibration"),
    "Capacities": ("capacity", "capacities"),
    "Capacity": ("capacity", "capacity"),
    "Coresidency": ("coresidency", "coresidency"),
    "Characterization": ("characterizations", "characterization"),
    "Counterexample": ("campaigns", "counterexample"),
    "DeviceDiff": ("device_differences", "device_diff"),
    "DeviceSpec": ("devices", "device"),
    "Diff": ("differences", "diff"),
    "Evenness": ("evenness", "evenness"),
    "Explanation": ("explanations", "explanation"),
    "Graph": ("sequences", "graph"),
    "HangReport": ("hangs", "hang_report"),
    "LaunchConfigs": ("launch_configs", "launch_configs"),
    "Meeting": ("meetings", "meeting"),
    "Partition": ("partitions", "partition"),
    "Processes": ("processes", "processes"),
    "Program": ("programs", "program"),
    "RankCoresidency": ("rank_coresidency", "rank_coresidency"),
    "Report": ("campaigns", "report"),
    "Residents": ("residents", "residents"),
    "Responses": ("responses", "responses"),
    "Score": ("scores", "score"),
    "Search": ("variants", "search"),
    "Sequence": ("sequences", "sequence"),
    "Simulation": ("simulations", "simulation"),
    "Simulations": ("simulations", "simulations"),
    "TimeDiff": ("time_differences", "time_diff"),
    "Trace": ("traces", "trace"),
    "Variants": ("variants", "variants"),
    "WhatIf": ("what_if", "what_if"),
}
WITHOUT_TABLE = frozenset({"Counterexample", "Evenness", "Graph", "Meeting", "Partition", "Score"})
_EXPLANATION = "tbsched.views.waits"


class Shown:
    """A value that shows itself: ``print`` and notebooks ask for its views."""

    __slots__ = ()

    def __str__(self) -> str:
        return text(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {short(self)}>"

    def _repr_html_(self) -> str:
        return html(self)

    def to_pandas(self) -> pd.DataFrame:
        """The value's table as a pandas ``DataFrame``; docs/reference/tables.md has its columns.

        Raises:
            ImportError: pandas is missing (``pip install pandas``).
            TypeError: the value has no table.

        Example:
            >>> sequence = tb.Sequence([tb.Launch(132, 1024, 32), tb.Release(0)])
            >>> len(tb.predict(sequence, "h200").to_pandas())
            132
        """
        frame: pd.DataFrame = _function("tbsched.views.files.tables", "frame_of")(columns(self))
        return frame


def text(value: object, width: int | None = None) -> str:
    """Returns the value as plain text, for ``print``.

    Args:
        value: whatever shows itself.
        width: columns of the terminal, to which names in tables are cut; None: they are not cut.

    Raises:
        TypeError: no view is known of its class.
    """
    return _written(_view("text", value)(value), width)


def short(value: object) -> str:
    """Returns the value in one line of plain text.

    Raises:
        TypeError: no view is known of its class.
    """
    return str(_function("tbsched.views.terminal", "visible")(_view("short", value)(value)))


def html(value: object) -> str:
    """Returns the value as a piece of HTML that stands by itself, for notebooks.

    Raises:
        TypeError: no view is known of its class.
    """
    return str(_view("html", value)(value))


def columns(value: object) -> dict[str, Any]:
    """Returns the value's table: an array or a list per column, all of one length.

    Raises:
        TypeError: no view is known of its class, or it has no table.
    """
    found: dict[str, Any] = _view("columns", value)(value)
    return found


def data(value: object) -> Any:
    """Returns the value as what JSON can hold.

    Raises:
        TypeError: no view is known of its class.
    """
    return _view("data", value)(value)


def explanation(trace: object, launch: int) -> str:
    """Why a launch of a trace waited, in words.

    Raises:
        ValueError: no such launch, or nothing is known of its waits.
    """
    return _written(_function(_EXPLANATION, "explanation")(trace, launch))


def _written(parts: object, width: int | None = None) -> str:
    """Returns the text of lines and tables, none of which a terminal obeys."""
    return str(_function("tbsched.views.tables", "written")(parts, width))


def _view(kind: str, value: object) -> Callable[..., Any]:
    """Returns the function that shows a value in this way, such as ``text`` or ``html``."""
    for base in type(value).__mro__:
        if base.__name__ in SHOWN:
            file, word = SHOWN[base.__name__]
            if kind == "columns" and base.__name__ in WITHOUT_TABLE:
                raise TypeError(f"views: {base.__name__} has no table")
            return _function(f"tbsched.views.{file}", f"{word}_{kind}")
    raise TypeError(f"views: {type(value).__name__} is not one of {', '.join(SHOWN)}")


def _function(module: str, name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found
