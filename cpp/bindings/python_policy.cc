#include "bindings/python_policy.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "tbsched/program/refuse.h"

namespace py = pybind11;

namespace tbsched {
namespace {

// A callable of Python, which is released with the GIL held.
class Callable {
 public:
  explicit Callable(py::function function) : function_(std::move(function)) {}
  Callable(const Callable&) = delete;
  Callable& operator=(const Callable&) = delete;
  ~Callable() {
    const py::gil_scoped_acquire locked;
    function_ = {};
  }

  py::object operator()(const py::object& argument) const { return function_(argument); }

 private:
  py::function function_;
};

// Returns for how many blocks each SM has room.
std::vector<int32_t> room_by_sm(const Rooms& rooms, const DeviceSpec& spec) {
  std::vector<int32_t> room(static_cast<size_t>(spec.sms));
  for (size_t rank = 0; rank < room.size(); ++rank) {
    room[static_cast<size_t>(spec.sm_preference[rank])] = rooms.blocks()[rank];
  }
  return room;
}

class PythonPolicy final : public Policy {
 public:
  explicit PythonPolicy(std::shared_ptr<const Callable> choose) : choose_(std::move(choose)) {}

  size_t place(const Demand& demand, const GpuState& gpu, Rooms& rooms, const Commit& commit,
               const std::span<int32_t> sms) override {
    const py::gil_scoped_acquire locked;
    return place_one_by_one(sms, commit, [&] {
      rooms.update(gpu, demand);
      // The policy is not asked where nothing has room.
      return rooms.max_room() == 0 ? -1
                                   : checked(choose(room_by_sm(rooms, gpu.spec())), demand, gpu);
    });
  }

 private:
  // Returns the SM that the callable chooses, or -1.
  int32_t choose(std::vector<int32_t>&& room) const {
    const py::object answer = (*choose_)(to_array(std::move(room)));
    try {
      return answer.cast<int32_t>();
    } catch (const py::cast_error&) {
      throw py::type_error("policy: must return the number of an SM, or -1, got " +
                           py::repr(answer).cast<std::string>());
    }
  }

  // Returns the SM; refuses one that does not exist or has no room.
  static int32_t checked(const int32_t sm, const Demand& demand, const GpuState& gpu) {
    const DeviceSpec& spec = gpu.spec();
    if (sm < -1 || sm >= spec.sms) {
      refuse("policy: must return the number of an SM, 0 to " + std::to_string(spec.sms - 1) +
             ", or -1, got " + std::to_string(sm));
    }
    if (sm >= 0 && gpu.room(sm, demand).blocks == 0) {
      refuse("policy: chose SM " + std::to_string(sm) + ", which has no room for the block: " +
             std::string(name(gpu.room(sm, demand).limiter)));
    }
    return sm;
  }

  std::shared_ptr<const Callable> choose_;
};

}  // namespace

StartPolicy python_policy(py::function choose) {
  return [callable = std::make_shared<const Callable>(std::move(choose))](InitialState) {
    return std::make_unique<PythonPolicy>(callable);
  };
}

}  // namespace tbsched
