#include "launcher/driver/driver.h"

#include <cstdlib>

namespace tbsched::cuda {
namespace {

// Returns the path of the driver: what TBSCHED_LIBCUDA names, else its usual name.
const char* driver_path() {
  const char* const chosen = std::getenv("TBSCHED_LIBCUDA");
  return chosen != nullptr && *chosen != '\0' ? chosen : "libcuda.so.1";
}

}  // namespace

const Driver& Driver::get() {
  static const Driver driver(driver_path());
  return driver;
}

Driver::Driver(const char* const path) : library(path) {
  if (!library) {
    throw NoGpu(std::string("looked for the CUDA driver, ") + path + ": " + library.error() +
                "; TBSCHED_LIBCUDA may name another place");
  }
  // With lazy loading the first launch of a kernel can wait for the others to end; with few
  // connections streams share a hardware queue. What the user has set stays.
  setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
  if (const CUresult result = init.code(0); result != CUDA_SUCCESS) {
    throw NoGpu(std::string("the CUDA driver, ") + path + ", finds no usable GPU: cuInit: " +
                name_of(result) + " (" + describe(result) + ")");
  }
}

std::string Driver::name_of(const CUresult result) const {
  const char* text = nullptr;
  const bool known = get_error_name.code(result, &text) == CUDA_SUCCESS && text != nullptr;
  return known ? text : "CUresult " + std::to_string(result);
}

std::string Driver::describe(const CUresult result) const {
  const char* text = nullptr;
  const bool known = get_error_string.code(result, &text) == CUDA_SUCCESS && text != nullptr;
  return known ? text : "";
}

}  // namespace tbsched::cuda
