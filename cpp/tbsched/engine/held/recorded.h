// A race that went as somebody recorded it.
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

// A recording tells where blocks went, not when blocks left. What is left open is up to a seed for
// each SM. With seed 0 a block leaves once another one goes to its SM that needs the room, the
// oldest first, and the others leave after that.
class Recorded final : public Race {
 public:
  // `final_smid`: of each launch where its blocks were after all events.
  Recorded(std::vector<std::span<const int32_t>> final_smid, std::span<const uint32_t> seed_of_sm)
      : final_smid_(std::move(final_smid)),
        seeds_(seed_of_sm),
        random_of_sm_(seed_of_sm.begin(), seed_of_sm.end()) {}

  void tell(std::span<const Leaver> leavers, bool have_started) override;
  std::vector<Leaver> next() override;
  bool over() const override { return over_; }
  void placed(std::span<const int32_t>, int32_t) override { moved_ = true; }
  std::optional<std::span<const int32_t>> where(int32_t launch, int32_t first_block,
                                                int32_t blocks) override;
  std::optional<Leaver> take(int32_t sm) override;
  // Whether the seeds have decided anything.
  bool asked_chance() const { return asked_chance_; }

 private:
  size_t below(size_t limit, int32_t sm);

  std::vector<std::span<const int32_t>> final_smid_;
  std::span<const uint32_t> seeds_;
  std::vector<std::minstd_rand> random_of_sm_;
  std::vector<Leaver> leavers_;
  bool moved_ = false;  // since next()
  bool asked_chance_ = false;
  bool over_ = true;  // also nothing more that was recorded can happen
};

}  // namespace tbsched
