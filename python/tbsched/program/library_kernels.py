"""Which kernels are of libraries: whoever calls them chooses neither block size nor carveout."""

from __future__ import annotations

import re

from tbsched.program.events.launch import Launch

_NAMESPACES = (
    r"at|c10|torch|cub|thrust|cublas\w*|cudnn|cutlass|cute|cusparse\w*|cufft\w*|cusolver\w*|"
    r"curand\w*|magma\w*|nccl\w*|nvshmem\w*|flash\w*|tensorrt_llm"
)
_BEGINS = (
    r"nvjet_|cublas|cudnn|cutlass_|cusparse|cufft|cusolver|curand|magma_|nccl|nvshmem|"
    r"sm\d+_xmma_|xmma_|(?:maxwell|pascal|volta|turing|ampere|hopper)_\w*(?:gemm|conv|scudnn)|"
    r"implicit_convolve|gemv2|gemmk1|splitKreduce|fmha_|flash_(?:fwd|bwd)"
)
# The function's own name, after its return type; arguments of templates are no part of it.
_LIBRARY = re.compile(rf"(?:void )?(?:(?:{_NAMESPACES})::|{_BEGINS})")


def is_of_library(launch: Launch) -> bool:
    """Returns whether the name of a kernel is one of a known library, such as cuBLAS or ATen."""
    return launch.name is not None and _LIBRARY.match(launch.name) is not None
