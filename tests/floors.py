"""Prints the oldest versions that ``pyproject.toml`` allows, as constraints for pip.

``make floors`` installs them, and runs the tests with them.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[.*\])?>=([\d.]+)")


def floors() -> dict[str, str]:
    """The least version of each library that the package, or an extra of it, needs.

    Raises:
        ValueError: one has no least version.
    """
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    found = {}
    for requirement in (*project["dependencies"], *(row for rows in extras for row in rows)):
        if requirement.startswith("tbsched["):
            continue
        match = _REQUIREMENT.fullmatch(requirement)
        if match is None:
            raise ValueError(f"{requirement}: NAME>=VERSION is needed")
        found[match[1]] = match[2]
    return found


if __name__ == "__main__":
    for name, version in floors().items():
        print(f"{name}=={version}")
