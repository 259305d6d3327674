// Runs the kernels plain, for a profiler, or records them.
//
//   recorded plain CARVEOUT NAME...   each once
//   recorded record FOLDER NAME...    writes NAME.events, NAME.ends and NAME.sms
//
// Both print a line of JSON for each. tests/lab/inside/addresses.py makes arrays of the files.
#include <cuda_runtime.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cases.h"

namespace recorded {
namespace {

template <typename Kernel, Form form>
__global__ void __launch_bounds__(1024)
    traced(const __grid_constant__ Tape tape, const __grid_constant__ Data data) {
  const Recorder<form> recorder(tape);
  Kernel::run(recorder, data);
}

using Launched = void (*)(Tape, Data);

struct Case {
  std::string name;
  std::array<Launched, 4> forms;
  std::function<Prepared()> prepare;
};

template <typename Kernel>
Case a_case(std::string name, std::function<Prepared()> prepare) {
  return {std::move(name),
          {traced<Kernel, Form::plain>, traced<Kernel, Form::placed>, traced<Kernel, Form::counted>,
           traced<Kernel, Form::recorded>},
          std::move(prepare)};
}

std::vector<Case> all_cases() {
  std::vector<Case> cases{
      a_case<Transpose>("transpose", transpose),
      a_case<Spmv>("spmv", spmv),
      a_case<Kmeans>("kmeans", [] { return kmeans(8192, 1024); }),
      a_case<Bfs>("bfs", [] { return bfs(8192, 13, 1024); }),
      a_case<Fwt>("fwt", [] { return fwt(16, 8192, 512); }),
      a_case<Stencil>("stencil", stencil),
      a_case<Gemm<32>>("gemm", [] { return gemm(32); }),
      a_case<Gemm<16>>("gemm256", [] { return gemm(16); }),
      a_case<Together>("together", together),
      a_case<Strided>("strided1", [] { return strided(1); }),
      a_case<Strided>("strided2", [] { return strided(2); }),
      a_case<Strided>("strided4", [] { return strided(4); }),
      a_case<Stored>("stored", [] { return stored(0); }),
      a_case<Stored>("updated", [] { return stored(1); }),
  };
  for (const int32_t threads : {128, 256}) {
    const std::string end = std::to_string(threads);
    const int32_t blocks = kTwoWaves / threads;
    cases.push_back(a_case<Spmv>("spmv" + end, [=] { return spmv_banded(threads); }));
    cases.push_back(a_case<Kmeans>("kmeans" + end, [=] { return kmeans(kTwoWaves, threads); }));
    cases.push_back(a_case<Bfs>("bfs" + end, [=] { return bfs(kTwoWaves, 5, threads); }));
    cases.push_back(a_case<Fwt>("fwt" + end, [=] { return fwt(blocks, 2048, threads); }));
    cases.push_back(a_case<Flux>("flux" + end, [=] { return flux(threads); }));
    cases.push_back(a_case<Products>("products" + end, [=] { return products(threads); }));
    cases.push_back(a_case<Matvec>("matvec" + end, [=] { return matvec(threads); }));
  }
  for (const size_t megabytes : {20, 36, 72}) {
    cases.push_back(a_case<Sweep>("sweep" + std::to_string(megabytes),
                                  [=] { return sweep(megabytes * 1024, 132, 2); }));
  }
  for (const size_t kilobytes : {16, 24, 32, 48, 64, 96, 128, 192, 224, 256, 320}) {
    cases.push_back(a_case<Sweep>("ladder" + std::to_string(kilobytes),
                                  [=] { return sweep(kilobytes, 1, 4); }));
  }
  return cases;
}

void demand(const cudaError_t error, const char* const what) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorName(error) + ", " +
                           cudaGetErrorString(error));
}

// Memory of the GPU.
class Memory {
 public:
  explicit Memory(const size_t bytes) {
    if (bytes > 0) demand(cudaMalloc(&at_, bytes), "cudaMalloc");
  }
  ~Memory() { cudaFree(at_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  template <typename Value>
  Value* at(const size_t offset) const {
    return reinterpret_cast<Value*>(static_cast<std::byte*>(at_) + offset);
  }

 private:
  void* at_ = nullptr;
};

template <typename Value>
std::vector<Value> to_host(const Memory& memory, const size_t count) {
  std::vector<Value> values(count);
  demand(
      cudaMemcpy(values.data(), memory.at<Value>(0), count * sizeof(Value), cudaMemcpyDeviceToHost),
      "cudaMemcpy");
  return values;
}

Data data_of(const Prepared& made, const Memory& memory) {
  const Offsets& at = made.offsets;
  return {memory.at<float>(at.in),
          memory.at<float>(at.more),
          memory.at<float>(at.out),
          memory.at<int32_t>(at.rows),
          memory.at<int32_t>(at.columns),
          memory.at<int32_t>(at.marks),
          memory.at<int32_t>(at.marked),
          at.n,
          at.m,
          at.times};
}

class Runner {
 public:
  Runner(const Case& one, const Prepared& made)
      : case_(one), made_(made), arena_(made.arena.bytes().size()) {}

  // Returns a number that identifies the results.
  uint64_t run(const Form form, const int carveout, Tape tape) const {
    const std::vector<std::byte>& bytes = made_.arena.bytes();
    demand(cudaMemcpy(arena_.at<std::byte>(0), bytes.data(), bytes.size(), cudaMemcpyHostToDevice),
           "cudaMemcpy");
    const Launched launched = case_.forms[static_cast<size_t>(form)];
    const auto* const function = reinterpret_cast<const void*>(launched);
    demand(cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout, carveout),
           "cudaFuncSetAttribute");
    Data data = data_of(made_, arena_);
    tape.arena = reinterpret_cast<uint64_t>(arena_.at<std::byte>(0));
    std::array<void*, 2> arguments{&tape, &data};
    demand(cudaLaunchKernel(function, dim3(static_cast<unsigned>(made_.blocks)),
                            dim3(static_cast<unsigned>(made_.threads)), arguments.data(), 0, 0),
           "cudaLaunchKernel");
    demand(cudaDeviceSynchronize(), case_.name.c_str());
    uint64_t hash = 1469598103934665603U;
    for (const std::byte byte : to_host<std::byte>(arena_, bytes.size())) {
      hash = (hash ^ static_cast<uint64_t>(byte)) * 1099511628211U;
    }
    return hash;
  }

  int blocks_per_sm() const {
    int blocks = 0;
    demand(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
               &blocks, reinterpret_cast<const void*>(case_.forms[0]), made_.threads, 0),
           "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    return blocks;
  }

 private:
  const Case& case_;
  const Prepared& made_;
  Memory arena_;
};

template <typename Value>
void write(const std::string& path, const std::vector<Value>& values) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(Value)));
  if (!out) throw std::runtime_error("cannot write " + path);
}

// Returns where the events of each warp begin, given how many each warp has.
std::vector<unsigned long long> begins(const std::vector<unsigned long long>& counts) {
  std::vector<unsigned long long> found{0};
  for (const unsigned long long count : counts) found.push_back(found.back() + count);
  return found;
}

std::string record(const Runner& runner, const Prepared& made, const std::string& path) {
  const auto blocks = static_cast<size_t>(made.blocks);
  const size_t warps = blocks * static_cast<size_t>((made.threads + 31) / 32);
  const uint64_t plain = runner.run(Form::plain, 0, {});

  const Memory sms(blocks * sizeof(int32_t));
  const uint64_t placed = runner.run(Form::placed, 0, {.sms = sms.at<int32_t>(0)});
  write(path + ".sms", to_host<int32_t>(sms, blocks));

  const size_t bytes = warps * sizeof(unsigned long long);
  const Memory places(bytes);
  demand(cudaMemset(places.at<std::byte>(0), 0, bytes), "cudaMemset");
  Tape tape{.places = places.at<unsigned long long>(0)};
  runner.run(Form::counted, 0, tape);
  const std::vector<unsigned long long> ends = begins(to_host<unsigned long long>(places, warps));

  const Memory events(ends.back() * sizeof(Event));
  tape.events = events.at<Event>(0);
  demand(cudaMemcpy(tape.places, ends.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  const uint64_t traced = runner.run(Form::recorded, 0, tape);
  // Where each warp stopped is where the next one began.
  std::vector<unsigned long long> reached = to_host<unsigned long long>(places, warps);
  reached.insert(reached.begin(), 0);
  write(path + ".ends", ends);
  write(path + ".events", to_host<Event>(events, ends.back()));
  const bool same = plain == placed && plain == traced && reached == ends;
  return std::string(", \"same\": ") + (same ? "true" : "false");
}

int l2_bytes() {
  int bytes = 0;
  demand(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, 0), "cudaDeviceGetAttribute");
  return bytes;
}

void run_case(const Case& one, const std::string_view verb, const std::string& argument) {
  const Prepared made = one.prepare();
  const Runner runner(one, made);
  std::string more;
  if (verb == "plain") {
    runner.run(Form::plain, std::atoi(argument.c_str()), {});
    more = ", \"carveout\": " + argument;
  } else {
    more = record(runner, made, argument + "/" + one.name);
  }
  std::printf(
      "{\"name\": \"%s\", \"blocks\": %d, \"threads\": %d, \"blocks_per_sm\": %d, "
      "\"l2_bytes\": %d%s}\n",
      one.name.c_str(), made.blocks, made.threads, runner.blocks_per_sm(), l2_bytes(),
      more.c_str());
  std::fflush(stdout);
}

int run(const std::span<char*> arguments) {
  if (arguments.size() < 4) throw std::runtime_error("usage: recorded plain|record WHERE NAME...");
  const std::string_view verb = arguments[1];
  const std::vector<Case> cases = all_cases();
  for (const std::string_view name : arguments.subspan(3)) {
    for (const Case& one : cases) {
      if (one.name == name) run_case(one, verb, arguments[2]);
    }
  }
  return 0;
}

}  // namespace
}  // namespace recorded

int main(int count, char** arguments) {
  try {
    return recorded::run({arguments, static_cast<size_t>(count)});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "recorded: %s\n", error.what());
    return 1;
  }
}
