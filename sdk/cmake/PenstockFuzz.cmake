# penstock_fuzz(<name> SOURCES <file>... [LIBRARIES <target>...])
#
# A fuzz target: sources that define LLVMFuzzerTestOneInput. Its seeds are the files of
# tests/fuzz/corpus/<name>; a crash's input that was found goes there, too.
#   With PENSTOCK_FUZZ (preset fuzz) it is linked with libFuzzer, and `./run fuzz` runs it.
#   Without, it is the ctest <name> (label fuzz), which runs over the seeds and over mutations of them
#   that are the same each time.
add_custom_target(fuzzers)

function(penstock_fuzz name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "penstock_fuzz(${name}): no SOURCES, or unknown: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT PENSTOCK_FUZZ AND NOT PENSTOCK_TESTS)
    return()
  endif()

  add_executable(${name} ${arg_SOURCES})
  penstock_compile(${name})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
  add_dependencies(fuzzers ${name})
  if(PENSTOCK_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzzers)
  else()
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cpp)
    add_test(NAME ${name} COMMAND ${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
    set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 120)
  endif()
endfunction()
