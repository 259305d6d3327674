#!/usr/bin/env python3
"""A stand-in for cuda-gdb: it answers with texts that a real one printed.

TBSCHED_FAKE_GDB names a file of sections, ``@@ command`` each; a section after ``@@ cuda kernel N``
is of that kernel. TBSCHED_FAKE_GDB_MODE: ``refused`` as ptrace is, ``slow`` for a minute.
"""

import itertools
import os
import re
import sys
import time
from pathlib import Path


def main() -> None:
    mode = os.environ.get("TBSCHED_FAKE_GDB_MODE", "")
    if mode == "refused":
        print("ptrace: Operation not permitted.", file=sys.stderr)
        print("The program is not being run.", file=sys.stderr)
    if mode == "slow":
        time.sleep(60)
    sections = re.split(r"^@@ (.*)$", recorded().read_text("utf-8"), flags=re.M)
    texts: dict[tuple[str, str], str] = {}
    kernel = "0"
    for command, text in zip(sections[1::2], sections[2::2], strict=True):
        if row := re.fullmatch(r"cuda kernel (\d+)", command):
            kernel = row[1]
        texts.setdefault((kernel, command), text)
    kernel = "0"
    words = sys.argv[1:]
    for word, command in itertools.pairwise(words):
        if word != "-ex":
            continue
        if command.startswith("echo "):
            sys.stdout.write(command[5:].replace("\\n", "\n"))
        elif row := re.match(r"cuda kernel (\d+)", command):
            if (row[1], f"cuda kernel {row[1]}") in texts:
                kernel = row[1]
                print("CUDA focus unchanged.")
            else:
                print("Invalid coordinates requested. CUDA focus unchanged.", file=sys.stderr)
        elif row := re.match(r"x/\d+i \$pc-(\d+)", command):
            sys.stdout.write(texts.get((kernel, f"x/16i $pc-{hex(int(row[1]))}"), ""))
        else:
            known = texts.get((kernel, command), texts.get(("0", command), ""))
            sys.stdout.write(known)


def recorded() -> Path:
    """The file of this look: that with its number in its name, if there is one."""
    first = Path(os.environ["TBSCHED_FAKE_GDB"])
    counter = Path(os.environ["TBSCHED_FAKE_GDB_COUNTER"])
    number = counter.stat().st_size + 1 if counter.exists() else 1
    counter.write_text("x" * number)
    other = first.with_name(f"{first.stem}-{number}.txt")
    return other if other.exists() else first


main()
