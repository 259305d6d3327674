"""What each program in programs/ does, known from how it was written."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Truth:
    """What is true of a program.

    Attributes:
        kind: of the hang, or ``not_hanging``.
        also: kinds that say the same as well: what loads code may be a call that waits.
        launch, blocks, of, resource: of a room, the kernel of which ``blocks`` of ``of`` never
            start, and what they find too little of.
        call: of a hang of the host, the call that waits, if it is one of CUDA.
        env: variables of the environment that the program runs with.
    """

    kind: str
    also: tuple[str, ...] = ()
    launch: str | None = None
    blocks: int | None = None
    of: int | None = None
    resource: str | None = None
    call: str | None = None
    env: dict[str, str] = field(default_factory=dict)


def room(launch: str, blocks: int, of: int, resource: str, **env: str) -> Truth:
    return Truth("room", (), launch, blocks, of, resource, env=env)


def queue(connections: int | None = None, **env: str) -> Truth:
    if connections is not None:
        env["CUDA_DEVICE_MAX_CONNECTIONS"] = str(connections)
    return Truth("queue", env=env)


def host(call: str | None) -> Truth:
    return Truth("host", call=call)


LEGACY, INSIDE, SLOW = Truth("legacy_stream"), Truth("inside_kernel"), Truth("not_hanging")
LOADING, LOADING_IN_CALL = Truth("loading"), Truth("loading", ("host",))

SECOND = {
    # An H200 has 132 SMs, each of 228 KiB of shared memory, of which a block takes 1 KiB more than
    # it asks for, 65,536 registers, 2,048 threads and 32 blocks.
    # 16 registers, so 2,048 threads bind: four blocks of 512 per SM, and eight of 256 were counted
    "occupancy_of_half_block": room("advect", 528, 1056, "threads"),
    # 40 KiB in an SM set to the least that holds a block, 64 KiB: one block per SM
    "prefer_l1": room("solve_levels", 132, 264, "shared_memory"),
    # 44 + 40 + 1 KiB: two blocks per SM, as three take 255 of 228 KiB
    "static_and_dynamic": room("collide", 132, 396, "shared_memory"),
    # One block of 120 KiB per SM: 66 pairs of 75
    "cluster_pairs": room("attend", 18, 150, "shared_memory"),
    # 256 threads of 96 registers: 24,576 a block, so two of four per SM
    "halo_ring": room("exchange", 264, 528, "registers"),
    # 1,024 threads of 56 registers leave 8,192 of each SM, and 512 threads of 56 take 28,672
    "query_server": room("answer", 4, 4, "registers"),
    # 32 blocks of a warp on every SM
    "warp_workers": room("emit_rays", 1, 1, "blocks"),
    # Twice 91 KiB on every SM leave 46, and 91 KiB asked for
    "three_stages": room("store", 132, 132, "shared_memory"),
    # 121 KiB on every SM, and 121 KiB asked for
    "graph_branches": room("half", 132, 132, "shared_memory"),
    # 16 registers, so 2,048 threads bind: 528 blocks of 512, of which 40 are of another kernel
    "solver_beside_monitor": room("sweep", 40, 528, "threads"),
    # 512 threads of 16 registers: four blocks per SM
    "cupy_wavefront": room("wavefront", 32, 560, "threads"),
    # A warp of 16 registers: 32 blocks per SM
    "triton_grid_barrier": room("softmax_terms", 76, 4300, "blocks"),
    "server_threads": queue(),
    "callback_then_kernel": queue(1),
    # What waits for the next kernel of its own stream is the bug of that kernel, too
    "dependent_launch": Truth("queue", ("inside_kernel",)),
    "depth_first": queue(),
    "event_tails": queue(4),
    "capture_in_line": Truth("queue", ("inside_kernel",)),
    "torch_overlap": queue(1),
    "cupy_pipeline": queue(1),
    "numba_two_streams": queue(1),
    "thrust_default": LEGACY,
    "symbol_copy": LEGACY,
    "host_function_between": LEGACY,
    "graph_on_null": LEGACY,
    "per_thread_and_library": LEGACY,
    "driver_streams": LEGACY,
    "torch_and_cupy": LEGACY,
    "jit_linked": LOADING_IN_CALL,
    "rare_path": LOADING,
    "graph_adds_kernel": LOADING_IN_CALL,
    "second_thread_first": LOADING,
    "kernel_library": LOADING_IN_CALL,
    "numba_first": LOADING_IN_CALL,
    "torch_matmul_first": LOADING_IN_CALL,
    "event_then_stop": host("cudaEventSynchronize"),
    "pageable_copy": host("cudaMemcpyAsync"),
    "free_in_loop": host("cudaFree"),
    # The launch waits until the context has more local memory, as what loads code does
    "local_memory_grows": Truth("host", ("loading",), call="cudaLaunchKernel"),
    "launch_queue_full": host("cudaLaunchKernel"),
    "condition_variable": host(None),
    "fork_and_wait": host(None),
    "torch_nonzero": host(None),
    "numba_mapped": host("cudaStreamSynchronize"),
    "abba_locks": INSIDE,
    "full_hash_table": INSIDE,
    "cuda_barrier_blocks": INSIDE,
    "cluster_flag": INSIDE,
    "cooperative_convergence": INSIDE,
    "newton_float": INSIDE,
    "cupy_union_find": INSIDE,
    "triton_ticket": INSIDE,
    "monte_carlo": SLOW,
    "graph_of_long_nodes": SLOW,
    "cooperative_gradients": SLOW,
    "chase_in_host_memory": SLOW,
    "contended_lock": SLOW,
    "ping_pong": SLOW,
    "column_copies": SLOW,
    "checksum_callbacks": SLOW,
    "triton_recurrence": SLOW,
    "torch_power_iteration": SLOW,
}

THIRD = {
    # 201 KiB, so one block per SM: three elements of 40 blocks and 12 blocks of the fourth
    "pe_team": room("exchange", 28, 40, "shared_memory"),
    # 1,024 threads of more than 32 registers: one block per SM
    "tuned_elsewhere": room("integrate", 16, 148, "registers"),
    # Twice 101 KiB on every SM leave 26, and 41 are asked for
    "weights_prefetch": room("route", 16, 16, "shared_memory"),
    # 1,024 threads of 60 registers, which count as 64: none is left on any SM
    "captured_duplex": room("speak", 66, 66, "registers"),
    # 121 KiB on ten SMs: 122 of 132 blocks of 121 KiB have room, and so none starts
    "whole_team": room("solve", 132, 132, "shared_memory"),
    # 768 threads, of 14 registers: two blocks on each of 64 SMs
    "half_gpu": room("decode", 4, 132, "threads"),
    # 31 of the 32 blocks of each SM are taken
    "tiny_walkers": room("collect", 132, 264, "blocks"),
    # Twice 768 threads on every SM, and 640 asked for
    "two_models": room("draft", 20, 20, "threads"),
    # 640 threads of 18 registers: three blocks per SM
    "notify_all": room("reduce", 24, 420, "threads"),
    # 512 threads of 64 registers: two blocks per SM, and 132 of 140 pairs
    "pair_exchange": room("push", 16, 280, "registers"),
    # 61 KiB: three blocks per SM
    "cupy_tiles": room("label_tiles", 4, 400, "shared_memory"),
    # 48,000 bytes and 1 KiB: four blocks per SM
    "numba_histogram": room("histogram", 12, 540, "shared_memory"),
    "doorbell": queue(1),
    "completion_word": queue(1),
    "cooperative_follow": queue(2),
    "snapshot_copy": queue(1),
    "tenants": queue(),
    "wide_graph": queue(),
    "torch_requests": queue(),
    "cupy_clients": queue(),
    "config_without_stream": LEGACY,
    "two_graphs": LEGACY,
    "join_in_null": LEGACY,
    "priority_default_flag": LEGACY,
    "signal_in_null": LEGACY,
    "logger_thread": LEGACY,
    "cupy_matmul_null": LEGACY,
    "external_stream": LEGACY,
    "numba_reset_between": LEGACY,
    "occupancy_then_launch": LOADING_IN_CALL,
    "bystander": LOADING,
    "policy_first": LOADING_IN_CALL,
    "exec_update": LOADING_IN_CALL,
    "triton_specialise": LOADING_IN_CALL,
    "torch_dtype_first": LOADING,
    "torch_fft_first": LOADING_IN_CALL,
    "cupy_ufunc_first": LOADING_IN_CALL,
    "numba_new_types": LOADING_IN_CALL,
    "unregister_staging": host("cudaHostUnregister"),
    "raise_limit": host("cudaDeviceSetLimit"),
    "managed_flag": host("cudaStreamSynchronize"),
    "rendezvous_callbacks": host("cudaDeviceSynchronize"),
    "poll_event": host(None),
    "mutex_held": host("cudaStreamSynchronize"),
    "torch_batches": host(None),
    "graph_with_checkpoint": host("cudaStreamSynchronize"),
    "vector_leaves_scope": host("cudaFree"),
    "pipeline_stages": INSIDE,
    "empty_phase": INSIDE,
    "signal_passed": INSIDE,
    "replayed_barrier": INSIDE,
    "byte_counter": INSIDE,
    "heap_retry": INSIDE,
    "triton_prefix_tail": INSIDE,
    "numba_grid_sync": INSIDE,
    "tennis": SLOW,
    "tree_search": SLOW,
    "slow_feeder": SLOW,
    "fine_grained": SLOW,
    "cluster_sweeps": SLOW,
    "pipelined_tiles": SLOW,
    "while_graph": SLOW,
    "full_house": SLOW,
    "null_between_long": SLOW,
    "one_connection_long": Truth("not_hanging", env={"CUDA_DEVICE_MAX_CONNECTIONS": "1"}),
    "first_use_after_long": SLOW,
    "numba_collatz": SLOW,
    "cupy_edit_distance": SLOW,
    "torch_cdist": SLOW,
    "triton_in_turn": SLOW,
}

FOURTH = {
    # 1,024 threads of 10 registers: two blocks on every SM leave no thread. They also leave it with
    # less shared memory than 16 blocks of 128 threads need
    "late_scheduler": room("schedule", 2, 2, "threads"),
    # 73 KiB: three blocks per SM
    "hand_made_barrier": room("jacobi", 54, 450, "shared_memory"),
    # 151 KiB on every SM leave 77, and 101 are asked for
    "cluster_after_server": room("gather", 8, 8, "shared_memory"),
    # 384 threads of 64 registers: 24,576 a block, so two per SM
    "register_tiles": room("factorise", 132, 396, "registers"),
    # 131 KiB, so one block on each of the 16 SMs of a green context
    "green_partition": room("prefill", 2, 18, "shared_memory"),
    # 4,000 of the 4,224 places for blocks are taken
    "cupy_router": room("route", 76, 300, "blocks"),
    # 512 threads of 24 registers at most: four blocks per SM
    "triton_meeting": room("normalise", 32, 560, "threads"),
    # 40,000 bytes and 1 KiB: five blocks per SM
    "numba_from_the_end": room("suffix_sums", 40, 700, "shared_memory"),
    "request_pairs": queue(1),
    "ring_of_stages": queue(2),
    "model_replicas": queue(),
    # It ends: the second kernel of a graph waits for the first in no hardware queue
    "graph_holds_queue": Truth("not_hanging", env={"CUDA_DEVICE_MAX_CONNECTIONS": "1"}),
    "stream_waits_ahead": queue(1),
    "torch_gradient_flag": queue(1),
    "triton_late_keys": queue(1),
    "numba_rate_limit": queue(),
    "memset_without_stream": LEGACY,
    "consumer_in_null": LEGACY,
    "event_of_null": LEGACY,
    "per_thread_handle": LEGACY,
    "copy_omits_stream": LEGACY,
    "cupy_mailbox": LEGACY,
    "numba_default_kernel": LEGACY,
    "triton_then_cupy": LEGACY,
    "ptx_while_waiting": LOADING_IN_CALL,
    "second_instance": LOADING,
    "cooperative_first": LOADING,
    "attribute_late": LOADING_IN_CALL,
    "cupy_sort_first": LOADING_IN_CALL,
    "triton_longer_rows": LOADING_IN_CALL,
    "torch_softmax_first": LOADING,
    "numba_reduce_first": LOADING_IN_CALL,
    "synchronize_for_reply": host("cudaDeviceSynchronize"),
    "free_pinned_early": host("cudaFreeHost"),
    "read_back_first": host("cudaMemcpy"),
    "stream_wait_value": host("cudaStreamSynchronize"),
    "join_before_stop": host("cudaEventSynchronize"),
    "torch_item_early": host(None),
    "cupy_event_early": host("cudaEventSynchronize"),
    "numba_copy_back": host(None),
    "named_barrier_count": INSIDE,
    "mbarrier_arrivals": INSIDE,
    "lock_and_syncwarp": INSIDE,
    "missing_volatile": INSIDE,
    "lookback_no_prefix": INSIDE,
    "cupy_early_return": INSIDE,
    "triton_unreleased": INSIDE,
    "numba_barrier_in_branch": INSIDE,
    "many_long_waves": SLOW,
    "heavy_chained_scan": SLOW,
    "cooperative_heat": SLOW,
    "host_functions_compress": SLOW,
    "copies_both_ways": SLOW,
    "graph_in_a_loop": SLOW,
    "persistent_tree": SLOW,
    "cupy_mandelbrot": SLOW,
    "triton_long_orbits": SLOW,
    "numba_gravity": SLOW,
    "torch_slow_loader": SLOW,
    "cupy_sieve_between": SLOW,
}

FIFTH = {
    # An H200 has 132 SMs, each of 228 KiB of shared memory, of which a block takes 1 KiB more than
    # it asks for, 65,536 registers, 2,048 threads and 32 blocks.
    # 256 threads of 96 registers: 24,576 a block, so two per SM. The first 264 of 800 blocks all
    # wait for one of the blocks 400 to 663
    "streamk_fixup": room("multiply", 536, 800, "registers"),
    # 61 KiB of the sampler leave 167 on one SM, and 201 are asked for, as on every other SM
    "megakernel_and_sampler": room("interpret", 1, 132, "shared_memory"),
    # 116 KiB of product and 101 of epilogue on every SM leave 11, and 41 are asked for (all three
    # kernels prefer the most shared memory; 16 registers, 256 threads)
    "early_epilogue": room("scales", 4, 4, "shared_memory"),
    # 1,024 threads of 22 registers: two per SM, 264 if all SMs are empty. A server of 1,024 threads
    # has one of these places, and a cooperative launch starts as a whole or not at all
    "full_grid_beside_server": room("relax", 264, 264, "threads"),
    # 14 registers, 256 threads: eight per SM without shared memory, but four of 51 KiB (204 of 228)
    "occupancy_without_bytes": room("update", 528, 1056, "shared_memory"),
    # Twice 1,024 threads (14 registers) on every SM leave no thread
    "urgent_priority": room("urgent", 8, 8, "threads"),
    # 33 times 128 blocks of a warp (16 registers): 4,224, 32 on every SM
    "topic_listeners": room("publish", 2, 2, "blocks"),
    # Twice 256 threads of 128 registers: all 65,536 of every SM. The panel asks for 1,024 threads
    # of 32 (of threads there are enough: 512 of 2,048 are taken)
    "lu_lookahead": room("panel", 1, 1, "registers"),
    # A block of a warp, of at most 64 registers: 32 per SM, 4,224 of 4,400
    "numba_ants": room("march", 176, 4400, "blocks"),
    # 256 threads of 32 registers at most: eight per SM, 1,056 of 4,800, all of them of part 0,
    # which has 1,200. Registers bind as well, if it is 32
    "triton_splitk_owner": room("gemv_parts", 3744, 4800, "threads"),
    # 101 KiB: two per SM (256 threads), 264 of 272
    "cupy_replica_exchange": room("sweep", 8, 272, "shared_memory"),
    "userbuffers_order": queue(1),
    "per_thread_sessions": queue(),
    "frame_consumers": queue(2),
    "sweep_from_far_end": queue(),
    "cupy_shared_event": queue(1),
    "torch_bucket_ack": queue(1),
    "cub_offsets": LEGACY,
    "pool_in_null": LEGACY,
    "cooperative_default": LEGACY,
    "ghost_cells": LEGACY,
    "texture_upload": LEGACY,
    "numba_waits_for_torch": LEGACY,
    "cuda_core_default": LEGACY,
    "cub_first_sum": LOADING_IN_CALL,
    "capture_while_serving": LOADING_IN_CALL,
    "long_request_first": LOADING,
    "torch_topk_first": LOADING_IN_CALL,
    "cupy_kernel_on_demand": LOADING_IN_CALL,
    # In a proxy thread, for which the main thread waits
    "spill_proxy": host("cudaFree"),
    # In both host threads
    "mismatched_collectives": host("cudaStreamSynchronize"),
    # A host node waits for the main thread, too
    "host_node_waits": host("cudaStreamSynchronize"),
    # read() of a pipe, into which no call flushes what the kernel prints
    "request_by_printf": host(None),
    # In the thread of a std::async, whose future the main thread waits for
    "future_before_reply": host("cudaStreamSynchronize"),
    # cuCtxSynchronize of the driver, with the GIL held, which another thread needs
    "cupy_gil_held": host(None),
    # torch.cuda.graph waits for the device when it is entered
    "torch_capture_while_serving": host("cudaDeviceSynchronize"),
    "cupy_pool_trimmed": host("cudaFree"),
    "multicast_to_one": INSIDE,
    "remote_arrive": INSIDE,
    "ragged_rounds": INSIDE,
    "leaking_slots": INSIDE,
    "second_product": INSIDE,
    "lock_upgrade": INSIDE,
    "full_work_queue": INSIDE,
    "short_index": INSIDE,
    "triton_ring_ack": INSIDE,
    "numba_sequence_lock": INSIDE,
    "slices_in_turn": SLOW,
    "straggler_at_barrier": SLOW,
    "ticks_by_wait_value": SLOW,
    "dependent_layers": SLOW,
    "pages_back_and_forth": SLOW,
    "scratch_per_step": SLOW,
    "squarings": SLOW,
    "small_ring": SLOW,
    "contended_maximum": SLOW,
    "torch_token_loop": SLOW,
    "cupy_life": SLOW,
    "triton_long_critical": SLOW,
    "numba_passed_on": SLOW,
}

SIXTH = {
    # Hand-made grid barrier in countPasses over 300 blocks of 100 KB dynamic shared memory: 2
    # blocks an SM, 264 resident, the waiting blocks hold the SMs
    "particle_sort_passes": room("countPasses", 36, 300, "shared_memory"),
    # 132 resident executors with 120 KB shared memory fill all SMs and wait for requests; tokenize
    # (110 KB a block) fits on no SM
    "inference_slots": room("tokenize", 24, 24, "shared_memory"),
    # Block b waits for block b+1; 280 blocks of 1024 threads, 264 fit, so the last ones, on which
    # all wait, never start
    "upper_solve": room("backSubstitute", 16, 280, "threads"),
    # All 4352 one-warp blocks must report before a level ends, but only 32 blocks an SM (4224) fit
    "bfs_frontier": room("expandLevels", 128, 4352, "blocks"),
    # The low 132 blocks (512 threads, 128 registers: one an SM) wait for panels which the last 18
    # blocks make, and these never start
    "tile_factory": room("multiplyTiles", 18, 150, "registers"),
    # 132 blocks in clusters of 4 at one block an SM (200 KB): clusters don't span GPCs, so at most
    # 32 clusters are resident and the grid-wide step counter is never reached
    "stencil_dsm": room("heatSteps", 4, 132, "clusters"),
    # ProbeKeys (carveout max L1) runs on every SM and waits for partitionKeys, which needs 96 KB
    # shared memory: no SM can change its carveout while probeKeys runs
    "feature_join": room("partitionKeys", 32, 32, "shared_memory"),
    # 400 blocks with 72 KB shared memory (3 an SM, 396 resident) wait for their neighbours; the
    # last four never start
    "lattice_relax": room("relax", 4, 400, "shared_memory"),
    # Suffix scan: program i waits for i+1; 608 programs of 512 threads, only 528 fit
    "discounted_returns": room("returns_kernel", 80, 608, "threads"),
    # 264 blend blocks of 1024 threads take all thread slots and wait for decode, none of whose
    # blocks can start
    "frame_pipeline": room("decode", 66, 66, "threads"),
    # CUDA_DEVICE_MAX_CONNECTIONS=1: lidarSweep stands in the one hardware queue behind detect,
    # which waits for fuseCamera, which waits for lidarSweep
    "sensor_fusion": queue(),
    # 96 streams on 32 hardware queues: the forecast of a later member stands behind writeOut of an
    # earlier one whose forecast waits for all members
    "ensemble_members": queue(),
    # The copy of the gain table is enqueued in the same stream behind mixBlock, which polls for it
    "audio_mixer": queue(),
    # In the graph rotateFactors depends on power -> butterfly, and butterfly waits for
    # rotateFactors
    "spectral_graph": queue(),
    # Rank 1's stream waits for an event that rank 0 records behind its wait for the value which
    # rank 1 would write (no kernel runs)
    "tensor_exchange": queue(),
    # Backward_chunk stands behind a wait for the event recorded after reduce_bucket, which polls
    # for backward_chunk
    "bucketed_backward": queue(),
    # Round robin over 4 streams puts factor_block in the stream behind update_block, which polls
    # for it
    "task_pool": queue(),
    # The weights are copied in the legacy default stream, which waits for the blocking stream in
    # which filterTracks polls for them
    "radar_tracker": LEGACY,
    # A memset in the default stream between two blocking streams: it waits for pushParticles, and
    # solveField waits for it
    "plasma_step": LEGACY,
    # EntropyCode runs in the default stream; the library's blocking stream waits for it, and it
    # waits for transformBlocks there
    "codec_blocks": LEGACY,
    # The begin event is recorded in the legacy stream, so it waits for refinePose in a blocking
    # stream; keypoints waits for the event
    "pose_estimator": LEGACY,
    # The tick is written in CuPy's null stream, which waits for match_auction in a blocking stream
    "order_matching": LEGACY,
    # Torch's default (legacy) stream waits for fir_filter in a blocking CuPy stream, which polls
    # the cursor torch would move
    "torch_cupy_filter": LEGACY,
    # The first launch of refineCells (lazy loading, 4 KB local memory) waits for smooth, which
    # waits for refineCells
    "mesh_smoother": LOADING_IN_CALL,
    # The first use of updateCentroids (occupancy query / launch) loads it while assignResident
    # waits for the word the host writes afterwards
    "streaming_kmeans": LOADING_IN_CALL,
    # A PTX module is loaded while aggregate runs and waits for the module's kernel
    "expr_engine": LOADING_IN_CALL,
    # A stage kernel is compiled and loaded for the first time while hold_window waits for it
    "signal_chain": LOADING_IN_CALL,
    # The first torch.sort loads its kernels while clip_gate waits for the version the host raises
    # after the sort
    "online_quantiles": LOADING_IN_CALL,
    # The host waits for the event behind consumeBatch before it rings the doorbell consumeBatch
    # polls
    "doorbell_pipeline": host(None),
    # CudaFree waits for the resident renderer, which waits for the word the host writes after
    # cudaFree
    "tile_streamer": host(None),
    # The query thread holds the mutex while it synchronises on scanCatalog; the ingest thread needs
    # the mutex to raise the generation scanCatalog polls
    "shared_catalog": host(None),
    # Host function onPacked waits for an acknowledgement which a later host function of the same
    # stream gives
    "log_shipper": host(None),
    # CudaStreamSynchronize waits for a stream which stands in cuStreamWaitValue32 for the word the
    # host writes afterwards (no kernel runs)
    "sim_coupler": host(None),
    # Write_records waits for room in the pinned ring, the host drains it only after
    # stream.synchronize()
    "ring_telemetry": host(None),
    # Loss.item() waits behind momentum_step, which polls the pinned step word that the host writes
    # after item()
    "adaptive_lr": host(None),
    # Main waits for the result of the worker, the worker synchronises on score_request, which polls
    # the query id main would write afterwards
    "request_broker": host(None),
    # The loader warps stand at __syncthreads while the compute warps spin on a shared flag that is
    # set after it
    "tile_loader": INSIDE,
    # The barrier is initialised for 160 arrivals but the block has 128 threads
    "gemm_stages": INSIDE,
    # Lock order: each block holds its shard and waits for the next one's, a cycle over 64 blocks
    "ledger_transfer": INSIDE,
    # The producer block returns at its job limit without closing the queue; the tracing blocks wait
    # on
    "render_queue": INSIDE,
    # Bisection with lo = mid never ends when hi = lo + 1
    "quantile_search": INSIDE,
    # The poll of epochDone is a plain load that the compiler hoists out of the loop, so the
    # checkpoint block never sees the finished epochs
    "checkpoint_writer": INSIDE,
    # Sender and receiver compute the slot with different depths (32 and 64), so flags land in words
    # nobody reads
    "shard_allreduce": INSIDE,
    # Newton's iteration is caught in the 2-cycle 0, 1 of x^3 - 2x + 2 and the step cap is off
    "root_polish": INSIDE,
    # __syncwarp with the full mask while holding a lock for which the other lanes of the warp spin
    "histogram_merge": INSIDE,
    # With the wrap-around each tile of a row waits for its left neighbour: a cycle
    "wavefront_periodic": INSIDE,
    # The meeting counter is not cleared before the second launch, and the programs wait for
    # equality with a value already passed
    "layernorm_fused": INSIDE,
    # One kernel of about 22 s with progress in registers only
    "collatz_census": SLOW,
    # 110 critical sections of 0.2 s one after the other, by ticket lock
    "seat_booking": SLOW,
    # Chained look-back over 6000 blocks of about 4 ms each
    "carry_chain": SLOW,
    # 44 host functions of 0.5 s each in the stream
    "archive_writer": SLOW,
    # Spin wait that a host thread satisfies after 21 s
    "auction_close": SLOW,
    # Many short kernels, about 23 s, with one wait at the end
    "md_steps": SLOW,
    # One kernel of about 25 s with progress in shared memory only
    "rule_automaton": SLOW,
    # Stack_traces waits about 21 s for the migrate kernel beside it, which ends
    "seismic_gate": SLOW,
    # One Triton kernel of about 22 s which writes its progress to memory
    "power_iteration": SLOW,
    # About 24 s of ordinary training steps with one wait at the end
    "wide_mlp_training": SLOW,
    # Two resident kernels take turns for about 22 s
    "duet_turns": SLOW,
    # Chain of 48 stages of 0.46 s over three streams by events
    "relay_stages": SLOW,
    # Resident kernel fed with one item every 0.5 s, 44 items
    "paced_feeder": SLOW,
}

SETS = {"second": SECOND, "third": THIRD, "fourth": FOURTH, "fifth": FIFTH, "sixth": SIXTH}
TRUTH = SECOND | THIRD | FOURTH | FIFTH | SIXTH
