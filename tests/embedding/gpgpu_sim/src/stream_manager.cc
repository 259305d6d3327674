#include "gpgpu-sim/gpu-sim.h"

enum stream_operation_type { stream_no_op, stream_kernel_launch };

struct CUstream_st {
  unsigned get_uid() const;
};

class stream_operation {
 public:
  bool do_operation(gpgpu_sim *gpu);

 private:
  stream_operation_type m_type;
  kernel_info_t *m_kernel;
  CUstream_st *m_stream;
};

bool stream_operation::do_operation(gpgpu_sim *gpu) { return gpu != nullptr; }
