// Device files (docs/reference/devices.md): TOML, each value with its provenance. Built with
// TBSCHED_TOML.
#pragma once

#include <filesystem>

#include "tbsched/hardware/device_spec.h"

namespace tbsched {

// Reads the device that the file describes, named as the file without ".toml". What it extends by
// name is a file in the folder `devices`. Throws std::invalid_argument, which names the file and
// the key, if there is no such file, or if it does not describe a device.
DeviceSpec read_device(const std::filesystem::path& file,
                       const std::filesystem::path& devices = {});

}  // namespace tbsched
