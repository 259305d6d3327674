// Stands for the classes of GPGPU-Sim, with the members that into_gpgpu_sim.py and its code name.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

#include "../abstract_hardware_model.h"
#include "gpu-cache.h"
#include "shader.h"

enum option_dtype { OPT_CSTR };
typedef class OptionParser *option_parser_t;
void option_parser_register(option_parser_t parser, const char *name, option_dtype type, void *to,
                            const char *about, const char *value);

class gpgpu_sim_config {
 public:
  void reg_options(option_parser_t opp);
};

class gpgpu_sim {
 public:
  gpgpu_sim();
  bool hit_max_cta_count() const;
  void launch(kernel_info_t *kinfo);
  void issue_block2core();
  unsigned threads_per_core() const;

 private:
  simt_core_cluster **m_cluster;
  const shader_core_config *m_shader_config;
  unsigned long long gpu_sim_cycle, gpu_tot_sim_cycle, m_total_cta_launched;
  std::vector<unsigned> m_executed_kernel_uids;
  std::vector<std::string> m_executed_kernel_names;
};
