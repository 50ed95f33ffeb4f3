# penstock_bench(<name> SOURCES <file>... [LIBRARIES <target>...])
#
# A benchmark: an executable in <build>/bench, built by the target `benchmarks` and run by
# `./run bench <name>`. It prints what it measured and needs no argument.
add_custom_target(benchmarks)

function(penstock_bench name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "penstock_bench(${name}): no SOURCES, or unknown: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  add_executable(bench_${name} EXCLUDE_FROM_ALL ${arg_SOURCES})
  penstock_compile(bench_${name})
  target_link_libraries(bench_${name} PRIVATE ${arg_LIBRARIES})
  set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name}
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  add_dependencies(benchmarks bench_${name})
endfunction()
