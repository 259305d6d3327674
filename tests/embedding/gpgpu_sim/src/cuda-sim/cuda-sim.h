#pragma once

#include "../abstract_hardware_model.h"

const gpgpu_ptx_sim_info *ptx_sim_kernel_info(const function_info *entry);
