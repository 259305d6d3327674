#include "gpu-sim.h"

unsigned long long shader_core_ctx::fetch() {
  for (unsigned i = 0; i < m_config->n_thread_per_shader; ++i) {
    unsigned warp_id = (m_last_warp_fetched + 1 + i) % WARP_PER_CTA_MAX;
    return m_warp[warp_id]->get_kernel_info()->get_streamID();
  }
  return 0;
}

void shader_core_ctx::register_cta_thread_exit(unsigned cta_num, kernel_info_t *) {
  --m_cta_status[cta_num];
}
