#include "tbsched/engine/timed/transfers.h"

#include <algorithm>
#include <utility>

#include "tbsched/hardware/sm/units.h"

namespace tbsched {
namespace {

// So much of a copy from pageable memory is left when the call returns (traces ways/transfers).
constexpr int64_t kStagingBytes = int64_t{1} << 20;

}  // namespace

Transfers::Transfers(const DeviceSpec& spec) : spec_(spec) {
  for (Engine& engine : engines_) engine.channels.resize(spec.copy_channels + 1);
}

void Transfers::expect(const int32_t transfers) {
  needs_.resize(transfers);
  times_.resize(transfers, {kNever, kNever});
}

Transfers::Need Transfers::need_of(const Memset& memset) const {
  const auto need = [&](const int64_t in_stream_ns, const int64_t in_graph_ns) {
    return Need{.engine = kNone,
                .bytes_ns = memset.duration_ns.value_or(in_stream_ns),
                .in_graph_ns = memset.duration_ns.value_or(in_graph_ns)};
  };
  if (memset.bytes <= spec_.small_memset_bytes) {
    return need(spec_.inline_copy_ns, spec_.small_memset_latency_ns);
  }
  const int64_t bytes_ns = spec_.memset_latency_ns + move_ns(memset.bytes, spec_.memset_bandwidth);
  return need(bytes_ns, bytes_ns);
}

Transfers::Need Transfers::need_of(const Copy& copy) const {
  if (copy.kind == CopyKind::d2d) {
    const int64_t bytes_ns = move_ns(copy.bytes, spec_.device_copy_bandwidth);
    return {.engine = kNone,
            .bytes_ns = copy.duration_ns.value_or(spec_.device_copy_latency_ns + bytes_ns)};
  }
  const bool to_gpu = copy.kind == CopyKind::h2d;
  // Of a copy to or from pageable memory the duration is that of the host.
  const std::optional<int64_t> given = copy.pinned ? copy.duration_ns : std::nullopt;
  const int64_t staging_ns =
      copy.pinned ? 0 : copy.duration_ns.value_or(move_ns(copy.bytes, spec_.pageable_bandwidth));
  const int64_t bytes_ns = move_ns(copy.bytes, spec_.host_copy_bandwidth);
  const int32_t small = copy.pinned ? spec_.small_copy_bytes : spec_.pageable_small_bytes;
  if (to_gpu && copy.bytes <= small) {
    return {.engine = kNone,
            .bytes_ns = given.value_or(spec_.inline_copy_ns + bytes_ns),
            .in_graph_ns = given.value_or(spec_.small_copy_latency_ns),
            .call_ns = staging_ns};
  }
  if (!to_gpu) {
    return {.engine = 1, .bytes_ns = copy.duration_ns.value_or(std::max(bytes_ns, staging_ns))};
  }
  const int64_t rest = copy.pinned ? copy.bytes : std::min(copy.bytes, kStagingBytes);
  return {.engine = 0,
          .bytes_ns = given.value_or(move_ns(rest, spec_.host_copy_bandwidth)),
          .call_ns = staging_ns};
}

bool Transfers::share_engine(const int32_t a, const int32_t b) const {
  return a >= 0 && b >= 0 && has_engine(a) && needs_[a].engine == needs_[b].engine;
}

int64_t Transfers::run(const int32_t transfer, const bool in_graph, const int64_t now) {
  const Need& need = needs_[transfer];
  times_[transfer] = {now,
                      now + (in_graph ? need.in_graph_ns.value_or(need.bytes_ns) : need.bytes_ns)};
  return times_[transfer].end_ns;
}

void Transfers::enqueue(const int32_t transfer, const int32_t stream) {
  Engine& engine = engines_[needs_[transfer].engine];
  Channel& channel = channel_for(std::span(engine.channels).first(spec_.copy_channels), stream);
  channel.waiting.push_back(transfer);
  channel.last_use = ++engine.uses;
  channel.last_stream = stream;
}

void Transfers::enqueue_node(const int32_t transfer) {
  engines_[needs_[transfer].engine].channels.back().waiting.push_back(transfer);
}

Transfers::Channel& Transfers::channel_for(const std::span<Channel> channels,
                                           const int32_t stream) {
  const auto own = std::ranges::find(channels, stream, &Channel::last_stream);
  if (own != channels.end()) return *own;
  return *std::ranges::min_element(channels, {}, [](const Channel& channel) {
    return std::pair(!channel.empty(), channel.last_use);
  });
}

void Transfers::be_ready(const int32_t transfer, const int64_t from_ns) {
  needs_[transfer].ready_ns = from_ns;
}

std::optional<int32_t> Transfers::begin(const int64_t now) {
  const bool one_by_one = spec_.mechanisms.copy_engines;
  for (Engine& engine : engines_) {
    if (engine.busy && one_by_one) continue;
    const bool any_ready = std::ranges::any_of(engine.channels, [&](const Channel& channel) {
      return !channel.empty() && ready_ns(channel) <= now;
    });
    if (!any_ready) continue;
    // While it stood still, others may have followed the one for which it begins.
    const bool stood_still = one_by_one && engine.free_ns < now;
    const int64_t until_ns = now + (stood_still ? spec_.host_copy_latency_ns : 0);
    while (engine.channels[engine.current].empty() ||
           ready_ns(engine.channels[engine.current]) > until_ns) {
      engine.current = (engine.current + 1) % engine.channels.size();
    }
    Channel& channel = engine.channels[engine.current];
    const int32_t transfer = channel.waiting[channel.head++];
    engine.busy = true;
    const int64_t start_ns = one_by_one ? std::max(now, engine.free_ns) : now;
    times_[transfer] = {start_ns, start_ns + needs_[transfer].bytes_ns};
    if (shared_ != nullptr && one_by_one) {
      EngineTurns& turns = shared_[needs_[transfer].engine];
      turns.begin(process_, now, start_ns, needs_[transfer].bytes_ns);
      times_[transfer].end_ns = turns.ends_ns(process_);
    }
    return transfer;
  }
  return std::nullopt;
}

int64_t Transfers::ends_ns(const int32_t transfer) const {
  if (shared_ == nullptr || !spec_.mechanisms.copy_engines) return times_[transfer].end_ns;
  return shared_[needs_[transfer].engine].ends_ns(process_);
}

void Transfers::end(const int32_t transfer, const int64_t now) {
  Engine& engine = engines_[needs_[transfer].engine];
  times_[transfer].end_ns = now;
  engine.busy = false;
  engine.free_ns = now + spec_.host_copy_gap_ns;
}

}  // namespace tbsched
