// A proof that no block is stranded, whatever the policy: before a block finds no room, so many SMs
// must be full for it, and all blocks together cannot fill as many.
#pragma once

#include <optional>
#include <vector>

#include "tbsched/engine/together/demands.h"
#include "tbsched/engine/together/question.h"
#include "tbsched/engine/together/sm_kinds.h"
#include "tbsched/policy/model.h"

namespace tbsched {

// Of each launch that is to come, if each of them has fewer full SMs than it takes; else nothing.
// Whatever the resident outsiders do: any of their blocks may leave at any time. Nothing either
// where the argument does not hold: launches that share a stream or need more local memory than
// there is, SMs that share a configuration, warps that go to processing blocks otherwise than in
// strict turn, or registers in one piece.
std::optional<std::vector<FullSms>> too_few_full_sms(const Model& model,
                                                     const std::vector<Launch>& launches,
                                                     const Demands& demands,
                                                     const std::vector<int32_t>& group,
                                                     const Resident& resident);

}  // namespace tbsched
