#include "contexts.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "accounts.h"
#include "calls.h"

namespace fake {

Contexts& Contexts::get() {
  static Contexts contexts;
  return contexts;
}

FakeGpu& FakeGpu::of(const CUdevice device) {
  static std::array<FakeGpu, kMostGpus> gpus;
  return gpus.at(static_cast<size_t>(device));
}

FakeGpu& FakeGpu::get() {
  CUcontext const context = Contexts::get().current();
  const bool is_second = context == Contexts::primary(1);
  return of(is_second ? 1 : 0);
}

bool Contexts::is_primary(const CUcontext context) {
  return context == primary(0) || context == primary(1);
}

uint64_t Contexts::number_of(const CUcontext context) const {
  return is_primary(context) ? 0 : reinterpret_cast<const GreenContext*>(context)->number;
}

SmSet Contexts::sms_of(const CUcontext context) const {
  return is_primary(context) ? kAllSms : reinterpret_cast<const GreenContext*>(context)->sms;
}

CUgreenCtx Contexts::make(const SmSet sms) {
  const std::scoped_lock lock(mutex_);
  numbers_.insert(++made_);
  return reinterpret_cast<CUgreenCtx>(std::make_unique<GreenContext>(sms, made_).release());
}

void Contexts::destroy(const CUgreenCtx green) {
  const std::scoped_lock lock(mutex_);
  const std::unique_ptr<GreenContext> owned(reinterpret_cast<GreenContext*>(green));
  numbers_.erase(owned->number);
  for (auto& [thread, contexts] : stacks_) {
    std::erase(contexts, reinterpret_cast<CUcontext>(green));
  }
}

bool Contexts::exists(const uint64_t number) const {
  const std::scoped_lock lock(mutex_);
  return numbers_.contains(number);
}

CUresult Contexts::push(const CUcontext context) {
  const std::scoped_lock lock(mutex_);
  const bool elsewhere = std::ranges::any_of(stacks_, [&](const auto& entry) {
    return entry.first != std::this_thread::get_id() && !entry.second.empty() &&
           entry.second.back() == context;
  });
  if (elsewhere && !is_primary(context)) return CUDA_ERROR_INVALID_CONTEXT;
  stack().push_back(context);
  return CUDA_SUCCESS;
}

CUcontext Contexts::pop() {
  const std::scoped_lock lock(mutex_);
  if (stack().empty()) return nullptr;
  CUcontext const popped = stack().back();
  stack().pop_back();
  return popped;
}

CUcontext Contexts::current() const {
  const std::scoped_lock lock(mutex_);
  return stack().empty() ? nullptr : stack().back();
}

std::vector<CUcontext>& Contexts::stack() const { return stacks_[std::this_thread::get_id()]; }

}  // namespace fake

using fake::Accounts;
using fake::Contexts;
using fake::entered;
using fake::FakeGpu;
using fake::take_back;

extern "C" {

CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  *flags = 0;
  *active = 0;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  *context = Contexts::primary(device);
  Accounts::get().give("contexts", *context);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const bool last = Accounts::get().live("contexts") == 1;
  return take_back("contexts", &FakeGpu::of(device), last);
}
CUresult cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  *can = std::getenv("FAKE_NO_PEERS") == nullptr ? 1 : 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice, CUdevice) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  if (attribute != CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED) return CUDA_ERROR_INVALID_VALUE;
  *value = std::getenv("FAKE_NO_PEER_ATOMICS") == nullptr ? 1 : 0;
  return CUDA_SUCCESS;
}
CUresult cuCtxEnablePeerAccess(CUcontext, unsigned) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  FakeGpu& gpu = FakeGpu::get();
  gpu.count("peers");
  return gpu.setting("peers") == 1 ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const CUresult pushed = Contexts::get().push(context);
  if (pushed == CUDA_SUCCESS) Accounts::get().give("current contexts", context);
  return pushed;
}
CUresult cuCtxPopCurrent_v2(CUcontext*) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  return take_back("current contexts", Contexts::get().pop(), false);
}
CUresult cuCtxSynchronize() {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  FakeGpu::get().synchronize();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetStreamPriorityRange(int* least, int* most) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  *least = 0;
  *most = -5;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetLimit(size_t* value, CUlimit) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  *value = static_cast<size_t>(FakeGpu::get().setting("local_memory"));
  return CUDA_SUCCESS;
}
CUresult cuCtxSetLimit(CUlimit, size_t value) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  FakeGpu::get().set("local_memory", static_cast<int64_t>(value));
  return CUDA_SUCCESS;
}
}  // extern "C"
