"""Measured throughput compared with NVIDIA's documentation."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from importlib import resources

from tbsched.hardware.spec import DeviceSpec
from tbsched.sm.characterization.results import Characterization
from tbsched.sm.code.tables import measured

SAME = 0.02  # differences up to this need no explanation


@dataclass(frozen=True, slots=True)
class Versus:
    """An opcode's throughput, measured and documented.

    Attributes:
        opcode: its name.
        measured: results a clock and SM.
        documented: the same, as NVIDIA says.
        spread: between repeats, as a share.
        why: they differ, if they do.
        source: where it is documented: title and address.

    Example:
        >>> row = tb.sm.versus_vendor("h200")[0]
        >>> row.opcode, round(row.measured), row.documented
        ('fp32.fma', 127, 128)
    """

    opcode: str
    measured: float
    documented: float
    spread: float
    why: str
    source: tuple[str, str]

    @property
    def difference(self) -> float:
        """Measured minus documented throughput, as a share of the documented one."""
        return self.measured / self.documented - 1.0


def versus_vendor(
    device: str | os.PathLike[str] | DeviceSpec | Characterization = "h200",
) -> tuple[Versus, ...]:
    """Returns measured throughput beside what NVIDIA documents for compute capability 9.0.

    Args:
        device: as of :func:`tbsched.sm.measured`; or figures of your own.

    Raises:
        ValueError: no GPU like that was measured.

    Example:
        >>> all(abs(row.difference) < 0.02 or row.why for row in tb.sm.versus_vendor("h200"))
        True
    """
    tables = device if isinstance(device, Characterization) else measured(device)
    known = {figure.opcode: figure.throughput for figure in tables.figures}
    text = (resources.files("tbsched.sm.code") / "vendor.toml").read_text("utf-8")
    data = tomllib.loads(text)
    rows = []
    for row in data["rows"]:
        source = data["sources"][row["source"]]
        for opcode in row["opcodes"]:
            throughput = known.get(opcode)
            if throughput is None:
                continue
            rows.append(
                Versus(
                    opcode, throughput.value * row.get("lanes", 1), row["results"],
                    throughput.spread, row.get("why", ""), (source["title"], source["address"]),
                )
            )  # fmt: skip
    return tuple(rows)
