#pragma once

#include <bitset>
#include <cstdio>
#include <cstdlib>
#include <map>

const unsigned WARP_PER_CTA_MAX = 64;

class gpgpu_sim;

class shader_core_config {
 public:
  void init(const char *pipeline) {
    std::sscanf(pipeline, "%u:%u", &n_thread_per_shader, &warp_size);
    if (n_thread_per_shader > MAX_THREAD_PER_SM) std::abort();
    max_warps_per_shader = n_thread_per_shader / warp_size;
  }
  bool gpgpu_concurrent_kernel_sm, gpgpu_local_mem_map;
  unsigned warp_size, n_thread_per_shader, max_warps_per_shader;
  unsigned num_shader() const;
  unsigned sid_to_cluster(unsigned sid) const;
  unsigned sid_to_cid(unsigned sid) const;
  unsigned max_cta(const kernel_info_t &kernel) const;
};

struct shd_warp_t {
  std::bitset<32> m_active_threads;
  const kernel_info_t *get_kernel_info() const;
  unsigned long long get_streamID() const;
};

class shader_core_ctx {
 public:
  void issue_block2core(kernel_info_t &kernel);
  int find_available_hwtid(unsigned int cta_size, bool occupy);
  void register_cta_thread_exit(unsigned cta_num, kernel_info_t *kernel);
  unsigned long long fetch();
  unsigned translate_local_memaddr(unsigned address, unsigned tid, unsigned num_shader);

 protected:
  gpgpu_sim *m_gpu;
  unsigned m_sid, m_last_warp_fetched;
  const shader_core_config *m_config;
  shd_warp_t *m_warp[WARP_PER_CTA_MAX];
  std::map<unsigned, unsigned> m_cta_status;
  unsigned kernel_padded_threads_per_cta;
  std::bitset<MAX_THREAD_PER_SM> m_active_threads;
  std::bitset<MAX_THREAD_PER_SM> m_occupied_hwtid;
};

class simt_core_cluster {
 public:
  unsigned issue_block2core();

 protected:
  shader_core_ctx **m_core;
};
