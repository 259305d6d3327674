// A GPU as data. Written by schema/generate.py from schema/device.toml.
// clang-format off
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tbsched/hardware/field.h"

namespace tbsched {

// What the arithmetic of the core is built for.
namespace ranges {
inline constexpr Range sms{1, 65536};
inline constexpr Range sms_per_tpc{1, 64};
inline constexpr Range processing_blocks{1, 4};
inline constexpr Range blocks_per_sm{1, 1024};
inline constexpr Range cluster_blocks_per_sm{1, 1024};
inline constexpr Range warps_per_sm{1, 64};
inline constexpr Range registers_per_sm{1, 16777216};
inline constexpr Range threads_per_block{1, 1024};
inline constexpr Range registers_per_thread{1, 1024};
inline constexpr Range max_cluster{1, 64};
inline constexpr Range coscheduled_sms{0, 65536};
inline constexpr Range register_unit{1, 65536};
inline constexpr Range shared_memory_unit{1, 65536};
inline constexpr Range shared_memory_threshold{0, 16777216};
inline constexpr Range shared_memory_reserve{0, 65536};
inline constexpr Range shared_memory_per_block{0, 16777216};
inline constexpr Range local_memory_initial{0, 16777216};
inline constexpr Range local_memory_unit{1, 65536};
inline constexpr Range priority_levels{1, 64};
inline constexpr Range hardware_queues{1, 1024};
inline constexpr Range resident_grids{1, 1048576};
inline constexpr Range launch_latency_ns{0, 1000000000};
inline constexpr Range completion_latency_ns{0, 1000000000};
inline constexpr Range exit_latency_ns{0, 1000000000};
inline constexpr Range event_latency_ns{0, 1000000000};
inline constexpr Range front_ends{1, 1024};
inline constexpr Range queue_watch_ns{0, 1000000000};
inline constexpr Range host_watch_ns{0, 1000000000};
inline constexpr Range host_write_ns{0, 1000000000};
inline constexpr Range trigger_latency_ns{0, 1000000000};
inline constexpr Range launch_completion_latency_ns{0, 1000000000};
inline constexpr Range node_latency_ns{0, 1000000000};
inline constexpr Range node_place_ns{0, 1000000000};
inline constexpr Range node_places{0, 1048576};
inline constexpr Range relay_ns{0, 1000000000};
inline constexpr Range conditional_ns{0, 10000000};
inline constexpr Range condition_reset_ns{0, 10000000};
inline constexpr Range condition_reset_latency_ns{0, 10000000};
inline constexpr Range host_function_latency_ns{0, 1000000000};
inline constexpr Range host_function_direct_ns{0, 1000000000};
inline constexpr Range host_function_turn_ns{0, 1000000000};
inline constexpr Range host_function_return_ns{0, 1000000000};
inline constexpr Range value_write_ns{0, 1000000000};
inline constexpr Range value_wait_ns{0, 1000000000};
inline constexpr Range value_wake_ns{0, 1000000000};
inline constexpr Range timed_record_ns{0, 1000000000};
inline constexpr Range graph_latency_ns{0, 1000000000};
inline constexpr Range node_interval_ns{0, 1000000000};
inline constexpr Range copy_engine_count{1, 2};
inline constexpr Range copy_channels{1, 1024};
inline constexpr Range host_copy_latency_ns{0, 1000000000};
inline constexpr Range node_copy_latency_ns{0, 1000000000};
inline constexpr Range host_copy_issue_ns{0, 1000000000};
inline constexpr Range host_copy_gap_ns{0, 1000000000};
inline constexpr Range copy_watch_ns{0, 1000000000};
inline constexpr Range copy_wake_ns{0, 1000000000};
inline constexpr Range host_return_ns{0, 1000000000};
inline constexpr Range pageable_bandwidth{0, 1000000000};
inline constexpr Range pageable_return_bandwidth{0, 1000000000};
inline constexpr Range pageable_small_bytes{0, 1048576};
inline constexpr Range pageable_small_bandwidth{0, 1000000000};
inline constexpr Range host_copy_bandwidth{0, 1000000000};
inline constexpr Range both_ways_to_gpu_bandwidth{0, 1000000000};
inline constexpr Range both_ways_from_gpu_bandwidth{0, 1000000000};
inline constexpr Range small_copy_bytes{0, 1048576};
inline constexpr Range small_copy_latency_ns{0, 1000000000};
inline constexpr Range inline_copy_ns{0, 1000000000};
inline constexpr Range small_memset_latency_ns{0, 1000000000};
inline constexpr Range small_memset_bytes{0, 1048576};
inline constexpr Range copy_block_bytes{1, 1000000000};
inline constexpr Range device_copy_latency_ns{0, 1000000000};
inline constexpr Range device_copy_bandwidth{0, 1000000000};
inline constexpr Range peer_copy_bandwidth{0, 1000000000};
inline constexpr Range peer_event_latency_ns{0, 1000000000};
inline constexpr Range memset_latency_ns{0, 1000000000};
inline constexpr Range memset_bandwidth{0, 1000000000};
inline constexpr Range queue_places{1, 1048576};
inline constexpr Range stream_stretches{1, 1048576};
inline constexpr Range launch_call_ns{0, 1000000000};
inline constexpr Range copy_call_ns{0, 1000000000};
inline constexpr Range event_call_ns{0, 1000000000};
inline constexpr Range host_function_call_ns{0, 1000000000};
inline constexpr Range value_call_ns{0, 1000000000};
inline constexpr Range first_call_ns{0, 1000000000};
inline constexpr Range first_kind_call_ns{0, 1000000000};
inline constexpr Range new_stream_call_ns{0, 1000000000};
inline constexpr Range driver_call_ns{0, 1000000000};
inline constexpr Range synchronize_ns{0, 1000000000};
inline constexpr Range first_use_ns{0, 1000000000};
inline constexpr Range load_ns{0, 1000000000};
inline constexpr Range local_memory_growth_ns{0, 1000000000};
inline constexpr Range local_memory_growth_per_byte_ns{0, 1000000000};
inline constexpr Range launch_switch_ns{0, 1000000000};
inline constexpr Range time_slice_ns{0, 1000000000};
inline constexpr Range process_switch_ns{0, 1000000000};
inline constexpr Range preemption_ns{0, 1000000000};
inline constexpr Range engine_slice_ns{0, 1000000000};
inline constexpr Range engine_switch_ns{0, 1000000000};
inline constexpr Range first_preemption_ns{0, 1000000000};
inline constexpr Range preemption_bandwidth{0, 1000000000};
}  // namespace ranges

inline constexpr int32_t kMaxProcessingBlocks = ranges::processing_blocks.high;
inline constexpr int32_t kMaxWarpsPerSm = ranges::warps_per_sm.high;

// Which mechanisms act (numbers: sections IV-A to IV-D of the ICCD 2023 paper). Switching one off
// is how an ablation is written.
struct Mechanisms {
  // 2.1, a warp waits for the processing block whose turn it is
  bool strict_round_robin = false;
  // 2.2, after a block whose number of warps is a multiple of the number of processing blocks, one
  // processing block is skipped
  bool warp_skip = false;
  // 4, whether an allocation must be contiguous, may wrap around the end of a circular memory, or
  // may be in pieces, pooled
  Layout registers{};
  // 4, likewise
  Layout shared_memory{};
  // 4, a block takes the lowest gap in shared memory that is large enough; else the highest
  bool lowest_gap_first = true;
  // 3, the first block on an idle TPC sets its configuration
  bool shared_memory_configuration = false;
  // both SMs of a TPC share one configuration; else each SM has its own
  bool configuration_per_tpc = false;
  // launches ask for more shared memory than the blocks that fit an SM need
  bool configuration_headroom = false;
  // an SM whose configuration is larger than what an explicit carveout asks for refuses the block
  bool explicit_carveout_is_upper_bound = false;
  // an SM accepts a launch with an explicit carveout if it has room for as many of its blocks as
  // the carveout's size would hold, even if the SM's configuration is smaller
  bool carveout_counts_blocks = true;
  // a larger local memory waits for an idle GPU
  bool local_memory_configuration = false;
  // a cluster prefers an idle SM to a busy one with as much room
  bool clusters_seek_idle_sms = true;
  // nodes of a graph that wait for several branches are started by a relay
  bool graph_branches = true;
  // the driver issues copies and memsets of a graph that are not kernels, and the nodes that follow
  // them
  bool graph_copies = true;
  // in a graph whose branches join, the last of its internal streams takes a hardware queue before
  // the roots do
  bool joins_turn_front_ends = true;
  // copies of one direction between the host and the GPU move their bytes one after the other, with
  // one latency if they follow each other
  bool copy_engines = true;
  // copies within the GPU's memory and memsets are kernels of the driver: they take a hardware
  // queue and room on the SMs
  bool copy_kernels = true;
  // one thread of the driver calls all host functions of a process, one after the other
  bool host_functions_in_turn = true;
  // a host function takes a place in the hardware queue of its stream, until the work before it in
  // the stream is over
  bool host_functions_hold_queues = true;
  // a wait for a value, or a write of one, takes a place in the hardware queue of its stream, and
  // holds up what is behind it there, of whatever stream
  bool value_waits_hold_queues = true;
  // a cluster takes whole TPCs as far as its size allows
  bool clusters_take_whole_tpcs = true;
  // a cluster that fits a TPC of no GPC may go there
  bool clusters_use_singletons = true;
  // a cluster whose SMs need to hold only one block each goes to the SMs with the most room, and
  // may have several blocks on an SM
  bool clusters_balance = true;
  // in a partition, clusters also count TPCs of no GPC that they do not fit: they hold them up
  // while they wait, and balanced clusters share their SMs
  bool clusters_use_whole_partition = true;
  // single blocks on TPCs of no GPC advance the turn of clusters among them
  bool blocks_turn_singletons = true;
};

// check() says whether it makes sense.
struct DeviceSpec {
  // the device's name: of a file, its name without .toml
  std::string name;
  // the vendor's name
  std::string title;
  // such as 9.0
  std::string compute_capability;
  // streaming multiprocessors
  int32_t sms = 0;
  // SM n belongs to TPC n / sms_per_tpc, rounded down
  int32_t sms_per_tpc = 0;
  // the TPCs of each GPC; a TPC of no GPC ("singleton") is in none; empty if unknown
  std::vector<std::vector<int32_t>> gpcs;
  // all SMs, the preferred first among equally suitable ones
  std::vector<int32_t> sm_preference;
  // processing blocks of an SM, which share its warps and registers evenly
  int32_t processing_blocks = 0;
  // thread block slots of an SM
  int32_t blocks_per_sm = 0;
  // how many of the block slots of an SM clusters may use
  int32_t cluster_blocks_per_sm = 32;
  // warp slots of an SM
  int32_t warps_per_sm = 0;
  // registers of an SM, of 32 bits each
  int32_t registers_per_sm = 0;
  // threads of a block, the most that the runtime allows
  int32_t threads_per_block = 0;
  // registers of a thread, the most that the runtime allows
  int32_t registers_per_thread = 0;
  // blocks of a cluster, the most that the runtime allows
  int32_t max_cluster = 1;
  // the number of SMs of a green context's partition is a multiple of this, unless the split
  // ignores coscheduling; 0 if unknown
  int32_t coscheduled_sms = 0;
  // registers; those of a warp are a multiple of it
  int32_t register_unit = 0;
  // bytes; those of a block are a multiple of it
  int32_t shared_memory_unit = 0;
  // bytes of shared memory on an SM, the next block's included, below which they do not count in
  // the choice of an SM (3072 in RTAS 2020, equation 1)
  int32_t shared_memory_threshold = 0;
  // bytes that the runtime keeps in every block
  int32_t shared_memory_reserve = 0;
  // bytes, the most that a block may ask for
  int32_t shared_memory_per_block = 0;
  // bytes that an SM can be configured to, ascending
  std::vector<int32_t> shared_memory_configurations;
  // bytes per thread that an untouched GPU is set up for
  int32_t local_memory_initial = 1024;
  // bytes per thread; local memory grows in steps of this size
  int32_t local_memory_unit = 16;
  Mechanisms mechanisms;
  // the row of the policy table that predicts this device
  std::string policy;
  // which waiting launch is considered first, a row of the table of launch orders
  std::string launch_order = "leftover";
  // levels of priority, 0 to 1 - priority_levels, as cudaDeviceGetStreamPriorityRange reports them;
  // a lower number is more urgent, and one outside of the range means the nearest in it
  int32_t priority_levels = 6;
  // queues that streams are mapped to (CUDA_DEVICE_MAX_CONNECTIONS)
  int32_t hardware_queues = 8;
  // launches that can run or wait for room at once
  int32_t resident_grids = 128;
  // from the launch call until the launch has reached the GPU
  int64_t launch_latency_ns = 0;
  // from the exit of a launch's last block until work that waits for the launch may start
  int64_t completion_latency_ns = 0;
  // from the end of a block until another block can use its room
  int64_t exit_latency_ns = 0;
  // on top of completion_latency_ns, for work that waits for an event
  int64_t event_latency_ns = 0;
  // parts of the GPU that poll hardware queues, each an equal share of them
  int32_t front_ends = 2;
  // how long a front end takes to poll the next waiting hardware queue
  int64_t queue_watch_ns = 0;
  // how much later a launch starts while a front end polls several queues, if kernels write to the
  // memory of the host, as those of tb.observe do
  int64_t host_watch_ns = 0;
  // how much later a launch starts, at least, if the launch that it waits for has written to the
  // memory of the host
  int64_t host_write_ns = 0;
  // from the last trigger of a launch's blocks until a programmatic launch that waits for it may
  // start
  int64_t trigger_latency_ns = 0;
  // from the moment a launch leaves its hardware queue until its completion event happens
  int64_t launch_completion_latency_ns = 0;
  // from the exit of the last block of a graph's node until a node that waits for it may start
  int64_t node_latency_ns = 0;
  // between two places of a graph's node, which starts its followers one after the other
  int64_t node_place_ns = 0;
  // how many nodes of a graph can follow a node without a relay
  int32_t node_places = 6;
  // how long a relay runs: the block that starts nodes of a graph which wait for several branches
  int64_t relay_ns = 0;
  // additional time from a node to the one that follows it where a conditional node of a graph
  // decides in between, once: before its body, between two runs of it, or after it
  int64_t conditional_ns = 0;
  // how long the last stream of a graph takes to reset the conditions of its conditional nodes,
  // before its own nodes may start
  int64_t condition_reset_ns = 0;
  // from the end of that reset until a node at the beginning of another stream of the graph may
  // start
  int64_t condition_reset_latency_ns = 0;
  // from when work before a host function is known to be over until the driver calls the function,
  // if its thread sleeps
  int64_t host_function_latency_ns = 0;
  // the same for a host function that waits for nothing when it is issued
  int64_t host_function_direct_ns = 0;
  // from the return of a host function until the driver calls the next one, if that waits for
  // nothing else
  int64_t host_function_turn_ns = 0;
  // from the return of a host function until its stream knows that it is over
  int64_t host_function_return_ns = 0;
  // from when a stream sets a value in memory until its later work may start
  int64_t value_write_ns = 0;
  // how long a stream takes to find that a value is as large as it waits for
  int64_t value_wait_ns = 0;
  // from when a value is set until a stream that waits for it goes on
  int64_t value_wake_ns = 0;
  // from when a stream records an event with timing until its later work may start
  int64_t timed_record_ns = 0;
  // from the call that launches a graph until its first node has reached the GPU
  int64_t graph_latency_ns = 0;
  // between two nodes of a graph that wait for no other: the driver launches one after the other
  int64_t node_interval_ns = 0;
  // copy engines: with 2 there is one for each direction between the host and the GPU, with 1
  // copies of both directions take turns
  int32_t copy_engine_count = 2;
  // channels of each copy engine: a copy that waits holds up the copies behind it in its channel
  int32_t copy_channels = 4;
  // from the moment a copy to or from the host may start until it moves bytes
  int64_t host_copy_latency_ns = 0;
  // the same, for a node of a graph
  int64_t node_copy_latency_ns = 0;
  // from the call until a copy to or from the host moves bytes, if it waits for nothing
  int64_t host_copy_issue_ns = 0;
  // between two copies of one copy engine
  int64_t host_copy_gap_ns = 0;
  // how long the GPU watches for the end of a copy that a launch waits for
  int64_t copy_watch_ns = 0;
  // on top of completion_latency_ns, for a launch that has waited longer than copy_watch_ns for a
  // copy to or from the host
  int64_t copy_wake_ns = 0;
  // from the end of a copy until the call that waits for it returns
  int64_t host_return_ns = 0;
  // bytes per microsecond that the driver copies from pageable memory of the host, within the call;
  // 0 if unknown
  int32_t pageable_bandwidth = 0;
  // bytes per microsecond that the driver copies to pageable memory of the host, within the call; 0
  // if unknown
  int32_t pageable_return_bandwidth = 0;
  // the largest small copy from pageable memory of the host
  int32_t pageable_small_bytes = 0;
  // bytes per microsecond that the driver copies in a small copy from pageable memory, within the
  // call; 0 if unknown
  int32_t pageable_small_bandwidth = 0;
  // bytes per microsecond of a copy to or from pinned memory of the host; 0 if unknown, and such a
  // copy takes its latency
  int32_t host_copy_bandwidth = 0;
  // bytes per microsecond of a copy to the GPU while another one from it moves bytes; 0 if unknown,
  // and neither slows the other
  int32_t both_ways_to_gpu_bandwidth = 0;
  // bytes per microsecond of a copy from the GPU while another one to it moves bytes; 0 if unknown
  int32_t both_ways_from_gpu_bandwidth = 0;
  // the largest small copy from pinned memory of the host
  int32_t small_copy_bytes = 0;
  // how long a small copy from the host takes in a graph
  int64_t small_copy_latency_ns = 0;
  // how long a small copy or memset takes in a stream
  int64_t inline_copy_ns = 0;
  // how long a small memset takes in a graph
  int64_t small_memset_latency_ns = 0;
  // the largest small memset
  int32_t small_memset_bytes = 0;
  // bytes that a block of a driver's kernel copies or sets
  int32_t copy_block_bytes = 8192;
  // the shortest time of a block of a copy within the GPU's memory
  int64_t device_copy_latency_ns = 0;
  // bytes per microsecond of a copy within the GPU's memory; 0 if unknown
  int32_t device_copy_bandwidth = 0;
  // bytes per microsecond of a copy to the memory of another GPU; 0 if unknown, and such a copy
  // takes its latency
  int32_t peer_copy_bandwidth = 0;
  // on top of event_latency_ns, until a GPU knows of a CUDA event of another one
  int64_t peer_event_latency_ns = 0;
  // the shortest time of a block of a memset
  int64_t memset_latency_ns = 0;
  // bytes per microsecond of a memset; 0 if unknown
  int32_t memset_bandwidth = 0;
  // launches, graphs, memsets, values and records with timing that can wait in a hardware queue,
  // and copies by each engine that can be pending in the streams that use it; the next such call
  // waits until there is a place
  int32_t queue_places = 1021;
  // pending stretches of launches in a hardware queue, between host functions of its streams, and
  // of copies by each engine; a call that would begin another one waits until the first is over
  int32_t stream_stretches = 56;
  // how long a launch call takes if it waits for nothing
  int64_t launch_call_ns = 0;
  // how long a call takes for a copy from or to pinned memory, or a small memset
  int64_t copy_call_ns = 0;
  // how long a call takes to record an event, or to make a stream wait for one
  int64_t event_call_ns = 0;
  // a call of cudaLaunchHostFunc
  int64_t host_function_call_ns = 0;
  // a call that lets a stream write a value in memory, wait for one, or record an event with timing
  int64_t value_call_ns = 0;
  // how much longer a thread's first launch, copy or memset call takes; the second takes half of
  // that longer, the third a third, and so on; the same for its first call that waits for work
  int64_t first_call_ns = 0;
  // how much longer a thread's first call of a kind takes: a launch, a copy in each direction, a
  // memset, the record of an event, a wait for one
  int64_t first_kind_call_ns = 0;
  // how much longer a stream's first launch call takes, its first copy call in each direction, and
  // its first memset call
  int64_t new_stream_call_ns = 0;
  // the part of a launch, copy or memset call during which such calls of other threads wait
  int64_t driver_call_ns = 0;
  // on top of completion_latency_ns, until a call that waits for work returns; also the length of
  // such a call if there is no work
  int64_t synchronize_ns = 0;
  // how much longer the launch call takes that first uses a kernel; other launch calls wait
  // meanwhile
  int64_t first_use_ns = 0;
  // on top of completion_latency_ns, until a kernel is loaded at its first use
  int64_t load_ns = 0;
  // how long the launch call takes that sets up more local memory, once the GPU is idle
  int64_t local_memory_growth_ns = 0;
  // on top of that, for each byte of local memory of a thread
  int64_t local_memory_growth_per_byte_ns = 0;
  // from the first block of a launch until another launch is considered
  int64_t launch_switch_ns = 0;
  // for how long a process keeps the GPU while others have work; 0 if unknown
  int64_t time_slice_ns = 0;
  // from the end of a process's turn until the next process has the GPU
  int64_t process_switch_ns = 0;
  // how long it takes to stop the blocks of a process, or to resume them, in addition to the time
  // for their bytes
  int64_t preemption_ns = 0;
  // for how long a process keeps a copy engine while others want it; 0 if unknown
  int64_t engine_slice_ns = 0;
  // from the end of a process's turn in a copy engine until the next process has it
  int64_t engine_switch_ns = 0;
  // how much longer it takes to stop blocks that have not been stopped before
  int64_t first_preemption_ns = 0;
  // bytes per microsecond of the registers and shared memory of blocks that are stopped or resumed;
  // 0 if unknown
  int32_t preemption_bandwidth = 0;
};

// Calls visit(field, member) for each, in order; those of `mechanisms` are among them.
template <typename Spec, typename Visit>
void for_each_field(Spec& spec, Visit&& visit) {
  visit(Field{.section = "", .name = "name"}, spec.name);
  visit(Field{.section = "device", .name = "title"}, spec.title);
  visit(Field{.section = "device", .name = "compute_capability"}, spec.compute_capability);
  visit(Field{.section = "topology", .name = "sms", .range = ranges::sms}, spec.sms);
  visit(Field{.section = "topology", .name = "sms_per_tpc", .range = ranges::sms_per_tpc}, spec.sms_per_tpc);
  visit(Field{.section = "topology", .name = "gpcs", .required = false}, spec.gpcs);
  visit(Field{.section = "topology", .name = "sm_preference", .as_ranges = true}, spec.sm_preference);
  visit(Field{.section = "limits", .name = "processing_blocks", .range = ranges::processing_blocks}, spec.processing_blocks);
  visit(Field{.section = "limits", .name = "blocks_per_sm", .range = ranges::blocks_per_sm}, spec.blocks_per_sm);
  visit(Field{.section = "limits", .name = "cluster_blocks_per_sm", .range = ranges::cluster_blocks_per_sm, .required = false}, spec.cluster_blocks_per_sm);
  visit(Field{.section = "limits", .name = "warps_per_sm", .range = ranges::warps_per_sm}, spec.warps_per_sm);
  visit(Field{.section = "limits", .name = "registers_per_sm", .range = ranges::registers_per_sm}, spec.registers_per_sm);
  visit(Field{.section = "limits", .name = "threads_per_block", .range = ranges::threads_per_block}, spec.threads_per_block);
  visit(Field{.section = "limits", .name = "registers_per_thread", .range = ranges::registers_per_thread}, spec.registers_per_thread);
  visit(Field{.section = "limits", .name = "max_cluster", .range = ranges::max_cluster, .required = false}, spec.max_cluster);
  visit(Field{.section = "limits", .name = "coscheduled_sms", .range = ranges::coscheduled_sms, .required = false}, spec.coscheduled_sms);
  visit(Field{.section = "allocation", .name = "register_unit", .range = ranges::register_unit}, spec.register_unit);
  visit(Field{.section = "allocation", .name = "shared_memory_unit", .range = ranges::shared_memory_unit}, spec.shared_memory_unit);
  visit(Field{.section = "allocation", .name = "shared_memory_threshold", .range = ranges::shared_memory_threshold, .required = false}, spec.shared_memory_threshold);
  visit(Field{.section = "allocation", .name = "shared_memory_reserve", .range = ranges::shared_memory_reserve}, spec.shared_memory_reserve);
  visit(Field{.section = "allocation", .name = "shared_memory_per_block", .range = ranges::shared_memory_per_block}, spec.shared_memory_per_block);
  visit(Field{.section = "allocation", .name = "shared_memory_configurations"}, spec.shared_memory_configurations);
  visit(Field{.section = "allocation", .name = "local_memory_initial", .range = ranges::local_memory_initial, .required = false}, spec.local_memory_initial);
  visit(Field{.section = "allocation", .name = "local_memory_unit", .range = ranges::local_memory_unit, .required = false}, spec.local_memory_unit);
  visit(Field{.section = "mechanisms", .name = "strict_round_robin"}, spec.mechanisms.strict_round_robin);
  visit(Field{.section = "mechanisms", .name = "warp_skip"}, spec.mechanisms.warp_skip);
  visit(Field{.section = "mechanisms", .name = "registers"}, spec.mechanisms.registers);
  visit(Field{.section = "mechanisms", .name = "shared_memory"}, spec.mechanisms.shared_memory);
  visit(Field{.section = "mechanisms", .name = "lowest_gap_first", .required = false}, spec.mechanisms.lowest_gap_first);
  visit(Field{.section = "mechanisms", .name = "shared_memory_configuration"}, spec.mechanisms.shared_memory_configuration);
  visit(Field{.section = "mechanisms", .name = "configuration_per_tpc"}, spec.mechanisms.configuration_per_tpc);
  visit(Field{.section = "mechanisms", .name = "configuration_headroom", .required = false}, spec.mechanisms.configuration_headroom);
  visit(Field{.section = "mechanisms", .name = "explicit_carveout_is_upper_bound", .required = false}, spec.mechanisms.explicit_carveout_is_upper_bound);
  visit(Field{.section = "mechanisms", .name = "carveout_counts_blocks", .required = false}, spec.mechanisms.carveout_counts_blocks);
  visit(Field{.section = "mechanisms", .name = "local_memory_configuration"}, spec.mechanisms.local_memory_configuration);
  visit(Field{.section = "mechanisms", .name = "clusters_seek_idle_sms", .required = false}, spec.mechanisms.clusters_seek_idle_sms);
  visit(Field{.section = "mechanisms", .name = "graph_branches", .required = false}, spec.mechanisms.graph_branches);
  visit(Field{.section = "mechanisms", .name = "graph_copies", .required = false}, spec.mechanisms.graph_copies);
  visit(Field{.section = "mechanisms", .name = "joins_turn_front_ends", .required = false}, spec.mechanisms.joins_turn_front_ends);
  visit(Field{.section = "mechanisms", .name = "copy_engines", .required = false}, spec.mechanisms.copy_engines);
  visit(Field{.section = "mechanisms", .name = "copy_kernels", .required = false}, spec.mechanisms.copy_kernels);
  visit(Field{.section = "mechanisms", .name = "host_functions_in_turn", .required = false}, spec.mechanisms.host_functions_in_turn);
  visit(Field{.section = "mechanisms", .name = "host_functions_hold_queues", .required = false}, spec.mechanisms.host_functions_hold_queues);
  visit(Field{.section = "mechanisms", .name = "value_waits_hold_queues", .required = false}, spec.mechanisms.value_waits_hold_queues);
  visit(Field{.section = "mechanisms", .name = "clusters_take_whole_tpcs", .required = false}, spec.mechanisms.clusters_take_whole_tpcs);
  visit(Field{.section = "mechanisms", .name = "clusters_use_singletons", .required = false}, spec.mechanisms.clusters_use_singletons);
  visit(Field{.section = "mechanisms", .name = "clusters_balance", .required = false}, spec.mechanisms.clusters_balance);
  visit(Field{.section = "mechanisms", .name = "clusters_use_whole_partition", .required = false}, spec.mechanisms.clusters_use_whole_partition);
  visit(Field{.section = "mechanisms", .name = "blocks_turn_singletons", .required = false}, spec.mechanisms.blocks_turn_singletons);
  visit(Field{.section = "scheduler", .name = "policy"}, spec.policy);
  visit(Field{.section = "scheduler", .name = "launch_order", .required = false}, spec.launch_order);
  visit(Field{.section = "scheduler", .name = "priority_levels", .range = ranges::priority_levels, .required = false}, spec.priority_levels);
  visit(Field{.section = "scheduler", .name = "hardware_queues", .range = ranges::hardware_queues, .required = false}, spec.hardware_queues);
  visit(Field{.section = "scheduler", .name = "resident_grids", .range = ranges::resident_grids, .required = false}, spec.resident_grids);
  visit(Field{.section = "scheduler", .name = "launch_latency_ns", .range = ranges::launch_latency_ns, .required = false}, spec.launch_latency_ns);
  visit(Field{.section = "scheduler", .name = "completion_latency_ns", .range = ranges::completion_latency_ns, .required = false}, spec.completion_latency_ns);
  visit(Field{.section = "scheduler", .name = "exit_latency_ns", .range = ranges::exit_latency_ns, .required = false}, spec.exit_latency_ns);
  visit(Field{.section = "scheduler", .name = "event_latency_ns", .range = ranges::event_latency_ns, .required = false}, spec.event_latency_ns);
  visit(Field{.section = "scheduler", .name = "front_ends", .range = ranges::front_ends, .required = false}, spec.front_ends);
  visit(Field{.section = "scheduler", .name = "queue_watch_ns", .range = ranges::queue_watch_ns, .required = false}, spec.queue_watch_ns);
  visit(Field{.section = "scheduler", .name = "host_watch_ns", .range = ranges::host_watch_ns, .required = false}, spec.host_watch_ns);
  visit(Field{.section = "scheduler", .name = "host_write_ns", .range = ranges::host_write_ns, .required = false}, spec.host_write_ns);
  visit(Field{.section = "scheduler", .name = "trigger_latency_ns", .range = ranges::trigger_latency_ns, .required = false}, spec.trigger_latency_ns);
  visit(Field{.section = "scheduler", .name = "launch_completion_latency_ns", .range = ranges::launch_completion_latency_ns, .required = false}, spec.launch_completion_latency_ns);
  visit(Field{.section = "scheduler", .name = "node_latency_ns", .range = ranges::node_latency_ns, .required = false}, spec.node_latency_ns);
  visit(Field{.section = "scheduler", .name = "node_place_ns", .range = ranges::node_place_ns, .required = false}, spec.node_place_ns);
  visit(Field{.section = "scheduler", .name = "node_places", .range = ranges::node_places, .required = false}, spec.node_places);
  visit(Field{.section = "scheduler", .name = "relay_ns", .range = ranges::relay_ns, .required = false}, spec.relay_ns);
  visit(Field{.section = "scheduler", .name = "conditional_ns", .range = ranges::conditional_ns, .required = false}, spec.conditional_ns);
  visit(Field{.section = "scheduler", .name = "condition_reset_ns", .range = ranges::condition_reset_ns, .required = false}, spec.condition_reset_ns);
  visit(Field{.section = "scheduler", .name = "condition_reset_latency_ns", .range = ranges::condition_reset_latency_ns, .required = false}, spec.condition_reset_latency_ns);
  visit(Field{.section = "scheduler", .name = "host_function_latency_ns", .range = ranges::host_function_latency_ns, .required = false}, spec.host_function_latency_ns);
  visit(Field{.section = "scheduler", .name = "host_function_direct_ns", .range = ranges::host_function_direct_ns, .required = false}, spec.host_function_direct_ns);
  visit(Field{.section = "scheduler", .name = "host_function_turn_ns", .range = ranges::host_function_turn_ns, .required = false}, spec.host_function_turn_ns);
  visit(Field{.section = "scheduler", .name = "host_function_return_ns", .range = ranges::host_function_return_ns, .required = false}, spec.host_function_return_ns);
  visit(Field{.section = "scheduler", .name = "value_write_ns", .range = ranges::value_write_ns, .required = false}, spec.value_write_ns);
  visit(Field{.section = "scheduler", .name = "value_wait_ns", .range = ranges::value_wait_ns, .required = false}, spec.value_wait_ns);
  visit(Field{.section = "scheduler", .name = "value_wake_ns", .range = ranges::value_wake_ns, .required = false}, spec.value_wake_ns);
  visit(Field{.section = "scheduler", .name = "timed_record_ns", .range = ranges::timed_record_ns, .required = false}, spec.timed_record_ns);
  visit(Field{.section = "scheduler", .name = "graph_latency_ns", .range = ranges::graph_latency_ns, .required = false}, spec.graph_latency_ns);
  visit(Field{.section = "scheduler", .name = "node_interval_ns", .range = ranges::node_interval_ns, .required = false}, spec.node_interval_ns);
  visit(Field{.section = "scheduler", .name = "copy_engine_count", .range = ranges::copy_engine_count, .required = false}, spec.copy_engine_count);
  visit(Field{.section = "scheduler", .name = "copy_channels", .range = ranges::copy_channels, .required = false}, spec.copy_channels);
  visit(Field{.section = "scheduler", .name = "host_copy_latency_ns", .range = ranges::host_copy_latency_ns, .required = false}, spec.host_copy_latency_ns);
  visit(Field{.section = "scheduler", .name = "node_copy_latency_ns", .range = ranges::node_copy_latency_ns, .required = false}, spec.node_copy_latency_ns);
  visit(Field{.section = "scheduler", .name = "host_copy_issue_ns", .range = ranges::host_copy_issue_ns, .required = false}, spec.host_copy_issue_ns);
  visit(Field{.section = "scheduler", .name = "host_copy_gap_ns", .range = ranges::host_copy_gap_ns, .required = false}, spec.host_copy_gap_ns);
  visit(Field{.section = "scheduler", .name = "copy_watch_ns", .range = ranges::copy_watch_ns, .required = false}, spec.copy_watch_ns);
  visit(Field{.section = "scheduler", .name = "copy_wake_ns", .range = ranges::copy_wake_ns, .required = false}, spec.copy_wake_ns);
  visit(Field{.section = "scheduler", .name = "host_return_ns", .range = ranges::host_return_ns, .required = false}, spec.host_return_ns);
  visit(Field{.section = "scheduler", .name = "pageable_bandwidth", .range = ranges::pageable_bandwidth, .required = false}, spec.pageable_bandwidth);
  visit(Field{.section = "scheduler", .name = "pageable_return_bandwidth", .range = ranges::pageable_return_bandwidth, .required = false}, spec.pageable_return_bandwidth);
  visit(Field{.section = "scheduler", .name = "pageable_small_bytes", .range = ranges::pageable_small_bytes, .required = false}, spec.pageable_small_bytes);
  visit(Field{.section = "scheduler", .name = "pageable_small_bandwidth", .range = ranges::pageable_small_bandwidth, .required = false}, spec.pageable_small_bandwidth);
  visit(Field{.section = "scheduler", .name = "host_copy_bandwidth", .range = ranges::host_copy_bandwidth, .required = false}, spec.host_copy_bandwidth);
  visit(Field{.section = "scheduler", .name = "both_ways_to_gpu_bandwidth", .range = ranges::both_ways_to_gpu_bandwidth, .required = false}, spec.both_ways_to_gpu_bandwidth);
  visit(Field{.section = "scheduler", .name = "both_ways_from_gpu_bandwidth", .range = ranges::both_ways_from_gpu_bandwidth, .required = false}, spec.both_ways_from_gpu_bandwidth);
  visit(Field{.section = "scheduler", .name = "small_copy_bytes", .range = ranges::small_copy_bytes, .required = false}, spec.small_copy_bytes);
  visit(Field{.section = "scheduler", .name = "small_copy_latency_ns", .range = ranges::small_copy_latency_ns, .required = false}, spec.small_copy_latency_ns);
  visit(Field{.section = "scheduler", .name = "inline_copy_ns", .range = ranges::inline_copy_ns, .required = false}, spec.inline_copy_ns);
  visit(Field{.section = "scheduler", .name = "small_memset_latency_ns", .range = ranges::small_memset_latency_ns, .required = false}, spec.small_memset_latency_ns);
  visit(Field{.section = "scheduler", .name = "small_memset_bytes", .range = ranges::small_memset_bytes, .required = false}, spec.small_memset_bytes);
  visit(Field{.section = "scheduler", .name = "copy_block_bytes", .range = ranges::copy_block_bytes, .required = false}, spec.copy_block_bytes);
  visit(Field{.section = "scheduler", .name = "device_copy_latency_ns", .range = ranges::device_copy_latency_ns, .required = false}, spec.device_copy_latency_ns);
  visit(Field{.section = "scheduler", .name = "device_copy_bandwidth", .range = ranges::device_copy_bandwidth, .required = false}, spec.device_copy_bandwidth);
  visit(Field{.section = "scheduler", .name = "peer_copy_bandwidth", .range = ranges::peer_copy_bandwidth, .required = false}, spec.peer_copy_bandwidth);
  visit(Field{.section = "scheduler", .name = "peer_event_latency_ns", .range = ranges::peer_event_latency_ns, .required = false}, spec.peer_event_latency_ns);
  visit(Field{.section = "scheduler", .name = "memset_latency_ns", .range = ranges::memset_latency_ns, .required = false}, spec.memset_latency_ns);
  visit(Field{.section = "scheduler", .name = "memset_bandwidth", .range = ranges::memset_bandwidth, .required = false}, spec.memset_bandwidth);
  visit(Field{.section = "scheduler", .name = "queue_places", .range = ranges::queue_places, .required = false}, spec.queue_places);
  visit(Field{.section = "scheduler", .name = "stream_stretches", .range = ranges::stream_stretches, .required = false}, spec.stream_stretches);
  visit(Field{.section = "scheduler", .name = "launch_call_ns", .range = ranges::launch_call_ns, .required = false}, spec.launch_call_ns);
  visit(Field{.section = "scheduler", .name = "copy_call_ns", .range = ranges::copy_call_ns, .required = false}, spec.copy_call_ns);
  visit(Field{.section = "scheduler", .name = "event_call_ns", .range = ranges::event_call_ns, .required = false}, spec.event_call_ns);
  visit(Field{.section = "scheduler", .name = "host_function_call_ns", .range = ranges::host_function_call_ns, .required = false}, spec.host_function_call_ns);
  visit(Field{.section = "scheduler", .name = "value_call_ns", .range = ranges::value_call_ns, .required = false}, spec.value_call_ns);
  visit(Field{.section = "scheduler", .name = "first_call_ns", .range = ranges::first_call_ns, .required = false}, spec.first_call_ns);
  visit(Field{.section = "scheduler", .name = "first_kind_call_ns", .range = ranges::first_kind_call_ns, .required = false}, spec.first_kind_call_ns);
  visit(Field{.section = "scheduler", .name = "new_stream_call_ns", .range = ranges::new_stream_call_ns, .required = false}, spec.new_stream_call_ns);
  visit(Field{.section = "scheduler", .name = "driver_call_ns", .range = ranges::driver_call_ns, .required = false}, spec.driver_call_ns);
  visit(Field{.section = "scheduler", .name = "synchronize_ns", .range = ranges::synchronize_ns, .required = false}, spec.synchronize_ns);
  visit(Field{.section = "scheduler", .name = "first_use_ns", .range = ranges::first_use_ns, .required = false}, spec.first_use_ns);
  visit(Field{.section = "scheduler", .name = "load_ns", .range = ranges::load_ns, .required = false}, spec.load_ns);
  visit(Field{.section = "scheduler", .name = "local_memory_growth_ns", .range = ranges::local_memory_growth_ns, .required = false}, spec.local_memory_growth_ns);
  visit(Field{.section = "scheduler", .name = "local_memory_growth_per_byte_ns", .range = ranges::local_memory_growth_per_byte_ns, .required = false}, spec.local_memory_growth_per_byte_ns);
  visit(Field{.section = "scheduler", .name = "launch_switch_ns", .range = ranges::launch_switch_ns, .required = false}, spec.launch_switch_ns);
  visit(Field{.section = "scheduler", .name = "time_slice_ns", .range = ranges::time_slice_ns, .required = false}, spec.time_slice_ns);
  visit(Field{.section = "scheduler", .name = "process_switch_ns", .range = ranges::process_switch_ns, .required = false}, spec.process_switch_ns);
  visit(Field{.section = "scheduler", .name = "preemption_ns", .range = ranges::preemption_ns, .required = false}, spec.preemption_ns);
  visit(Field{.section = "scheduler", .name = "engine_slice_ns", .range = ranges::engine_slice_ns, .required = false}, spec.engine_slice_ns);
  visit(Field{.section = "scheduler", .name = "engine_switch_ns", .range = ranges::engine_switch_ns, .required = false}, spec.engine_switch_ns);
  visit(Field{.section = "scheduler", .name = "first_preemption_ns", .range = ranges::first_preemption_ns, .required = false}, spec.first_preemption_ns);
  visit(Field{.section = "scheduler", .name = "preemption_bandwidth", .range = ranges::preemption_bandwidth, .required = false}, spec.preemption_bandwidth);
}

}  // namespace tbsched
