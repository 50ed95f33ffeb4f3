// Counts room that is promised before it is used: a reader takes as many credits as its burst has
// beats before it asks for the burst, and gives one back for each word that leaves its buffer. So
// nothing arrives that has no room.
`default_nettype none

module penstock_credit #(
    // Credits in all, and at the start: 1 or more.
    parameter int unsigned CREDITS = 128,
    // Not to be set.
    parameter int unsigned COUNT_BITS = $clog2(CREDITS + 1)
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    // How many are wanted; enough_o says in the same cycle whether that many are free.
    input  wire logic [COUNT_BITS-1:0] amount_i,
    output      logic                  enough_o,
    // Takes them; only where enough_o is.
    input  wire logic                  take_i,
    // How many come back: never more than are out.
    input  wire logic [COUNT_BITS-1:0] give_i,
    output      logic [COUNT_BITS-1:0] free_o
);

  logic [COUNT_BITS-1:0] free_q;

  assign enough_o = amount_i <= free_q;
  assign free_o   = free_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) free_q <= COUNT_BITS'(CREDITS);
    else free_q <= free_q - (take_i && enough_o ? amount_i : '0) + give_i;
  end

`ifdef FORMAL
  logic                  f_reset_q = 1'b0;
  logic [COUNT_BITS-1:0] f_out_q;  // taken and not yet given back

  always_ff @(posedge clk_i) begin
    f_reset_q <= 1'b1;
    if (!f_reset_q) assume (!rst_ni);
    assume (give_i <= f_out_q);
    if (!rst_ni) f_out_q <= '0;
    else f_out_q <= f_out_q + (take_i && enough_o ? amount_i : '0) - give_i;
    if (f_reset_q && rst_ni) begin
      assert ({1'b0, f_out_q} + {1'b0, free_q} == (COUNT_BITS + 1)'(CREDITS));
      assert (free_q <= COUNT_BITS'(CREDITS));
      cover (free_q == '0);
      cover (free_q == COUNT_BITS'(CREDITS) && $past(free_q) == '0);
    end
  end
`endif

endmodule

`default_nettype wire
