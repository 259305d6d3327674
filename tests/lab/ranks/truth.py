"""The defects of programs.py, without PyTorch.

Of each program the rank that is waited for, or None where both do the same, and words of which one
must stand in the first cause.
"""

TRUTH = {
    "ddp_loader": (1, ["decode_images", "busy"]),
    "pipeline_free": (0, ["cudaFree", "cudaMalloc", "empty_cache"]),
    "moe_imbalance": (0, ["kernel", "gemm"]),
    "zero_after": (None, ["reduce_scatter", "ReduceScatter"]),
    "eval_flood": (None, ["all_reduce", "allreduce", "AllReduce"]),
    "fsdp2_item": (0, ["item", "tolist", "watch_activations", "Synchronize"]),
    "tp_recompile": (1, ["compile", "jit", "Module", "nvrtc"]),
    "ring_straggler": (1, ["kernel", "gemm", "slow_check"]),
    "prefill_decode": (0, ["copy", "pageable", "Memcpy", "offload"]),
    "accumulate": (None, ["all_reduce", "allreduce", "AllReduce"]),
    "fsdp2_whole": (0, ["item", "tolist", "watch_activations", "Synchronize"]),
    "eval_checkpoint": (0, ["save_checkpoint", "busy"]),
}
