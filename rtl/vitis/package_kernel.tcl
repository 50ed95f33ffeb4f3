# Packages the card as a kernel:
#
#   vivado -mode batch -source package_kernel.tcl -tclargs PART OUTPUT.xo
#
# The IP is called penstock_card, whatever its top module: by that name its description (kernel.xml),
# the linker and the host know it.
if {$argc != 2} {
  puts stderr "usage: vivado -mode batch -source package_kernel.tcl -tclargs PART OUTPUT.xo"
  exit 2
}
set part [lindex $argv 0]
set xo [file normalize [lindex $argv 1]]
set kernel penstock_card
set top penstock_card_vitis
set here [file normalize [file dirname [info script]]]
set rtl [file dirname $here]
set work [file rootname $xo]_package
file mkdir [file dirname $xo]
file delete -force $work $xo

create_project -force package $work/project -part $part
set list [open $here/sources.f]
foreach line [split [read $list] "\n"] {
  if {$line ne "" && ![string match "#*" $line]} {
    add_files -norecurse $rtl/$line
  }
}
close $list
set_property file_type SystemVerilog [get_files *.sv]
set_property top $top [current_fileset]
update_compile_order -fileset sources_1

ipx::package_project -root_dir $work/ip -vendor penstock -library rtl_kernel \
  -taxonomy /KernelIP -import_files -set_current false
ipx::unload_core $work/ip/component.xml
ipx::edit_ip_in_project -upgrade true -name edit -directory $work/ip $work/ip/component.xml
set core [ipx::current_core]
set_property name $kernel $core
set_property version 1.0 $core
set_property core_revision 1 $core
set_property display_name "Penstock card" $core

# The card has its parameters fixed, but for the clock's.
foreach parameter [ipx::get_user_parameters -of_objects $core] {
  if {[get_property NAME $parameter] ne "CLOCK_KHZ"} {
    ipx::remove_user_parameter [get_property NAME $parameter] $core
  }
}
foreach bus {s_axi_control m_axi_ctl m_axi_data} {
  ipx::associate_bus_interfaces -busif $bus -clock ap_clk $core
}
ipx::associate_bus_interfaces -clock ap_clk -reset ap_rst_n $core
# Bursts are of up to 64 beats; the read engine keeps 32 of them under way, the write engine as many.
foreach bus {m_axi_ctl m_axi_data} {
  set interface [ipx::get_bus_interfaces $bus -of_objects $core]
  foreach {name value} {MAX_BURST_LENGTH 64 NUM_READ_OUTSTANDING 32 NUM_WRITE_OUTSTANDING 32} {
    set parameter [ipx::add_bus_parameter -quiet $name $interface]
    set_property value $value $parameter
    set_property value_source constant $parameter
  }
}

# The registers that arguments stand at, as kernel.xml has them: each says which master carries what
# it names.
set description [open $here/kernel.xml]
set text [read $description]
close $description
set map [ipx::add_memory_map -quiet s_axi_control $core]
set_property slave_memory_map_ref s_axi_control \
  [ipx::get_bus_interfaces s_axi_control -of_objects $core]
set block [ipx::add_address_block -quiet reg0 $map]
set_property range 65536 $block
set_property width 32 $block
set argument {<arg name="(\w+)"[^>]* port="(\w+)"[^>]* offset="(0x[0-9a-f]+)"}
foreach {whole name port offset} [regexp -all -inline $argument $text] {
  set register [ipx::add_register -quiet $name $block]
  set_property address_offset $offset $register
  set_property size 64 $register
  set owner [ipx::add_register_parameter -quiet ASSOCIATED_BUSIF $register]
  set_property value $port $owner
}

set_property sdx_kernel true $core
set_property sdx_kernel_type rtl $core
set_property ipi_drc {ignore_freq_hz true} $core
set_property vitis_drc {ctrl_protocol user_managed} $core
set_property supported_families {} $core
set_property auto_family_support_level level_2 $core
ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity -kernel -xrt $core
ipx::save_core $core
close_project -delete

package_xo -force -xo_path $xo -kernel_name $kernel -ctrl_protocol user_managed \
  -ip_directory $work/ip -kernel_xml $here/kernel.xml
