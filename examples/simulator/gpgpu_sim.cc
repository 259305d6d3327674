// What GPGPU-Sim's src/gpgpu-sim/gpu-sim.cc gets: the page "simulators" says where.

// A kernel's launch latency is over.
void gpgpu_sim::arrive(kernel_info_t *kernel) {
  const gpgpu_ptx_sim_info *needs = ptx_sim_kernel_info(kernel->entry());
  const int number = static_cast<int>(kernel->get_uid());
  m_arrived[number] = kernel;
  m_adapter->launch(
      number, {static_cast<int>(kernel->num_blocks()), static_cast<int>(kernel->threads_per_cta()),
               needs->regs, needs->smem});
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
  return cluster->core(m_shader_config->sid_to_cid(sid))->issue_block2core(*kernel);
}

// In place of the one that is there.
void gpgpu_sim::issue_block2core() {
  if (!hit_max_cta_count()) m_adapter->distribute();
}
