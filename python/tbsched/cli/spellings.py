"""Old spellings of options, which go on working for one version and say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from typer.core import TyperCommand

from tbsched.cli.console import note
from tbsched.cli.given import check_apart, check_not_empty
from tbsched.cli.hints import in_options

POSITIONAL = "a file without an option"
# By verb: the old spelling, and the option that has taken its place.
OLD: Mapping[str, Mapping[str, str]] = {
    "fuzz": {
        "--max-seconds": "--seconds",
        "--max-examples": "--sequences",
        "--corpus": "--evidence",
        "--predictor": "--device",
    },
    "record": {
        "--count": "--sequences",
        "-n": "--sequences",
        "--predictor": "--device",
        POSITIONAL: "--output",
    },
    "capacity": {"-k": "--launch"},
    "coresident": {"--gpu": "--on-gpu"},
    "simulate": {"-s": "--scheduler"},
    "characterize": {"--raw": "--evidence", "-r": "--evidence", "-c": "--opcode"},
}


class Verb(TyperCommand):
    """A verb that also takes the old spellings of its options, and names options in its errors.

    It takes no empty values, and no file for two things.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses the arguments, after old spellings are replaced by new ones."""
        old = OLD.get(self.name or "")
        if old is not None and not ctx.resilient_parsing:
            args = list(self._renewed(iter(args), old))
        if not ctx.resilient_parsing:
            # As they were written: an empty path is "." from here on.
            check_not_empty(self, self.make_parser(ctx).parse_args(args=[*args])[0])
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Runs the verb; an error names options as the command line does."""
        try:
            check_apart(self, ctx.params)
            return super().invoke(ctx)
        except (TypeError, ValueError) as error:
            if len(error.args) == 1:
                error.args = (in_options(str(error), self),)
            raise

    def _renewed(self, words: Iterator[str], old: Mapping[str, str]) -> Iterator[str]:
        """Yields the words of a command line, with old spellings of options replaced."""
        follow = self._how_many_values_follow()
        for word in words:
            if word == "--":
                yield word
                break
            name, attached = _parts(word)
            new = old.get(name)
            if new is None:
                yield word
            else:
                note(f"tbsched {self.name}: {name} is now {new}; the next version takes only that")
                yield from [new] if attached is None else [new, attached]
            if attached is None:  # a value may look like an option
                yield from islice(words, follow.get(new or name, 0))
        yield from words

    def _how_many_values_follow(self) -> dict[str, int]:
        """Returns how many values each option takes."""
        options = [param for param in self.params if param.param_type_name == "option"]
        return {
            name: 0 if getattr(option, "is_flag", False) else option.nargs
            for option in options
            for name in option.opts
        }


def _parts(word: str) -> tuple[str, str | None]:
    """Returns the name of an option, and the value if it is in the same word."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, value if equals else None
    if word.startswith("-") and word != "-":
        return word[:2], word[2:] or None
    return POSITIONAL, word
