# penstock_optional(<NAME> <variable> NEEDS <what> FOUND <value>...)
#
# Decides whether a part that needs something from outside is built. The user says so with the cache
# variable PENSTOCK_WITH_<NAME>:
#   AUTO  if what it needs is here (the default)
#   ON    it has to be here, or the configuration fails with what is missing
#   OFF   never
# <variable> becomes ON or OFF in the caller's scope. NEEDS names, for people, the Debian package or
# the tool that is missing; FOUND are the values, each of which has to be true.
# The global property PENSTOCK_ABSENT lists "<NAME>=<why>" for each part that is left out.
function(penstock_optional name variable)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "NEEDS" "FOUND")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NEEDS)
    message(FATAL_ERROR "penstock_optional(${name}): no NEEDS, or unknown: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(PENSTOCK_WITH_${name} AUTO CACHE STRING "Build what needs ${arg_NEEDS}: AUTO, ON or OFF")
  set_property(CACHE PENSTOCK_WITH_${name} PROPERTY STRINGS AUTO ON OFF)
  set(found ON)
  foreach(value IN LISTS arg_FOUND)
    if(NOT value)
      set(found OFF)
    endif()
  endforeach()
  if(NOT DEFINED CACHE{PENSTOCK_WITH_${name}} OR PENSTOCK_WITH_${name} STREQUAL AUTO)
    set(why "this build had no ${arg_NEEDS}")
  elseif(PENSTOCK_WITH_${name})
    if(NOT found)
      message(FATAL_ERROR "PENSTOCK_WITH_${name} is ON, but ${arg_NEEDS} is missing")
    endif()
  else()
    set(found OFF)
    set(why "this build was made with PENSTOCK_WITH_${name}=OFF")
  endif()
  if(NOT found)
    message(STATUS "Without ${name}: ${why}")
    set_property(GLOBAL APPEND PROPERTY PENSTOCK_ABSENT "${name}=${why}")
  endif()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()
