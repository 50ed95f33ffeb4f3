// Bound to every penstock_fifo: what a test should have seen. What must hold is proved.
`default_nettype none

module penstock_fifo_properties (
    input wire logic clk_i,
    input wire logic rst_ni,
    input wire logic in_valid_i,
    input wire logic in_ready_o,
    input wire logic out_valid_o,
    input wire logic out_ready_i
);

  c_full: cover property (@(posedge clk_i) rst_ni && !in_ready_o);
  c_held_back: cover property (@(posedge clk_i) rst_ni && out_valid_o && !out_ready_i);
  c_in_and_out: cover property (@(posedge clk_i)
      rst_ni && in_valid_i && in_ready_o && out_valid_o && out_ready_i);

endmodule

bind penstock_fifo penstock_fifo_properties i_properties (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o,
    .out_valid_o,
    .out_ready_i
);

`default_nettype wire
