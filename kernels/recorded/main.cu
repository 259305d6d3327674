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

// Runs a kernel of this folder in one form.
template <typename Kernel, Form form>
__global__ void __launch_bounds__(1024)
    traced(const __grid_constant__ Tape tape, const __grid_constant__ Data data) {
  const Recorder<form> recorder(tape);
  Kernel::run(recorder, data);
}

using KernelPointer = void (*)(Tape, Data);

// A kernel with its data.
struct Case {
  std::string name;
  std::array<KernelPointer, 4> forms;  // by Form
  std::function<Prepared()> prepare;
};

// Returns a case with all forms of its kernel.
template <typename Kernel>
Case make_case(std::string name, std::function<Prepared()> prepare) {
  return {std::move(name),
          {traced<Kernel, Form::plain>, traced<Kernel, Form::placed>, traced<Kernel, Form::counted>,
           traced<Kernel, Form::recorded>},
          std::move(prepare)};
}

// Returns all cases that can be named.
std::vector<Case> make_cases() {
  std::vector<Case> cases{
      make_case<Transpose>("transpose", transpose),
      make_case<Spmv>("spmv", spmv),
      make_case<Kmeans>("kmeans", [] { return kmeans(8192, 1024); }),
      make_case<Bfs>("bfs", [] { return bfs(8192, 13, 1024); }),
      make_case<Fwt>("fwt", [] { return fwt(16, 8192, 512); }),
      make_case<Stencil>("stencil", stencil),
      make_case<Gemm<32>>("gemm", [] { return gemm(32); }),
      make_case<Gemm<16>>("gemm256", [] { return gemm(16); }),
      make_case<Together>("together", together),
      make_case<Strided>("strided1", [] { return strided(1); }),
      make_case<Strided>("strided2", [] { return strided(2); }),
      make_case<Strided>("strided4", [] { return strided(4); }),
      make_case<Stored>("stored", [] { return stored(0); }),
      make_case<Stored>("updated", [] { return stored(1); }),
  };
  for (const int32_t threads : {128, 256}) {
    const std::string suffix = std::to_string(threads);
    const int32_t blocks = kTwoWaves / threads;
    cases.push_back(make_case<Spmv>("spmv" + suffix, [=] { return spmv_banded(threads); }));
    cases.push_back(
        make_case<Kmeans>("kmeans" + suffix, [=] { return kmeans(kTwoWaves, threads); }));
    cases.push_back(make_case<Bfs>("bfs" + suffix, [=] { return bfs(kTwoWaves, 5, threads); }));
    cases.push_back(make_case<Fwt>("fwt" + suffix, [=] { return fwt(blocks, 2048, threads); }));
    cases.push_back(make_case<Flux>("flux" + suffix, [=] { return flux(threads); }));
    cases.push_back(make_case<Products>("products" + suffix, [=] { return products(threads); }));
    cases.push_back(make_case<Matvec>("matvec" + suffix, [=] { return matvec(threads); }));
  }
  for (const size_t megabytes : {20, 36, 72}) {
    cases.push_back(make_case<Sweep>("sweep" + std::to_string(megabytes),
                                     [=] { return sweep(megabytes * 1024, 132, 2); }));
  }
  for (const size_t kilobytes : {16, 24, 32, 48, 64, 96, 128, 192, 224, 256, 320}) {
    cases.push_back(make_case<Sweep>("ladder" + std::to_string(kilobytes),
                                     [=] { return sweep(kilobytes, 1, 4); }));
  }
  return cases;
}

// Throws std::runtime_error if a call of CUDA has failed.
void check(const cudaError_t error, const char* const what) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorName(error) + ", " +
                           cudaGetErrorString(error));
}

// Memory of the GPU.
class Memory {
 public:
  explicit Memory(const size_t bytes) {
    if (bytes > 0) check(cudaMalloc(&at_, bytes), "cudaMalloc");
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

// Returns a copy of the first `count` values.
template <typename Value>
std::vector<Value> to_host(const Memory& memory, const size_t count) {
  std::vector<Value> values(count);
  check(
      cudaMemcpy(values.data(), memory.at<Value>(0), count * sizeof(Value), cudaMemcpyDeviceToHost),
      "cudaMemcpy");
  return values;
}

// Returns the arguments of a kernel whose data is in `memory`.
Data data_of(const Prepared& prepared, const Memory& memory) {
  const Offsets& at = prepared.offsets;
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

// Runs one case any number of times.
class Runner {
 public:
  Runner(const Case& the_case, const Prepared& prepared)
      : case_(the_case), prepared_(prepared), arena_(prepared.arena.bytes().size()) {}

  // Runs a form from fresh data. Returns a hash of all data afterwards. `carveout`: percent.
  uint64_t run(const Form form, const int carveout, Tape tape) const {
    const std::vector<std::byte>& bytes = prepared_.arena.bytes();
    check(cudaMemcpy(arena_.at<std::byte>(0), bytes.data(), bytes.size(), cudaMemcpyHostToDevice),
          "cudaMemcpy");
    const KernelPointer kernel = case_.forms[static_cast<size_t>(form)];
    const auto* const function = reinterpret_cast<const void*>(kernel);
    check(cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout, carveout),
          "cudaFuncSetAttribute");
    Data data = data_of(prepared_, arena_);
    tape.arena = reinterpret_cast<uint64_t>(arena_.at<std::byte>(0));
    std::array<void*, 2> arguments{&tape, &data};
    check(cudaLaunchKernel(function, dim3(static_cast<unsigned>(prepared_.blocks)),
                           dim3(static_cast<unsigned>(prepared_.threads)), arguments.data(), 0, 0),
          "cudaLaunchKernel");
    check(cudaDeviceSynchronize(), case_.name.c_str());
    uint64_t hash = 1469598103934665603U;
    for (const std::byte byte : to_host<std::byte>(arena_, bytes.size())) {
      hash = (hash ^ static_cast<uint64_t>(byte)) * 1099511628211U;
    }
    return hash;
  }

  // Returns how many blocks of the plain form an SM holds at most.
  int blocks_per_sm() const {
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
              &blocks, reinterpret_cast<const void*>(case_.forms[0]), prepared_.threads, 0),
          "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    return blocks;
  }

 private:
  const Case& case_;
  const Prepared& prepared_;
  Memory arena_;
};

// Writes values to a file, as they are in memory. Throws std::runtime_error if it cannot.
template <typename Value>
void write(const std::string& path, const std::vector<Value>& values) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(Value)));
  if (!out) throw std::runtime_error("cannot write " + path);
}

// Returns the index of the first event of each warp, and behind them the number of all, given how
// many each warp has.
std::vector<unsigned long long> first_events(const std::vector<unsigned long long>& counts) {
  std::vector<unsigned long long> firsts{0};
  for (const unsigned long long count : counts) firsts.push_back(firsts.back() + count);
  return firsts;
}

// Records a case into files. Returns members of its line: whether all forms computed the same.
std::string record(const Runner& runner, const Prepared& prepared, const std::string& path) {
  const auto blocks = static_cast<size_t>(prepared.blocks);
  const size_t warps = blocks * static_cast<size_t>((prepared.threads + 31) / 32);
  const uint64_t plain = runner.run(Form::plain, 0, {});

  const Memory sms(blocks * sizeof(int32_t));
  const uint64_t placed = runner.run(Form::placed, 0, {.sms = sms.at<int32_t>(0)});
  write(path + ".sms", to_host<int32_t>(sms, blocks));

  const size_t bytes = warps * sizeof(unsigned long long);
  const Memory places(bytes);
  check(cudaMemset(places.at<std::byte>(0), 0, bytes), "cudaMemset");
  Tape tape{.places = places.at<unsigned long long>(0)};
  runner.run(Form::counted, 0, tape);
  const std::vector<unsigned long long> ends =
      first_events(to_host<unsigned long long>(places, warps));

  const Memory events(ends.back() * sizeof(Event));
  tape.events = events.at<Event>(0);
  check(cudaMemcpy(tape.places, ends.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  const uint64_t traced = runner.run(Form::recorded, 0, tape);
  // Where each warp stopped is where the next one began.
  std::vector<unsigned long long> reached_ends = to_host<unsigned long long>(places, warps);
  reached_ends.insert(reached_ends.begin(), 0);
  write(path + ".ends", ends);
  write(path + ".events", to_host<Event>(events, ends.back()));
  const bool are_same = plain == placed && plain == traced && reached_ends == ends;
  return std::string(", \"same\": ") + (are_same ? "true" : "false");
}

// Returns the size of L2.
int l2_bytes() {
  int bytes = 0;
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, 0), "cudaDeviceGetAttribute");
  return bytes;
}

// Runs or records one case, and prints its line.
void run_case(const Case& the_case, const std::string_view verb, const std::string& argument) {
  const Prepared prepared = the_case.prepare();
  const Runner runner(the_case, prepared);
  std::string more_members;
  if (verb == "plain") {
    runner.run(Form::plain, std::atoi(argument.c_str()), {});
    more_members = ", \"carveout\": " + argument;
  } else {
    more_members = record(runner, prepared, argument + "/" + the_case.name);
  }
  std::printf(
      "{\"name\": \"%s\", \"blocks\": %d, \"threads\": %d, \"blocks_per_sm\": %d, "
      "\"l2_bytes\": %d%s}\n",
      the_case.name.c_str(), prepared.blocks, prepared.threads, runner.blocks_per_sm(), l2_bytes(),
      more_members.c_str());
  std::fflush(stdout);
}

// Runs the program, and returns its exit status.
int run(const std::span<char*> arguments) {
  if (arguments.size() < 4) throw std::runtime_error("usage: recorded plain|record WHERE NAME...");
  const std::string_view verb = arguments[1];
  const std::vector<Case> cases = make_cases();
  for (const std::string_view name : arguments.subspan(3)) {
    for (const Case& the_case : cases) {
      if (the_case.name == name) run_case(the_case, verb, arguments[2]);
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
