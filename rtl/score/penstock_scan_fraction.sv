// min(1, used / allocatable) in float64, rounded to nearest even: one of the two fractions of
// BALANCED. Takes a pair of integers every cycle; the fraction stands 57 cycles later as
// mantissa_o * 2^-(52 + exponent_o), with a mantissa from 2^52 to 2^53 - 1, or of 0.
//
// used is at most 2^54 and allocatable at most 2^53, so that both are exact in float64 where the
// quotient is below 1. It has 53 bits of mantissa, of which the first is 1, and one bit to round
// by. A tie is impossible: 54 significant bits times allocatable make no integer below 2^53.
`default_nettype none

module penstock_scan_fraction (
    input wire logic clk_i,
    input wire logic [56:0] token_i,  // which stages hold something, from the input on
    input wire logic take_i,  // the entry counts, as far as the task says
    input wire logic [53:0] allocatable_i,
    input wire logic [54:0] used_i,
    output logic there_o,  // the entry counts
    output logic [5:0] exponent_o,
    output logic [52:0] mantissa_o
);
  /* verilator no_inline_module */  // built once, not for each instance
  // Position of the leading one, 0 for 0.
  function automatic logic [5:0] leading(input logic [53:0] value_i);
    leading = '0;
    for (int unsigned i = 0; i < 54; i++) if (value_i[i]) leading = 6'(i);
  endfunction

  // 1: what needs no division, and where the leading ones are.
  logic there_1q, one_1q, zero_1q;
  logic [53:0] allocatable_1q, used_1q;
  logic [5:0] allocatable_lead_1q, used_lead_1q;
  always_ff @(posedge clk_i) begin
    if (token_i[0]) begin
      there_1q <= take_i && allocatable_i != '0;
      one_1q <= used_i >= {1'b0, allocatable_i};
      zero_1q <= used_i == '0;
      allocatable_1q <= allocatable_i;
      used_1q <= used_i[53:0];
      allocatable_lead_1q <= leading(allocatable_i);
      used_lead_1q <= leading(used_i[53:0]);
    end
  end

  // 2: both with their leading one at bit 53.
  logic there_2q, one_2q, zero_2q;
  logic [53:0] allocatable_2q, used_2q;
  logic [5:0] exponent_2q;
  always_ff @(posedge clk_i) begin
    if (token_i[1]) begin
      there_2q <= there_1q;
      one_2q <= one_1q;
      zero_2q <= zero_1q;
      allocatable_2q <= allocatable_1q << (6'd53 - allocatable_lead_1q);
      used_2q <= used_1q << (6'd53 - used_lead_1q);
      exponent_2q <= allocatable_lead_1q - used_lead_1q;
    end
  end

  // 3: the quotient's leading one.
  logic there_3q, one_3q, zero_3q;
  logic [53:0] allocatable_3q, rest_3q;
  logic [5:0] exponent_3q;
  logic [54:0] over;
  logic [53:0] twice_less;
  assign over = {1'b0, used_2q} - {1'b0, allocatable_2q};
  assign twice_less = {used_2q[52:0], 1'b0} - allocatable_2q;
  always_ff @(posedge clk_i) begin
    if (token_i[2]) begin
      there_3q <= there_2q;
      one_3q <= one_2q;
      zero_3q <= zero_2q;
      allocatable_3q <= allocatable_2q;
      rest_3q <= over[54] ? twice_less : over[53:0];
      exponent_3q <= over[54] ? exponent_2q + 6'd1 : exponent_2q;
    end
  end

  // 4..56: 52 bits behind it, and one to round by.
  logic there, one, zero;
  logic [5:0] exponent;
  logic [52:0] quotient;
  /* verilator lint_off PINCONNECTEMPTY */
  penstock_scan_divide #(
      .DIVISOR(54),
      .QUOTIENT(53),
      .SIDE(9)
  ) i_divide (
      .clk_i,
      .token_i(token_i[55:3]),
      .hold_i(1'b0),
      .dividend_i({rest_3q, 53'b0}),
      .divisor_i(allocatable_3q),
      .side_i({there_3q, one_3q, zero_3q, exponent_3q}),
      .hold_o(),
      .quotient_o(quotient),
      .remainder_o(),
      .side_o({there, one, zero, exponent})
  );
  /* verilator lint_on PINCONNECTEMPTY */

  // 57: rounded. All ones that are rounded up make the next power of two.
  logic [53:0] rounded;
  assign rounded = {1'b0, 1'b1, quotient[52:1]} + 54'(quotient[0]);
  always_ff @(posedge clk_i) begin
    if (token_i[56]) begin
      there_o <= there;
      exponent_o <= rounded[53] ? exponent - 6'd1 : exponent;
      mantissa_o <= rounded[53] ? rounded[53:1] : rounded[52:0];
      if (one) begin
        exponent_o <= '0;
        mantissa_o <= 53'h10_0000_0000_0000;
      end
      if (zero && !one) mantissa_o <= '0;
    end
  end
endmodule

`default_nettype wire
