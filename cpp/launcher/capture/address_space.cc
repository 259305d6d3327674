#include "launcher/capture/address_space.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

namespace tbsched::capture {

void AddressSpace::read_ranges() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Range range{};
    char readable = '-';
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %c", &range.begin, &range.end,
                    &readable) != 3) {
      continue;
    }
    if (readable != 'r') continue;
    const bool is_managed = line.find("/dev/nvidia-uvm") != std::string::npos;
    range.kind = is_managed ? Kind::kManaged : Kind::kHost;
    ranges_.push_back(range);
  }
  std::ranges::sort(ranges_, {}, &Range::begin);
}

AddressSpace::Kind AddressSpace::kind_of(const uint64_t address) {
  if (ranges_.empty()) read_ranges();
  const auto after = std::ranges::upper_bound(ranges_, address, {}, &Range::begin);
  if (after == ranges_.begin()) return Kind::kOther;
  const Range& range = *std::prev(after);
  return address < range.end ? range.kind : Kind::kOther;
}

}  // namespace tbsched::capture
