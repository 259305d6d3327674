// A race that goes as it was recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "tbsched/engine/held/race.h"

namespace tbsched {

// A recording has where blocks went, not when blocks left. A seed for each SM determines the rest.
// With seed 0 the oldest block leaves when another one goes to its SM and needs the room; the
// others leave after that.
class Recorded final : public Race {
 public:
  // `final_smid`: the SMs of each launch's blocks after all events.
  Recorded(std::vector<std::span<const int32_t>> final_smid, std::span<const uint32_t> seed_of_sm)
      : final_smid_(std::move(final_smid)),
        seeds_(seed_of_sm),
        random_of_sm_(seed_of_sm.begin(), seed_of_sm.end()) {}

  void release_blocks(std::span<const LeavingBlock> leavers, bool have_started) override;
  std::vector<LeavingBlock> take_exits() override;
  bool is_over() const override { return over_; }
  void note_placed(std::span<const int32_t>, int32_t) override { moved_ = !over_; }
  std::optional<std::span<const int32_t>> sms_of_next(int32_t launch, int32_t first_block,
                                                      int32_t blocks) override;
  std::optional<LeavingBlock> take_exit_from(int32_t sm) override;
  // Returns whether the seeds have determined anything.
  bool used_seeds() const { return used_seeds_; }

 private:
  // Returns a random number below the limit from the SM's generator; 0 if its seed is 0.
  size_t below(size_t limit, int32_t sm);

  std::vector<std::span<const int32_t>> final_smid_;
  std::span<const uint32_t> seeds_;
  std::vector<std::minstd_rand> random_of_sm_;
  std::vector<LeavingBlock> leavers_;  // that may leave
  bool moved_ = false;                 // whether blocks were released or placed since take_exits()
  bool used_seeds_ = false;
  bool over_ = true;  // also if nothing more that was recorded can happen
};

}  // namespace tbsched
