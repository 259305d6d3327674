"""Whether a model is of the GPU at hand, with a model in the place of the GPU."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

import tbsched as tb
from board import differences
from tbsched.traces.placement import DeviceInfo

H200 = tb.device("h200")


class Board:
    """Plays a GPU; its name says nothing."""

    def __init__(self, spec: tb.DeviceSpec) -> None:
        self.spec = spec
        details = {"compute_capability": spec.compute_capability}
        self.info = DeviceInfo("NVIDIA Whatever", spec.sms, details)
        self._gpu = self

    def observe(self, seq: tb.Sequence) -> tb.Trace:
        return tb.predict(seq, self.spec)

    def resident(self, launch: tb.Launch) -> int:
        many = replace(launch, blocks=33 * self.spec.sms)
        return tb.predict(tb.Sequence([many]), self.spec)[0].placed // self.spec.sms


def said(spec: tb.DeviceSpec) -> list[str]:
    board: Any = Board(spec)
    return list(differences(board, H200))


def test_the_same_board_by_another_name_is_the_models() -> None:
    assert said(H200) == []


first, second, *rest = H200.gpcs


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"compute_capability": "9.1"}, "compute capability 9.1, not 9.0"),
        ({"warps_per_sm": 32}, "1 blocks of Launch.* on an SM, not 2"),
        ({"gpcs": ((*second[:1], *first[1:]), (*first[:1], *second[1:]), *rest)}, "share a GPC"),
    ],
)
def test_another_board_says_what_differs(changes: dict[str, Any], difference: str) -> None:
    assert re.search(difference, said(replace(H200, **changes))[0])


def test_another_number_of_sms_is_another_board() -> None:
    board: Any = Board(H200)
    board.info = DeviceInfo("NVIDIA H200", 114, board.info.details)
    assert list(differences(board, H200)) == ["114 SMs, not 132"]
