"""Each fix holds, and is the least of its kind."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import replace

import pytest

import tbsched as tb
from advice.together.puzzles import COMMUNICATION, GEMM, LARGE, SCHEDULERS, SMALL, WORKERS
from helpers import KB
from tbsched.advice.together.deciding import decide, proved
from tbsched.advice.together.fixes.fix import Unproved, fixed
from tbsched.advice.together.fixes.table import KINDS
from tbsched.advice.together.problem import Problem
from tbsched.prediction.together import search

PUZZLES = ((WORKERS, SCHEDULERS), (SMALL, LARGE), (GEMM, COMMUNICATION))


def kinds(found: tb.Coresidency) -> dict[str, tb.Fix]:
    return {fix.kind: fix for fix in found.fixes}


@pytest.mark.parametrize("launches", PUZZLES)
def test_each_fix_is_safe_when_it_is_asked_again(launches: tuple[tb.Launch, ...]) -> None:
    found = tb.coresident(launches, "h200")
    assert len(found.fixes) >= 3
    for fix in found.fixes:
        again = tb.coresident(
            fix.launches, fix.device or "h200", groups=fix.groups, after=fix.after
        )
        assert again.safe is True, fix
        assert (fix.launches, fix.after, fix.device) != (tuple(launches), (), None)


def test_group_that_is_not_known_to_be_safe_has_fixes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "solver", lambda seconds: None)
    outsider = tb.Launch(3980, 32, 32, 6_762, carveout=100)
    launches = [outsider, tb.Launch(1, 768, 40, carveout=100, priority=-2)]
    found = tb.coresident(launches, "h200", groups=[[1]], plays=100)
    assert found.safe is None
    assert "pip install ortools" in found.argument
    assert {"order", "grid"} <= {fix.kind for fix in found.fixes}
    for fix in found.fixes:
        again = tb.coresident(fix.launches, "h200", groups=fix.groups, after=fix.after)
        assert again.safe is True, fix.text
    assert str(found.fixes[0].text) in str(found)
    assert found.fixes[0].text in tb.show.to_html(found)


def test_what_the_puzzles_need() -> None:
    workers = kinds(tb.coresident([WORKERS, SCHEDULERS], "h200"))
    assert workers["order"].after == ((0, 1),)
    assert workers["carveout"].launches == (WORKERS, replace(SCHEDULERS, carveout=44))
    assert workers["grid"].launches[0].blocks == 116
    assert workers["registers"].launches[0].registers == 128
    (own, rest) = (one.partition for one in workers["partition"].launches)
    assert own is not None
    assert rest is not None
    assert (len(own), len(rest)) == (128, 4)
    gemm = kinds(tb.coresident([GEMM, COMMUNICATION], "h200"))
    assert gemm["grid"].launches[0].blocks == 96
    assert "carveout" not in gemm  # there are no registers for it, either


def test_more_launches_than_the_gpu_takes_have_no_fix() -> None:
    found = tb.coresident([tb.Launch(1, 256, 32)] * 130, "a100")
    assert (found.safe, found.cause, found.fixes) == (False, "grids", ())


def test_order_of_alike_launches_is_tried_once_for_all() -> None:
    alike = [tb.Launch(132, 1024, 32)] * 2
    found = tb.coresident([tb.Launch(132, 256, 32), *alike], "h200", groups=[[0]])
    assert kinds(found)["order"].after in (((0, 1),), ((0, 2),))


def test_who_is_in_no_group_keeps_most_sms() -> None:
    gemm = tb.Launch(132, 256, 128, 100 * KB, name="gemm")
    reduce_ = tb.Launch(60, 512, 64, 150 * KB, name="reduce")
    partition = kinds(tb.coresident([gemm, reduce_], "h200", groups=[[1]]))["partition"]
    own, rest = (one.partition for one in partition.launches)
    assert own is not None
    assert rest is not None
    assert (len(own), len(rest)) == (72, 60)


@pytest.mark.parametrize(("kind", "launches"), [("grid", 0), ("carveout", 1), ("registers", 0)])
def test_a_little_less_is_not_enough(kind: str, launches: int) -> None:
    fix = kinds(tb.coresident([WORKERS, SCHEDULERS], "h200"))[kind]
    own = fix.launches[launches]
    change = {"grid": ("blocks", 1), "carveout": ("carveout", -1), "registers": ("registers", 8)}
    field, step = change[kind]
    less = replace(own, **{field: getattr(own, field) + step})
    changed = [less if k == launches else one for k, one in enumerate(fix.launches)]
    assert tb.coresident(changed, "h200", fixes=False).safe is False


def test_order_of_several_launches() -> None:
    asked = [tb.Launch(40, 256, 64, 20 * KB * k, name=f"k{k}") for k in range(1, 6)]
    fix = kinds(tb.coresident(asked, "h200"))["order"]
    assert len(fix.after) > 1
    assert tb.coresident(asked, "h200", after=fix.after).safe is True
    for pair in fix.after:
        fewer = [each for each in fix.after if each != pair]
        assert tb.coresident(asked, "h200", after=fewer, fixes=False).safe is False


def test_launches_without_names_are_started() -> None:
    found = tb.coresident([replace(WORKERS, name=None), replace(SCHEDULERS, name=None)], "h200")
    texts = {fix.kind: fix.text for fix in found.fixes}
    assert texts["order"] == "start launch 1 when all blocks of launch 0 have started"
    assert not any("launch launch" in text for text in texts.values())


def test_group_never_waits_for_a_launch_that_may_not_come() -> None:
    found = tb.coresident([SCHEDULERS, WORKERS], "h200", groups=[[1]])
    assert kinds(found)["order"].after == ((1, 0),)


@pytest.mark.parametrize(
    ("launches", "group"),
    [
        ((WORKERS, SCHEDULERS), (0, 1)),
        ((WORKERS, SCHEDULERS), (0,)),
        ((SMALL, LARGE), (1,)),
        ((WORKERS, SCHEDULERS, SMALL), (0, 2)),
        ((GEMM, COMMUNICATION, SMALL), (0,)),
    ],
)
def test_known_witness_changes_no_answer(
    launches: tuple[tb.Launch, ...], group: tuple[int, ...]
) -> None:
    problem = Problem(tb.device("h200"), "hopper", launches, (group,), plays=2000)
    stranding = decide(problem).stranding
    assert stranding is not None
    unsafe = Unproved(problem, stranding)
    for kind in KINDS:
        for fix in itertools.islice(kind(unsafe), 30):
            changed = fixed(problem, fix)
            with contextlib.suppress(ValueError):  # the device refuses a launch of it
                assert unsafe.solved_by(changed) is proved(changed), fix


def test_own_order_stays() -> None:
    third = replace(SMALL, blocks=8)
    found = tb.coresident([WORKERS, SCHEDULERS, third], "h200", after=[(1, 2)])
    assert all(fix.after[0] == (1, 2) for fix in found.fixes)


def test_kind_is_the_name_of_its_row() -> None:
    names = {kind.__name__ for kind in KINDS}
    text = tb.Fix.__doc__ or ""
    assert all(f"``{name}``" in text for name in names)


def test_fixes_are_not_looked_for_unless_wanted() -> None:
    found = tb.coresident([WORKERS, SCHEDULERS], "h200", fixes=False)
    assert (found.safe, found.fixes) == (False, ())
