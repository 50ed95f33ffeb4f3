# Synthesises a kernel with Vitis HLS (2021.1 to 2023.1) and exports it as an .xo for v++ -l.
#
#   vitis_hls -f hls/synthesis/synthesise.tcl -tclargs KERNEL PART [MHZ]
#
# from the repository's root. KERNEL is reduce or select, PART xcu55c-fsvh2892-2L-e (U55C) or
# xcu280-fsvh2892-2L-e (U280), MHZ 300 unless told. Everything goes to build/hls/KERNEL.

# What follows -tclargs, whichever way the version hands it over.
set arguments $argv
set marker [lsearch $arguments "-tclargs"]
if {$marker >= 0} {
  set arguments [lrange $arguments [expr {$marker + 1}] end]
}
if {[llength $arguments] < 2} {
  puts "usage: vitis_hls -f hls/synthesis/synthesise.tcl -tclargs reduce|select PART \[MHZ\]"
  exit 2
}
lassign $arguments kernel part mhz
if {$mhz eq ""} {
  set mhz 300
}
if {$kernel ni {reduce select}} {
  puts "no kernel '$kernel': reduce or select"
  exit 2
}

# The kernels name host/descriptor as penstock/descriptor.
set root [file normalize [file join [file dirname [info script]] .. ..]]
set out [file join $root build hls]
file mkdir [file join $out include penstock]
set link [file join $out include penstock descriptor]
if {![file exists $link]} {
  file link -symbolic $link [file join $root host descriptor]
}

set flags "-std=c++14 -I[file join $root hls] -I[file join $out include]"
cd $out
open_project -reset $kernel
set_top penstock_hls_$kernel
add_files [file join $root hls $kernel.cpp] -cflags $flags
open_solution -reset $part -flow_target vitis
set_part $part
create_clock -period [expr {1000.0 / $mhz}]ns -name default
set_clock_uncertainty 12%
csynth_design
export_design -format xo -output [file join $out penstock_hls_$kernel.$part.xo]
exit 0
