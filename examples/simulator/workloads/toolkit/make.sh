#!/bin/bash
# make.sh FOLDER: what GPGPU-Sim needs of CUDA 11.7, from PyPI, with stand-ins for the rest.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/bin" "$1/include" "$1/lib64"
cd "$1"
python3 -m pip download --quiet --no-deps --dest wheels \
  nvidia-cuda-runtime-cu11==11.7.99 nvidia-cuda-nvcc-cu11==11.7.99
for wheel in wheels/*.whl; do python3 -m zipfile -e "$wheel" .; done
cp -r nvidia/cuda_runtime/include/. nvidia/cuda_nvcc/include/. include
cp nvidia/cuda_runtime/lib/libcudart.so.11.0 lib64
# Clang wants both. What includes the header uses nothing of it.
ln -sfn nvidia/cuda_nvcc/nvvm nvvm
touch include/curand_mtgp32_kernel.h
cp "$here"/{nvcc,cuobjdump,ptxas} bin
chmod +x bin/* nvidia/cuda_nvcc/bin/ptxas
