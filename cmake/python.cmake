# The extension modules: _core, and _launcher where nvcc is found. They are installed only where
# their component is named, as pyproject.toml does.
if(BUILD_SHARED_LIBS)
  message(FATAL_ERROR "BUILD_SHARED_LIBS=ON needs TBSCHED_PYTHON=OFF: the Python package holds the library itself")
endif()
set(PYBIND11_FINDPYTHON ON)
find_package(pybind11 3.0 CONFIG REQUIRED)

set(CMAKE_CXX_EXTENSIONS OFF)
# pybind11 asks for it unless told; but the library is compiled without, and calls of the bindings
# alone take no less time for it.
set(CMAKE_INTERPROCEDURAL_OPTIMIZATION OFF)
file(GLOB bindings CONFIGURE_DEPENDS cpp/bindings/*.cc)
list(FILTER bindings EXCLUDE REGEX "launcher[^/]*$")
pybind11_add_module(_core ${bindings})
target_link_libraries(_core PRIVATE tbsched::tbsched)
# What calls the library is as quick so, and a third of the time to compile it is saved.
target_compile_options(_core PRIVATE $<$<CONFIG:Release>:-O1>)
# Most of the time goes into pybind11's headers: they are read once.
set_target_properties(_core PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
set(modules _core)

find_program(TBSCHED_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
if(TBSCHED_NVCC)
  message(STATUS "tbsched: launcher built with ${TBSCHED_NVCC}")
  add_subdirectory(cpp/launcher)
  list(APPEND modules _launcher)
  if(TARGET tbsched_capture)
    list(APPEND modules tbsched_capture)
  endif()
else()
  message(STATUS "tbsched: no nvcc, so no launcher: predicts, verifies and fuzzes models only")
endif()

install(TARGETS ${modules} DESTINATION tbsched COMPONENT python EXCLUDE_FROM_ALL)
