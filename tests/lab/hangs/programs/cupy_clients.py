"""CuPy: 16 threads have a stream each for two kernels, and wait for what the main thread starts."""

import threading

import cupy
from begin import begin

SOURCE = r"""
extern "C" __global__ void subscribe(volatile int* topic, float* inbox) {
  if (threadIdx.x == 0) while (topic[0] == 0) __nanosleep(200);
  __syncthreads();
  inbox[threadIdx.x] = 1;
}
extern "C" __global__ void unpack(float* inbox) { inbox[threadIdx.x] *= 2.0f; }
extern "C" __global__ void broadcast(int* topic) { if (threadIdx.x == 0) atomicExch(topic, 1); }
"""

fixed = begin()
module = cupy.RawModule(code=SOURCE)
subscribe, unpack, broadcast = map(module.get_function, ("subscribe", "unpack", "broadcast"))
topic, inboxes = cupy.zeros(1, cupy.int32), cupy.zeros((16, 128), cupy.float32)
broadcast((1,), (32,), (topic,))  # everything is loaded
subscribe((1,), (128,), (topic, inboxes[0]))
unpack((1,), (128,), (inboxes[0],))
topic.fill(0)
cupy.cuda.Device().synchronize()
streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(17)]


def client(number):
    cupy.cuda.Device(0).use()
    with streams[number]:
        subscribe((1,), (128,), (topic, inboxes[number]))
        unpack((1,), (128,), (inboxes[number],))


def start():
    with streams[16]:
        broadcast((1,), (32,), (topic,))


if fixed:
    start()
clients = [threading.Thread(target=client, args=(number,)) for number in range(16)]
for each in clients:
    each.start()
for each in clients:
    each.join()
if not fixed:
    start()
cupy.cuda.Device().synchronize()
print("ended")
