"""How values show themselves: where the words of each are, imported when somebody asks.

A leaf: it imports nothing from the package, so that values need not know how they are shown.
"""

from __future__ import annotations

import importlib

# Of each class, the function that puts it into words.
_TEXT: dict[str, str] = {
    "Counterexample": "tbsched.show.campaigns:counterexample_text",
    "Report": "tbsched.show.campaigns:report_text",
}


def text(value: object) -> str:
    """The value in words.

    Raises:
        KeyError: nobody says how such a value is shown.
    """
    module, _, function = _TEXT[type(value).__name__].partition(":")
    return str(getattr(importlib.import_module(module), function)(value))
