# The predictor, for C++ simulators too: link tbsched::tbsched. A new file needs no line here.
file(GLOB_RECURSE sources CONFIGURE_DEPENDS cpp/tbsched/*.cc)
file(GLOB_RECURSE headers CONFIGURE_DEPENDS cpp/tbsched/*.h)
if(NOT TBSCHED_TOML)
  list(FILTER sources EXCLUDE REGEX "/device_file[^/]*$")
  list(FILTER headers EXCLUDE REGEX "/device_file[^/]*$")
endif()

# A static library, unless BUILD_SHARED_LIBS is on.
add_library(tbsched ${sources})
add_library(tbsched::tbsched ALIAS tbsched)
set(generated "${CMAKE_CURRENT_BINARY_DIR}/generated")
configure_file(cmake/version.h.in "${generated}/tbsched/version.h" @ONLY)
target_sources(tbsched PUBLIC FILE_SET HEADERS BASE_DIRS cpp "${generated}"
                              FILES ${headers} "${generated}/tbsched/version.h")
target_compile_features(tbsched PUBLIC cxx_std_20)
# Static and shared are compiled alike: DEFINE_SYMBOL would be one more flag for shared.
set_target_properties(tbsched PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON DEFINE_SYMBOL ""
                      VERSION ${tbsched_VERSION} SOVERSION ${tbsched_VERSION_MAJOR}.${tbsched_VERSION_MINOR})
# Most of the time goes into the standard library's headers: a third of it where files share them.
set_target_properties(tbsched PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
# Nobody replaces a function of this library, so that its functions may be inlined in each other.
target_compile_options(tbsched PRIVATE -fno-semantic-interposition)
target_compile_options(tbsched PRIVATE -Wall -Wextra -Wconversion -Wno-sign-conversion)

find_package(Threads REQUIRED)
target_link_libraries(tbsched PUBLIC Threads::Threads)
if(TBSCHED_TOML)
  find_package(tomlplusplus 3 CONFIG REQUIRED)
  target_link_libraries(tbsched PRIVATE tomlplusplus::tomlplusplus)
endif()
if(TBSCHED_SANITIZE)
  target_link_options(tbsched INTERFACE -fsanitize=${TBSCHED_SANITIZE})
endif()
