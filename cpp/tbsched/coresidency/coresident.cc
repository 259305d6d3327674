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

// Refuses an index of no launch. `where`: the field that has it.
void check_launch_index(const int32_t launch, const size_t launches, const std::string& where) {
  if (launch >= 0 && std::cmp_less(launch, launches)) return;
  refuse(where + ": there is no launch " + std::to_string(launch) + " among " +
         std::to_string(launches));
}

// Refuses groups that are empty, name an unknown launch or share one.
void check_groups(const TogetherQuestion& question) {
  std::vector<bool> is_in_group(question.launches.size());
  for (size_t k = 0; k < question.groups.size(); ++k) {
    const std::vector<int32_t>& group = question.groups[k];
    if (group.empty()) refuse("groups: group " + std::to_string(k) + " has no launches");
    for (const int32_t launch : group) {
      check_launch_index(launch, is_in_group.size(), "groups");
      if (is_in_group[launch]) {
        refuse("groups: launch " + std::to_string(launch) + " is in two places");
      }
      is_in_group[launch] = true;
    }
  }
}

// Refuses an order that names an unknown launch or has a cycle.
void check_order(const TogetherQuestion& question) {
  const size_t launches = question.launches.size();
  for (const auto& [first, second] : question.after) {
    check_launch_index(first, launches, "after");
    check_launch_index(second, launches, "after");
  }
  // Topological order: removes launches that come after none of the others; the rest is in a cycle.
  std::vector<bool> removed(launches);
  for (bool changed = true; std::exchange(changed, false);) {
    for (size_t launch = 0; launch < launches; ++launch) {
      const bool waits = std::ranges::any_of(question.after, [&](const auto& pair) {
        return std::cmp_equal(pair[1], launch) && !removed[pair[0]];
      });
      if (!removed[launch] && !waits) removed[launch] = changed = true;
    }
  }
  if (const auto in_cycle = std::ranges::find(removed, false); in_cycle != removed.end()) {
    refuse("after: launches come after each other in a circle, launch " +
           std::to_string(in_cycle - removed.begin()) + " among them");
  }
}

// Returns the question without streams that only one launch has: they order nothing.
TogetherQuestion without_lone_streams(TogetherQuestion question) {
  std::map<int32_t, int32_t> launches_in_stream;
  for (const Launch& launch : question.launches) {
    if (launch.stream) ++launches_in_stream[*launch.stream];
  }
  for (Launch& launch : question.launches) {
    const bool may_be_alone = launch.stream && launch.stream != kLegacyStream;
    if (may_be_alone && launches_in_stream[*launch.stream] == 1) launch.stream.reset();
  }
  return question;
}

// Refuses a policy for which nothing is proved, and launches that HeldEngine::step refuses.
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
  const Resident none_resident(model.device(), demands);
  TogetherAnswer answer;
  answer.verdict = Verdict::safe;
  for (size_t k = 0; k < question.groups.size(); ++k) {
    const std::vector<int32_t>& group = question.groups[k];
    const std::vector<bool> awaited = awaited_by(question, group);
    const FullSmsProof proof(model, question.launches, demands, group, awaited, none_resident);
    if (auto full_sms = proof.in_any_order()) {
      if (answer.proof != Proof::played) answer.proof = Proof::full_sms;
      answer.full_sms = std::move(*full_sms);
      continue;
    }
    WitnessSearch search =
        find_deadlock(model, question, demands, group, question.max_plays - answer.plays, solver,
                      deadline, interrupted);
    answer.plays += search.plays;
    if (search.stranding) {
      Stranding& stranding = *search.stranding;
      return {.verdict = Verdict::unsafe,
              .proof = Proof::none,
              .full_sms = {},
              .witness = std::move(stranding.steps),
              .state = stranding.state,
              .group = static_cast<int32_t>(k),
              .stranded = stranding.launch,
              .cause = stranding.cause,
              .behind = stranding.behind,
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
