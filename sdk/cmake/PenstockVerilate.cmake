# How the blocks of rtl/ are known, checked and simulated.
#
# penstock_rtl(<block> [SOURCES <file>...] [TOPS <module>...] [PROPERTIES <file>...]
#              [TOPS_FULL <module>...] [DEPENDS <block>...])
#
# Makes the block's sources known by its name. Call it also where verilator is missing.
#   SOURCES     modules and packages, in the order in which they are read
#   TOPS        modules that are linted, each with its default parameters: a test for each with
#               verilator (-Wall), and one with yosys
#   TOPS_FULL   likewise, but yosys takes so long that it reads them in the full run only
#   PROPERTIES  clocked assertions that are bound to the modules: for verilator alone
#   DEPENDS     blocks whose modules it instantiates, which have been made known before
# A formal.json beside it is proved by rtl/formal/prove.py: a test for each of its proofs, with the
# label `formal`, and `full` where it says so.
#
# penstock_verilate(<target> TOP <module> [BLOCKS <block>...] [SOURCES <file>...] [PREFIX <class>]
#                   [PARAMETERS <NAME=value>...] [DEFINES <NAME[=value]>...] [TRACE]
#                   [FLAGS <flag>...])
#
# Makes the static library <target> out of the module, with the class V<module>, or PREFIX, in
# "V<module>.h"; no target is made where PENSTOCK_VERILATOR is not set. Two models in one executable
# need different prefixes.
#   BLOCKS      whose sources and properties (and those of what they depend on) it is made of
#   PARAMETERS  of the top module
#   TRACE       with waveforms (FST; the classes of verilated_fst_c.h), where zlib is here; then
#               PENSTOCK_RTL_TRACE=1 is defined for who links the target
#   FLAGS       more for verilator
# Assertions are on; what is not reset, and every x, is random by seed (Verilated::randReset(2),
# Verilated::randSeed). With PENSTOCK_RTL_COVERAGE lines and cover points are counted, and in models
# of control blocks alone also which bits toggled; rtl/coverage says what becomes of that.
#
# penstock_rtl_manifest(<file>): writes which block has which sources, for rtl/synthesis.
#
# PENSTOCK_RTL_OPTIMISE   how the models are compiled; -O1 builds fast and runs at half the speed
# PENSTOCK_VERILATOR      whether verilator and make are here
option(PENSTOCK_RTL_COVERAGE "Count the lines and the cover points of the card's models" OFF)
set(PENSTOCK_RTL_OPTIMISE -O1 CACHE STRING "Optimisation of the card's models")

find_package(verilator QUIET HINTS $ENV{VERILATOR_ROOT})
find_program(PENSTOCK_MAKE make)
find_program(PENSTOCK_YOSYS yosys)
find_program(PENSTOCK_YOSYS_SMTBMC yosys-smtbmc)
find_program(PENSTOCK_Z3 z3)
mark_as_advanced(PENSTOCK_MAKE PENSTOCK_YOSYS PENSTOCK_YOSYS_SMTBMC PENSTOCK_Z3)
penstock_optional(VERILATOR PENSTOCK_VERILATOR NEEDS "verilator and make"
  FOUND ${verilator_FOUND} "${PENSTOCK_MAKE}")

if(PENSTOCK_VERILATOR)
  # Its runtime, once for all models.
  set(runtime ${VERILATOR_ROOT}/include)
  add_library(penstock_verilated STATIC EXCLUDE_FROM_ALL ${runtime}/verilated.cpp
    ${runtime}/verilated_cov.cpp ${runtime}/verilated_threads.cpp)
  target_include_directories(penstock_verilated SYSTEM PUBLIC ${runtime} ${runtime}/vltstd)
  target_compile_options(penstock_verilated PRIVATE -O2 -w)
  target_link_libraries(penstock_verilated PUBLIC Threads::Threads)
  find_package(ZLIB QUIET)
  if(ZLIB_FOUND)
    add_library(penstock_verilated_trace STATIC EXCLUDE_FROM_ALL ${runtime}/verilated_fst_c.cpp)
    target_compile_options(penstock_verilated_trace PRIVATE -O2 -w)
    target_link_libraries(penstock_verilated_trace PUBLIC penstock_verilated ZLIB::ZLIB)
  endif()
endif()

# penstock_rtl_files(<variable> <block>...): their sources and properties, and before them those of
# what they depend on; <variable>_SOURCES has them without the properties.
function(penstock_rtl_files variable)
  set(blocks)
  foreach(block IN LISTS ARGN)
    get_property(needs GLOBAL PROPERTY PENSTOCK_RTL_${block}_DEPENDS)
    list(APPEND blocks ${needs} ${block})
  endforeach()
  list(REMOVE_DUPLICATES blocks)
  set(sources)
  set(all)
  foreach(block IN LISTS blocks)
    get_property(known GLOBAL PROPERTY PENSTOCK_RTL_${block} SET)
    if(NOT known)
      message(FATAL_ERROR "penstock_rtl_files: no block ${block}")
    endif()
    get_property(files GLOBAL PROPERTY PENSTOCK_RTL_${block})
    get_property(properties GLOBAL PROPERTY PENSTOCK_RTL_${block}_PROPERTIES)
    list(APPEND sources ${files})
    list(APPEND all ${files} ${properties})
  endforeach()
  set(${variable} ${all} PARENT_SCOPE)
  set(${variable}_SOURCES ${sources} PARENT_SCOPE)
endfunction()

function(penstock_rtl block)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;TOPS;TOPS_FULL;PROPERTIES;DEPENDS")
  if(arg_UNPARSED_ARGUMENTS OR NOT (arg_SOURCES OR arg_PROPERTIES))
    message(FATAL_ERROR "penstock_rtl(${block}): no SOURCES, or unknown: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(depends)
  foreach(needed IN LISTS arg_DEPENDS)
    get_property(more GLOBAL PROPERTY PENSTOCK_RTL_${needed}_DEPENDS)
    list(APPEND depends ${more} ${needed})
  endforeach()
  list(REMOVE_DUPLICATES depends)
  list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  list(TRANSFORM arg_PROPERTIES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(GLOBAL PROPERTY PENSTOCK_RTL_${block} "${arg_SOURCES}")
  set_property(GLOBAL PROPERTY PENSTOCK_RTL_${block}_PROPERTIES "${arg_PROPERTIES}")
  set_property(GLOBAL PROPERTY PENSTOCK_RTL_${block}_DEPENDS ${depends})
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_RTL_BLOCKS ${block})

  if(NOT PENSTOCK_TESTS)
    return()
  endif()
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/formal.json AND PENSTOCK_YOSYS_SMTBMC AND PENSTOCK_Z3)
    penstock_formal(${CMAKE_CURRENT_SOURCE_DIR}/formal.json)
  endif()
  penstock_rtl_files(files ${block})
  # yosys looks at the block's own modules; of those that it uses, only at their ports: each was looked
  # at where it stands, and some take minutes.
  set(used ${files_SOURCES})
  list(REMOVE_ITEM used ${arg_SOURCES})
  set(packages ${used})
  list(FILTER packages INCLUDE REGEX "_pkg\\.sv$")
  list(FILTER used EXCLUDE REGEX "_pkg\\.sv$")
  set(read)
  if(packages)
    list(JOIN packages " " packages)
    string(APPEND read "read_verilog -sv ${packages}; ")
  endif()
  if(used)
    list(JOIN used " " used)
    string(APPEND read "read_verilog -sv -lib ${used}; ")
  endif()
  list(JOIN arg_SOURCES " " sources)
  string(APPEND read "read_verilog -sv ${sources}")
  foreach(top IN LISTS arg_TOPS arg_TOPS_FULL)
    set(labels rtl)
    if(top IN_LIST arg_TOPS_FULL)
      set(labels rtl full)
    endif()
    if(PENSTOCK_VERILATOR)
      add_test(NAME rtl_lint.${top}
        COMMAND ${VERILATOR_BIN} --lint-only --assert -Wall --top-module ${top} ${files})
      set_tests_properties(rtl_lint.${top} PROPERTIES LABELS rtl TIMEOUT 120)
    endif()
    if(PENSTOCK_YOSYS)
      add_test(NAME rtl_yosys.${top} COMMAND ${PENSTOCK_YOSYS} -q -e "implicitly declared"
        -p "${read}; hierarchy -check -top ${top}; proc; check -assert")
      set_tests_properties(rtl_yosys.${top} PROPERTIES LABELS "${labels}" TIMEOUT 900)
    endif()
  endforeach()
endfunction()

function(penstock_rtl_manifest path)
  set(json "{}")
  get_property(blocks GLOBAL PROPERTY PENSTOCK_RTL_BLOCKS)
  foreach(block IN LISTS blocks)
    penstock_rtl_files(files ${block})
    if(NOT files_SOURCES)
      continue()
    endif()
    list(JOIN files_SOURCES "\", \"" sources)
    string(JSON json SET "${json}" ${block} "{\"sources\": [\"${sources}\"]}")
  endforeach()
  file(WRITE ${path} "${json}\n")
endfunction()

function(penstock_formal list)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
  file(READ ${list} json)
  string(JSON count LENGTH "${json}" proofs)
  math(EXPR last "${count} - 1")
  foreach(index RANGE ${last})
    string(JSON top GET "${json}" proofs ${index} top)
    string(JSON full ERROR_VARIABLE ignored GET "${json}" proofs ${index} full)
    set(name rtl_formal.${top})
    if(TEST ${name})
      set(name ${name}.${index})
    endif()
    add_test(NAME ${name}
      COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/rtl/formal/prove.py --list ${list}
        --index ${index} --yosys ${PENSTOCK_YOSYS} --smtbmc ${PENSTOCK_YOSYS_SMTBMC})
    set(labels formal)
    if(full)
      set(labels formal full)
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT 1800)
  endforeach()
endfunction()

function(penstock_verilate target)
  if(NOT PENSTOCK_VERILATOR)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "TRACE" "TOP;PREFIX"
    "BLOCKS;SOURCES;PARAMETERS;DEFINES;FLAGS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_TOP)
    message(FATAL_ERROR "penstock_verilate(${target}): no TOP, or unknown: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_PREFIX)
    set(arg_PREFIX V${arg_TOP})
  endif()
  penstock_rtl_files(files ${arg_BLOCKS})
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    list(APPEND files ${source})
  endforeach()

  set(flags --assert --x-initial unique --x-assign unique -O3 --output-split 20000 ${arg_FLAGS})
  list(TRANSFORM arg_PARAMETERS PREPEND -G)
  list(TRANSFORM arg_DEFINES PREPEND -D)
  if(NOT TARGET penstock_verilated_trace)
    set(arg_TRACE OFF)
  endif()
  if(arg_TRACE)
    list(APPEND flags --trace-fst --trace-structs)
  endif()
  if(PENSTOCK_RTL_COVERAGE)
    # Where statements are reordered, a counter may come to stand behind what its own branch assigns,
    # and then counts something else.
    list(APPEND flags --coverage-line --coverage-user -fno-split -fno-reorder -Wno-UNOPTFLAT)
    # Of states, flags and counts; toggles of wide data would slow a model by far more than they
    # tell.
    set(data_blocks ${arg_BLOCKS})
    list(REMOVE_ITEM data_blocks common registers command sync)
    if(arg_BLOCKS AND NOT data_blocks)
      list(APPEND flags --coverage-toggle --coverage-max-width 8)
    endif()
  endif()
  set(compile ${PENSTOCK_RTL_OPTIMISE} -fPIC -w)
  if(PENSTOCK_SANITIZE)
    list(APPEND compile -fsanitize=${PENSTOCK_SANITIZE})
  endif()
  list(JOIN compile " " compile)

  # The generated C++ and its objects have names that only verilator knows, so its own makefile
  # builds the archive.
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}.model)
  set(archive ${folder}/${arg_PREFIX}__ALL.a)
  set(launcher)
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    set(launcher OBJCACHE=${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  add_custom_command(OUTPUT ${archive}
    COMMAND ${VERILATOR_BIN} --cc --Mdir ${folder} --prefix ${arg_PREFIX} --top-module ${arg_TOP}
      ${flags} ${arg_PARAMETERS} ${arg_DEFINES} ${files}
    COMMAND ${PENSTOCK_MAKE} -s -j2 -C ${folder} -f ${arg_PREFIX}.mk ${arg_PREFIX}__ALL.a
      VERILATOR_ROOT=${VERILATOR_ROOT} CXX=${CMAKE_CXX_COMPILER} LINK=${CMAKE_CXX_COMPILER}
      ${launcher} OPT_FAST=${compile} OPT_SLOW=${compile}
    DEPENDS ${files}
    COMMENT "Verilating ${target}" VERBATIM)
  add_custom_target(${target}_model DEPENDS ${archive})
  add_library(${target} INTERFACE)
  add_dependencies(${target} ${target}_model)
  file(MAKE_DIRECTORY ${folder})
  target_include_directories(${target} SYSTEM INTERFACE ${folder})
  target_compile_definitions(${target} INTERFACE
    $<$<BOOL:${arg_TRACE}>:PENSTOCK_RTL_TRACE=1>
    $<$<BOOL:${PENSTOCK_RTL_COVERAGE}>:PENSTOCK_RTL_COVERAGE=1>)
  target_link_libraries(${target} INTERFACE ${archive} penstock_rtl_include
    $<IF:$<BOOL:${arg_TRACE}>,penstock_verilated_trace,penstock_verilated>)
endfunction()
