#include "tbsched/engine/bulk/shortest.h"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tbsched/engine/bulk/parallel.h"
#include "tbsched/engine/predict.h"
#include "tbsched/engine/timed/timed_engine.h"

namespace tbsched {
namespace {

// The best so far, of all threads.
class Best {
 public:
  explicit Best(const int64_t limit_ns) : limit_ns_(limit_ns) {}

  // What an order must stay below: of equally good ones the first counts.
  int64_t limit(const size_t order) const {
    const std::scoped_lock lock(mutex_);
    return found_ && order < found_->order ? limit_ns_ + 1 : limit_ns_;
  }
  void found(const size_t order, const int64_t makespan_ns) {
    const std::scoped_lock lock(mutex_);
    const bool is_first = found_ && makespan_ns == limit_ns_ && order < found_->order;
    if (makespan_ns >= limit_ns_ && !is_first) return;
    found_ = {order, makespan_ns};
    limit_ns_ = makespan_ns;
  }
  std::optional<Shortest> get() const { return found_; }

 private:
  mutable std::mutex mutex_;
  int64_t limit_ns_;
  std::optional<Shortest> found_;
};

Sequence arranged(const Sequence& sequence, const std::span<const int32_t> order) {
  Sequence result;
  result.reserve(order.size());
  for (const int32_t number : order) {
    if (!std::cmp_less(number, sequence.size()) || number < 0) {
      throw std::invalid_argument(std::to_string(number) + " is no launch");
    }
    result.push_back(sequence[number]);
  }
  return result;
}

}  // namespace

std::optional<Shortest> shortest_order(const Model& model, const Sequence& sequence,
                                       const std::span<const int32_t> orders,
                                       const InitialState state, const int64_t launch_interval_ns,
                                       const int64_t limit_ns, const int32_t threads) {
  const size_t launches = sequence.size();
  const auto is_launch = [](const Event& event) { return std::holds_alternative<Launch>(event); };
  if (launches == 0 || orders.size() % launches != 0 || !std::ranges::all_of(sequence, is_launch)) {
    throw std::invalid_argument("orders: each is of all launches, and there is nothing else");
  }
  const CallIntervals calls{launch_interval_ns};
  Best best(limit_ns);
  const auto try_order = [&](const size_t k) {
    const Sequence some = arranged(sequence, orders.subspan(k * launches, launches));
    const int64_t limit = best.limit(k);
    const int64_t found = TimedEngine(model, state, calls).makespan(some, limit);
    if (found < limit) best.found(k, found);
  };
  for_each_sequence(orders.size() / launches, threads, try_order, "order");
  return best.get();
}

}  // namespace tbsched
