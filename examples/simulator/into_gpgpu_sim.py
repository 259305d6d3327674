"""Puts the calls of the adapter into a checkout of GPGPU-Sim.

    python into_gpgpu_sim.py CHECKOUT ADAPTER

CHECKOUT is a checkout of a version that VERSIONS names. ADAPTER is the library that CMake built,
such as build/simulator/libadapter.so. Functions are found by their names. Nothing is written unless
every change can be made: the exit status is then 0, else 2.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import patching
from patching import Change, Refused, before, body, closing

HERE = Path(__file__).resolve().parent
MODEL = "src/gpgpu-sim"
SIM, SIM_H = f"{MODEL}/gpu-sim.cc", f"{MODEL}/gpu-sim.h"
SHADER, SHADER_H = f"{MODEL}/shader.cc", f"{MODEL}/shader.h"
CACHE_H, CUDA_SIM = f"{MODEL}/gpu-cache.h", "src/cuda-sim/cuda-sim.cc"
STREAMS, RUNTIME = "src/stream_manager.cc", "libcuda/cuda_runtime_api.cc"
MAKE, CMAKE, CMAKE_MODEL = "Makefile", "CMakeLists.txt", f"{MODEL}/CMakeLists.txt"
CHANGED = (
    SIM,
    SIM_H,
    SHADER,
    SHADER_H,
    CACHE_H,
    CUDA_SIM,
    STREAMS,
    RUNTIME,
    MAKE,
    CMAKE,
    CMAKE_MODEL,
)
OURS = ("adapter.h", "gpgpu_sim.h", "gpgpu_sim.cc", "gpgpu_sim_members.inc")
# SHA-256 of the files of CHANGED, one after the other, of each version that was tried.
VERSIONS = {
    "accel-sim/gpgpu-sim_distribution at 667834cf": (
        "8892cb03b5e236a29caacc89b0a5b98418b5b8a02518b3340bcb8827c5b6fe01"
    ),
    "accel-sim/gpgpu-sim_distribution at 3844f755": (
        "3b39820730855c4a23a11e3f6a8bde42dd4c74e7e7d8ae321dba415dfc6b9dae"
    ),
    "gpgpu-sim/gpgpu-sim_distribution at a4ce3fea": (
        "b071d5a46c726d63d70e97c38eda2f8cdde07ff480065785fac89a98fde73d2a"
    ),
}
# What only the versions of that name have in SIM_H. None of them was tried.
NOT_TRIED = {"inter_chiplet_queue_size": "a GPGPU-Sim of Accel-Sim 2 (such as 01f6fc4d)"}


def at_begin(function: str, code: str) -> Change:
    def change(text: str) -> str:
        begin, _ = body(text, function)
        return f"{text[:begin]}\n{code}{text[begin:]}"

    return change


def at_end(function: str, code: str) -> Change:
    def change(text: str) -> str:
        _, end = body(text, function)
        return f"{text[:end]}{code}\n{text[end:]}"

    return change


def in_class(name: str, code: str) -> Change:
    """At the end of the class."""

    def change(text: str) -> str:
        found = re.findall(rf"(?m)^class {name}\b[^;{{]*\{{", text)
        if len(found) != 1:
            raise Refused(f"class {name} is defined {len(found)} times")
        end = closing(text, text.index(found[0]) + len(found[0]) - 1)
        return f"{text[:end]}{code}\n{text[end:]}"

    return change


def constant(name: str, value: str) -> Change:
    def change(text: str) -> str:
        changed, times = re.subn(
            rf"(?m)^(const unsigned(?: long long)? {name} =)[^;]*;|^(#define {name}) .*$",
            lambda found: f"{found[1]} {value};" if found[1] else f"{found[2]} {value}",
            text,
        )
        if times == 0:
            raise Refused(f"no constant {name}")
        return changed

    return change


def in_function(function: str, pattern: str, replacement: str) -> Change:
    """In the one place of the function that has the pattern."""

    def change(text: str) -> str:
        begin, end = body(text, function)
        changed, times = re.subn(pattern, replacement, text[begin:end])
        if times != 1:
            raise Refused(f"{function} has {pattern} {times} times")
        return text[:begin] + changed + text[end:]

    return change


def bits(count: str, other: str) -> Change:
    """Sets of so many bits get another number of bits."""

    def change(text: str) -> str:
        changed = text.replace(f"std::bitset<{count}>", f"std::bitset<{other}>")
        if changed == text:
            raise Refused(f"no set of {count} bits")
        return changed

    return change


def linked_by_make(adapter: Path) -> Change:
    def change(text: str) -> str:
        changed, times = re.subn(
            r"(-o \$\(SIM_LIB_DIR\)/lib(?:cudart|OpenCL)\.so)(?=\s)",
            lambda found: f"{adapter} -Wl,-rpath,{adapter.parent} {found[1]}",
            text,
        )
        if times == 0:
            raise Refused("Makefile: nothing makes libcudart.so")
        return changed

    return change


def changes(adapter: Path) -> list[tuple[str, Change]]:
    """Each change with the file that it is made in."""
    threads = (
        "  if (m_gpu->has_adapter())\n"
        "    return tbsched_threads(m_occupied_hwtid, m_config->warp_size,\n"
        "                           m_config->n_thread_per_shader, cta_size, occupy);\n"
    )
    started = "  m_gpu->block_started(m_sid, free_cta_hw_id, kernel, ctaid);"
    ended = "  if (!m_cta_status[cta_num]) m_gpu->block_ended(m_sid, cta_num);"
    stream = (
        "  if (m_type == stream_kernel_launch && m_stream)\n"
        "    gpu->in_stream(*m_kernel, m_stream->get_uid());\n"
    )
    priority = (
        "  const cudaError_t made = cudaStreamCreate(stream);\n"
        "  if (made == cudaSuccess) tbsched_stream((*stream)->get_uid(), priority);\n"
        "  return made;\n"
    )
    levels = "  *leastPriority = 0;\n  *greatestPriority = -5;\n"
    # A core has more thread IDs than the device. What the host and the size of L1 go by is the
    # device's number.
    more_threads = (
        "    tbsched_device_threads = n_thread_per_shader;\n"
        "    if (tbsched_distributes()) n_thread_per_shader = tbsched_thread_ids;"
    )
    device_threads = (r"\bn_thread_per_shader\b", "tbsched_device_threads")
    used_warps = (
        r"(?<= \+ i\))[^;]*;",
        r"\g<0>\n"
        "        if (!all && !m_occupied_hwtid.test(warp_id * m_config->warp_size)) continue;",
    )
    # Several kernels share a core: the stream is that of the warp, the core has no kernel.
    warps_stream = (r"get_kernel_info\(\)\s*->\s*(?=get_streamID)", "")
    # The blocks of several kernels on a core have no common size that would place local memory.
    by_thread = (
        r"\bm_config->gpgpu_local_mem_map\b",
        r"\g<0> && !m_config->gpgpu_concurrent_kernel_sm",
    )
    # A thread's generic addresses are for itself alone: SMs and threads that the map of addresses
    # has no room for may share theirs.
    in_map = "  smid %= MAX_STREAMING_MULTIPROCESSORS;\n"
    thread_in_map = in_map + "  hwtid %= MAX_THREAD_PER_SM;\n"
    distribute = "  if (m_adapter) return distribute_blocks();\n"
    core = " public:\n  shader_core_ctx *core(unsigned cid) { return m_core[cid]; }"
    return [
        (SIM_H, before("#include", '#include "gpgpu_sim.h"')),
        (SIM_H, in_class("gpgpu_sim", '#include "gpgpu_sim_members.inc"')),
        (SIM, at_end("gpgpu_sim::gpgpu_sim", "  make_adapter();")),
        (SIM, at_end("gpgpu_sim::launch", "  if (m_adapter) m_coming.push_back(kinfo);")),
        (SIM, at_begin("gpgpu_sim::issue_block2core", distribute)),
        (SIM, at_begin("gpgpu_sim_config::reg_options", "  tbsched_options(opp);\n")),
        (SIM, in_function("gpgpu_sim::threads_per_core", *device_threads)),
        (SIM, at_begin("shader_core_ctx::find_available_hwtid", threads)),
        (SIM, at_end("shader_core_ctx::issue_block2core", started)),
        (SHADER, at_end("shader_core_ctx::register_cta_thread_exit", ended)),
        (SHADER, in_function("shader_core_ctx::fetch", *warps_stream)),
        (SHADER, in_function("shader_core_ctx::fetch", *used_warps)),
        (SHADER, at_begin("shader_core_ctx::fetch", "  const bool all = !m_gpu->has_adapter();")),
        (SHADER, in_function("shader_core_config::max_cta", *device_threads)),
        (SHADER, in_function("shader_core_ctx::translate_local_memaddr", *by_thread)),
        (SHADER_H, before("#include", '#include "gpgpu_sim.h"')),
        (SHADER_H, before("    max_warps_per_shader = n_thread_per_shader", more_threads)),
        (SHADER_H, in_class("shader_core_config", " public:\n  unsigned tbsched_device_threads;")),
        (SHADER_H, in_class("simt_core_cluster", core)),
        (SHADER_H, constant("WARP_PER_CTA_MAX", "128")),
        (CACHE_H, constant("MAX_WARP_PER_SHADER", "128")),
        (SHADER_H, bits("MAX_THREAD_PER_SM", "tbsched_thread_ids")),
        *[
            (CUDA_SIM, at_begin(function, in_map))
            for function in ("shared_to_generic", "isspace_shared", "generic_to_shared")
        ],
        *[
            (CUDA_SIM, at_begin(function, thread_in_map))
            for function in ("local_to_generic", "isspace_local", "generic_to_local")
        ],
        (STREAMS, at_begin("stream_operation::do_operation", stream)),
        (RUNTIME, at_begin("cudaStreamCreateWithPriority", priority)),
        (RUNTIME, at_begin("cudaDeviceGetStreamPriorityRange", levels)),
        (MAKE, linked_by_make(adapter)),
        (CMAKE, before("add_subdirectory", f'link_libraries("{adapter}")')),
        (CMAKE_MODEL, before("add_library(", "list(APPEND gpgpusim_SRC gpgpu_sim.cc)")),
    ]


def digest(checkout: Path) -> str:
    return patching.digest(checkout, CHANGED, "GPGPU-Sim")


def put_into(checkout: Path, adapter: Path) -> str:
    """Makes the changes; returns the version's name.

    Raises:
        Refused: the checkout is of another version, or was changed, or there is no such library.
    """
    if not adapter.is_file():
        raise Refused(f"{adapter}: build the adapter first")
    found = digest(checkout)
    header = (checkout / SIM_H).read_text("utf-8")
    other = next((name for mark, name in NOT_TRIED.items() if mark in header), None)
    version = patching.version(found, VERSIONS, checkout, other)
    patching.change(checkout, changes(adapter.resolve()))
    for name in OURS:
        shutil.copy(HERE / name, checkout / MODEL)
    return version


def main(arguments: list[str]) -> int:
    return patching.run(put_into, __doc__, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
