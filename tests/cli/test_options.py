"""One word for one thing: what an option means does not depend on the verb."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cli.verbs import COMMANDS
from tbsched.cli.app import app
from tbsched.cli.spellings import OLD, POSITIONAL


def parameters(kind: str) -> Iterator[tuple[str, Any]]:
    for verb, command in COMMANDS.items():
        for each in command.params:
            if each.param_type_name == kind:
                yield verb, each


def meaning(option: Any) -> tuple[object, ...]:
    """Names, value and meaning: the help up to the first full stop before a space."""
    first = option.help.partition(". ")[0].removesuffix(".")
    kind = getattr(option, "type", None)  # of click; newer versions of typer have their own
    value = str(option.type_descriptor.annotation if kind is None else kind.name)
    value = (
        value.removeprefix("list[").removesuffix("]").removeprefix("<class '").removesuffix("'>")
    )
    return tuple(option.opts), option.is_flag, value, option.nargs, option.metavar, first


def test_an_option_has_one_meaning_in_all_verbs() -> None:
    found: dict[str, dict[tuple[object, ...], list[str]]] = {}
    for verb, option in parameters("option"):
        for name in (*option.opts, *option.secondary_opts):
            found.setdefault(name, {}).setdefault(meaning(option), []).append(verb)
    differing = {name: meanings for name, meanings in found.items() if len(meanings) > 1}
    assert differing == {}
    assert len(found["--seconds"][meaning_of("fuzz", "--seconds")]) >= 4


def meaning_of(verb: str, name: str) -> tuple[object, ...]:
    (option,) = (each for each in COMMANDS[verb].params if name in each.opts)
    return meaning(option)


def test_options_that_may_be_repeated_say_so() -> None:
    for verb, option in parameters("option"):
        may = option.multiple and option.nargs == 1 and "all by default" not in option.help
        if may and "--set" not in option.opts:
            assert "May be repeated." in option.help, (verb, option.opts)
        if not option.multiple:
            assert "repeated" not in option.help, (verb, option.opts)


def test_what_has_no_option_before_it_has_one_meaning_in_all_verbs() -> None:
    found: dict[str, set[str]] = {}
    for verb, argument in parameters("argument"):
        assert argument.metavar, verb
        found.setdefault(argument.metavar.removesuffix("..."), set()).add(argument.help)
    assert {name: helps for name, helps in found.items() if len(helps) > 1} == {}


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], standalone_mode=False)


def test_old_spellings_name_options_that_are_there() -> None:
    by_last_word = {verb.split()[-1]: command for verb, command in COMMANDS.items()}
    for verb, old in OLD.items():
        names = {name for each in by_last_word[verb].params for name in each.opts}
        assert set(old.values()) <= names
        assert not set(old) & names


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("count", ["--count", "-n", "--sequences"])
def test_old_spellings_work_and_say_so(tmp_path: Path, count: str, joined: bool) -> None:
    new, old = tmp_path / "new.jsonl", tmp_path / "old.jsonl"
    given = ["--oracle", "tx2", "--seed", "1"]
    result = run("record", "-o", new, "--device", "tx2", "--sequences", "3", *given)
    assert result.exception is None
    assert "is now" not in result.output
    many = [f"{count}=3" if count.startswith("--") else f"{count}3"] if joined else [count, "3"]
    result = run("record", old, "--predictor", "tx2", *many, *given)
    assert result.exception is None
    said = [line for line in result.output.splitlines() if "is now" in line]
    expected = {POSITIONAL: "--output", "--predictor": "--device", count: "--sequences"}
    expected.pop("--sequences", None)
    assert said == [
        f"tbsched record: {was} is now {now}; the next version takes only that"
        for was, now in expected.items()
    ]
    assert old.read_bytes() == new.read_bytes()


def test_a_value_that_looks_like_an_old_spelling_stays_a_value(tmp_path: Path) -> None:
    result = run("capacity", tmp_path / "none.json", "--match", "-k")
    assert "is now" not in result.output
    result = run("capacity", "-k", "0", "--", tmp_path / "none.json")
    assert "-k is now --launch" in result.output
    assert isinstance(result.exception, FileNotFoundError)
