// Whether a launch finds room, GPC by GPC; and if not, what may leave it too little.
//
// How far a launch has come in its order of places says what it has taken in a GPC, whatever is in
// the others. So what blocks that leave do to later launches is looked at in each GPC by itself.
// Only the sizes of the launches tie the GPCs together.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tbsched/engine/together/demands.h"
#include "tbsched/engine/together/gpcs/asked.h"
#include "tbsched/engine/together/gpcs/asked_sms.h"
#include "tbsched/engine/together/gpcs/columns.h"
#include "tbsched/engine/together/gpcs/places.h"
#include "tbsched/engine/together/gpcs/prices.h"
#include "tbsched/engine/together/gpcs/sm/one_sm.h"
#include "tbsched/engine/together/gpcs/sm/sm_states.h"
#include "tbsched/engine/together/held_up.h"
#include "tbsched/engine/together/sm_kinds.h"
#include "tbsched/policy/model.h"

namespace tbsched {

// The launches that are resident, in the order in which they came. No block has left. Of some
// launches blocks may wait.
struct Arrived {
  std::vector<int32_t> order;
  std::vector<int32_t> waiting;
};

// It holds where FullSmsProof does, see there.
class EachGpc {
 public:
  // All outlive it. `known`: one for each of Gaps, for these demands and outsiders. Without effort
  // left it proves nothing.
  EachGpc(const Model& model, const std::vector<Launch>& launches, const Demands& demands,
          const std::vector<int32_t>& group, const Resident& resident, const Arrived& arrived,
          std::array<SmStates, 2>& known, Effort& effort);
  ~EachGpc();

  // Whether the last launch surely finds room, if these come before it, one after the other;
  // whatever blocks of outsiders leave, and when.
  bool finds_room(const std::vector<Comer>& coming, int32_t last);
  // Of each launch that may not, a history in which it may wait: to know, that must be played.
  const std::vector<std::vector<Arrival>>& doubtful() const { return doubtful_; }

 private:
  // What came of it when columns were looked at. In vain: with what these may cost now.
  struct Looked {
    enum class Result : uint8_t { at_too_many, in_vain, proves };
    Result result = Result::at_too_many;
    Allowance allowance;
  };
  // What is kept while the places of one question change.
  struct Known;
  // Of each that waits, which of the launches that come, and of the last one, it holds up.
  using Held = std::vector<std::vector<bool>>;

  bool is_counted(const std::vector<Comer>& coming, int32_t last) const;
  void ask(const std::vector<Comer>& coming, int32_t last);
  void add_entering(int32_t launch, int32_t waiting, size_t from, size_t place);
  bool finds_room_while_some_wait(Held held);
  bool come_later(const Entering& own, const std::vector<bool>& held, size_t stage) const;
  bool finds_room_with(Gaps gaps);
  bool finds_room_in_ranges(Prices prices);
  bool finds_room_in_halves(size_t launch, const Prices& prices);
  size_t widest(const Prices& prices) const;
  bool is_proved(Prices& prices);
  const std::optional<Allowance>& unless_shares_fit(const std::vector<Gpc>& gpcs,
                                                    const Prices& first);
  std::vector<const Columns*> unless_columns_fit(const std::vector<Gpc>& gpcs,
                                                 const Allowance& before, Looked& looked);
  bool are_limited() const;
  const Columns& columns_of(const Gpc& gpc, const Allowance& allowance, double most_cost);
  int64_t most_looks(const Gpc& gpc) const;
  int32_t wanted() const;
  void choose_exact();
  Total total() const;
  bool is_quiet(int32_t sm) const;
  bool is_taken(int32_t sm, size_t stage) const;
  std::vector<int32_t> moving_together(int32_t sm) const;
  SmRole role_of(int32_t sm) const;
  // What is looked at, from what is fastest on: how many blocks come; how those of clusters came up
  // to a level; and all that is known of that.
  enum class Detail : uint8_t { blocks, levels, all };
  std::vector<Detail> details() const;
  void look_at(size_t domain, Detail detail, Gpc& gpc) const;

  const Model& model_;
  const Device& device_;
  const std::vector<Launch>& launches_;
  const Demands& demands_;
  const Resident& resident_;
  const Arrived& arrived_;
  std::array<SmStates, 2>& all_states_;
  Effort& effort_;
  const LaunchPlaces places_;
  Asked asked_;
  const HeldUp held_up_;
  Held held_;
  std::unique_ptr<Known> known_;
  std::vector<std::vector<Arrival>> doubtful_;
};

}  // namespace tbsched
