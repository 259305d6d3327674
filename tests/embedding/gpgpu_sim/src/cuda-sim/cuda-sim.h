#pragma once

#include "../abstract_hardware_model.h"

const gpgpu_ptx_sim_info *ptx_sim_kernel_info(const function_info *entry);

typedef unsigned long long addr_t;
char whichspace(addr_t addr);  // 'l' local, 's' shared, 'g' global
addr_t shared_to_generic(unsigned smid, addr_t addr);
bool isspace_shared(unsigned smid, addr_t addr);
addr_t generic_to_shared(unsigned smid, addr_t addr);
addr_t local_to_generic(unsigned smid, unsigned hwtid, addr_t addr);
bool isspace_local(unsigned smid, unsigned hwtid, addr_t addr);
addr_t generic_to_local(unsigned smid, unsigned hwtid, addr_t addr);
