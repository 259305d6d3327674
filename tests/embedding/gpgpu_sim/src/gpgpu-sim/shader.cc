#include "gpu-sim.h"

unsigned long long shader_core_ctx::fetch() {
  unsigned warp_id = 0;
  return m_warp[warp_id]->get_kernel_info()->get_streamID();
}

void shader_core_ctx::register_cta_thread_exit(unsigned cta_num, kernel_info_t *) {
  --m_cta_status[cta_num];
}
