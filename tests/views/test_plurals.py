"""One of a thing is singular wherever results are shown."""

from __future__ import annotations

import tbsched as tb
from tbsched.counting import counted, first_listed, listed

ONE = tb.Sequence([tb.Launch(1, 32, 32)])


def test_lists() -> None:
    assert [listed("abc"[:k]) for k in range(4)] == ["nothing", "a", "a and b", "a, b and c"]
    assert [first_listed("abcde"[:k], 2) for k in (2, 5)] == ["a, b", "a, b and 3 more"]


def test_counted() -> None:
    found = [counted(number, "SM has", "SMs have") for number in (0, 1, 2, 1234)]
    assert found == ["0 SMs have", "1 SM has", "2 SMs have", "1,234 SMs have"]
    assert counted(1, "launch", "launches") == "1 launch"


def test_one_sequence_of_a_campaign() -> None:
    report = str(tb.fuzz("xavier", "xavier", max_examples=1, seed=1, progress=False))
    assert "1 sequence in" in report
    assert "1 sequences" not in report


def test_one_launch_of_a_comparison() -> None:
    found = tb.compare(tb.predict(ONE, "h200"), tb.predict(ONE, "h200"))
    assert str(found).endswith("agree on every block of 1 launch.")


def test_one_block_on_one_sm() -> None:
    configs = str(tb.launch_configs("h200", tb.Kernel(1024, 32, blocks=1)))
    assert "1 blocks" not in configs
    assert "1 SMs" not in configs
