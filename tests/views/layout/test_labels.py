"""Names and colours of launches."""

from __future__ import annotations

import pytest

from helpers import launch
from tbsched.views.layout.colours import PALETTE, colours_of
from tbsched.views.layout.names import cut, label


def test_launch_is_called_by_its_name_or_by_what_it_asks_for() -> None:
    assert label(launch(4, name="gemm")) == "gemm"
    assert label(launch(4)) == "4 x 32, 16 regs"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("void k<float>(int)", "void k<float>(int)"),
        ("a" * 20 + "b" * 20, "aaaaaaaaaaa…bbbbbbbb"[:11] + "…bbbbb"),
        ("a" * 10**6 + "b", "aaaaaaaaaaa…aaaab"),
        ("a\nb\tc\x00\ud800\u202e", "a b c\ufffd\ufffd\ufffd"),
    ],
)
def test_long_name_is_cut_in_the_middle_and_stays_on_one_line(name: str, shown: str) -> None:
    assert cut(name, 17 if len(name) > 30 else 48) == shown


def test_cut_name_is_as_long_as_it_may_be() -> None:
    for longest in range(3, 60):
        assert len(cut("x" * 300, longest)) == longest


def test_kernel_has_one_colour_in_whatever_order_and_kernels_different_ones() -> None:
    launches = [launch(name=f"k{number}") for number in range(len(PALETTE))]
    found = colours_of(launches)
    assert sorted(found) == sorted(PALETTE)
    assert colours_of([*launches[::-1], launches[3]]) == [*found[::-1], found[3]]
    assert len(set(colours_of([launch(name=str(n)) for n in range(100)]))) == len(PALETTE)


def test_launches_without_a_name_are_told_apart() -> None:
    found = colours_of([launch(), launch(name="a"), launch(), launch(name="a"), launch()])
    assert len(set(found)) == 4
    assert found[1] == found[3] == colours_of([launch(name="a")])[0]
    assert colours_of([launch()] * 19)[18] == PALETTE[0]
