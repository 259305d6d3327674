#include "tbsched/engine/timed/transfers.h"

#include <algorithm>
#include <variant>

namespace tbsched {
namespace {

// `bandwidth`: bytes per microsecond; 0: it is not known.
int64_t time_ns(const int64_t bytes, const int64_t bandwidth) {
  return bandwidth == 0 ? 0 : bytes * 1000 / bandwidth;
}

}  // namespace

int64_t Transfers::begin(const Node& node, const Node* const after, const int64_t now) {
  return std::visit(
      Overloaded{
          [&](const Launch&) { return now; },  // the scheduler's
          [&](const Copy& copy) { return begin(copy, after, now); },
          [&](const Memset& memset) {
            return now + memset.duration_ns.value_or(spec_.memset_latency_ns +
                                                     time_ns(memset.bytes, spec_.memset_bandwidth));
          },
      },
      node);
}

int64_t Transfers::begin(const Copy& copy, const Node* const after, const int64_t now) {
  if (copy.kind == CopyKind::d2d) {
    const int64_t bytes_ns = time_ns(copy.bytes, spec_.device_copy_bandwidth);
    return now + copy.duration_ns.value_or(spec_.device_copy_latency_ns + bytes_ns);
  }
  if (is_small(copy)) return now + copy.duration_ns.value_or(spec_.small_copy_latency_ns);
  const bool engines = spec_.mechanisms.copy_engines;
  const Copy* const before = after == nullptr ? nullptr : std::get_if<Copy>(after);
  const bool goes_on = engines && before != nullptr && before->kind == copy.kind;
  const int64_t latency_ns =
      copy.duration_ns || (goes_on && !is_small(*before)) ? 0 : spec_.host_copy_latency_ns;
  const int64_t bytes_ns =
      copy.duration_ns.value_or(time_ns(copy.bytes, spec_.host_copy_bandwidth));
  int64_t& free_ns = engine_free_ns_[copy.kind == CopyKind::h2d ? 0 : 1];
  free_ns = std::max(now + latency_ns, engines ? free_ns : 0) + bytes_ns;
  return free_ns;
}

bool Transfers::is_small(const Copy& copy) const {
  return copy.kind == CopyKind::h2d && copy.bytes <= spec_.small_copy_bytes;
}

}  // namespace tbsched
