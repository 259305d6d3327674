// Stands for the classes of GPGPU-Sim, with the members that the page names.
#pragma once

#include <cassert>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "adapter.h"

struct function_info {};
struct gpgpu_ptx_sim_info {
  int smem;
  int regs;
};
const gpgpu_ptx_sim_info *ptx_sim_kernel_info(const function_info *entry);

struct kernel_info_t {
  unsigned long long start_cycle;
  unsigned get_uid() const;
  size_t num_blocks() const;
  size_t threads_per_cta() const;
  function_info *entry();
  std::string name() const;
};
struct shader_core_ctx {
  unsigned issue_block2core(kernel_info_t &kernel);
};
struct simt_core_cluster {
  shader_core_ctx *core(unsigned cid);
};
struct shader_core_config {
  unsigned num_shader() const;
  unsigned sid_to_cluster(unsigned sid) const;
  unsigned sid_to_cid(unsigned sid) const;
};

class gpgpu_sim {
 public:
  gpgpu_sim();
  bool hit_max_cta_count() const;
  void issue_block2core();

 private:
  simt_core_cluster **m_cluster;
  const shader_core_config *m_shader_config;
  unsigned long long gpu_sim_cycle, gpu_tot_sim_cycle, m_total_cta_launched;
  std::vector<unsigned> m_executed_kernel_uids;
  std::vector<std::string> m_executed_kernel_names;

#include "gpgpu_sim_members.inc"
};
