#include "tbsched/engine/timed/transfers.h"

#include <algorithm>

namespace tbsched {
namespace {

// `bandwidth`: bytes per microsecond; 0: it is not known.
int64_t time_ns(const int64_t bytes, const int64_t bandwidth) {
  return bandwidth == 0 ? 0 : bytes * 1000 / bandwidth;
}

}  // namespace

int32_t Transfers::add(const Copy& copy) { return add(need_of(copy)); }

int32_t Transfers::add(const Memset& memset) {
  const int64_t bytes_ns = time_ns(memset.bytes, spec_.memset_bandwidth);
  return add({Engine::none, 0, memset.duration_ns.value_or(spec_.memset_latency_ns + bytes_ns)});
}

int32_t Transfers::add(const Need& need) {
  needs_.push_back(need);
  times_.push_back({kNever, kNever});
  return static_cast<int32_t>(needs_.size()) - 1;
}

Transfers::Need Transfers::need_of(const Copy& copy) const {
  if (copy.kind == CopyKind::d2d) {
    const int64_t bytes_ns = time_ns(copy.bytes, spec_.device_copy_bandwidth);
    return {Engine::none, 0, copy.duration_ns.value_or(spec_.device_copy_latency_ns + bytes_ns)};
  }
  if (copy.kind == CopyKind::h2d && copy.bytes <= spec_.small_copy_bytes) {
    return {Engine::none, 0, copy.duration_ns.value_or(spec_.small_copy_latency_ns)};
  }
  const Engine engine = copy.kind == CopyKind::h2d ? Engine::to_gpu : Engine::from_gpu;
  if (copy.duration_ns) return {engine, 0, *copy.duration_ns};
  return {engine, spec_.host_copy_latency_ns, time_ns(copy.bytes, spec_.host_copy_bandwidth)};
}

int64_t Transfers::begin(const int32_t transfer, const int32_t after, const int64_t now) {
  const auto& [engine, latency_ns, bytes_ns] = needs_[transfer];
  int64_t start_ns = now;
  if (engine != Engine::none && !spec_.mechanisms.copy_engines) {
    start_ns += latency_ns;
  } else if (engine != Engine::none) {
    const bool goes_on = after >= 0 && needs_[after].engine == engine;
    int64_t& free_ns = free_ns_[static_cast<size_t>(engine)];
    start_ns = std::max(now + (goes_on ? 0 : latency_ns), free_ns);
    free_ns = start_ns + bytes_ns;
  }
  times_[transfer] = {start_ns, start_ns + bytes_ns};
  return start_ns + bytes_ns;
}

}  // namespace tbsched
