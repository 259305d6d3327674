// 400 layers, each launched with programmatic dependent launch: its blocks come while the layer
// before runs, and wait at the dependency of the grid. A layer takes tens of milliseconds.
#include "begin.cuh"

__global__ void layer(const float* in, float* out, int steps) {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  float x = in[threadIdx.x];
  for (int step = 0; step < steps; ++step) x = x * 0.9999f + 0.001f;
  out[blockIdx.x * 256 + threadIdx.x] = x;
}

int main(int argc, char** argv) {
  begin(argc, argv);
  float* layers[] = {zeros<float>(132 * 256), zeros<float>(132 * 256)};
  load(layer);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(132);
  config.blockDim = dim3(256);
  config.stream = stream_of_its_own();
  config.attrs = &attribute;
  config.numAttrs = 1;
  for (int i = 0; i < 400; ++i)
    CHECK(cudaLaunchKernelEx(&config, layer, (const float*)layers[i % 2], layers[1 - i % 2],
                             25000000));
  return finish();
}
