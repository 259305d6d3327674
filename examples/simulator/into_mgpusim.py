"""Puts the adapter into a checkout of MGPUSim.

    python into_mgpusim.py CHECKOUT ADAPTER

CHECKOUT is a checkout of a version that VERSIONS names. ADAPTER is the library that CMake built,
such as build/simulator/libadapter.so. Nothing is written unless every change can be made: the exit
status is then 0, else 2.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import patching
from patching import Change, Refused

HERE = Path(__file__).resolve().parent
DISPATCHING = "amd/timing/cp/internal/dispatching"
DISPATCHER, BUILDER = f"{DISPATCHING}/dispatcher.go", f"{DISPATCHING}/builder.go"
PROCESSOR = "amd/timing/cp/builder.go"
SHAPE, SAMPLE = "amd/samples/runner/timingconfig", "amd/samples/tbsched"
PLATFORM = f"{SHAPE}/builder.go"
# The others decide what the algorithm has to do.
CHANGED = (DISPATCHER, BUILDER, PROCESSOR, PLATFORM)
LOOKED_AT = (
    *CHANGED,
    f"{DISPATCHING}/alg.go",
    f"{DISPATCHING}/roundrobin.go",
    "amd/timing/cp/internal/resource/curesourceimpl.go",
    "amd/timing/cp/internal/resource/curesourcepool.go",
)
OURS = (
    ("mgpusim/tbsched.go", DISPATCHING),
    ("adapter_c.h", DISPATCHING),
    ("mgpusim/shape.go", SHAPE),
    ("mgpusim/main.go", SAMPLE),
)
# SHA-256 of the files of LOOKED_AT, one after the other, of each version that was tried.
VERSIONS = {
    "sarchlab/mgpusim v4.2.0 at d01e70d5": (
        "c70478a568699124aa549ccc2b82b7413b1781c9756c24d4fe0de771557f9a57"
    ),
}


def replaced(old: str, new: str) -> Change:
    """In the one place where this is."""

    def change(text: str) -> str:
        if text.count(old) != 1:
            raise Refused(f"{old!r} is there {text.count(old)} times")
        return text.replace(old, new)

    return change


def changes() -> list[tuple[str, Change]]:
    """Each change with the file that it is made in."""
    names = '"round-robin", "greedy", "partition"'
    greedy = '\tcase "greedy":\n\t\td.alg ='
    ours = (
        '\tcase "tbsched":\n'
        "\t\td.alg = &tbschedAlgorithm{\n"
        "\t\t\tgpu:         tbschedGPUOf(b),\n"
        "\t\t\tgridBuilder: kernels.NewGridBuilder(),\n"
        "\t\t}\n"
    )
    sent = "\t\td.currWG.valid = false\n"
    freed = "\t\t\t\td.alg.FreeResources(location)\n"
    shape = (
        "r9nano.MakeBuilder().\n"
        "\t\t\tWithNumCUPerShaderArray(b.numCUPerSA).\n"
        "\t\t\tWithNumShaderArray(b.numSAPerGPU)."
    )
    return [
        (BUILDER, replaced(names, f'{names}, "tbsched"')),
        (BUILDER, replaced(greedy, ours + greedy)),
        (DISPATCHER, replaced(sent, "\t\ttbschedStarts(d, d.currWG.wg)\n" + sent)),
        (DISPATCHER, replaced(freed, "\t\t\t\ttbschedEnds(d, location)\n" + freed)),
        (PROCESSOR, replaced('WithAlg("round-robin")', "WithAlg(dispatching.Algorithm())")),
        (PLATFORM, replaced("numCUPerSA:         4,", "numCUPerSA:         *cusPerArray,")),
        (PLATFORM, replaced("numSAPerGPU:        16,", "numSAPerGPU:        *shaderArrays,")),
        (PLATFORM, replaced("r9nano.MakeBuilder().", shape)),
    ]


def digest(checkout: Path) -> str:
    return patching.digest(checkout, LOOKED_AT, "MGPUSim")


def put_into(checkout: Path, adapter: Path) -> str:
    """Makes the changes; returns the version's name.

    Raises:
        Refused: the checkout is of another version, or was changed, or there is no such library.
    """
    if not adapter.is_file():
        raise Refused(f"{adapter}: build the adapter first")
    version = patching.version(digest(checkout), VERSIONS, checkout, None)
    patching.change(checkout, changes())
    for name, folder in OURS:
        (checkout / folder).mkdir(exist_ok=True)
        shutil.copy(HERE / name, checkout / folder)
    where = adapter.resolve().parent
    link = f"// #cgo LDFLAGS: -L{where} -l:{adapter.name} -Wl,-rpath,{where}"
    text = f'package dispatching\n\n{link}\nimport "C"\n'
    (checkout / DISPATCHING / "tbsched_link.go").write_text(text, "utf-8")
    return version


def main(arguments: list[str]) -> int:
    return patching.run(put_into, __doc__, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
