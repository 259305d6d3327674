// Decides whether all blocks of a group become resident, whatever the order of arrival, the latent
// state and the background kernels. Returns a proof, a witness, or no decision.
#pragma once

#include <functional>

#include "tbsched/coresidency/outcomes/outcome_program.h"
#include "tbsched/coresidency/question.h"
#include "tbsched/policy/model.h"

namespace tbsched {

// Decides whether all blocks of every group become resident. Throws std::invalid_argument for
// launches that HeldEngine::step refuses, for groups that are
// empty, name an unknown launch or share one, and for a cycle in `after`. `interrupted` is called
// before each play and may throw to end the search. `solver`: used for proofs by outcomes of SMs,
// which are skipped without it.
TogetherAnswer coresident(
    const Model& model, const TogetherQuestion& question,
    const std::function<void()>& interrupted = [] {}, const Solver& solver = nullptr);

}  // namespace tbsched
