"""Files of profilers that are not read, and what to do instead."""

from __future__ import annotations

import re
from dataclasses import dataclass

_EXPORT = "nsys export --type sqlite FILE"
_RECORD = "record the program with tbsched capture, torch.profiler or Nsight Systems"


@dataclass(frozen=True, slots=True)
class _Foreign:
    """A kind of file.

    Attributes:
        advice: what it is, and what to do.
        names: how the name of such a file or folder ends.
        begins: how such a file begins, unpacked.
        has: what one of these files has in its first bytes.
    """

    advice: str
    names: tuple[str, ...] = ()
    begins: tuple[bytes, ...] = ()
    has: tuple[bytes, ...] = ()

    def fits(self, name: str, head: bytes) -> bool:
        """Returns whether a file is of this kind."""
        return (
            name.endswith(self.names)
            or head.startswith(self.begins)
            or any(words in head for words in self.has)
        )


_KINDS = (
    _Foreign(
        f"a report of Nsight Systems; export it to what tbsched reads: {_EXPORT}",
        (".nsys-rep", ".qdrep"),
    ),
    _Foreign(
        f"a report of Nsight Compute, which does not tell when kernels ran; {_RECORD}",
        (".ncu-rep",),
        (b"NVR\0",),
    ),
    _Foreign(f"a profile of JAX or TensorFlow, which is not read; {_RECORD}", (".xplane.pb",)),
    _Foreign(
        f"a table; if Nsight Systems exported it, export the report to what tbsched reads: "
        f"{_EXPORT}",
        (".parquet", ".arrow", "_pqtdir", "_arwdir", ".parquetdir", ".arrowdir"),
        (b"PAR1", b"ARROW1", b"\x89HDF"),
    ),
    _Foreign(
        "a profile of ROCm, so of a GPU of AMD; tbsched knows those of NVIDIA",
        (".rpd", ".otf2"),
        (),
        (b'"rocprofiler-sdk', b'"Agent_Id"', b'"gpu-id"'),
    ),
    _Foreign(f"a trace of Perfetto, which is not read; {_RECORD}", (".pftrace", ".perfetto-trace")),
    _Foreign(
        "an archive; unpack it and name the profile that is in it",
        (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".zst", ".bz2", ".7z"),
        (b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"BZh", b"7z\xbc\xaf\x27\x1c"),
    ),
)
_TAR, _TAR_AT = b"ustar", 257
_ARCHIVE = _KINDS[-1].advice
_SEQUENCE = re.compile(rb'\s*\[\s*\{\s*"(launch|copy|memset|record|wait|synchronize|graph)"\s*:')


def advice(name: str, head: bytes) -> str | None:
    """Returns what to do with a file of a kind that is not read; None: the kind is unknown.

    Args:
        name: of the file or folder.
        head: its first bytes, unpacked.
    """
    if head.startswith(_TAR, _TAR_AT):
        return _ARCHIVE
    return next((kind.advice for kind in _KINDS if kind.fits(name.lower(), head)), None)


def advice_where_a_program_is_needed(head: bytes) -> str | None:
    """Returns what to do with a list of events, which is not a program; None: it is none."""
    if _SEQUENCE.match(head):
        return (
            "a list of events, not the record of a program: predict it with tbsched predict or "
            "tb.predict(tb.Sequence.from_json(text), device)"
        )
    return None
