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

unsigned shader_core_ctx::translate_local_memaddr(unsigned address, unsigned tid,
                                                  unsigned num_shader) {
  if (m_config->gpgpu_local_mem_map) {
    const unsigned block = kernel_padded_threads_per_cta;
    return address + block * (m_sid + num_shader * (tid / block)) + tid % block;
  }
  return address + m_config->n_thread_per_shader * m_sid + tid;
}
