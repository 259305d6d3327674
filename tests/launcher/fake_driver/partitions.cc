// Green contexts of the fake GPU. It deals its SMs one after the other, in order.
#include <cuda.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>

#include "accounts.h"
#include "calls.h"
#include "contexts.h"
#include "fake_gpu.h"

namespace {

using fake::Accounts;
using fake::Contexts;
using fake::entered;
using fake::FakeGpu;
using fake::FakeStream;
using fake::GreenContext;
using fake::SmSet;
using fake::take_back;

SmSet sms_of(const CUdevResource& resource) {
  SmSet sms = 0;
  std::memcpy(&sms, resource._internal_padding, sizeof(sms));
  return sms;
}

CUdevResource resource_of(const SmSet sms) {
  CUdevResource resource{};
  resource.type = sms != 0 ? CU_DEV_RESOURCE_TYPE_SM : CU_DEV_RESOURCE_TYPE_INVALID;
  resource.sm.smCount = static_cast<unsigned>(std::popcount(sms));
  std::memcpy(resource._internal_padding, &sms, sizeof(sms));
  return resource;
}

}  // namespace

extern "C" {

CUresult cuDeviceGetDevResource(CUdevice, CUdevResource* resource, CUdevResourceType) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  *resource = resource_of(fake::kAllSms);
  return CUDA_SUCCESS;
}
CUresult cuDevSmResourceSplitByCount(CUdevResource* groups, unsigned* count,
                                     const CUdevResource* input, CUdevResource* rest, unsigned,
                                     unsigned min_sms) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const unsigned size = std::max(min_sms, 1U);
  if (size > input->sm.smCount) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  const unsigned most = input->sm.smCount / size;
  *count = groups == nullptr ? most : std::min(*count, most);
  SmSet left = sms_of(*input);
  for (unsigned group = 0; groups != nullptr && group < *count; ++group) {
    SmSet sms = 0;
    for (unsigned taken = 0; taken < size; ++taken) {
      sms |= left & -left;
      left &= left - 1;
    }
    groups[group] = resource_of(sms);
  }
  *rest = resource_of(left);
  return CUDA_SUCCESS;
}
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* described, CUdevResource* resources,
                                   unsigned count) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  if (count != 1 || resources->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
  *described = reinterpret_cast<CUdevResourceDesc>(sms_of(*resources));
  return CUDA_SUCCESS;
}
CUresult cuGreenCtxCreate(CUgreenCtx* context, CUdevResourceDesc described, CUdevice,
                          unsigned flags) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  *context = Contexts::get().make(reinterpret_cast<SmSet>(described));
  FakeGpu::get().count("green_contexts");
  Accounts::get().give("green contexts", *context);
  return CUDA_SUCCESS;
}
CUresult cuGreenCtxDestroy(CUgreenCtx context) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const CUresult result = take_back("green contexts", context, true);
  if (result == CUDA_SUCCESS) Contexts::get().destroy(context);
  return result;
}
CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  *context = reinterpret_cast<CUcontext>(green);
  return CUDA_SUCCESS;
}
CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx context, unsigned flags,
                                int priority) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  auto fake = std::make_unique<FakeStream>();
  fake->priority = priority;
  fake->context = reinterpret_cast<const GreenContext*>(context)->number;
  fake->sms = reinterpret_cast<const GreenContext*>(context)->sms;
  FakeGpu::get().count("streams");
  *stream = reinterpret_cast<CUstream>(fake.release());
  Accounts::get().give("streams", *stream);
  return CUDA_SUCCESS;
}

}  // extern "C"
