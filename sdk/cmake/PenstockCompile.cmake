# How everything of ours is compiled.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# Checks stay on in release: NDEBUG is never defined, whatever the build type.
foreach(lang C CXX)
  foreach(config RELEASE RELWITHDEBINFO MINSIZEREL)
    string(REPLACE "-DNDEBUG" "" CMAKE_${lang}_FLAGS_${config} "${CMAKE_${lang}_FLAGS_${config}}")
  endforeach()
endforeach()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(PENSTOCK_CCACHE ccache)
mark_as_advanced(PENSTOCK_CCACHE)
if(PENSTOCK_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${PENSTOCK_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PENSTOCK_CCACHE})
endif()

if(PENSTOCK_SANITIZE)
  add_compile_options(-fsanitize=${PENSTOCK_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${PENSTOCK_SANITIZE})
  if(PENSTOCK_SANITIZE MATCHES "undefined")
    # A finding has to fail its test, not just print.
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
if(PENSTOCK_COVERAGE)
  # Several processes of a test may end at once, and update the same counters.
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
endif()

# penstock_compile(<target>): warnings and floating point as the project wants them.
# -ffp-contract=off because a result is defined to the bit, and a fused multiply-add has other bits.
# g++ 12 at -O3 sees an overflow in libfmt's parser of formats, and overlaps in std::string, where
# there is none.
function(penstock_compile target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow "$<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow;-Wno-restrict>"
    -ffp-contract=off $<$<BOOL:${PENSTOCK_WERROR}>:-Werror>)
endfunction()
