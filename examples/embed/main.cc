// A simulator's front end on top of the predictor: kernels come and go on standard input, and where
// their blocks go is printed as it is decided.
//
//   launch BLOCKS THREADS REGISTERS SHARED_MEMORY
//   release LAUNCH
//
// rtx3090.h is what `tbsched devices rtx3090 --cpp` prints.
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "rtx3090.h"
#include "tbsched/tbsched.h"

namespace {

class Printer final : public tbsched::Observer {
 public:
  void on_place(const tbsched::PlacedBlocks& placed) override {
    std::cout << "launch " << placed.launch << ", blocks from " << placed.first_block << ", on SMs";
    for (const int32_t sm : placed.sms) std::cout << ' ' << sm;
    std::cout << '\n';
  }
  void on_refuse(const int32_t launch, const tbsched::Refusal refusal, int32_t) override {
    std::cout << "launch " << launch << " waits: " << tbsched::name(refusal) << '\n';
  }
};

tbsched::Event parse(const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  words >> verb;
  if (verb == "launch") {
    tbsched::Launch launch;
    words >> launch.blocks >> launch.threads >> launch.registers >> launch.shared_memory;
    if (words) return launch;
  } else if (verb == "release") {
    tbsched::Release release;
    words >> release.launch;
    if (words) return release;
  }
  throw std::invalid_argument("not an event: " + line);
}

}  // namespace

int main() {
  const tbsched::DeviceSpec spec = rtx3090();
  const tbsched::Model model(spec);
  Printer printer;
  tbsched::HeldEngine engine(model, {}, {&printer});
  try {
    for (std::string line; std::getline(std::cin, line);) {
      if (!line.empty()) engine.step(parse(line));
    }
  } catch (const std::invalid_argument& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
