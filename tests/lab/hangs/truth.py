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

SETS = {"second": SECOND, "third": THIRD, "fourth": FOURTH, "fifth": FIFTH}
TRUTH = SECOND | THIRD | FOURTH | FIFTH
