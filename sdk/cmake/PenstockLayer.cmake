# penstock_layer(<name> [DEPENDS <layer>...] [SOURCES <file>...]
#                [PUBLIC_LIBRARIES <target>...] [LIBRARIES <target>...] [DEFINITIONS <def>...])
#
# Makes the static library penstock_<name> (alias Penstock::<Name>) out of host/<name>.
#   DEPENDS           layers whose headers it may include; tests/layering/layers.txt holds the same
#                     table, and the layering test compares the two
#   SOURCES           files of this folder; one without a .c or .cpp makes a header-only layer
#   PUBLIC_LIBRARIES  what its headers need; LIBRARIES what only its sources need
#
# A layer exports only its own include root, <build>/include/<name>, in which penstock/<name> is a
# link to the folder. So "penstock/comm/comm.h" is not found from below comm: an upward include does
# not compile.
function(penstock_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" ""
    "DEPENDS;SOURCES;PUBLIC_LIBRARIES;LIBRARIES;DEFINITIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "penstock_layer(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  set(root ${PROJECT_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${root}/penstock)
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/penstock/${name} SYMBOLIC)

  set(target penstock_${name})
  set(compiled ${arg_SOURCES})
  list(FILTER compiled INCLUDE REGEX "\\.(c|cc|cpp)$")
  if(compiled)
    add_library(${target} STATIC ${arg_SOURCES})
    set(public PUBLIC)
    penstock_compile(${target})
    target_link_libraries(${target} PRIVATE ${arg_LIBRARIES})
    target_compile_definitions(${target} PRIVATE ${arg_DEFINITIONS})
  else()
    add_library(${target} INTERFACE)
    set(public INTERFACE)
  endif()
  target_compile_features(${target} ${public} cxx_std_20)
  target_include_directories(${target} ${public}
    $<BUILD_INTERFACE:${root}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  list(TRANSFORM arg_DEPENDS PREPEND penstock_)
  target_link_libraries(${target} ${public} ${arg_DEPENDS} ${arg_PUBLIC_LIBRARIES})

  string(SUBSTRING ${name} 0 1 first)
  string(TOUPPER ${first} first)
  string(SUBSTRING ${name} 1 -1 rest)
  add_library(Penstock::${first}${rest} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${first}${rest})

  install(TARGETS ${target} EXPORT PenstockHostTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT Host)
  install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/penstock/${name} COMPONENT Host
    FILES_MATCHING PATTERN "*.h" PATTERN "*_test.h" EXCLUDE)
endfunction()
