// A cache of proofs by outcomes of SMs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "tbsched/coresidency/outcomes/query.h"
#include "tbsched/coresidency/outcomes/room_proof.h"
#include "tbsched/policy/policy.h"

namespace tbsched {

// A proof in which blocks may leave between some arrivals also holds if none leave between the
// first ones.
class ProofCache {
 public:
  // Returns whether the last launch is proved to find room. If that is not known, asks `prove`, and
  // remembers its answer if it is true.
  bool finds_room(const InitialState& state, const ArrivedLaunches& arrived,
                  const std::vector<Arrival>& coming, const int32_t last,
                  const std::function<bool()>& prove) {
    std::vector<Arrival> all;
    for (size_t k = 0; k < arrived.order.size(); ++k) {
      all.push_back({arrived.order[k], arrived.waiting[k] > 0});
    }
    all.insert(all.end(), coming.begin(), coming.end());
    all.push_back({last});
    const Key key(state.components, std::move(all));
    const auto known = fewest_arrived_.find(key);
    if (known != fewest_arrived_.end() && known->second <= arrived.order.size()) return true;
    if (!prove()) return false;
    fewest_arrived_.insert_or_assign(key, arrived.order.size());
    return true;
  }

 private:
  using Key = std::pair<decltype(InitialState::components), std::vector<Arrival>>;
  std::map<Key, size_t> fewest_arrived_;  // the fewest arrivals before blocks could leave
};

}  // namespace tbsched
