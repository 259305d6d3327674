#include "tbsched/policy/hopper/search.h"

#include <algorithm>
#include <array>

namespace tbsched {
namespace {

// Turns after which a search is done that ends at the first, second, ... SM outside the GPCs.
// Measured one by one, since no simple rule gives all of them. Each is the only number that agrees
// with the recordings: docs/explanation/how-hopper-was-dissected.md.
constexpr std::array<int32_t, 8> kTurnsOutsideGpcs = {12, 13, 14, 14, 17, 18, 19, 20};
// Turns until the first SM of a GPC, and how many SMs of GPCs are searched in a turn. The
// recordings determine these, too.
constexpr int32_t kTurnsToGpcs = 21;
constexpr int32_t kSmsPerTurn = 3;

}  // namespace

std::vector<int32_t> search_turns(const Topology& topology,
                                  const std::vector<int32_t>& sm_preference) {
  const int32_t gpcs = std::ranges::max(topology.gpc_of_sm) + 1;
  std::vector<int32_t> row(topology.sms());  // of the SM's TPC in its GPC
  std::vector<int32_t> tpcs_seen(gpcs);
  int32_t last_tpc = -1;
  for (int32_t sm = 0; sm < topology.sms(); ++sm) {
    const int32_t gpc = topology.gpc_of_sm[sm];
    if (gpc < 0) continue;
    tpcs_seen[gpc] += topology.tpc_of_sm[sm] != last_tpc ? 1 : 0;
    last_tpc = topology.tpc_of_sm[sm];
    row[sm] = tpcs_seen[gpc] - 1;
  }
  const int32_t rows = gpcs == 0 ? 0 : std::ranges::max(tpcs_seen);
  std::vector<int32_t> turns(topology.sms());
  size_t singletons = 0;
  for (const int32_t sm : sm_preference) {
    const int32_t gpc = topology.gpc_of_sm[sm];
    if (gpc < 0) {
      turns[sm] = kTurnsOutsideGpcs[std::min(singletons++, kTurnsOutsideGpcs.size() - 1)];
    } else {
      const int32_t sms_before = (sm % 2 * rows + row[sm]) * gpcs + gpc;
      turns[sm] = kTurnsToGpcs + (sms_before + kSmsPerTurn - 1) / kSmsPerTurn;
    }
  }
  return turns;
}

}  // namespace tbsched
