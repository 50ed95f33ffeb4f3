include(GoogleTest)

# penstock_test(<name> SOURCES <file>... [LIBRARIES <target>...] [LABELS <label>...] [TIMEOUT <s>]
#               [NO_DISCOVER] [DEFINITIONS <def>...] [ARGUMENTS <arg>...])
#
# Makes the GoogleTest executable <name> and tells ctest of each of its cases, as <name>.<case>, or,
# with NO_DISCOVER, of the executable as one test (for thousands of small cases).
#   LABELS   unit (the default), multiprocess, conformance, simulation, fuzz, install; and `full` for
#            what only `./run test --full` runs
#   TIMEOUT  seconds for one ctest entry, 60 unless told
# A test's source stands beside its unit: host/base/status_test.cpp.
function(penstock_test name)
  if(NOT PENSTOCK_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_DISCOVER" "TIMEOUT"
    "SOURCES;LIBRARIES;LABELS;DEFINITIONS;ARGUMENTS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "penstock_test(${name}): no SOURCES, or unknown: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(PENSTOCK_RTL_COVERAGE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 10")  # counting slows the card's models
  endif()

  add_executable(${name} ${arg_SOURCES})
  penstock_compile(${name})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE ${arg_DEFINITIONS})
  if(arg_NO_DISCOVER)
    add_test(NAME ${name} COMMAND ${name} ${arg_ARGUMENTS})
    set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
  else()
    gtest_discover_tests(${name} TEST_PREFIX "${name}." EXTRA_ARGS ${arg_ARGUMENTS}
      DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 30 PROPERTIES TIMEOUT ${arg_TIMEOUT})
    # gtest_discover_tests takes a list of labels apart. So they are set in a file that ctest reads
    # once the cases are known.
    set(labels_file ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
    file(CONFIGURE OUTPUT ${labels_file} @ONLY CONTENT
      "foreach(test IN LISTS @name@_TESTS)
  set_tests_properties(\"\${test}\" PROPERTIES LABELS \"@arg_LABELS@\")
endforeach()\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels_file})
  endif()
endfunction()
