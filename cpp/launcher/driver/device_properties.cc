#include "launcher/driver/device_properties.h"

#include <array>
#include <string_view>

namespace tbsched::cuda {
namespace {

// Returns a UUID as nvidia-smi shows it.
std::string uuid_text(const CUuuid& uuid) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "GPU-";
  for (size_t index = 0; index < sizeof(uuid.bytes); ++index) {
    if (index == 4 || index == 6 || index == 8 || index == 10) text += '-';
    const auto byte = static_cast<uint8_t>(uuid.bytes[index]);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace

DeviceProperties query_properties(const Driver& driver, const CUdevice device) {
  const auto attribute = [&](const CUdevice_attribute which) {
    int value = 0;
    driver.device_get_attribute(&value, which, device);
    return value;
  };
  DeviceProperties properties;
  std::array<char, 256> text{};
  driver.device_get_name(text.data(), static_cast<int>(text.size()), device);
  properties.name = text.data();
  driver.device_get_pci_bus_id(text.data(), static_cast<int>(text.size()), device);
  properties.pci_bus_id = text.data();
  CUuuid uuid{};
  driver.device_get_uuid(&uuid, device);
  properties.uuid = uuid_text(uuid);
  driver.driver_get_version(&properties.driver_api);
  properties.architecture = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                            attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  properties.sms = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  properties.threads_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  properties.registers_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  properties.shared_memory_per_block =
      attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  properties.blocks_per_grid = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  properties.blocks_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  properties.threads_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  properties.registers_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  properties.shared_memory_per_sm =
      attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  properties.shared_memory_reserve =
      attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  properties.copy_engines = attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  properties.clusters = attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) != 0;
  return properties;
}

}  // namespace tbsched::cuda
