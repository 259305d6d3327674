"""What a device is made of. Written by schema/generate.py from schema/device.toml."""

# fmt: off
# ruff: noqa: E501

from __future__ import annotations

from dataclasses import dataclass

from tbsched.hardware.field import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanisms:
    """Which scheduling mechanisms act (numbers: sections IV-A to IV-D of the ICCD 2023 paper).

    Attributes:
        strict_round_robin: 2.1, a warp waits for the processing block whose turn it is.
        warp_skip: 2.2, after a block whose number of warps is a multiple of the number of
            processing blocks, one processing block is skipped.
        registers: 4, whether an allocation must be contiguous, may wrap around the end of a
            circular memory, or may be in pieces, pooled.
        shared_memory: 4, likewise.
        lowest_gap_first: 4, a block takes the lowest gap in shared memory that is large enough;
            else the highest.
        shared_memory_configuration: 3, the first block on an idle TPC sets its configuration.
        configuration_per_tpc: both SMs of a TPC share one configuration; else each SM has its own.
        configuration_headroom: launches ask for more shared memory than the blocks that fit an SM
            need.
        explicit_carveout_is_upper_bound: an SM whose configuration is larger than what an explicit
            carveout asks for refuses the block.
        carveout_counts_blocks: an SM accepts a launch with an explicit carveout if it has room for
            as many of its blocks as the carveout's size would hold, even if the SM's configuration
            is smaller.
        local_memory_configuration: a larger local memory waits for an idle GPU.
        clusters_seek_idle_sms: a cluster prefers an idle SM to a busy one with as much room.
        graph_branches: nodes of a graph that wait for several branches are started by a relay.
        graph_copies: the driver issues copies and memsets of a graph that are not kernels, and the
            nodes that follow them.
        joins_turn_front_ends: in a graph whose branches join, the last of its internal streams
            takes a hardware queue before the roots do.
        copy_engines: copies of one direction between the host and the GPU move their bytes one
            after the other, with one latency if they follow each other.
        copy_kernels: copies within the GPU's memory and memsets are kernels of the driver: they
            take a hardware queue and room on the SMs.
        host_functions_in_turn: one thread of the driver calls all host functions of a process, one
            after the other.
        host_functions_hold_queues: a host function takes a place in the hardware queue of its
            stream, until the work before it in the stream is over.
        value_waits_hold_queues: a wait for a value, or a write of one, takes a place in the
            hardware queue of its stream, and holds up what is behind it there, of whatever stream.
        clusters_take_whole_tpcs: a cluster takes whole TPCs as far as its size allows.
        clusters_use_singletons: a cluster that fits a TPC of no GPC may go there.
        clusters_balance: a cluster whose SMs need to hold only one block each goes to the SMs with
            the most room, and may have several blocks on an SM.
        clusters_use_whole_partition: in a partition, clusters also count TPCs of no GPC that they
            do not fit: they hold them up while they wait, and balanced clusters share their SMs.
        blocks_turn_singletons: single blocks on TPCs of no GPC advance the turn of clusters among
            them.
    """

    strict_round_robin: bool
    warp_skip: bool
    registers: str
    shared_memory: str
    lowest_gap_first: bool = True
    shared_memory_configuration: bool
    configuration_per_tpc: bool
    configuration_headroom: bool = False
    explicit_carveout_is_upper_bound: bool = False
    carveout_counts_blocks: bool = True
    local_memory_configuration: bool
    clusters_seek_idle_sms: bool = True
    graph_branches: bool = True
    graph_copies: bool = True
    joins_turn_front_ends: bool = True
    copy_engines: bool = True
    copy_kernels: bool = True
    host_functions_in_turn: bool = True
    host_functions_hold_queues: bool = True
    value_waits_hold_queues: bool = True
    clusters_take_whole_tpcs: bool = True
    clusters_use_singletons: bool = True
    clusters_balance: bool = True
    clusters_use_whole_partition: bool = True
    blocks_turn_singletons: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFields:
    """The values of a GPU as the predictor sees it. Sizes in bytes, registers of 32 bits.

    Attributes:
        name: the device's name: of a file, its name without .toml.
        title: the vendor's name.
        compute_capability: such as 9.0.
        sms: streaming multiprocessors.
        sms_per_tpc: SM n belongs to TPC n / sms_per_tpc, rounded down.
        gpcs: the TPCs of each GPC; a TPC of no GPC ("singleton") is in none; empty if unknown.
        sm_preference: all SMs, the preferred first among equally suitable ones.
        processing_blocks: processing blocks of an SM, which share its warps and registers evenly.
        blocks_per_sm: thread block slots of an SM.
        cluster_blocks_per_sm: how many of the block slots of an SM clusters may use.
        warps_per_sm: warp slots of an SM.
        registers_per_sm: registers of an SM, of 32 bits each.
        threads_per_block: threads of a block, the most that the runtime allows.
        registers_per_thread: registers of a thread, the most that the runtime allows.
        max_cluster: blocks of a cluster, the most that the runtime allows.
        coscheduled_sms: the number of SMs of a green context's partition is a multiple of this,
            unless the split ignores coscheduling; 0 if unknown.
        register_unit: registers; those of a warp are a multiple of it.
        shared_memory_unit: bytes; those of a block are a multiple of it.
        shared_memory_threshold: bytes of shared memory on an SM, the next block's included, below
            which they do not count in the choice of an SM (3072 in RTAS 2020, equation 1).
        shared_memory_reserve: bytes that the runtime keeps in every block.
        shared_memory_per_block: bytes, the most that a block may ask for.
        shared_memory_configurations: bytes that an SM can be configured to, ascending.
        local_memory_initial: bytes per thread that an untouched GPU is set up for.
        local_memory_unit: bytes per thread; local memory grows in steps of this size.
        policy: the row of the policy table that predicts this device.
        launch_order: which waiting launch is considered first, a row of the table of launch orders.
        priority_levels: levels of priority, 0 to 1 - priority_levels, as
            cudaDeviceGetStreamPriorityRange reports them; a lower number is more urgent, and one
            outside of the range means the nearest in it.
        hardware_queues: queues that streams are mapped to (CUDA_DEVICE_MAX_CONNECTIONS).
        resident_grids: launches that can run or wait for room at once.
        launch_latency_ns: from the launch call until the launch has reached the GPU.
        completion_latency_ns: from the exit of a launch's last block until work that waits for the
            launch may start.
        exit_latency_ns: from the end of a block until another block can use its room.
        event_latency_ns: on top of completion_latency_ns, for work that waits for an event.
        front_ends: parts of the GPU that poll hardware queues, each an equal share of them.
        queue_watch_ns: how long a front end takes to poll the next waiting hardware queue.
        host_watch_ns: how much later a launch starts while a front end polls several queues, if
            kernels write to the memory of the host, as those of tb.observe do.
        host_write_ns: how much later a launch starts, at least, if the launch that it waits for has
            written to the memory of the host.
        trigger_latency_ns: from the last trigger of a launch's blocks until a programmatic launch
            that waits for it may start.
        launch_completion_latency_ns: from the moment a launch leaves its hardware queue until its
            completion event happens.
        node_latency_ns: from the exit of the last block of a graph's node until a node that waits
            for it may start.
        node_place_ns: between two places of a graph's node, which starts its followers one after
            the other.
        node_places: how many nodes of a graph can follow a node without a relay.
        relay_ns: how long a relay runs: the block that starts nodes of a graph which wait for
            several branches.
        conditional_ns: additional time from a node to the one that follows it where a conditional
            node of a graph decides in between, once: before its body, between two runs of it, or
            after it.
        condition_reset_ns: how long the last stream of a graph takes to reset the conditions of its
            conditional nodes, before its own nodes may start.
        condition_reset_latency_ns: from the end of that reset until a node at the beginning of
            another stream of the graph may start.
        host_function_latency_ns: from when work before a host function is known to be over until
            the driver calls the function, if its thread sleeps.
        host_function_direct_ns: the same for a host function that waits for nothing when it is
            issued.
        host_function_turn_ns: from the return of a host function until the driver calls the next
            one, if that waits for nothing else.
        host_function_return_ns: from the return of a host function until its stream knows that it
            is over.
        value_write_ns: from when a stream sets a value in memory until its later work may start.
        value_wait_ns: how long a stream takes to find that a value is as large as it waits for.
        value_wake_ns: from when a value is set until a stream that waits for it goes on.
        timed_record_ns: from when a stream records an event with timing until its later work may
            start.
        graph_latency_ns: from the call that launches a graph until its first node has reached the
            GPU.
        node_interval_ns: between two nodes of a graph that wait for no other: the driver launches
            one after the other.
        copy_engine_count: copy engines: with 2 there is one for each direction between the host and
            the GPU, with 1 copies of both directions take turns.
        copy_channels: channels of each copy engine: a copy that waits holds up the copies behind it
            in its channel.
        host_copy_latency_ns: from the moment a copy to or from the host may start until it moves
            bytes.
        node_copy_latency_ns: the same, for a node of a graph.
        host_copy_issue_ns: from the call until a copy to or from the host moves bytes, if it waits
            for nothing.
        host_copy_gap_ns: between two copies of one copy engine.
        copy_watch_ns: how long the GPU watches for the end of a copy that a launch waits for.
        copy_wake_ns: on top of completion_latency_ns, for a launch that has waited longer than
            copy_watch_ns for a copy to or from the host.
        host_return_ns: from the end of a copy until the call that waits for it returns.
        pageable_bandwidth: bytes per microsecond that the driver copies from pageable memory of the
            host, within the call; 0 if unknown.
        pageable_return_bandwidth: bytes per microsecond that the driver copies to pageable memory
            of the host, within the call; 0 if unknown.
        pageable_small_bytes: the largest small copy from pageable memory of the host.
        pageable_small_bandwidth: bytes per microsecond that the driver copies in a small copy from
            pageable memory, within the call; 0 if unknown.
        host_copy_bandwidth: bytes per microsecond of a copy to or from pinned memory of the host; 0
            if unknown, and such a copy takes its latency.
        both_ways_to_gpu_bandwidth: bytes per microsecond of a copy to the GPU while another one
            from it moves bytes; 0 if unknown, and neither slows the other.
        both_ways_from_gpu_bandwidth: bytes per microsecond of a copy from the GPU while another one
            to it moves bytes; 0 if unknown.
        small_copy_bytes: the largest small copy from pinned memory of the host.
        small_copy_latency_ns: how long a small copy from the host takes in a graph.
        inline_copy_ns: how long a small copy or memset takes in a stream.
        small_memset_latency_ns: how long a small memset takes in a graph.
        small_memset_bytes: the largest small memset.
        copy_block_bytes: bytes that a block of a driver's kernel copies or sets.
        device_copy_latency_ns: the shortest time of a block of a copy within the GPU's memory.
        device_copy_bandwidth: bytes per microsecond of a copy within the GPU's memory; 0 if
            unknown.
        peer_copy_bandwidth: bytes per microsecond of a copy to the memory of another GPU; 0 if
            unknown, and such a copy takes its latency.
        peer_event_latency_ns: on top of event_latency_ns, until a GPU knows of a CUDA event of
            another one.
        memset_latency_ns: the shortest time of a block of a memset.
        memset_bandwidth: bytes per microsecond of a memset; 0 if unknown.
        queue_places: launches, graphs, memsets, values and records with timing that can wait in a
            hardware queue, and copies by each engine that can be pending in the streams that use
            it; the next such call waits until there is a place.
        stream_stretches: pending stretches of launches in a hardware queue, between host functions
            of its streams, and of copies by each engine; a call that would begin another one waits
            until the first is over.
        launch_call_ns: how long a launch call takes if it waits for nothing.
        copy_call_ns: how long a call takes for a copy from or to pinned memory, or a small memset.
        event_call_ns: how long a call takes to record an event, or to make a stream wait for one.
        host_function_call_ns: a call of cudaLaunchHostFunc.
        value_call_ns: a call that lets a stream write a value in memory, wait for one, or record an
            event with timing.
        first_call_ns: how much longer a thread's first launch, copy or memset call takes; the
            second takes half of that longer, the third a third, and so on; the same for its first
            call that waits for work.
        first_kind_call_ns: how much longer a thread's first call of a kind takes: a launch, a copy
            in each direction, a memset, the record of an event, a wait for one.
        new_stream_call_ns: how much longer a stream's first launch call takes, its first copy call
            in each direction, and its first memset call.
        driver_call_ns: the part of a launch, copy or memset call during which such calls of other
            threads wait.
        synchronize_ns: on top of completion_latency_ns, until a call that waits for work returns;
            also the length of such a call if there is no work.
        first_use_ns: how much longer the launch call takes that first uses a kernel; other launch
            calls wait meanwhile.
        load_ns: on top of completion_latency_ns, until a kernel is loaded at its first use.
        local_memory_growth_ns: how long the launch call takes that sets up more local memory, once
            the GPU is idle.
        local_memory_growth_per_byte_ns: on top of that, for each byte of local memory of a thread.
        launch_switch_ns: from the first block of a launch until another launch is considered.
        time_slice_ns: for how long a process keeps the GPU while others have work; 0 if unknown.
        process_switch_ns: from the end of a process's turn until the next process has the GPU.
        preemption_ns: how long it takes to stop the blocks of a process, or to resume them, in
            addition to the time for their bytes.
        engine_slice_ns: for how long a process keeps a copy engine while others want it; 0 if
            unknown.
        engine_switch_ns: from the end of a process's turn in a copy engine until the next process
            has it.
        first_preemption_ns: how much longer it takes to stop blocks that have not been stopped
            before.
        preemption_bandwidth: bytes per microsecond of the registers and shared memory of blocks
            that are stopped or resumed; 0 if unknown.
        mechanisms: which mechanisms act.
    """

    name: str
    title: str
    compute_capability: str
    sms: int
    sms_per_tpc: int
    gpcs: tuple[tuple[int, ...], ...] = ()
    sm_preference: tuple[int, ...]
    processing_blocks: int
    blocks_per_sm: int
    cluster_blocks_per_sm: int = 32
    warps_per_sm: int
    registers_per_sm: int
    threads_per_block: int
    registers_per_thread: int
    max_cluster: int = 1
    coscheduled_sms: int = 0
    register_unit: int
    shared_memory_unit: int
    shared_memory_threshold: int = 0
    shared_memory_reserve: int
    shared_memory_per_block: int
    shared_memory_configurations: tuple[int, ...]
    local_memory_initial: int = 1024
    local_memory_unit: int = 16
    mechanisms: Mechanisms
    policy: str
    launch_order: str = 'leftover'
    priority_levels: int = 6
    hardware_queues: int = 8
    resident_grids: int = 128
    launch_latency_ns: int = 0
    completion_latency_ns: int = 0
    exit_latency_ns: int = 0
    event_latency_ns: int = 0
    front_ends: int = 2
    queue_watch_ns: int = 0
    host_watch_ns: int = 0
    host_write_ns: int = 0
    trigger_latency_ns: int = 0
    launch_completion_latency_ns: int = 0
    node_latency_ns: int = 0
    node_place_ns: int = 0
    node_places: int = 6
    relay_ns: int = 0
    conditional_ns: int = 0
    condition_reset_ns: int = 0
    condition_reset_latency_ns: int = 0
    host_function_latency_ns: int = 0
    host_function_direct_ns: int = 0
    host_function_turn_ns: int = 0
    host_function_return_ns: int = 0
    value_write_ns: int = 0
    value_wait_ns: int = 0
    value_wake_ns: int = 0
    timed_record_ns: int = 0
    graph_latency_ns: int = 0
    node_interval_ns: int = 0
    copy_engine_count: int = 2
    copy_channels: int = 4
    host_copy_latency_ns: int = 0
    node_copy_latency_ns: int = 0
    host_copy_issue_ns: int = 0
    host_copy_gap_ns: int = 0
    copy_watch_ns: int = 0
    copy_wake_ns: int = 0
    host_return_ns: int = 0
    pageable_bandwidth: int = 0
    pageable_return_bandwidth: int = 0
    pageable_small_bytes: int = 0
    pageable_small_bandwidth: int = 0
    host_copy_bandwidth: int = 0
    both_ways_to_gpu_bandwidth: int = 0
    both_ways_from_gpu_bandwidth: int = 0
    small_copy_bytes: int = 0
    small_copy_latency_ns: int = 0
    inline_copy_ns: int = 0
    small_memset_latency_ns: int = 0
    small_memset_bytes: int = 0
    copy_block_bytes: int = 8192
    device_copy_latency_ns: int = 0
    device_copy_bandwidth: int = 0
    peer_copy_bandwidth: int = 0
    peer_event_latency_ns: int = 0
    memset_latency_ns: int = 0
    memset_bandwidth: int = 0
    queue_places: int = 1021
    stream_stretches: int = 56
    launch_call_ns: int = 0
    copy_call_ns: int = 0
    event_call_ns: int = 0
    host_function_call_ns: int = 0
    value_call_ns: int = 0
    first_call_ns: int = 0
    first_kind_call_ns: int = 0
    new_stream_call_ns: int = 0
    driver_call_ns: int = 0
    synchronize_ns: int = 0
    first_use_ns: int = 0
    load_ns: int = 0
    local_memory_growth_ns: int = 0
    local_memory_growth_per_byte_ns: int = 0
    launch_switch_ns: int = 0
    time_slice_ns: int = 0
    process_switch_ns: int = 0
    preemption_ns: int = 0
    engine_slice_ns: int = 0
    engine_switch_ns: int = 0
    first_preemption_ns: int = 0
    preemption_bandwidth: int = 0


# In the order of the C++ struct; those of Mechanisms are among them.
FIELDS: tuple[Field, ...] = (
    Field("", "name", "string"),
    Field("device", "title", "string"),
    Field("device", "compute_capability", "string"),
    Field("topology", "sms", "int", rule="number of SMs"),
    Field("topology", "sms_per_tpc", "int", rule="TPCs"),
    Field("topology", "gpcs", "rows", "which TPC is in which GPC is not known", rule="map of GPCs"),
    Field("topology", "sm_preference", "ranges", rule="order of SMs"),
    Field("limits", "processing_blocks", "int", rule="limits of an SM"),
    Field("limits", "blocks_per_sm", "int", rule="limits of an SM"),
    Field("limits", "cluster_blocks_per_sm", "int", "clusters may have every thread block slot", rule="limits of clusters", when="cluster"),
    Field("limits", "warps_per_sm", "int", rule="limits of an SM"),
    Field("limits", "registers_per_sm", "int", rule="limits of an SM"),
    Field("limits", "threads_per_block", "int", rule="limits of an SM"),
    Field("limits", "registers_per_thread", "int", rule="limits of an SM"),
    Field("limits", "max_cluster", "int", "thread block clusters need compute capability 9.0", rule="limits of clusters", when="cluster"),
    Field("limits", "coscheduled_sms", "int", "not measured"),
    Field("allocation", "register_unit", "int", rule="limits of an SM"),
    Field("allocation", "shared_memory_unit", "int", rule="limits of an SM"),
    Field("allocation", "shared_memory_threshold", "int", "as on the H200, where the first byte counts", rule="choice of SMs by shared memory", when="shared_memory"),
    Field("allocation", "shared_memory_reserve", "int", rule="limits of an SM"),
    Field("allocation", "shared_memory_per_block", "int", rule="limits of an SM"),
    Field("allocation", "shared_memory_configurations", "ints", rule="limits of an SM"),
    Field("allocation", "local_memory_initial", "int", "that of cudaLimitStackSize", rule="local memory", when="local_memory"),
    Field("allocation", "local_memory_unit", "int", "as on the H200", rule="local memory", when="local_memory"),
    Field("mechanisms", "strict_round_robin", "bool", rule="turns of processing blocks"),
    Field("mechanisms", "warp_skip", "bool", rule="turns of processing blocks"),
    Field("mechanisms", "registers", "layout", rule="layout of registers"),
    Field("mechanisms", "shared_memory", "layout", rule="layout of shared memory"),
    Field("mechanisms", "lowest_gap_first", "bool", "as on the H200", rule="layout of shared memory"),
    Field("mechanisms", "shared_memory_configuration", "bool", rule="shared-memory configurations"),
    Field("mechanisms", "configuration_per_tpc", "bool", rule="shared-memory configurations"),
    Field("mechanisms", "configuration_headroom", "bool", "as on Ampere", rule="shared-memory configurations"),
    Field("mechanisms", "explicit_carveout_is_upper_bound", "bool", "not measured: no recording sets a carveout", rule="carveouts", when="carveout"),
    Field("mechanisms", "carveout_counts_blocks", "bool", "as on the H200; matters only where a carveout is set", rule="carveouts", when="carveout"),
    Field("mechanisms", "local_memory_configuration", "bool", rule="local memory", when="local_memory"),
    Field("mechanisms", "clusters_seek_idle_sms", "bool", "as on the H200; matters only where max_cluster is above 1", rule="placement of clusters", when="cluster"),
    Field("mechanisms", "graph_branches", "bool", "as on the H200", rule="graphs", when="graph"),
    Field("mechanisms", "graph_copies", "bool", "as on the H200", rule="graphs", when="graph"),
    Field("mechanisms", "joins_turn_front_ends", "bool", "as on the H200", rule="graphs", when="graph"),
    Field("mechanisms", "copy_engines", "bool", "as on the H200", rule="copies and memsets", when="transfer"),
    Field("mechanisms", "copy_kernels", "bool", "as on the H200", rule="copies and memsets", when="transfer"),
    Field("mechanisms", "host_functions_in_turn", "bool", "as on the H200", rule="host functions", when="host_function"),
    Field("mechanisms", "host_functions_hold_queues", "bool", "as on the H200", rule="host functions", when="host_function"),
    Field("mechanisms", "value_waits_hold_queues", "bool", "as on the H200", rule="values in memory", when="value"),
    Field("mechanisms", "clusters_take_whole_tpcs", "bool", "as on the H200; matters only where max_cluster is above 1", rule="placement of clusters", when="cluster"),
    Field("mechanisms", "clusters_use_singletons", "bool", "as on the H200; matters only where max_cluster is above 1", rule="placement of clusters", when="cluster"),
    Field("mechanisms", "clusters_balance", "bool", "as on the H200; matters only where max_cluster is above 1", rule="placement of clusters", when="cluster"),
    Field("mechanisms", "clusters_use_whole_partition", "bool", "as on the H200; matters only where max_cluster is above 1", rule="placement of clusters", when="cluster"),
    Field("mechanisms", "blocks_turn_singletons", "bool", "as on the H200; matters only where max_cluster is above 1", rule="placement of clusters", when="cluster"),
    Field("scheduler", "policy", "string", rule="choice of SMs"),
    Field("scheduler", "launch_order", "string", "ICCD 2023, section II-D, leftover policy", rule="order of launches", when="several"),
    Field("scheduler", "priority_levels", "int", "CUDA drivers report 0 to -5 for Turing, Ampere and Hopper", rule="priorities", when="priority"),
    Field("scheduler", "hardware_queues", "int", "CUDA C++ Programming Guide, default of CUDA_DEVICE_MAX_CONNECTIONS", rule="hardware queues", when="queue"),
    Field("scheduler", "resident_grids", "int", "CUDA C++ Programming Guide, technical specifications per compute capability", rule="hardware queues", when="queue"),
    Field("scheduler", "launch_latency_ns", "ns", "not measured", rule="latencies", when="duration"),
    Field("scheduler", "completion_latency_ns", "ns", "not measured", rule="latencies", when="duration"),
    Field("scheduler", "exit_latency_ns", "ns", "not measured", rule="latencies", when="duration"),
    Field("scheduler", "event_latency_ns", "ns", "not measured", rule="latencies", when="duration"),
    Field("scheduler", "front_ends", "int", "as on the H200", rule="hardware queues", when="queue"),
    Field("scheduler", "queue_watch_ns", "ns", "not measured", rule="hardware queues", when="queue"),
    Field("scheduler", "host_watch_ns", "ns", "not measured", rule="latencies", when="duration"),
    Field("scheduler", "host_write_ns", "ns", "the host decides it"),
    Field("scheduler", "trigger_latency_ns", "ns", "not measured", rule="latencies", when="duration"),
    Field("scheduler", "launch_completion_latency_ns", "ns", "not measured", rule="latencies", when="duration"),
    Field("scheduler", "node_latency_ns", "ns", "not measured", rule="graphs", when="graph"),
    Field("scheduler", "node_place_ns", "ns", "not measured", rule="graphs", when="graph"),
    Field("scheduler", "node_places", "int", "as on the H200", rule="graphs", when="graph"),
    Field("scheduler", "relay_ns", "ns", "not measured", rule="graphs", when="graph"),
    Field("scheduler", "conditional_ns", "ns", "not measured", rule="conditional nodes", when="conditional"),
    Field("scheduler", "condition_reset_ns", "ns", "not measured", rule="conditional nodes", when="conditional"),
    Field("scheduler", "condition_reset_latency_ns", "ns", "not measured", rule="conditional nodes", when="conditional"),
    Field("scheduler", "host_function_latency_ns", "ns", "not measured", rule="host functions", when="host_function"),
    Field("scheduler", "host_function_direct_ns", "ns", "not measured", rule="host functions", when="host_function"),
    Field("scheduler", "host_function_turn_ns", "ns", "not measured", rule="host functions", when="host_function"),
    Field("scheduler", "host_function_return_ns", "ns", "not measured", rule="host functions", when="host_function"),
    Field("scheduler", "value_write_ns", "ns", "not measured", rule="values in memory", when="value"),
    Field("scheduler", "value_wait_ns", "ns", "not measured", rule="values in memory", when="value"),
    Field("scheduler", "value_wake_ns", "ns", "not measured", rule="values in memory", when="value"),
    Field("scheduler", "timed_record_ns", "ns", "not measured", rule="records with timing", when="timed_record"),
    Field("scheduler", "graph_latency_ns", "ns", "not measured", rule="graphs", when="graph"),
    Field("scheduler", "node_interval_ns", "ns", "not measured", rule="graphs", when="graph"),
    Field("scheduler", "copy_engine_count", "int", "as on the H200", rule="copies and memsets", when="transfer"),
    Field("scheduler", "copy_channels", "int", "as on the H200", rule="copies and memsets", when="transfer"),
    Field("scheduler", "host_copy_latency_ns", "ns", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "node_copy_latency_ns", "ns", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "host_copy_issue_ns", "ns", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "host_copy_gap_ns", "ns", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "copy_watch_ns", "ns", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "copy_wake_ns", "ns", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "host_return_ns", "ns", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "pageable_bandwidth", "int", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "pageable_return_bandwidth", "int", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "pageable_small_bytes", "int", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "pageable_small_bandwidth", "int", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "host_copy_bandwidth", "int", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "both_ways_to_gpu_bandwidth", "int", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "both_ways_from_gpu_bandwidth", "int", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "small_copy_bytes", "int", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "small_copy_latency_ns", "ns", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "inline_copy_ns", "ns", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "small_memset_latency_ns", "ns", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "small_memset_bytes", "int", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "copy_block_bytes", "int", "as on the H200", rule="copies and memsets", when="transfer"),
    Field("scheduler", "device_copy_latency_ns", "ns", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "device_copy_bandwidth", "int", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "peer_copy_bandwidth", "int", "not measured", rule="copies between GPUs", when="peer"),
    Field("scheduler", "peer_event_latency_ns", "ns", "not measured", rule="events between GPUs", when="gpus"),
    Field("scheduler", "memset_latency_ns", "ns", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "memset_bandwidth", "int", "not measured", rule="copies and memsets", when="transfer"),
    Field("scheduler", "queue_places", "int", "as on the H200", rule="hardware queues", when="queue"),
    Field("scheduler", "stream_stretches", "int", "as on the H200", rule="host functions", when="host_function"),
    Field("scheduler", "launch_call_ns", "ns", "not measured", rule="times of calls", when="host"),
    Field("scheduler", "copy_call_ns", "ns", "not measured", rule="times of calls", when="host"),
    Field("scheduler", "event_call_ns", "ns", "not measured", rule="times of calls", when="host"),
    Field("scheduler", "host_function_call_ns", "ns", "not measured", rule="host functions", when="host_function"),
    Field("scheduler", "value_call_ns", "ns", "not measured", rule="values in memory", when="value"),
    Field("scheduler", "first_call_ns", "ns", "not measured", rule="times of calls", when="host"),
    Field("scheduler", "first_kind_call_ns", "ns", "not measured", rule="times of calls", when="host"),
    Field("scheduler", "new_stream_call_ns", "ns", "not measured", rule="times of calls", when="host"),
    Field("scheduler", "driver_call_ns", "ns", "not measured", rule="times of calls", when="host"),
    Field("scheduler", "synchronize_ns", "ns", "not measured", rule="times of calls", when="host"),
    Field("scheduler", "first_use_ns", "ns", "not measured", rule="loading of kernels", when="first_use"),
    Field("scheduler", "load_ns", "ns", "not measured", rule="loading of kernels", when="first_use"),
    Field("scheduler", "local_memory_growth_ns", "ns", "not measured", rule="local memory", when="local_memory"),
    Field("scheduler", "local_memory_growth_per_byte_ns", "ns", "not measured", rule="local memory", when="local_memory"),
    Field("scheduler", "launch_switch_ns", "ns", "not measured", rule="latencies", when="duration"),
    Field("scheduler", "time_slice_ns", "ns", "not measured", rule="turns of processes", when="processes"),
    Field("scheduler", "process_switch_ns", "ns", "not measured", rule="turns of processes", when="processes"),
    Field("scheduler", "preemption_ns", "ns", "not measured", rule="turns of processes", when="processes"),
    Field("scheduler", "engine_slice_ns", "ns", "not measured", rule="turns of processes", when="processes"),
    Field("scheduler", "engine_switch_ns", "ns", "not measured", rule="turns of processes", when="processes"),
    Field("scheduler", "first_preemption_ns", "ns", "not measured", rule="turns of processes", when="processes"),
    Field("scheduler", "preemption_bandwidth", "int", "not measured", rule="turns of processes", when="processes"),
)
