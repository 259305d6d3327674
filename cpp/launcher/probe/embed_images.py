"""Writes the compiled probe kernels into a C++ source: embed_images.py OUT IMAGE…

The name of an image begins with the kind of the probe: ``probe`` is the plain one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def array(name: str, data: bytes) -> str:
    """Returns C++ of a byte array. It is aligned: the driver reads an ELF image in place."""
    rows = (data[start : start + 24] for start in range(0, len(data), 24))
    text = ",\n    ".join(", ".join(str(byte) for byte in row) for row in rows)
    return f"alignas(64) constexpr unsigned char {name}[] = {{\n    {text}}};\n"


def main(out: Path, images: list[Path]) -> None:
    """Writes an array for each image, and the table of all."""
    arrays: list[str] = []
    rows: list[str] = []
    for image in images:
        architecture = re.findall(r"\d+", image.stem)[-1]
        is_ptx = image.suffix == ".ptx"
        arrays.append(array(image.stem, image.read_bytes() + (b"\0" if is_ptx else b"")))
        ptx = "true" if is_ptx else "false"
        kind = image.stem.partition("_")[0].replace("probe", "plain")
        data = f"std::as_bytes(std::span({image.stem}))"
        rows.append(f"    ProbeImage{{{architecture}, {ptx}, ProbeKind::{kind}, {data}}},")
    out.write_text(
        '#include "launcher/probe/probe_images.h"\n\n#include <array>\n\n'
        "namespace tbsched::cuda {\nnamespace {\n\n"
        + "\n".join(arrays)
        + f"\nconst std::array<ProbeImage, {len(rows)}> kImages = {{\n"
        + "\n".join(rows)
        + "\n};\n\n}  // namespace\n\n"
        "std::span<const ProbeImage> probe_images() { return kImages; }\n\n"
        "}  // namespace tbsched::cuda\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
