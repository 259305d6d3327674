// Copies within the GPU's memory, memsets and decisions of conditional nodes: the driver runs
// kernels of its own for them.
//
// An example: a copy of 1 MB within the GPU's memory is a kernel of 128 blocks. While every warp
// slot of the GPU is taken, it waits, and so does what comes behind it in the line.
//
// The number of threads and registers of such a block is not measured. A launch that leaves one
// slot of 1,024 threads free leaves room for 20 GB/s.
//
// A decider is a block of one warp that decides whether the body of a conditional node runs. It
// takes 17 to 32 registers per thread and up to 1 KB of shared memory: it enters a busy SM only if
// that is configured to 64 KB or more. All launches wait behind it.
//
// Source: traces ways/copies, docs/explanation/copies.md; of deciders ways/deciders-h200,
// docs/explanation/graphs.md.
#pragma once

#include <concepts>
#include <optional>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/program/event.h"

namespace tbsched {

// Returns whether the driver runs a kernel for a copy or memset.
bool is_kernel(const DeviceSpec& spec, const Copy& copy);
bool is_kernel(const DeviceSpec& spec, const Memset& memset);
// Returns the kernel that the driver runs for a copy or memset; nothing: it runs none.
std::optional<Launch> driver_kernel(const DeviceSpec& spec, const Copy& copy);
std::optional<Launch> driver_kernel(const DeviceSpec& spec, const Memset& memset);

// Returns the kernel that decides whether the body of a conditional node runs.
Launch decider(const DeviceSpec& spec);

// Host functions, and records of events and waits for them, need none.
template <typename Other>
concept NeedsNoKernel = std::same_as<Other, HostFunction> || std::same_as<Other, RecordEvent> ||
                        std::same_as<Other, WaitEvent>;
constexpr bool is_kernel(const DeviceSpec& /*spec*/, const NeedsNoKernel auto& /*other*/) {
  return false;
}
constexpr std::optional<Launch> driver_kernel(const DeviceSpec& /*spec*/,
                                              const NeedsNoKernel auto& /*other*/) {
  return std::nullopt;
}

}  // namespace tbsched
