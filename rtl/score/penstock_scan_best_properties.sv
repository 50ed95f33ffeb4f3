// What waits for its balanced part has room, and is there when that comes. For Verilator alone.
`default_nettype none

module penstock_scan_best_properties (
    input wire logic clk_i,
    input wire logic rst_ni,
    input wire logic put_i,
    input wire logic get,
    input wire logic [3:0] put_q,
    input wire logic [3:0] get_q,
    input wire logic late_valid_i,
    input wire logic waits_i
);
  logic [3:0] next_put;
  assign next_put = put_q + 4'd1;
  assert property (@(posedge clk_i) disable iff (!rst_ni) put_i && !get |-> next_put != get_q);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   waits_i && late_valid_i |-> put_q != get_q);
  cover property (@(posedge clk_i) put_i && get && put_q != get_q);
endmodule

bind penstock_scan_best penstock_scan_best_properties i_properties (.*);

`default_nettype wire
