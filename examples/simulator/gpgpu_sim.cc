// A file of GPGPU-Sim's src/gpgpu-sim: into_gpgpu_sim.py puts it there.
#include "gpgpu_sim.h"

#include <mutex>
#include <sstream>
#include <stdexcept>

#include "../cuda-sim/cuda-sim.h"
#include "gpu-sim.h"

namespace {

// Values of the options.
struct {
  char *policy, *device, *board, *launches, *blocks;
} tbsched_values;

// Priorities of the streams that the host has made. The host and the simulation are two threads.
std::map<unsigned, int> tbsched_priorities;
std::mutex tbsched_lock;

[[noreturn]] void tbsched_refuse(const std::string &why) {
  fprintf(stderr, "GPGPU-Sim, tbsched: %s\n", why.c_str());
  exit(2);
}

// What a simulator has no place for: cluster, priority and carveout of each launch, in the order of
// the program. A line is `CLUSTER PRIORITY CARVEOUT`; a carveout of -1 is the driver's choice.
void tbsched_read_launch(unsigned uid, Adapter::Kernel *kernel) {
  std::ifstream file(tbsched_values.launches);
  if (!file) tbsched_refuse(std::string("-tbsched_launches: no file ") + tbsched_values.launches);
  std::string line;
  for (unsigned k = 0; k < uid; ++k) {
    if (!std::getline(file, line))
      tbsched_refuse("-tbsched_launches: no line for launch " + std::to_string(uid));
  }
  std::istringstream words(line);
  if (!(words >> kernel->cluster >> kernel->priority >> kernel->carveout))
    tbsched_refuse("-tbsched_launches: three numbers are needed, not '" + line + "'");
}

}  // namespace

void tbsched_options(OptionParser *parser) {
  option_parser_register(parser, "-tbsched_policy", OPT_CSTR, &tbsched_values.policy,
                         "who distributes thread blocks: off (GPGPU-Sim), device (tbsched, as the "
                         "device does), or a policy of tbsched",
                         "off");
  option_parser_register(parser, "-tbsched_device", OPT_CSTR, &tbsched_values.device,
                         "device of tbsched: a name, or a file that ends in .toml", "h200");
  option_parser_register(parser, "-tbsched_board", OPT_CSTR, &tbsched_values.board,
                         "device file with the map of the board; none: the device's", "none");
  option_parser_register(parser, "-tbsched_launches", OPT_CSTR, &tbsched_values.launches,
                         "file with cluster, priority and carveout of each launch", "none");
  option_parser_register(parser, "-tbsched_blocks", OPT_CSTR, &tbsched_values.blocks,
                         "file to write: kernel, block, SM, first and last cycle of each block",
                         "none");
}

bool tbsched_distributes() { return std::string(tbsched_values.policy) != "off"; }

void tbsched_stream(unsigned stream, int priority) {
  const std::lock_guard<std::mutex> lock(tbsched_lock);
  tbsched_priorities[stream] = priority;
}

// At the end of the constructor.
void gpgpu_sim::make_adapter() {
  const std::string policy = tbsched_values.policy, board = tbsched_values.board;
  if (std::string(tbsched_values.blocks) != "none") m_blocks.open(tbsched_values.blocks);
  if (!tbsched_distributes()) return;
  if (!m_shader_config->gpgpu_concurrent_kernel_sm)
    tbsched_refuse("-gpgpu_concurrent_kernel_sm must be 1");
  Adapter::Options options;
  if (policy != "device") options.policy = policy;
  options.device = tbsched_values.device;
  if (board != "none") options.board = board;
  try {
    m_adapter.reset(new Adapter(
        [this](int sid, int number, int block) { return start_block(sid, number, block); },
        options));
  } catch (const std::invalid_argument &error) {
    tbsched_refuse(error.what());
  }
  if (static_cast<int>(m_shader_config->num_shader()) != m_adapter->sms())
    tbsched_refuse("-gpgpu_n_clusters times -gpgpu_n_cores_per_cluster is " +
                   std::to_string(m_shader_config->num_shader()) + ", the device has " +
                   std::to_string(m_adapter->sms()) + " SMs");
}

// A kernel's launch latency is over.
void gpgpu_sim::arrive(kernel_info_t *kernel) {
  const gpgpu_ptx_sim_info *needs = ptx_sim_kernel_info(kernel->entry());
  const unsigned uid = kernel->get_uid();
  Adapter::Kernel asked;
  asked.blocks = static_cast<int>(kernel->num_blocks());
  asked.threads = static_cast<int>(kernel->threads_per_cta());
  asked.registers = needs->regs;
  asked.shared_memory = needs->smem;
  if (m_streams.count(uid)) {
    const std::lock_guard<std::mutex> lock(tbsched_lock);
    const std::map<unsigned, int>::const_iterator found = tbsched_priorities.find(m_streams[uid]);
    if (found != tbsched_priorities.end()) asked.priority = found->second;
  }
  if (std::string(tbsched_values.launches) != "none") tbsched_read_launch(uid, &asked);
  m_shader_config->max_cta(*kernel);  // sets the size of L1
  m_arrived[static_cast<int>(uid)] = kernel;
  try {
    m_adapter->launch(static_cast<int>(uid), asked);
  } catch (const std::invalid_argument &error) {
    tbsched_refuse("kernel " + kernel->name() + ": " + error.what());
  }
}

// The adapter starts a block; returns the slot that the core chose.
int gpgpu_sim::start_block(int sid, int number, int block) {
  kernel_info_t *kernel = m_arrived.at(number);
  if (block == 0) {
    kernel->start_cycle = gpu_sim_cycle + gpu_tot_sim_cycle;
    m_executed_kernel_uids.push_back(number);
    m_executed_kernel_names.push_back(kernel->name());
  }
  ++m_total_cta_launched;
  simt_core_cluster *cluster = m_cluster[m_shader_config->sid_to_cluster(sid)];
  cluster->core(m_shader_config->sid_to_cid(sid))->issue_block2core(*kernel);
  return m_slot;
}

// In place of issue_block2core.
void gpgpu_sim::distribute_blocks() {
  for (size_t k = 0; k < m_coming.size();) {
    if (m_coming[k]->m_kernel_TB_latency) {
      ++k;
    } else {
      arrive(m_coming[k]);
      m_coming.erase(m_coming.begin() + k);
    }
  }
  if (!hit_max_cta_count()) m_adapter->distribute();
}

void gpgpu_sim::block_started(unsigned sid, unsigned slot, const kernel_info_t &kernel,
                              unsigned block) {
  m_slot = static_cast<int>(slot);
  if (m_blocks.is_open())
    m_run[std::make_pair(sid, slot)] = {kernel.get_uid(), block, gpu_sim_cycle + gpu_tot_sim_cycle};
}

void gpgpu_sim::block_ended(unsigned sid, unsigned slot) {
  if (m_adapter) m_adapter->leave(static_cast<int>(sid), static_cast<int>(slot));
  if (!m_blocks.is_open()) return;
  const block_run run = m_run.at(std::make_pair(sid, slot));
  m_blocks << run.kernel << ' ' << run.block << ' ' << sid << ' ' << run.start << ' '
           << gpu_sim_cycle + gpu_tot_sim_cycle << std::endl;
}
