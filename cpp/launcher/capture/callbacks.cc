#include "launcher/capture/callbacks.h"

#include <array>
#include <span>
#include <utility>

#include "launcher/capture/surroundings.h"

namespace tbsched::capture {
namespace {

constexpr std::array kResourceEvents = {CUPTI_CBID_RESOURCE_MODULE_LOADED,
                                        CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING,
                                        CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING,
                                        CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
                                        CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED,
                                        CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED};

// Records a launch's programmatic serialization and priority, if it has either.
void record_attributes(const CUlaunchConfig& config, const uint32_t call,
                       const WithRecorder& with_recorder) {
  bool programmatic = false;
  bool has_priority = false;
  int32_t priority = 0;
  for (const CUlaunchAttribute& each : std::span(config.attrs, config.numAttrs)) {
    switch (each.id) {
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        programmatic = each.value.programmaticStreamSerializationAllowed != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        has_priority = true;
        priority = each.value.priority;
        break;
      default:
        break;
    }
  }
  if (!programmatic && !has_priority) return;
  with_recorder([&](Recorder& recorder) {
    recorder.write_attributes(call, programmatic, has_priority, priority);
  });
}

// Records which executable graph a call launches, and in which stream.
void record_graph_launch(const Cupti& cupti, const CUgraphExec graph, const Operation& operation,
                         const WithRecorder& with_recorder) {
  uint32_t executable = 0;
  if (!operation.has_stream || cupti.graph_id(graph, &executable) != CUPTI_SUCCESS) return;
  with_recorder([&](Recorder& recorder) {
    recorder.write_graph_launch(operation.call, executable, operation.context, operation.stream);
  });
}

// Handles the begin or the return of a driver call. A function of the runtime calls one of the
// driver, with the same correlation number.
void handle_driver_call(const Cupti& cupti, const CUpti_CallbackId id,
                        const CUpti_CallbackData& data, CallLog& calls, const uint64_t now_ns,
                        const WithRecorder& with_recorder) {
  // A question about a stream could end a capture of it into a graph.
  Operation operation = operation_of(cupti, id, data, !calls.is_capturing());
  if (data.callbackSite == CUPTI_API_EXIT) {
    const auto* const returned = static_cast<const CUresult*>(data.functionReturnValue);
    const CUresult result = returned == nullptr ? CUDA_SUCCESS : *returned;
    calls.exit(operation, result);
    if (operation.what == What::kOther && result == CUDA_SUCCESS) {
      calls.graphs().after_call(cupti, id, data.functionParams);
      calls.timed_events().after_call(id, data.functionParams);
    }
    return;
  }
  operation.has_timing =
      operation.what == What::kRecord && calls.timed_events().contains(operation.event);
  calls.enter(operation, now_ns);
  if (operation.what == What::kOther) {
    calls.graphs().before_call(id, data.functionParams);
    calls.timed_events().before_call(id, data.functionParams);
  }
  // A record that becomes a node of a graph has no record of CUPTI, which has the event's number.
  if (operation.has_timing && !calls.is_capturing() &&
      calls.timed_events().take_new(operation.event)) {
    with_recorder([&](Recorder& recorder) { recorder.write_timed(operation.call); });
  }
  if (operation.is_new_stream) {
    if (const auto surroundings = surroundings_of(cupti, operation, data.context)) {
      with_recorder([&](Recorder& recorder) { recorder.write_surroundings(*surroundings); });
    }
  }
  calls.set_carveout(carveout_of(id, data));
  if (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx ||
      id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz) {
    const auto* const launch = static_cast<const cuLaunchKernelEx_params*>(data.functionParams);
    record_attributes(*launch->config, data.correlationId, with_recorder);
  } else if (operation.what == What::kGraph) {
    const auto* const launch = static_cast<const cuGraphLaunch_params*>(data.functionParams);
    record_graph_launch(cupti, launch->hGraph, operation, with_recorder);
  }
}

// Records a new edge between two nodes, or the node that a node is a clone of.
void record_graph_change(const Cupti& cupti, const CUpti_CallbackId id,
                         const CUpti_GraphData& graph, const WithRecorder& with_recorder) {
  const bool is_clone = id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED;
  uint64_t node = 0;
  uint64_t other = 0;
  if (cupti.node_id(graph.node, &node) != CUPTI_SUCCESS) return;
  if (cupti.node_id(is_clone ? graph.originalNode : graph.dependency, &other) != CUPTI_SUCCESS) {
    return;
  }
  with_recorder([&](Recorder& recorder) {
    is_clone ? recorder.write_clone(node, other) : recorder.write_edge(node, other);
  });
}

}  // namespace

void enable_callbacks(const Cupti& cupti, const CUpti_SubscriberHandle subscriber) {
  const auto enable = [&](const CUpti_CallbackDomain domain, const auto& ids) {
    for (const auto id : ids) {
      cupti.check(cupti.enable_callback(1, subscriber, domain, id), "cuptiEnableCallback");
    }
  };
  enable(CUPTI_CB_DOMAIN_DRIVER_API, operation_callbacks(cupti));
  enable(CUPTI_CB_DOMAIN_RESOURCE, kResourceEvents);
}

void handle_callback(const Cupti& cupti, const CUpti_CallbackDomain domain,
                     const CUpti_CallbackId id, const void* const data, Modules& modules,
                     CallLog& calls, const uint64_t now_ns, const WithRecorder& with_recorder) {
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    return handle_driver_call(cupti, id, call, calls, now_ns, with_recorder);
  }
  const void* const descriptor = static_cast<const CUpti_ResourceData*>(data)->resourceDescriptor;
  switch (id) {
    case CUPTI_CBID_RESOURCE_MODULE_LOADED: {
      const auto* const module = static_cast<const CUpti_ModuleResourceData*>(descriptor);
      modules.add(std::as_bytes(std::span(module->pCubin, module->cubinSize)));
      return calls.forget_functions();
    }
    case CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING:
      return calls.forget_functions();
    case CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING:
    case CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING:
      return forget_streams();
    default:
      record_graph_change(cupti, id, *static_cast<const CUpti_GraphData*>(descriptor),
                          with_recorder);
  }
}

}  // namespace tbsched::capture
