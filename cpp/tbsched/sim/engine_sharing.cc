#include "tbsched/sim/engine_sharing.h"

#include <algorithm>

#include "tbsched/program/timeline.h"

namespace tbsched {

int64_t extended_slice_end_ns(const int64_t slice_ends_ns, const int64_t until_ns,
                              const int64_t slice_ns) {
  const int64_t missing_ns = until_ns - slice_ends_ns;
  if (missing_ns <= 0 || until_ns == kNever) return slice_ends_ns;
  return slice_ends_ns + (missing_ns + slice_ns - 1) / slice_ns * slice_ns;
}

void EngineTurns::begin(const int32_t process, const int64_t now, const int64_t start_ns,
                        const int64_t bytes_ns) {
  advance(now, kNobody);
  const bool continues_slice = last_copy_.process == process &&
                               start_ns < last_copy_.slice_ends_ns &&
                               start_ns - last_copy_.ended_ns <= pause_ns_;
  claims_.insert(continues_slice ? claims_.begin() : claims_.end(), {process, start_ns, bytes_ns});
  if (!continues_slice) return;
  owner_ = process;
  slice_ends_ns_ = last_copy_.slice_ends_ns;
}

int64_t EngineTurns::ends_ns(const int32_t process) const {
  EngineTurns later = *this;
  return later.advance(kNever, process);
}

int64_t EngineTurns::advance(const int64_t until_ns, const int32_t process) {
  // Whether the first copy ends now: a copy of no time ends at the instant at which it begins.
  const auto ends_now = [&] {
    const Claim& first = claims_.front();
    const bool has_engine = first.process == owner_ || owner_ == kNobody;
    return has_engine && first.start_ns <= now_ && first.rest_ns == 0;
  };
  while (!claims_.empty() && (now_ < until_ns || ends_now())) {
    Claim& first = claims_.front();
    if (first.process != owner_) {
      first.start_ns = std::max(first.start_ns, now_ + (owner_ == kNobody ? 0 : switch_ns_));
      slice_ends_ns_ = first.start_ns + slice_ns_;
      owner_ = first.process;
    }
    const int64_t from_ns = std::max(now_, first.start_ns);
    slice_ends_ns_ = extended_slice_end_ns(slice_ends_ns_, from_ns, slice_ns_);
    const int64_t ends_ns = from_ns + first.rest_ns;
    const int64_t stops_ns = claims_.size() > 1 ? std::max(slice_ends_ns_, now_) : kNever;
    now_ = std::min({until_ns, ends_ns, stops_ns});
    first.rest_ns -= std::max<int64_t>(0, now_ - from_ns);
    if (now_ == ends_ns) {
      const bool is_awaited = first.process == process;
      last_copy_ = {first.process, now_, slice_ends_ns_};
      claims_.erase(claims_.begin());
      if (is_awaited) return now_;
    } else if (now_ == stops_ns) {
      std::ranges::rotate(claims_, claims_.begin() + 1);
    }
  }
  if (until_ns != kNever) now_ = std::max(now_, until_ns);
  return now_;
}

}  // namespace tbsched
