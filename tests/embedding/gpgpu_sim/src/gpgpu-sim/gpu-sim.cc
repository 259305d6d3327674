#include "gpu-sim.h"

#include <algorithm>

void gpgpu_sim_config::reg_options(option_parser_t opp) {
  option_parser_register(opp, "-other", OPT_CSTR, nullptr, "a } in a string", "0");
}

gpgpu_sim::gpgpu_sim() : m_cluster(nullptr), gpu_sim_cycle(0) {
  // a { in a comment
}

void gpgpu_sim::launch(kernel_info_t *kinfo) {
  if (kinfo) {
    ++m_total_cta_launched;
  }
}

void gpgpu_sim::issue_block2core() { m_cluster[0]->issue_block2core(); }

unsigned gpgpu_sim::threads_per_core() const { return m_shader_config->n_thread_per_shader; }

int shader_core_ctx::find_available_hwtid(unsigned int cta_size, bool occupy) {
  return occupy ? static_cast<int>(cta_size) : -1;
}

void shader_core_ctx::issue_block2core(kernel_info_t &kernel) {
  unsigned free_cta_hw_id = 0;
  unsigned ctaid = static_cast<unsigned>(kernel.num_blocks());
  m_cta_status[free_cta_hw_id] = ctaid;
}
