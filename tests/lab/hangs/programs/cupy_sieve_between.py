"""CuPy: the host sieves for seconds before each of its short kernels."""

import cupy
from begin import begin

SOURCE = r"""
extern "C" __global__ void residues(const int* primes, int count, int modulus, int* seen) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < count) atomicAdd(seen + primes[at] % modulus, 1);
}
"""


def sieve(least, most):
    """Primes in a range, by trial division on purpose."""
    found = []
    for number in range(least | 1, most, 2):
        divisor = 3
        while divisor * divisor <= number and number % divisor:
            divisor += 2
        if divisor * divisor > number:
            found.append(number)
    return found


begin()
residues = cupy.RawKernel(SOURCE, "residues")
seen = cupy.zeros(30, cupy.int32)
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    for number in range(6):
        found = cupy.asarray(sieve(10**7 + number * 10**6, 10**7 + number * 10**6 + 120_000), "i4")
        size = found.size
        residues((size // 128 + 1,), (128,), (found, cupy.int32(size), cupy.int32(30), seen))
        print("primes", size)
    stream.synchronize()
print("ended")
