// Bound to every penstock_credit: what is taken was free, and no more comes back than is out.
`default_nettype none

module penstock_credit_properties #(
    parameter int unsigned CREDITS = 128,
    parameter int unsigned COUNT_BITS = $clog2(CREDITS + 1)
) (
    input wire logic                  clk_i,
    input wire logic                  rst_ni,
    input wire logic                  enough_o,
    input wire logic                  take_i,
    input wire logic [COUNT_BITS-1:0] give_i,
    input wire logic [COUNT_BITS-1:0] free_o
);

  a_take: assert property (@(posedge clk_i) disable iff (!rst_ni) take_i |-> enough_o)
  else $error("credit: more was taken than the %0d that are free", free_o);
  a_give: assert property (@(posedge clk_i) disable iff (!rst_ni)
      32'(free_o) + 32'(give_i) <= CREDITS)
  else $error("credit: %0d come back to %0d of %0d", give_i, free_o, CREDITS);

  c_not_enough: cover property (@(posedge clk_i) rst_ni && !enough_o);

endmodule

bind penstock_credit penstock_credit_properties #(
    .CREDITS   (CREDITS),
    .COUNT_BITS(COUNT_BITS)
) i_properties (
    .clk_i,
    .rst_ni,
    .enough_o,
    .take_i,
    .give_i,
    .free_o
);

`default_nettype wire
