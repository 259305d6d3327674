#include "tbsched/sim/copy_engines.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tbsched/hardware/sm/units.h"

namespace tbsched {
namespace {

// Bytes of a copy from pageable memory that have not been moved when the call returns (traces
// ways/transfers).
constexpr int64_t kStagingBytes = int64_t{1} << 20;

}  // namespace

CopyEngines::CopyEngines(const DeviceSpec& spec, const Clock& clock) : spec_(spec), clock_(clock) {
  for (Engine& engine : engines_) engine.channels.resize(spec.copy_channels + 1);
}

void CopyEngines::set_transfers(const int32_t count) {
  needs_.resize(count);
  times_.resize(count, {kNever, kNever});
}

CopyEngines::Need CopyEngines::need_of(const Memset& memset) const {
  const auto need_for = [&](const int64_t in_stream_ns, const int64_t in_graph_ns) {
    return Need{.engine = kNone,
                .bytes_ns = memset.duration_ns.value_or(in_stream_ns),
                .in_graph_ns = memset.duration_ns.value_or(in_graph_ns)};
  };
  if (memset.bytes <= spec_.small_memset_bytes) {
    return need_for(spec_.inline_copy_ns, spec_.small_memset_latency_ns);
  }
  const int64_t bytes_ns = spec_.memset_latency_ns + move_ns(memset.bytes, spec_.memset_bandwidth);
  return need_for(bytes_ns, bytes_ns);
}

CopyEngines::Need CopyEngines::need_of(const Copy& copy) const {
  if (copy.kind == CopyKind::d2d) {
    const int64_t bytes_ns = move_ns(copy.bytes, spec_.device_copy_bandwidth);
    return {.engine = kNone,
            .bytes_ns = copy.duration_ns.value_or(spec_.device_copy_latency_ns + bytes_ns)};
  }
  if (copy.kind == CopyKind::p2p) {
    const int64_t bytes_ns = move_ns(copy.bytes, spec_.peer_copy_bandwidth);
    return {.engine = kToPeers, .bytes_ns = copy.duration_ns.value_or(bytes_ns)};
  }
  const bool to_gpu = copy.kind == CopyKind::h2d;
  // The duration of a copy from pageable memory is that of the host's copy.
  const auto given_or = [&](const int64_t model_ns) {
    return copy.pinned ? copy.duration_ns.value_or(model_ns) : model_ns;
  };
  const int32_t max_small = copy.pinned ? spec_.small_copy_bytes : spec_.pageable_small_bytes;
  const bool is_small = to_gpu && copy.bytes <= max_small;
  const int32_t pageable = is_small ? spec_.pageable_small_bandwidth
                           : to_gpu ? spec_.pageable_bandwidth
                                    : spec_.pageable_return_bandwidth;
  const int64_t staging_ns =
      copy.pinned ? 0 : copy.duration_ns.value_or(move_ns(copy.bytes, pageable));
  const int64_t bytes_ns = move_ns(copy.bytes, spec_.host_copy_bandwidth);
  if (is_small) {
    return {.engine = kNone,
            .bytes_ns = given_or(spec_.inline_copy_ns + bytes_ns),
            .in_graph_ns = given_or(spec_.small_copy_latency_ns),
            .call_ns = staging_ns};
  }
  // Another copy slows this one, unless it comes from pageable memory: then the host is slower than
  // both.
  const bool is_slowed = !copy.duration_ns && staging_ns <= bytes_ns;
  if (!to_gpu) {
    return {.engine = spec_.copy_engine_count - 1,
            .bytes_ns = copy.duration_ns.value_or(std::max(bytes_ns, staging_ns)),
            .is_slowed = is_slowed};
  }
  const int64_t rest_bytes = copy.pinned ? copy.bytes : std::min(copy.bytes, kStagingBytes);
  return {.engine = 0,
          .bytes_ns = given_or(move_ns(rest_bytes, spec_.host_copy_bandwidth)),
          .call_ns = staging_ns,
          .is_slowed = is_slowed};
}

bool CopyEngines::share_engine(const int32_t a, const int32_t b) const {
  return a >= 0 && b >= 0 && has_engine(a) && needs_[a].engine == needs_[b].engine;
}

int64_t CopyEngines::begin_without_engine(const int32_t transfer, const bool in_graph) {
  const Need& need = needs_[transfer];
  const int64_t now = clock_.gpu_now();
  times_[transfer] = {now,
                      now + (in_graph ? need.in_graph_ns.value_or(need.bytes_ns) : need.bytes_ns)};
  return clock_.to_own(times_[transfer].end_ns);
}

int64_t CopyEngines::set_begin(const int32_t transfer, const int64_t begin_ns) {
  times_[transfer] = {begin_ns, begin_ns + needs_[transfer].bytes_ns};
  return clock_.to_own(times_[transfer].end_ns);
}

void CopyEngines::enqueue(const int32_t transfer, const int32_t stream) {
  Engine& engine = engines_[needs_[transfer].engine];
  Channel& channel = channel_for(std::span(engine.channels).first(spec_.copy_channels), stream);
  channel.waiting.push_back(transfer);
  channel.last_use = ++engine.uses;
  channel.last_stream = stream;
}

void CopyEngines::enqueue_node(const int32_t transfer) {
  engines_[needs_[transfer].engine].channels.back().waiting.push_back(transfer);
}

CopyEngines::Channel& CopyEngines::channel_for(const std::span<Channel> channels,
                                               const int32_t stream) {
  const auto last_used = std::ranges::find(channels, stream, &Channel::last_stream);
  if (last_used != channels.end()) return *last_used;
  return *std::ranges::min_element(channels, {}, [](const Channel& channel) {
    return std::pair(!channel.empty(), channel.last_use);
  });
}

void CopyEngines::set_ready(const int32_t transfer, const int64_t from_ns, const bool has_waited) {
  needs_[transfer].ready_ns = clock_.to_gpu(from_ns);
  needs_[transfer].has_waited = has_waited;
}

std::optional<int32_t> CopyEngines::begin() {
  const int64_t now = clock_.gpu_now();
  const bool one_by_one = spec_.mechanisms.copy_engines;
  for (Engine& engine : engines_) {
    if (engine.busy && one_by_one) continue;
    const int32_t transfer = pop_next(engine, now);
    if (transfer == kNone) continue;
    engine.busy = true;
    const int64_t start_ns = one_by_one ? std::max(now, engine.free_ns) : now;
    times_[transfer] = {start_ns, start_ns + needs_[transfer].bytes_ns};
    const bool with_host = needs_[transfer].engine != kToPeers;
    if (shared_ != nullptr && with_host) {
      EngineTurns& turns = shared_[needs_[transfer].engine];
      turns.begin(process_, now, start_ns, needs_[transfer].bytes_ns);
      times_[transfer].end_ns = turns.ends_ns(process_);
    }
    engine.transfer = transfer;
    engine.since_ns = start_ns;
    engine.rest_ns = needs_[transfer].bytes_ns;
    if (!with_host) return transfer;
    Engine& other = engines_[1 - needs_[transfer].engine];
    if (one_by_one && other.busy) slow_down(engine, other);
    return transfer;
  }
  return std::nullopt;
}

int64_t CopyEngines::ends_ns(const int32_t transfer) const {
  const int64_t end_ns = times_[transfer].end_ns;
  const bool is_shared =
      shared_ != nullptr && has_engine(transfer) && needs_[transfer].engine != kToPeers;
  return clock_.to_own(
      is_shared ? std::max(end_ns, shared_[needs_[transfer].engine].ends_ns(process_)) : end_ns);
}

int32_t CopyEngines::pop_next(Engine& engine, const int64_t now) {
  int32_t first = kNone;
  for (const Channel& channel : engine.channels) {
    if (channel.empty()) continue;
    if (first == kNone || ready_ns(channel) < needs_[first].ready_ns) first = channel.next();
  }
  if (first == kNone || needs_[first].ready_ns > now) return kNone;
  // While the engine learned that the first transfer is ready, others may have become ready too.
  const bool learned =
      spec_.mechanisms.copy_engines && engine.free_ns < now && needs_[first].has_waited;
  const int64_t until_ns = now + (learned ? spec_.host_copy_latency_ns : 0);
  while (engine.channels[engine.current].empty() ||
         ready_ns(engine.channels[engine.current]) > until_ns) {
    engine.current = (engine.current + 1) % engine.channels.size();
  }
  Channel& channel = engine.channels[engine.current];
  return channel.waiting[channel.head++];
}

void CopyEngines::slow_down(Engine& begun, Engine& other) {
  const int64_t from_ns = std::max(begun.since_ns, other.since_ns);
  for (Engine* const engine : {&begun, &other}) {
    const int64_t before_ns = from_ns - engine->since_ns;
    if (engine->rest_ns <= before_ns) return;
    engine->rest_ns -= before_ns;
    engine->since_ns = from_ns;
  }
  const int64_t both_ns = std::min(concurrent_ns(begun), concurrent_ns(other));
  for (const Engine* const engine : {&begun, &other}) {
    const int64_t rest_ns = engine->rest_ns - alone_ns(*engine, both_ns);
    int64_t& end_ns = times_[engine->transfer].end_ns;
    end_ns = std::max(end_ns, from_ns + both_ns + rest_ns);
  }
}

double CopyEngines::slowdown(const Engine& engine) const {
  const bool is_to_gpu = needs_[engine.transfer].engine == 0;
  const int64_t concurrent =
      is_to_gpu ? spec_.both_ways_to_gpu_bandwidth : spec_.both_ways_from_gpu_bandwidth;
  if (!needs_[engine.transfer].is_slowed || concurrent == 0) return 1;
  return static_cast<double>(spec_.host_copy_bandwidth) / static_cast<double>(concurrent);
}

int64_t CopyEngines::concurrent_ns(const Engine& engine) const {
  const double longer = slowdown(engine);
  return longer == 1 ? engine.rest_ns : std::llround(static_cast<double>(engine.rest_ns) * longer);
}

int64_t CopyEngines::alone_ns(const Engine& engine, const int64_t concurrent_ns) const {
  const double longer = slowdown(engine);
  const int64_t moved_ns =
      longer == 1 ? concurrent_ns : std::llround(static_cast<double>(concurrent_ns) / longer);
  return std::min(engine.rest_ns, moved_ns);
}

void CopyEngines::end(const int32_t transfer) {
  const int64_t now = clock_.gpu_now();
  times_[transfer].end_ns = now;
  if (!has_engine(transfer)) return;
  Engine& engine = engines_[needs_[transfer].engine];
  engine.busy = false;
  engine.free_ns = now + spec_.host_copy_gap_ns;
  if (needs_[transfer].engine == kToPeers) return;
  Engine& other = engines_[1 - needs_[transfer].engine];
  if (!other.busy || other.since_ns >= now) return;
  other.rest_ns -= alone_ns(other, now - other.since_ns);
  other.since_ns = now;
}

}  // namespace tbsched
