"""Programs over two GPUs hang or end, and begin as many blocks, as predicted."""

from __future__ import annotations

import pytest

import tbsched as tb
from board import differences
from lab.several.drawn import sequence_of
from lab.several.programs import make
from lab.several.public import Case, cases
from lab.several.runs import CONNECTIONS, INTERVAL, observed, predicted
from tbsched.launcher.observe import Gpu, opened
from tbsched.launcher.query import gpus

pytestmark = pytest.mark.tbsched_gpu

SEED, PROGRAMS = 48, 40


@pytest.fixture
def two_gpus(hopper: Gpu) -> int:
    if gpus() < 2:
        pytest.skip(f"one {hopper.info.name}; two are needed")
    for difference in differences(opened(1), tb.device("h200")):
        pytest.skip(f"the model is not of GPU 1: {difference}")
    return 2


def test_random_programs_are_as_predicted(two_gpus: int) -> None:
    seen = 0
    for number in range(PROGRAMS):
        drawn = make((SEED, number, "h200", two_gpus))
        program = sequence_of(drawn["rows"], drawn["spread"])
        first, second = (observed(program, two_gpus) for _ in range(2))
        if not drawn["sure"] or first["begun"] != second["begun"]:
            continue
        seen += 1
        assert {key: first[key] for key in ("hang", "begun")} == drawn["predicted"], drawn
    assert seen > PROGRAMS / 2


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_public_hangs_hang_and_their_fixes_end(two_gpus: int, case: Case) -> None:
    for program in (case.program, *case.fixes.values()):
        trace = tb.predict(
            program, ["h200"] * two_gpus, launch_interval=INTERVAL, connections=CONNECTIONS
        )
        found = observed(program, two_gpus)
        assert {key: found[key] for key in ("hang", "begun")} == predicted(trace)
        assert found["hang"] == (program is case.program)
