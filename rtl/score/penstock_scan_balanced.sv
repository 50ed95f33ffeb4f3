// BALANCED of one row for two resources, bit for bit what float64 gives: trunc((1 - |f0 - f1| / 2)
// * 100) with each operation rounded to nearest even. Takes a row every cycle; the score stands 65
// cycles later, from 0 to 100.
//
//   cycle  stage
//   1..57  fractions                        61  the difference rounded
//   58     the larger one, the distance     62  in units of 2^-53, to be taken from 1
//          of exponents                     63  1 minus half of it, rounded: a multiple of 2^-53
//   59     the difference, exact as far     64  times 100
//          as rounding needs                65  rounded and truncated
//   60     its leading one first
//
// Bits that are shifted out are kept as one bit that is 1 where any of them was: with two bits
// between it and the last one of the result, rounding comes out the same.
`default_nettype none

module penstock_scan_balanced (
    input wire logic clk_i,
    input wire logic [64:0] token_i,  // which stages hold something, from the input on
    input wire logic [1:0] take_i,
    input wire logic [2*54-1:0] allocatable_i,
    input wire logic [2*55-1:0] used_i,
    input wire logic asks_65i,  // the task asks for one of the resources; for the last stage
    output logic [7:0] score_o
);
  for (genvar e = 0; e < 2; e++) begin : g_fraction
    logic there;
    logic [5:0] exponent;
    logic [52:0] mantissa;
    penstock_scan_fraction i_fraction (
        .clk_i,
        .token_i(token_i[56:0]),
        .take_i(take_i[e]),
        .allocatable_i(allocatable_i[e*54+:54]),
        .used_i(used_i[e*55+:55]),
        .there_o(there),
        .exponent_o(exponent),
        .mantissa_o(mantissa)
    );
  end

  // 58. A fraction of 0 is the smaller one whatever its exponent says.
  logic both_58q, swap;
  logic [52:0] large_58q, small_58q;
  logic [5:0] exponent_58q, distance_58q;
  assign swap = g_fraction[0].mantissa == '0 ||
      (g_fraction[1].mantissa != '0 &&
       (g_fraction[1].exponent < g_fraction[0].exponent ||
        (g_fraction[1].exponent == g_fraction[0].exponent &&
         g_fraction[1].mantissa > g_fraction[0].mantissa)));
  always_ff @(posedge clk_i) begin
    if (token_i[57]) begin
      both_58q <= g_fraction[0].there && g_fraction[1].there;
      large_58q <= swap ? g_fraction[1].mantissa : g_fraction[0].mantissa;
      small_58q <= swap ? g_fraction[0].mantissa : g_fraction[1].mantissa;
      exponent_58q <= swap ? g_fraction[1].exponent : g_fraction[0].exponent;
      distance_58q <= swap ? g_fraction[0].exponent - g_fraction[1].exponent
                           : g_fraction[1].exponent - g_fraction[0].exponent;
    end
  end

  // 59
  logic both_59q;
  logic [5:0] exponent_59q;
  logic [55:0] difference_59q, aligned;
  logic [118:0] shifted;
  assign shifted = {small_58q, 66'b0} >> distance_58q;
  assign aligned = {shifted[118:64], |shifted[63:0]};
  always_ff @(posedge clk_i) begin
    if (token_i[58]) begin
      both_59q <= both_58q;
      exponent_59q <= exponent_58q;
      difference_59q <= {large_58q, 3'b0} - aligned;
    end
  end

  // 60
  function automatic logic [5:0] leading_zeros(input logic [55:0] value_i);
    leading_zeros = '0;
    for (int unsigned i = 0; i < 56; i++) if (value_i[i]) leading_zeros = 6'(55 - i);
  endfunction
  logic both_60q;
  logic [6:0] exponent_60q;
  logic [55:0] difference_60q;
  logic [5:0] zeros;
  assign zeros = leading_zeros(difference_59q);
  always_ff @(posedge clk_i) begin
    if (token_i[59]) begin
      both_60q <= both_59q;
      exponent_60q <= 7'(exponent_59q) + 7'(zeros);
      difference_60q <= difference_59q << zeros;
    end
  end

  // 61
  logic both_61q, up;
  logic [6:0] exponent_61q;
  logic [52:0] difference_61q;
  logic [53:0] rounded;
  assign up = difference_60q[2] && (difference_60q[3] || (|difference_60q[1:0]));
  assign rounded = {1'b0, difference_60q[55:3]} + 54'(up);
  always_ff @(posedge clk_i) begin
    if (token_i[60]) begin
      both_61q <= both_60q;
      exponent_61q <= rounded[53] ? exponent_60q - 7'd1 : exponent_60q;
      difference_61q <= rounded[53] ? rounded[53:1] : rounded[52:0];
    end
  end

  // 62: half the difference is difference * 2^-(53 + exponent). Three bits below 2^-53.
  logic both_62q;
  logic [55:0] half_62q, shifted_half;
  logic lost;
  always_comb begin
    shifted_half = {difference_61q, 3'b0} >> exponent_61q;
    lost = ({difference_61q, 3'b0} & ~(~56'b0 << exponent_61q)) != '0;
  end
  always_ff @(posedge clk_i) begin
    if (token_i[61]) begin
      both_62q <= both_61q;
      half_62q <= {shifted_half[55:1], shifted_half[0] | lost};
    end
  end

  // 63
  logic [53:0] rest_63q;
  logic [56:0] rest;
  logic rest_up;
  assign rest = {1'b1, 56'b0} - {1'b0, half_62q};
  assign rest_up = rest[2] && (rest[3] || (|rest[1:0]));
  always_ff @(posedge clk_i) begin
    if (token_i[62])
      rest_63q <= both_62q ? rest[56:3] + 54'(rest_up) : 54'h20_0000_0000_0000;
  end

  // 64: at most 100 * 2^53.
  logic [60:0] hundredfold_64q;
  always_ff @(posedge clk_i) begin
    if (token_i[63])
      hundredfold_64q <= (61'(rest_63q) << 6) + (61'(rest_63q) << 5) + (61'(rest_63q) << 2);
  end

  // 65: half a unit in the last place of the product is 2^6 from 64 on, and 2^5 below.
  /* verilator lint_off UNUSEDSIGNAL */  // only whole numbers matter of the sums
  logic [60:0] upper, lower;
  /* verilator lint_on UNUSEDSIGNAL */
  assign upper = hundredfold_64q + 61'd64;
  assign lower = hundredfold_64q + 61'd32;
  always_ff @(posedge clk_i) begin
    if (token_i[64]) begin
      score_o <= upper[60:53] > 8'd64 ? upper[60:53] : lower[60:53];
      if (!asks_65i) score_o <= '0;
    end
  end
endmodule

`default_nettype wire
