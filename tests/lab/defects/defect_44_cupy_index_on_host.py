"""Matching pursuit with CuPy: a signal is built up from the atoms of a dictionary."""

import cupy as cp

DEFECT = "the number of the best atom is fetched to the host in each iteration"
CAUSE = (
    "int() of CuPy's argmax in each iteration: a device-to-host copy (cudaMemcpyAsync) with "
    "cudaStreamSynchronize, after which the GPU idles until the next kernels are launched"
)
FIX = "leave the number on the GPU and take the atom with it there (atoms.take)"

ATOMS = 8192
LENGTH = 8192
ITERATIONS = 25


def build(variant):
    random = cp.random.RandomState(0)
    atoms = random.standard_normal((ATOMS, LENGTH), dtype=cp.float32)
    atoms /= cp.sqrt((atoms * atoms).sum(axis=1, keepdims=True))
    signal = random.standard_normal(LENGTH, dtype=cp.float32)

    def step():
        rest = signal.copy()
        for _ in range(ITERATIONS):
            products = atoms @ rest
            best = cp.abs(products).argmax()
            if variant == "defect":
                best = int(best)
            rest -= products.take(best) * atoms.take(best, axis=0)
        return rest

    return step
