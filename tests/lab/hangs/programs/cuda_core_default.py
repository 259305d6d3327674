"""cuda.core: a server in a stream that is made to be of the ordinary kind, and a client's kernel in
the default stream of the device, for which the server waits."""

import cupy
from begin import begin

try:
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, StreamOptions, launch
except ImportError:
    from cuda.core.experimental import (
        Device,
        LaunchConfig,
        Program,
        ProgramOptions,
        StreamOptions,
        launch,
    )

SOURCE = r"""
extern "C" __global__ void serve(const volatile int* request, float* reply) {
  if (threadIdx.x == 0)
    while (request[0] == 0) __nanosleep(500);
  __syncthreads();
  reply[threadIdx.x] = request[0];
}
extern "C" __global__ void ask(int* request, int value) { atomicExch(request, value); }
"""

fixed = begin()
device = Device()
device.set_current()
request, reply = cupy.zeros(1, cupy.int32), cupy.zeros(128, cupy.float32)
code = Program(SOURCE, code_type="c++", options=ProgramOptions(arch="sm_90")).compile("cubin")
serve, ask = code.get_kernel("serve"), code.get_kernel("ask")
serving = device.create_stream(options=StreamOptions(nonblocking=fixed))
one, many = LaunchConfig(grid=1, block=1), LaunchConfig(grid=1, block=128)
launch(device.default_stream, one, ask, request.data.ptr, cupy.int32(1))
device.sync()
launch(serving, many, serve, request.data.ptr, reply.data.ptr)  # both are loaded
device.sync()
launch(device.default_stream, one, ask, request.data.ptr, cupy.int32(0))
device.sync()

launch(serving, many, serve, request.data.ptr, reply.data.ptr)
launch(device.default_stream, one, ask, request.data.ptr, cupy.int32(1))
device.sync()
print("ended")
