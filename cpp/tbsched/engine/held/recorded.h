// A race that went as somebody recorded it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tbsched/engine/held/race.h"

namespace tbsched {

// A recording tells where blocks went, not when blocks left. So a block leaves its SM once a block
// goes there that needs the room, and the others leave after that.
class Recorded final : public Race {
 public:
  // `final_smid`: of each launch where its blocks were after all events.
  explicit Recorded(std::vector<std::span<const int32_t>> final_smid)
      : final_smid_(std::move(final_smid)) {}

  void tell(const Leaver& leaver, bool) override {
    leavers_.push_back(leaver);
    over_ = false;
  }
  std::vector<Leaver> next() override;
  bool over() const override { return over_; }
  void placed(size_t) override { moved_ = true; }
  std::optional<std::span<const int32_t>> where(int32_t launch, int32_t first_block,
                                                int32_t blocks) override;
  std::optional<Leaver> take(int32_t sm) override;

 private:
  std::vector<std::span<const int32_t>> final_smid_;
  std::vector<Leaver> leavers_;
  bool moved_ = true;  // since next()
  bool over_ = true;   // also nothing more that was recorded can happen
};

}  // namespace tbsched
