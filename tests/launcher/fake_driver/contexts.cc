#include "contexts.h"

#include <algorithm>
#include <memory>

#include "accounts.h"
#include "calls.h"

namespace fake {

Contexts& Contexts::get() {
  static Contexts contexts;
  return contexts;
}

uint64_t Contexts::number_of(const CUcontext context) const {
  return context == primary() ? 0 : reinterpret_cast<const GreenContext*>(context)->number;
}

SmSet Contexts::sms_of(const CUcontext context) const {
  return context == primary() ? kAllSms : reinterpret_cast<const GreenContext*>(context)->sms;
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
  if (elsewhere && context != primary()) return CUDA_ERROR_INVALID_CONTEXT;
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
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  *context = Contexts::get().primary();
  Accounts::get().give("contexts", *context);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const bool last = Accounts::get().live("contexts") == 1;
  return take_back("contexts", &FakeGpu::get(), last);
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
