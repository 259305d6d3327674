"""Every public name has an example in its docstring, and the examples give what they say."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

import tbsched
import tbsched.campaigns
import tbsched.show
import tbsched.sm
import tbsched.strategies
from tbsched.advice.change import Change
from tbsched.advice.orders import BestOrder
from tbsched.advice.periodic import Job, Periodic, Response, Responses
from tbsched.advice.what_if import WhatIf
from tbsched.campaigns.space.coverage import Coverage
from tbsched.comparison.compare import LaunchDiff
from tbsched.comparison.times import LaunchTimes
from tbsched.hardware.spec import Provenance
from tbsched.launcher.observe import Gpu
from tbsched.prediction.predict import Policy
from tbsched.prediction.together.search import FullSms
from tbsched.sm.running import Scheduler, SchedulerRow
from tbsched.traces.placement import DeviceInfo, Room
from tbsched.traces.residents import SmLimits

PACKAGES = (tbsched, tbsched.show, tbsched.strategies, tbsched.campaigns, tbsched.sm)
# What public functions return or take, but users do not make by name.
RETURNED = (
    BestOrder, Change, Coverage, DeviceInfo, FullSms, Gpu, Job, LaunchDiff, LaunchTimes, Periodic,
    Policy, Provenance, Response, Responses, Room, Scheduler, SchedulerRow, SmLimits, WhatIf,
)  # fmt: skip
NOT_FOR_USERS = {"ModelGpu.observe_tables"}
# A constant has no docstring: an example of another name must use it.
CONSTANTS = {"LEGACY_STREAM", "NCU_METRICS", "OPCODES"}


def methods_of(kind: type) -> Iterator[tuple[str, object]]:
    """The public methods of a class, also inherited ones; and its properties with examples."""
    for base in kind.__mro__:
        if base.__module__.startswith("tbsched"):
            for name, member in vars(base).items():
                function = getattr(member, "__func__", member)
                shown = isinstance(member, property) and ">>>" in (member.__doc__ or "")
                if (shown or isinstance(function, FunctionType)) and not name.startswith("_"):
                    yield f"{base.__name__}.{name}", function


def public() -> dict[str, object]:
    """What must have an example, by name."""
    found: dict[str, object] = {}
    for package in PACKAGES:
        for name in package.__all__:
            value = getattr(package, name)
            # Some are public in two packages.
            if name in CONSTANTS or any(value is known for known in found.values()):
                continue
            found[f"{package.__name__}.{name}"] = value
            if inspect.isclass(value):
                found.update(methods_of(value))
    found.update({kind.__name__: kind for kind in RETURNED})
    return {name: value for name, value in found.items() if name not in NOT_FOR_USERS}


def examples() -> dict[str, doctest.DocTest]:
    finder = doctest.DocTestFinder(recurse=False)
    packages = {package.__name__: package for package in PACKAGES}
    return {
        name: test
        for name, value in {**packages, **public()}.items()
        for test in finder.find(value, name, globs={"tb": tbsched})
    }


def test_every_public_name_has_an_example() -> None:
    found = examples()
    assert [name for name in public() if name not in found or not found[name].examples] == []
    sources = " ".join(example.source for test in found.values() for example in test.examples)
    assert [name for name in CONSTANTS if f".{name}" not in sources] == []


def test_examples_give_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    wrong: list[str] = []
    for test in examples().values():
        runner.run(test, out=wrong.append)
    if wrong:
        pytest.fail("".join(wrong), pytrace=False)
    assert runner.summarize(verbose=False).attempted > len(PACKAGES)
