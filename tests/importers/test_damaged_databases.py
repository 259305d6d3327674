"""Databases whose pages lead in circles are refused, and small ones cost little."""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path

import pytest

import tbsched as tb
from importers.written import nsys, row_of_kernel, rows

INTERIOR, HEADER = 5, 12
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


def interior(child: int, size: int) -> bytes:
    """A page of a table that leads to one page again and again, as often as there is room."""
    page = bytearray(size)
    times = (size - HEADER) // 7
    end = size
    for number in range(times):
        end -= 5
        struct.pack_into(">IB", page, end, child, 1)
        struct.pack_into(">H", page, HEADER + 2 * number, end)
    struct.pack_into(">BHHHBI", page, 0, INTERIOR, 0, times, end, 0, child)
    return bytes(page)


def circular(place: Path, table: str, levels: int = 7) -> None:
    """Makes the rows of a table come again and again: 71 times for each level."""
    with sqlite3.connect(place) as database:
        database.execute("PRAGMA page_size = 512")
        database.execute("VACUUM")  # what may be read of a smaller file is less
        (size,) = database.execute("PRAGMA page_size").fetchone()
        row = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,))
        (root,) = row.fetchone()
    database.close()
    content = bytearray(place.read_bytes())
    content += content[(root - 1) * size : root * size]
    for _ in range(levels - 1):
        content += interior(len(content) // size, size)
    content[(root - 1) * size : root * size] = interior(len(content) // size, size)
    struct.pack_into(">I", content, 28, len(content) // size)
    place.write_bytes(content)


@pytest.mark.parametrize("table", [KERNELS, "StringIds", "CUPTI_ACTIVITY_KIND_RUNTIME"])
def test_pages_that_lead_to_one_page_are_not_followed_for_ever(tmp_path: Path, table: str) -> None:
    place = nsys(tmp_path / "a.sqlite", rows())
    tb.load_program(place, fit=False)
    circular(place, table)
    words = r"a\.sqlite: cannot be read as an SQLite database: it has more rows than it has room"
    with pytest.raises(ValueError, match=words):
        tb.load_program(place, fit=False)


def test_strings_without_a_key_are_found(tmp_path: Path) -> None:
    place = nsys(tmp_path / "a.sqlite", rows())
    whole = tb.load_program(place, fit=False)
    with sqlite3.connect(place) as database:
        database.execute("CREATE TABLE copied AS SELECT * FROM StringIds")
        database.execute("DROP TABLE StringIds")
        database.execute("ALTER TABLE copied RENAME TO StringIds")
    database.close()
    assert tb.load_program(place, fit=False).sequence == whole.sequence


def test_many_rows_are_read(tmp_path: Path) -> None:
    content = rows()
    content[KERNELS] = [
        row_of_kernel(100 + k, 1000 * k + 20_000, 1000 * k + 20_500, 13) for k in range(5000)
    ]
    program = tb.load_program(nsys(tmp_path / "a.sqlite", content), fit=False)
    assert len(program.sequence.launches) == 5000
