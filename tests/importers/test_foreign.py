"""Files of profilers that are not read are answered with what to do instead."""

from __future__ import annotations

import contextlib
import gzip
import io
import sqlite3
import tarfile
import zipfile
from pathlib import Path

import pytest

import tbsched as tb
from tbsched.importers.programs import is_profile
from tbsched.importers.readers import read_sequences


def packed(name: str) -> bytes:
    """An archive with a file, with no time in it: test runners compare parameters of workers."""
    data = io.BytesIO()
    if name.endswith(".zip"):
        with zipfile.ZipFile(data, "w") as archive:
            archive.writestr(zipfile.ZipInfo("trace.json"), "{}")
        return data.getvalue()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("trace.json"))
    return gzip.compress(data.getvalue(), mtime=0) if name.endswith("gz") else data.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("report.nsys-rep", b"\x01", "nsys export --type sqlite FILE"),
        ("REPORT.QDREP", b"\x01", "nsys export --type sqlite FILE"),
        ("report.ncu-rep", b"\x01", "Nsight Compute"),
        ("report", b"NVR\0\x01", "Nsight Compute"),
        ("host.xplane.pb", b"\x0a", "JAX or TensorFlow"),
        ("kernels.parquet", b"PAR1", "nsys export --type sqlite FILE"),
        ("kernels", b"ARROW1\0\0", "nsys export --type sqlite FILE"),
        ("report.h5", b"\x89HDF\r\n", "nsys export --type sqlite FILE"),
        ("trace.rpd", b"\x01", "of a GPU of AMD"),
        ("results.json", b'{"rocprofiler-sdk-tool": []}', "of a GPU of AMD"),
        ("kernels.csv", b'"Kind","Agent_Id","Queue_Id"\n', "of a GPU of AMD"),
        ("trace.pftrace", b"\x0a", "a trace of Perfetto"),
        ("trace.zip", packed("a.zip"), "an archive; unpack it"),
        ("trace", packed("a.zip"), "an archive; unpack it"),
        ("trace", packed("a.tar"), "an archive; unpack it"),
        ("trace", packed("a.tar.gz"), "an archive; unpack it"),
        ("trace.json.zst", b"\x28\xb5\x2f\xfd", "an archive; unpack it"),
    ],
)
def test_the_answer_says_what_to_do(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    place = tmp_path / name
    place.write_bytes(content)
    assert is_profile(place)
    for read in (tb.load_program, read_sequences):
        with pytest.raises(ValueError, match=words) as error:
            read(place)
        assert str(error.value).startswith(f"{place}: ")
        assert "\n" not in str(error.value)
        assert "known are" not in str(error.value)


def test_folder_of_tables(tmp_path: Path) -> None:
    place = tmp_path / "report_pqtdir"
    place.mkdir()
    with pytest.raises(ValueError, match="nsys export --type sqlite FILE"):
        tb.load_program(place)


def test_database_of_rocm(tmp_path: Path) -> None:
    place = tmp_path / "1_results.db"
    with contextlib.closing(sqlite3.connect(place)) as database:
        database.execute("CREATE TABLE rocpd_kernel_dispatch (id, start)")
    with pytest.raises(ValueError, match="a profile of ROCm, so of a GPU of AMD"):
        tb.load_program(place)


def test_a_name_alone_makes_no_file_foreign(tmp_path: Path) -> None:
    (tmp_path / "report.nsys-rep").write_bytes(b"")
    with pytest.raises(ValueError, match="empty; was it written"):
        tb.load_program(tmp_path / "report.nsys-rep")
    place = tmp_path / "trace.parquet"
    sequence = tb.Sequence([tb.Launch(2, 64, 32, duration=1e-3)])
    tb.save_traces(tmp_path / "a.jsonl", [tb.predict(sequence, "xavier", host=0.0)])
    (tmp_path / "a.jsonl").rename(place)
    assert len(tb.load_program(place).sequence) == 1
