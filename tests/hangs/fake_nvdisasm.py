#!/usr/bin/env python3
"""A stand-in for nvdisasm: a file holds the name of a kernel, whose code it lists as recorded."""

import sys
from pathlib import Path

recorded = Path(__file__).with_name("recorded") / "code.txt"
name = Path(sys.argv[-1]).read_text("utf-8")
for section in recorded.read_text("utf-8").split("@@ ")[1:]:
    head, _, listing = section.partition("\n")
    if head == name:
        print(listing)
        sys.exit(0)
sys.exit("fatal: not recorded")
