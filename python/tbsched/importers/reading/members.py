"""JSON objects that are too long to be read whole: their members one by one."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Collection, Iterator
from decimal import Decimal
from typing import Any

from tbsched import parsing

MAX_VALUE = 2**24  # characters of one member, or of one item of a list
_CUT = "was the file written and copied to its end?"
_BLANK = re.compile(r"[ \t\r\n]*")
_AFTER = frozenset(",:]} \t\r\n")  # what comes after a value
_COMMA = re.compile(r"[ \t\r\n]*,[ \t\r\n]*(?=[^ \t\r\n])")


def members(pieces: Iterator[bytes], lists: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yields the key and value of each member of a JSON object; some lists item by item.

    Numbers with a fraction are ``Decimal``, so that no nanosecond of a time is lost.

    Args:
        pieces: of the file, in order.
        lists: keys of lists that are long.

    Raises:
        ValueError: not JSON, no object, it ends early, or something follows it; one line.
    """
    text = _Text(pieces)
    text.expect("{")
    while text.next() != "}":
        key = text.value()
        text.expect(":")
        text.next()
        if key in lists and text.next() == "[":
            for item in text.items():
                yield key, item
        else:
            yield str(key), text.value()
        text.separate("}")
    text.end("}")


def listed(pieces: Iterator[bytes]) -> Iterator[Any]:
    """Yields the items of the list, as :func:`members`; one that is not closed ends where it ends.
    Chrome's format allows a list without its bracket, as a program that is killed leaves it."""
    text = _Text(pieces)
    text.expect("[")
    while not text.at_end() and text.next() != "]":
        yield text.value()
        if not text.at_end():
            text.separate("]")
    if not text.at_end():
        text.end("]")


class _Text:
    """The text from where it was read up to, of which more is taken when it is needed."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._decode_at = json.JSONDecoder(parse_float=Decimal).raw_decode
        self._text = ""
        self._place = 0
        self._bytes = 0

    def next(self) -> str:
        """Returns the next character that is not blank. Raises ValueError: there is none."""
        while True:
            match = _BLANK.match(self._text, self._place)
            assert match is not None
            self._place = match.end()
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._more():
                raise self._wrong("it ends early")

    def at_end(self) -> bool:
        """Returns whether nothing but blanks is left."""
        try:
            self.next()
        except ValueError:
            return True
        return False

    def expect(self, character: str) -> None:
        """Goes over the next character, which must be a given one."""
        next_character = self.next()
        if next_character != character:
            raise self._wrong(f"{character} is needed, got {next_character!r}")
        self._place += 1

    def end(self, character: str) -> None:
        """Goes over the last character, behind which nothing may follow."""
        self.expect(character)
        if not self.at_end():
            raise self._wrong(
                f"{self.next()!r} comes after its end", "are two files joined in this one?"
            )

    def items(self) -> Iterator[Any]:
        """Yields the items of the next list, one by one."""
        self.expect("[")
        while self.next() != "]":
            yield self.value()
            # Nearly always the next item is there as a whole, and is read with no more ado.
            while match := _COMMA.match(self._text, self._place):
                self._place = match.end()
                yield self.value()
            self.separate("]")
        self.expect("]")

    def separate(self, end: str) -> None:
        """Goes over the comma that is needed before any item but the end."""
        if self.next() != end:
            self.expect(",")

    def value(self) -> Any:
        """Returns the next value."""
        while True:
            try:
                value, end = self._decode_at(self._text, self._place)
            except json.JSONDecodeError as error:
                if not self._more():
                    raise self._wrong(error.msg) from None
                continue
            except parsing.REFUSED as error:
                raise self._wrong(parsing.why(error)) from None
            # At the end of what is there a number may go on, or be cut behind its point.
            if self._text[end : end + 1] in _AFTER or not self._more():
                self._place = end
                return value

    def _more(self) -> bool:
        """Doubles the buffered text, so that long values are not read again too often."""
        self._text = self._text[self._place :]
        self._place = 0
        old_length = len(self._text)
        if old_length > MAX_VALUE:
            raise self._wrong(f"a value of more than {MAX_VALUE} characters")
        pieces = [self._text]
        size = 0
        for piece in self._pieces:
            self._bytes += len(piece)
            pieces.append(self._decode(piece))
            size += len(pieces[-1])
            if size > old_length:
                break
        self._text = "".join(pieces)
        return size > 0

    def _wrong(self, why: str, question: str = _CUT) -> ValueError:
        """Returns the error for text that is not JSON."""
        before = self._bytes - len(self._text) + self._place
        reason = " ".join(why.split())[:200]
        return ValueError(f"not whole JSON, near byte {max(before, 0)}: {reason}; {question}")
