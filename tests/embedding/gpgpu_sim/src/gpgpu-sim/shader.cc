#include "gpu-sim.h"

unsigned long long shader_core_ctx::fetch() {
  for (unsigned i = 0; i < m_config->max_warps_per_shader; ++i) {
    unsigned warp_id = (m_last_warp_fetched + 1 + i) % m_config->max_warps_per_shader;
    return m_warp[warp_id]->get_kernel_info()->get_streamID();
  }
  return 0;
}

unsigned shader_core_config::max_cta(const kernel_info_t &kernel) const {
  return n_thread_per_shader / static_cast<unsigned>(kernel.threads_per_cta());
}

void shader_core_ctx::register_cta_thread_exit(unsigned cta_num, kernel_info_t *) {
  --m_cta_status[cta_num];
}
