"""How values are shown: which function turns a value of which class into what a person sees.

Values ask here and do not know who shows them. So nothing of the package is imported until a view
is needed. A view of another kind, such as HTML, is one more table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

_TEXT = {
    "BestOrder": "tbsched.show.advice:best_order_text",
    "Counterexample": "tbsched.show.campaigns:counterexample_text",
    "Diff": "tbsched.show.differences:diff_text",
    "Evenness": "tbsched.show.advice:evenness_text",
    "LaunchConfigs": "tbsched.show.advice:launch_configs_text",
    "Report": "tbsched.show.campaigns:report_text",
    "TimeDiff": "tbsched.show.differences:time_diff_text",
    "Trace": "tbsched.show.traces:trace_text",
    "WhatIf": "tbsched.show.advice:what_if_text",
}
_EXPLANATION = {"Trace": "tbsched.show.waits:explanation"}


class Shown:
    """A value that has a view: ``str`` and ``print`` give its text."""

    __slots__ = ()

    def __str__(self) -> str:
        return text(self)


def text(value: object) -> str:
    """The value as plain text, for ``print``.

    Raises:
        TypeError: no view is known of its class.
    """
    return str(_view(_TEXT, value)(value))


def explanation(value: object, launch: int) -> str:
    """Why a launch waited, in words.

    Raises:
        TypeError: no view is known of the value's class.
        ValueError: no such launch, or nothing is known of its waits.
    """
    return str(_view(_EXPLANATION, value)(value, launch))


def _view(table: Mapping[str, str], value: object) -> Callable[..., Any]:
    for kind in type(value).__mro__:
        if kind.__name__ in table:
            module, _, name = table[kind.__name__].partition(":")
            view: Callable[..., Any] = getattr(import_module(module), name)
            return view
    raise TypeError(f"views: {type(value).__name__} is not one of {', '.join(table)}")
