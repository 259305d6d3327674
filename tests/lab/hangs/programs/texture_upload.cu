// A renderer waits for its texture in a stream. The texture goes up to an array by a copy that gets
// no stream, and a kernel of the uploader's stream builds its first level.
#include "begin.cuh"

constexpr int kSide = 256;

__global__ void render(const volatile int* levels, const float* mip, float* image) {
  if (threadIdx.x == 0)
    while (*levels == 0) __nanosleep(400);
  __syncthreads();
  image[blockIdx.x * 256 + threadIdx.x] = __ldcg(mip + threadIdx.x);
}

__global__ void build(cudaTextureObject_t texture, float* mip, int* levels, int count) {
  mip[threadIdx.x] = tex2D<float>(texture, threadIdx.x, threadIdx.x);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(levels, count);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* levels = zeros<int>(1);
  auto *mip = zeros<float>(256), *image = zeros<float>(64 * 256);
  auto* pixels = shared_with_host<float>(kSide * kSide);
  cudaArray_t array;
  const auto format = cudaCreateChannelDesc<float>();
  CHECK(cudaMallocArray(&array, &format, kSide, kSide));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc how = {};
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  load(render);
  cudaStream_t drawing, uploading;
  CHECK(cudaStreamCreate(&drawing));
  CHECK(cudaStreamCreate(&uploading));
  const auto upload = [&](cudaStream_t stream) {
    const size_t row = kSide * sizeof(float);
    CHECK(cudaMemcpy2DToArrayAsync(array, 0, 0, pixels, row, row, kSide, cudaMemcpyHostToDevice,
                                   stream));
  };
  upload(nullptr);
  build<<<1, 256, 0, uploading>>>(texture, mip, levels, 0);
  CHECK(cudaDeviceSynchronize());

  render<<<64, 256, 0, drawing>>>(levels, mip, image);
  upload(fixed ? uploading : nullptr);
  build<<<1, 256, 0, uploading>>>(texture, mip, levels, 1);
  CHECK(cudaGetLastError());
  return finish();
}
