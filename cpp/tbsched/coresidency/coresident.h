// Whether all blocks of a group become resident, whatever the order of arrival, the latent state
// and the background kernels: with a proof or a witness, or undecided.
#pragma once

#include <functional>

#include "tbsched/coresidency/outcomes/outcome_program.h"
#include "tbsched/coresidency/question.h"
#include "tbsched/policy/model.h"

namespace tbsched {

// Throws std::invalid_argument for launches that HeldEngine::step refuses, for groups that are
// empty, name no launch or share one, and for launches that come after each other in a circle. The
// search asks before each play whether it is interrupted, and ends with what that throws. `solver`:
// for proofs by outcomes of SMs, which are left out without one.
TogetherAnswer coresident(
    const Model& model, const TogetherQuestion& question,
    const std::function<void()>& interrupted = [] {}, const Solver& solver = nullptr);

}  // namespace tbsched
