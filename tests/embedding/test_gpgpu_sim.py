"""The script that puts the adapter into GPGPU-Sim, on a stand-in for a checkout."""

from __future__ import annotations

import shutil
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from cpp_library import CXX, run
from helpers import ROOT

EXAMPLE = ROOT / "examples" / "simulator"
STAND_IN = Path(__file__).parent / "gpgpu_sim"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    sys.path.insert(0, str(EXAMPLE))
    try:
        return import_module("into_gpgpu_sim")
    finally:
        sys.path.remove(str(EXAMPLE))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return Path(shutil.copytree(STAND_IN, tmp_path / "checkout"))


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    library = tmp_path / "libadapter.so"
    library.touch()
    return library


def known(script: ModuleType, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the stand-in a version that the script knows."""
    monkeypatch.setattr(script, "VERSIONS", {"stand-in": script.digest(checkout)})


@pytest.fixture
def changed(
    script: ModuleType, checkout: Path, adapter: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A checkout with the calls of the adapter."""
    known(script, checkout, monkeypatch)
    script.put_into(checkout, adapter)
    return checkout


def texts(checkout: Path) -> dict[str, str]:
    return {
        str(path.relative_to(checkout)): path.read_text("utf-8")
        for path in checkout.rglob("*")
        if path.is_file()
    }


def test_files_compile_as_cpp_of_2011(
    script: ModuleType, checkout: Path, adapter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(script, checkout, monkeypatch)
    assert script.put_into(checkout, adapter) == "stand-in"
    model = checkout / "src" / "gpgpu-sim"
    for name in ("gpgpu_sim.cc", "gpu-sim.cc", "shader.cc"):
        run(CXX, "-std=c++0x", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", model / name)
    for name in ("src/stream_manager.cc", "libcuda/cuda_runtime_api.cc"):
        run(CXX, "-std=c++0x", "-Wall", "-fsyntax-only", f"-I{model}", checkout / name)


def test_calls_are_in_the_functions_that_the_script_names(
    script: ModuleType, checkout: Path, adapter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(script, checkout, monkeypatch)
    script.put_into(checkout, adapter)
    changed = texts(checkout)
    sim, shader = changed[script.SIM], changed[script.SHADER]

    def inside(text: str, function: str) -> str:
        begin, end = script.body(text, function)
        return text[begin:end].strip()

    assert inside(sim, "gpgpu_sim::gpgpu_sim").endswith("make_adapter();")
    assert inside(sim, "gpgpu_sim::launch").endswith("m_coming.push_back(kinfo);")
    issue = inside(sim, "gpgpu_sim::issue_block2core")
    assert issue.startswith("if (m_adapter) return distribute_blocks();")
    assert "block_started(" in inside(sim, "shader_core_ctx::issue_block2core")
    assert "block_ended(" in inside(shader, "shader_core_ctx::register_cta_thread_exit")
    fetch = inside(shader, "shader_core_ctx::fetch")
    assert "get_kernel_info" not in fetch
    assert "!m_occupied_hwtid.test(warp_id" in fetch.partition("m_last_warp_fetched")[2]
    assert fetch.count("has_adapter") == 1
    assert "has_adapter" in fetch.partition("for (")[0]
    assert str(adapter.resolve()) in changed["Makefile"]
    assert str(adapter.resolve()) in changed["CMakeLists.txt"]


@pytest.mark.parametrize(("distributes", "shape"), [("false", "2048 64"), ("true", "4096 128")])
def test_only_tbsched_gives_a_core_more_thread_ids(
    script: ModuleType, changed: Path, distributes: str, shape: str
) -> None:
    """And what the host is told stays the number of the device."""
    source = changed / "src" / "gpgpu-sim" / "core.cc"
    source.write_text(
        f"""
#include <iostream>
#include "../abstract_hardware_model.h"
#include "shader.h"

bool tbsched_distributes() {{ return {distributes}; }}

int main() {{
  shader_core_config core;
  core.init("2048:32");
  std::cout << core.tbsched_device_threads << ' ' << core.n_thread_per_shader << ' '
            << core.max_warps_per_shader;
}}
""",
        "utf-8",
    )
    run(CXX, "-std=c++11", source, "-o", changed / "core")
    assert run(changed / "core") == f"2048 {shape}"
    for name, function in (
        (script.SIM, "gpgpu_sim::threads_per_core"),
        (script.SHADER, "shader_core_config::max_cta"),
    ):
        text = (changed / name).read_text("utf-8")
        begin, end = script.body(text, function)
        assert "tbsched_device_threads" in text[begin:end]
        assert "n_thread_per_shader" not in text[begin:end]


def test_local_memory_has_its_size_on_every_thread_id_of_every_sm(
    script: ModuleType, changed: Path
) -> None:
    """The map of addresses has 80 SMs of 2,048 threads; an H200 has 132, and tbsched 4,096 IDs."""
    source = changed / "src" / "cuda-sim" / "map.cc"
    source.write_text(
        """
#include <initializer_list>
#include "cuda-sim.h"

int main() {
  for (const unsigned smid : {0u, 79u, 80u, 131u}) {
    const addr_t shared = shared_to_generic(smid, 95);
    if (whichspace(shared) != 's' || !isspace_shared(smid, shared)) return 1;
    if (generic_to_shared(smid, shared) != 95) return 2;
    for (const unsigned thread : {0u, 2047u, 2048u, 4095u}) {
      const addr_t local = local_to_generic(smid, thread, 15);
      if (whichspace(local) != 'l' || !isspace_local(smid, thread, local)) return 3;
      if (generic_to_local(smid, thread, local) != 15) return 4;
    }
  }
  return local_to_generic(79, 2047, 0) == local_to_generic(78, 2047, 0);
}
""",
        "utf-8",
    )
    run(CXX, "-std=c++11", source, changed / script.CUDA_SIM, "-o", changed / "map")
    run(changed / "map")


@pytest.mark.parametrize("together", ["false", "true"])
def test_local_memory_of_kernels_that_share_a_core_needs_no_size_of_blocks(
    script: ModuleType, changed: Path, together: str
) -> None:
    source = changed / "src" / "gpgpu-sim" / "local.cc"
    source.write_text(
        f"""
#include <iostream>
#include "gpu-sim.h"

struct core : shader_core_ctx {{
  explicit core(const shader_core_config &config) {{
    m_config = &config;
    m_sid = 3;
    kernel_padded_threads_per_cta = config.gpgpu_concurrent_kernel_sm ? 0 : 64;
  }}
}};

int main() {{
  shader_core_config config = {{}};
  config.n_thread_per_shader = 2048;
  config.gpgpu_local_mem_map = true;
  config.gpgpu_concurrent_kernel_sm = {together};
  std::cout << core(config).translate_local_memaddr(0, 65, 80);
}}
""",
        "utf-8",
    )
    shader = changed / script.SHADER
    program = changed / "local"
    run(CXX, "-std=c++11", "-O1", "-ffunction-sections", "-Wl,--gc-sections",
        source, shader, "-o", program)  # fmt: skip
    assert run(program) == ("6209" if together == "true" else "5313")


def test_unknown_version_is_refused_and_stays_as_it_is(
    script: ModuleType, checkout: Path, adapter: Path
) -> None:
    before = texts(checkout)
    assert script.main([str(checkout), str(adapter)]) == 2
    with pytest.raises(script.Refused, match="unknown version"):
        script.put_into(checkout, adapter)
    assert texts(checkout) == before


def test_version_that_was_not_tried_is_refused_by_its_name(
    script: ModuleType, checkout: Path, adapter: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = checkout / script.SIM_H
    header.write_text(header.read_text("utf-8") + "unsigned inter_chiplet_queue_size;\n", "utf-8")
    before = texts(checkout)
    assert script.main([str(checkout), str(adapter)]) == 2
    assert "a GPGPU-Sim of Accel-Sim 2 (such as 01f6fc4d), not tried" in capsys.readouterr().err
    assert texts(checkout) == before


def test_changed_checkout_is_refused(
    script: ModuleType, checkout: Path, adapter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(script, checkout, monkeypatch)
    script.put_into(checkout, adapter)
    with pytest.raises(script.Refused, match="or changed already"):
        script.put_into(checkout, adapter)


@pytest.mark.parametrize(
    ("file", "old", "message"),
    [
        ("SIM", "gpgpu_sim::launch", "gpgpu_sim::launch is defined 0 times"),
        ("CACHE_H", "MAX_WARP_PER_SHADER", "no constant MAX_WARP_PER_SHADER"),
        ("SHADER_H", "std::bitset<MAX_THREAD_PER_SM>", "no set of MAX_THREAD_PER_SM bits"),
        ("CUDA_SIM", "local_to_generic", "local_to_generic is defined 0 times"),
        ("SHADER", "m_config->gpgpu_local_mem_map", "memaddr has .*local_mem_map.* 0 times"),
        ("SHADER", "get_streamID", "fetch has .*get_streamID.* 0 times"),
        ("SHADER_H", "max_warps_per_shader =", "no     max_warps_per_shader ="),
        ("SHADER", "m_last_warp_fetched + 1 + i", "fetch has .* 0 times"),
        ("MAKE", "libcudart", "nothing makes libcudart.so"),
    ],
)
def test_missing_place_is_refused_before_anything_is_written(
    script: ModuleType,
    checkout: Path,
    adapter: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    old: str,
    message: str,
) -> None:
    path = checkout / getattr(script, file)
    path.write_text(path.read_text("utf-8").replace(old, "another"), "utf-8")
    known(script, checkout, monkeypatch)
    before = texts(checkout)
    with pytest.raises(script.Refused, match=message):
        script.put_into(checkout, adapter)
    assert texts(checkout) == before


def test_library_that_is_not_there_is_refused(script: ModuleType, checkout: Path) -> None:
    with pytest.raises(script.Refused, match="build the adapter first"):
        script.put_into(checkout, checkout / "none.so")


def test_free_threads_begin_with_a_warp_and_are_one_run(tmp_path: Path) -> None:
    """Against a search that looks at every beginning."""
    source = tmp_path / "threads.cc"
    source.write_text(
        """
#include <bitset>
#include <cstdlib>
#include <iostream>
#include "gpgpu_sim.h"

int slow(const std::bitset<512> &taken, unsigned size) {
  for (unsigned first = 0; first + size <= 512; first += 32) {
    bool free = true;
    for (unsigned k = first; k < first + size; ++k) free = free && !taken.test(k);
    if (free) return first;
  }
  return -1;
}

int main() {
  std::srand(7);
  int found = 0;
  for (int round = 0; round < 20000; ++round) {
    std::bitset<512> taken;
    for (unsigned warp = 0; warp < 16; ++warp)
      if (std::rand() % 3 == 0)
        for (unsigned k = 0; k < 32; ++k) taken.set(32 * warp + k);
    const unsigned size = 32 * (1 + std::rand() % 8);
    const int expected = slow(taken, size);
    std::bitset<512> same = taken;
    if (tbsched_threads(same, 32, 512, size, false) != expected || same != taken) return 1;
    if (tbsched_threads(same, 32, 512, size, true) != expected) return 2;
    if (same.count() != taken.count() + (expected < 0 ? 0 : size)) return 3;
    found += expected >= 0;
  }
  std::cout << found;
}
""",
        "utf-8",
    )
    program = tmp_path / "threads"
    run(CXX, "-std=c++11", f"-I{EXAMPLE}", source, "-o", program)
    assert 1000 < int(run(program)) < 19000
