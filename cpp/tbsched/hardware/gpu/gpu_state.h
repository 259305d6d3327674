// All SMs of a device, and what they share: shared-memory configurations and local memory.
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "tbsched/hardware/gpu/device.h"
#include "tbsched/hardware/gpu/local_memory.h"
#include "tbsched/hardware/gpu/shared_memory_configuration.h"
#include "tbsched/hardware/sm/demand.h"
#include "tbsched/hardware/sm/footprint.h"
#include "tbsched/hardware/sm/sm_state.h"
#include "tbsched/hardware/sm_set.h"

namespace tbsched {

class GpuState {
 public:
  // Starts idle. The device outlives it.
  explicit GpuState(const Device& device);

  const Device& device() const { return device_; }
  const DeviceSpec& spec() const { return device_.spec; }
  bool idle() const { return resident_blocks_ == 0; }
  // Returns the registers and shared memory of resident blocks, in bytes.
  int64_t bytes_taken() const {
    return std::transform_reduce(sms_.begin(), sms_.end(), int64_t{0}, std::plus(),
                                 [this](const SmState& sm) { return sm.bytes_taken(spec()); });
  }
  bool idle(const int32_t sm) const { return sms_[sm].idle(); }
  // Returns the shared memory of the SM's resident blocks, in bytes.
  int32_t shared_memory_taken(const int32_t sm) const { return sms_[sm].shared_memory_taken(); }
  // Returns whether SMs show no trace of their past: all such SMs have the same room.
  bool untouched() const {  // of every SM
    return idle() && held_.empty() && !configuration_.keeps();
  }
  bool untouched(const int32_t sm) const {
    return sms_[sm].idle() && configuration_.open(sm) && !held(sm) && !configuration_.keeps(sm);
  }

  // Returns the bytes of shared memory to which the SM is configured; 0: the next block decides.
  int32_t configured(const int32_t sm) const { return configuration_.configured(sm); }
  // Returns the most warps and registers that are taken of one of an SM's processing blocks.
  WarpsAndRegisters most_taken(const int32_t sm) const { return sms_[sm].most_taken(spec()); }
  // Returns the processing block of the next warp; -1 if warps do not go in strict turn.
  int32_t turn(const int32_t sm) const {
    return spec().mechanisms.strict_round_robin ? sms_[sm].turn() : -1;
  }
  // Returns where the shared memory of resident blocks lies; empty if it is pooled.
  std::vector<Extent> shared_memory_of(const Footprint& footprint) const {
    return sms_[footprint.sm].shared_memory_of(spec(), footprint.owner);
  }

  // Returns whether the demand needs more local memory than there is. Only an idle GPU gets more.
  bool grows_for(const Demand& demand) const { return local_memory_.grows_for(demand); }
  // Returns whether the GPU as a whole can take a block of this demand now.
  bool admits(const Demand& demand) const { return local_memory_.admits(demand, idle()); }

  // Holds SMs for a launch that waits for them: they have no room for other launches until
  // release_held().
  void hold(const SmSet& sms) { held_.add(sms); }
  void release_held() { held_.clear(); }
  const SmSet& held() const { return held_; }

  // Returns how many blocks of this demand the SM has room for, and what limits that number.
  Room room(int32_t sm, const Demand& demand) const;
  // Returns all that limits that number: room().limiter, and each resource that alone allows no
  // more.
  Refusals limiters(int32_t sm, const Demand& demand) const;
  // Returns all that refuses a block on the first SM on which `cause` does, whoever the SM is held
  // for; `cause` alone if there is none.
  Refusals limiters_where(Refusal cause, const Demand& demand) const;

  // Places blocks, which room() must have allowed.
  Footprint commit(int32_t sm, const Demand& demand, int32_t blocks);
  void release(const Demand& demand, const Footprint& footprint);
  // Makes SMs that became idle since the last call forget their configuration. Until the first call
  // they forget it at once.
  void settle();

  // Number of changes of the room of SMs. changed(k) has the SMs of the k-th change, for the last
  // change_log_size() changes: one SM and those that share its shared-memory configuration.
  uint64_t changes() const { return changes_; }
  size_t change_log_size() const { return change_log_.size(); }
  const SmRange& changed(const uint64_t k) const {
    return device_.sms_of_configuration[change_log_[k & (change_log_.size() - 1)]];
  }

 private:
  // As room() and limiters(), of an SM that the launch may use, whoever it is held for.
  Room own_room(int32_t sm, const Demand& demand) const;
  Refusals own_limiters(int32_t sm, const Demand& demand, const Room& tightest) const;

  bool held(const int32_t sm) const { return !held_.empty() && held_.has(sm); }
  void note_change(const int32_t sm) {
    change_log_[changes_++ & (change_log_.size() - 1)] = device_.configuration_of_sm[sm];
  }

  const Device& device_;
  std::vector<SmState> sms_;
  SharedMemoryConfiguration configuration_;
  LocalMemoryConfiguration local_memory_;
  SmSet held_;
  int64_t resident_blocks_ = 0;
  uint32_t next_owner_ = 0;
  uint64_t changes_ = 0;
  std::vector<int32_t> change_log_;  // configurations; a ring whose size is a power of two
};

}  // namespace tbsched
