#include "tbsched/coresidency/coresident.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "tbsched/coresidency/demands.h"
#include "tbsched/coresidency/full_sms.h"
#include "tbsched/coresidency/search/find_deadlock.h"
#include "tbsched/engine/held/held_engine.h"
#include "tbsched/program/refuse.h"
#include "tbsched/sim/block_scheduler.h"

namespace tbsched {
namespace {

void check_number(const int32_t launch, const size_t launches, const std::string& where) {
  if (launch >= 0 && std::cmp_less(launch, launches)) return;
  refuse(where + ": there is no launch " + std::to_string(launch) + " among " +
         std::to_string(launches));
}

void check_groups(const TogetherQuestion& question) {
  std::vector<bool> taken(question.launches.size());
  for (size_t number = 0; number < question.groups.size(); ++number) {
    const std::vector<int32_t>& group = question.groups[number];
    if (group.empty()) refuse("groups: group " + std::to_string(number) + " has no launches");
    for (const int32_t launch : group) {
      check_number(launch, taken.size(), "groups");
      if (taken[launch]) refuse("groups: launch " + std::to_string(launch) + " is in two places");
      taken[launch] = true;
    }
  }
}

void check_order(const TogetherQuestion& question) {
  const size_t launches = question.launches.size();
  for (const auto& [first, second] : question.after) {
    check_number(first, launches, "after");
    check_number(second, launches, "after");
  }
  // Removes launches that come after none of the others; the rest is in a cycle.
  std::vector<bool> gone(launches);
  for (bool moved = true; std::exchange(moved, false);) {
    for (size_t launch = 0; launch < launches; ++launch) {
      const bool waits = std::ranges::any_of(question.after, [&](const auto& pair) {
        return std::cmp_equal(pair[1], launch) && !gone[pair[0]];
      });
      if (!gone[launch] && !waits) gone[launch] = moved = true;
    }
  }
  if (const auto left = std::ranges::find(gone, false); left != gone.end()) {
    refuse("after: launches come after each other in a circle, launch " +
           std::to_string(left - gone.begin()) + " among them");
  }
}

// Removes streams that only one launch has: they order nothing.
TogetherQuestion without_lone_streams(TogetherQuestion question) {
  std::map<int32_t, int32_t> often;
  for (const Launch& launch : question.launches) {
    if (launch.stream) ++often[*launch.stream];
  }
  for (Launch& launch : question.launches) {
    const bool is_own = launch.stream && launch.stream != kLegacyStream;
    if (is_own && often[*launch.stream] == 1) launch.stream.reset();
  }
  return question;
}

void check_launches(const Model& model, const TogetherQuestion& question) {
  if (model.policy().may_decline) {
    refuse("coresident: policy '" + std::string(model.policy().name) +
           "' may leave blocks waiting that have room");
  }
  BlockScheduler scheduler(model, model.states().front());
  for (size_t k = 0; k < question.launches.size(); ++k) {
    HeldEngine::check(question.launches[k], k);
    scheduler.add(question.launches[k], BlockScheduler::Leaving::together);
  }
}

}  // namespace

TogetherAnswer coresident(const Model& model, const TogetherQuestion& given,
                          const std::function<void()>& interrupted, const Solver& solver) {
  const Deadline deadline(given.seconds);
  const TogetherQuestion question = without_lone_streams(given);
  check_groups(question);
  check_order(question);
  check_launches(model, question);
  const Demands demands(model.device(), question.launches);
  const Resident nothing(model.device(), demands);
  TogetherAnswer answer;
  answer.verdict = Verdict::safe;
  for (size_t k = 0; k < question.groups.size(); ++k) {
    const std::vector<int32_t>& group = question.groups[k];
    const std::vector<bool> awaited = awaited_by(question, group);
    const FullSmsProof proof(model, question.launches, demands, group, awaited, nothing);
    if (auto full = proof.in_any_order()) {
      if (answer.proof != Proof::played) answer.proof = Proof::full_sms;
      answer.full_sms = std::move(*full);
      continue;
    }
    WitnessSearch search =
        find_deadlock(model, question, demands, group, question.most_plays - answer.plays, solver,
                      deadline, interrupted);
    answer.plays += search.plays;
    if (search.found) {
      Stranding& found = *search.found;
      return {.verdict = Verdict::unsafe,
              .proof = Proof::none,
              .full_sms = {},
              .witness = std::move(found.steps),
              .state = found.state,
              .group = static_cast<int32_t>(k),
              .stranded = found.launch,
              .cause = found.cause,
              .behind = found.behind,
              .plays = answer.plays};
    }
    if (search.complete) {
      answer.proof = Proof::played;
    } else {
      answer.verdict = Verdict::undecided;
    }
  }
  if (answer.verdict == Verdict::undecided) answer.proof = Proof::none;
  if (answer.proof != Proof::full_sms) answer.full_sms.clear();
  return answer;
}

}  // namespace tbsched
