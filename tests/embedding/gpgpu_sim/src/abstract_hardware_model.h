#pragma once

#include <cstddef>
#include <string>
#include <vector>

const unsigned MAX_STREAMING_MULTIPROCESSORS = 80;
const unsigned MAX_THREAD_PER_SM = 1 << 11;

struct function_info {};
struct gpgpu_ptx_sim_info {
  int smem;
  int regs;
};

struct kernel_info_t {
  unsigned long long start_cycle;
  unsigned m_kernel_TB_latency;
  unsigned get_uid() const;
  unsigned long long get_streamID() const;
  size_t num_blocks() const;
  size_t threads_per_cta() const;
  function_info *entry();
  std::string name() const;
};
