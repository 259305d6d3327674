// Fixed cases of the simulator of SMs.
#pragma once

#include <functional>
#include <optional>
#include <string>

// None where there is no such case.
std::optional<std::function<void()>> simulation_named(const std::string& name);
