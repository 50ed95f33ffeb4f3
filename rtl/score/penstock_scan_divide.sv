// Division of unsigned integers, restoring, one bit of the quotient in a stage: takes a division
// every cycle, gives it QUOTIENT cycles later. The dividend's upper part is below the divisor, or
// the quotient would not fit. `hold_i` lets the upper part pass unchanged instead (the quotient
// means nothing then). token_i says which stages hold something, from the input (bit 0) on: the
// others stand still.
`default_nettype none

module penstock_scan_divide #(
    parameter int unsigned DIVISOR = 54,  // bits of the divisor
    parameter int unsigned QUOTIENT = 7,  // bits of the quotient
    parameter int unsigned SIDE = 1  // bits that travel along
) (
    input wire logic clk_i,
    input wire logic [QUOTIENT-1:0] token_i,
    input wire logic hold_i,
    input wire logic [DIVISOR+QUOTIENT-1:0] dividend_i,
    input wire logic [DIVISOR-1:0] divisor_i,
    input wire logic [SIDE-1:0] side_i,
    output logic hold_o,
    output logic [QUOTIENT-1:0] quotient_o,
    output logic [DIVISOR-1:0] remainder_o,
    output logic [SIDE-1:0] side_o
);
  // A stage: the remainder takes a bit of the dividend, and the quotient gets one.
  function automatic logic [DIVISOR+QUOTIENT-1:0] step(
      input logic hold, input logic [DIVISOR-1:0] divisor,
      input logic [DIVISOR-1:0] remainder, input logic [QUOTIENT-1:0] low);
    logic [DIVISOR:0] shifted, less;
    shifted = {remainder, low[QUOTIENT-1]};
    less = shifted - {1'b0, divisor};
    step = {less[DIVISOR] ? shifted[DIVISOR-1:0] : less[DIVISOR-1:0],
            low[QUOTIENT-2:0], ~less[DIVISOR]};
    if (hold) step[DIVISOR+QUOTIENT-1:QUOTIENT] = remainder;
  endfunction

  // What stands between the stages; the last one is the outputs'.
  logic hold[1:QUOTIENT-1];
  logic [DIVISOR-1:0] divisor[1:QUOTIENT-1];
  logic [DIVISOR-1:0] remainder[1:QUOTIENT-1];
  logic [QUOTIENT-1:0] low[1:QUOTIENT-1];  // dividend bits still to come, then quotient bits
  logic [SIDE-1:0] side[1:QUOTIENT-1];

  // From the last stage to the first, so that each takes what the one before held. The loop has
  // more turns than there are stages because verilator unrolls those of up to 64, and builds long.
  always_ff @(posedge clk_i) begin
    if (token_i[QUOTIENT-1]) begin
      hold_o <= hold[QUOTIENT-1];
      side_o <= side[QUOTIENT-1];
      {remainder_o, quotient_o} <= step(hold[QUOTIENT-1], divisor[QUOTIENT-1],
                                        remainder[QUOTIENT-1], low[QUOTIENT-1]);
    end
    /* verilator lint_off BLKSEQ */
    for (int s = 66; s > 1; s--) begin
      if (s < QUOTIENT) begin
        if (token_i[s-1]) begin
          {remainder[s], low[s]} = step(hold[s-1], divisor[s-1], remainder[s-1], low[s-1]);
          hold[s] = hold[s-1];
          divisor[s] = divisor[s-1];
          side[s] = side[s-1];
        end
      end
    end
    if (token_i[0]) begin
      {remainder[1], low[1]} = step(hold_i, divisor_i, dividend_i[DIVISOR+QUOTIENT-1:QUOTIENT],
                                    dividend_i[QUOTIENT-1:0]);
      hold[1] = hold_i;
      divisor[1] = divisor_i;
      side[1] = side_i;
    end
    /* verilator lint_on BLKSEQ */
  end
endmodule

`default_nettype wire
