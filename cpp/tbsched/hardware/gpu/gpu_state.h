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
  // Returns whether every SM, or this one, shows no trace of its past: all such SMs have the same
  // room.
  bool untouched() const { return idle() && reserved_.empty() && !configuration_.keeps(); }
  bool untouched(const int32_t sm) const {
    return sms_[sm].idle() && configuration_.open(sm) && !is_reserved(sm) &&
           !configuration_.keeps(sm);
  }

  // Returns the bytes of shared memory to which the SM is configured; 0: the next block decides.
  int32_t configured(const int32_t sm) const { return configuration_.configured(sm); }
  // Returns the largest number of warps, and of registers, that is taken of one of an SM's
  // processing blocks.
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

  // Reserves SMs for a launch that waits for them: they have no room for other launches until
  // release_reserved().
  void reserve(const SmSet& sms) { reserved_.add(sms); }
  void release_reserved() { reserved_.clear(); }
  const SmSet& reserved() const { return reserved_; }

  // Returns how many blocks of this demand the SM has room for, and what limits that number.
  Room room(int32_t sm, const Demand& demand) const;
  // Returns all that limits the room of the SM: room().limiter, and each resource that alone allows
  // no more blocks.
  Refusals limiters(int32_t sm, const Demand& demand) const;
  // Returns all that refuses a block on the first SM on which `cause` does, whoever the SM is
  // reserved for; `cause` alone if there is none.
  Refusals limiters_where(Refusal cause, const Demand& demand) const;

  // Places blocks, which room() must have allowed. Returns what they hold.
  Footprint commit(int32_t sm, const Demand& demand, int32_t blocks);
  // Frees what blocks of this demand hold.
  void release(const Demand& demand, const Footprint& footprint);
  // Makes SMs that became idle since the last call forget their configuration. Until the first call
  // they forget it at once.
  void settle();

  // Returns the number of changes of the room of SMs so far. changed(k) returns the SMs of the k-th
  // change, for the last change_log_size() changes: one SM and those that share its shared-memory
  // configuration.
  uint64_t changes() const { return changes_; }
  size_t change_log_size() const { return change_log_.size(); }
  const SmRange& changed(const uint64_t k) const {
    return device_.sms_of_configuration[change_log_[k & (change_log_.size() - 1)]];
  }

 private:
  // Returns how many blocks of the demand fit an SM that the launch may use, and what limits that
  // number, as if the SM were reserved for none.
  Room room_if_free(int32_t sm, const Demand& demand) const;
  // Returns all that limits the room of an SM that the launch may use, as if it were reserved for
  // none. `tightest`: what room_if_free() returns for it.
  Refusals limiters_if_free(int32_t sm, const Demand& demand, const Room& tightest) const;

  bool is_reserved(const int32_t sm) const { return !reserved_.empty() && reserved_.has(sm); }
  // Notes that the room of this SM, and of those that share its configuration, has changed.
  void note_change(const int32_t sm) {
    change_log_[changes_++ & (change_log_.size() - 1)] = device_.configuration_of_sm[sm];
  }

  const Device& device_;
  std::vector<SmState> sms_;
  SharedMemoryConfiguration configuration_;
  LocalMemoryConfiguration local_memory_;
  SmSet reserved_;
  int64_t resident_blocks_ = 0;
  uint32_t next_owner_ = 0;
  uint64_t changes_ = 0;
  std::vector<int32_t> change_log_;  // configurations; a ring whose size is a power of two
};

}  // namespace tbsched
