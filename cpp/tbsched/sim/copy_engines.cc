#include "tbsched/sim/copy_engines.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tbsched/hardware/sm/units.h"

namespace tbsched {
namespace {

// How much of a copy from pageable memory is left when the call returns (traces ways/transfers).
constexpr int64_t kStagingBytes = int64_t{1} << 20;

}  // namespace

CopyEngines::CopyEngines(const DeviceSpec& spec, const Clock& clock) : spec_(spec), clock_(clock) {
  for (Engine& engine : engines_) engine.channels.resize(spec.copy_channels + 1);
}

void CopyEngines::expect(const int32_t transfers) {
  needs_.resize(transfers);
  times_.resize(transfers, {kNever, kNever});
}

CopyEngines::Need CopyEngines::need_of(const Memset& memset) const {
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
  const int32_t small = copy.pinned ? spec_.small_copy_bytes : spec_.pageable_small_bytes;
  const bool is_small = to_gpu && copy.bytes <= small;
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
  const bool slows = !copy.duration_ns && staging_ns <= bytes_ns;
  if (!to_gpu) {
    return {.engine = spec_.copy_engine_count - 1,
            .bytes_ns = copy.duration_ns.value_or(std::max(bytes_ns, staging_ns)),
            .slows = slows};
  }
  const int64_t rest = copy.pinned ? copy.bytes : std::min(copy.bytes, kStagingBytes);
  return {.engine = 0,
          .bytes_ns = given_or(move_ns(rest, spec_.host_copy_bandwidth)),
          .call_ns = staging_ns,
          .slows = slows};
}

bool CopyEngines::share_engine(const int32_t a, const int32_t b) const {
  return a >= 0 && b >= 0 && has_engine(a) && needs_[a].engine == needs_[b].engine;
}

int64_t CopyEngines::run(const int32_t transfer, const bool in_graph) {
  const Need& need = needs_[transfer];
  const int64_t now = clock_.gpu_now();
  times_[transfer] = {now,
                      now + (in_graph ? need.in_graph_ns.value_or(need.bytes_ns) : need.bytes_ns)};
  return clock_.to_own(times_[transfer].end_ns);
}

int64_t CopyEngines::run_at(const int32_t transfer, const int64_t begin_ns) {
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
  const auto own = std::ranges::find(channels, stream, &Channel::last_stream);
  if (own != channels.end()) return *own;
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
    const int32_t transfer = next_of(engine, now);
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
    engine.moves = transfer;
    engine.as_of_ns = start_ns;
    engine.left_ns = needs_[transfer].bytes_ns;
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

int32_t CopyEngines::next_of(Engine& engine, const int64_t now) {
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

// Lengthens both transfers for the time in which both engines move bytes.
void CopyEngines::slow_down(Engine& begun, Engine& other) {
  const int64_t from_ns = std::max(begun.as_of_ns, other.as_of_ns);
  for (Engine* const engine : {&begun, &other}) {
    const int64_t before_ns = from_ns - engine->as_of_ns;
    if (engine->left_ns <= before_ns) return;
    engine->left_ns -= before_ns;
    engine->as_of_ns = from_ns;
  }
  const int64_t both_ns = std::min(concurrent_ns(begun), concurrent_ns(other));
  for (const Engine* const engine : {&begun, &other}) {
    const int64_t left_ns = engine->left_ns - alone_ns(*engine, both_ns);
    int64_t& end_ns = times_[engine->moves].end_ns;
    end_ns = std::max(end_ns, from_ns + both_ns + left_ns);
  }
}

// Returns by which factor the transfer of an engine takes longer while both engines move bytes.
double CopyEngines::slowdown(const Engine& engine) const {
  const bool is_to_gpu = needs_[engine.moves].engine == 0;
  const int64_t concurrent =
      is_to_gpu ? spec_.both_ways_to_gpu_bandwidth : spec_.both_ways_from_gpu_bandwidth;
  if (!needs_[engine.moves].slows || concurrent == 0) return 1;
  return static_cast<double>(spec_.host_copy_bandwidth) / static_cast<double>(concurrent);
}

// Returns how long the rest of a transfer takes while both engines move bytes.
int64_t CopyEngines::concurrent_ns(const Engine& engine) const {
  const double longer = slowdown(engine);
  return longer == 1 ? engine.left_ns : std::llround(static_cast<double>(engine.left_ns) * longer);
}

// Returns how long the bytes that a transfer moves within `concurrent_ns` would take alone.
int64_t CopyEngines::alone_ns(const Engine& engine, const int64_t concurrent_ns) const {
  const double longer = slowdown(engine);
  const int64_t moved_ns =
      longer == 1 ? concurrent_ns : std::llround(static_cast<double>(concurrent_ns) / longer);
  return std::min(engine.left_ns, moved_ns);
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
  if (!other.busy || other.as_of_ns >= now) return;
  other.left_ns -= alone_ns(other, now - other.as_of_ns);
  other.as_of_ns = now;
}

}  // namespace tbsched
