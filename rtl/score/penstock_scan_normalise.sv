// One score of one row in its range: enum penstock_normalise of node_table.h, exact. Takes a score
// every cycle, gives its value QUOTIENT + 4 cycles later. token_i says which stages hold something.
//
// The quotient 100 * x / divisor is at most 100, or, where negative scores make it large, is
// limited to +-2^20; so QUOTIENT bits of it are made, and what is larger is found beforehand.
`default_nettype none

module penstock_scan_normalise #(
    parameter int unsigned SCORE = 26,  // bits of a score, signed
    parameter int unsigned QUOTIENT = 21,
    localparam int unsigned MAGNITUDE = SCORE + 1
) (
    input wire logic clk_i,
    input wire logic [QUOTIENT+3:0] token_i,
    input wire logic [2:0] mode_i,  // penstock_pkg::NORMALISE_*
    input wire logic signed [SCORE-1:0] score_i,
    // Of the range, see penstock_scan_range.
    input wire logic signed [SCORE+1:0] offset_i,
    input wire logic negate_i,
    input wire logic zero_i,
    input wire logic [MAGNITUDE-1:0] divisor_i,
    output logic signed [SCORE-1:0] value_o
);
  localparam int unsigned WIDE = MAGNITUDE + 7;
  localparam int unsigned DIVIDEND = MAGNITUDE + QUOTIENT;
  localparam int unsigned LIMIT_BIT = 20;

  // The distance, and what is certain without a division.
  logic signed [SCORE+2:0] distance_q;
  logic hold_1q, is_constant_1q, hundred_1q, reversed_1q, limited_1q, f64_1q;
  logic [MAGNITUDE-1:0] divisor_1q, divisor_2q, divisor_3q;
  logic is_spread;
  assign is_spread = mode_i == penstock_pkg::NORMALISE_SPREAD;
  always_ff @(posedge clk_i) begin
    if (token_i[0]) begin
      if (mode_i == penstock_pkg::NORMALISE_NONE) distance_q <= (SCORE + 3)'(score_i);
      else if (negate_i) distance_q <= (SCORE + 3)'(offset_i) - (SCORE + 3)'(score_i);
      else distance_q <= (SCORE + 3)'(score_i) - (SCORE + 3)'(offset_i);
      hold_1q <= mode_i == penstock_pkg::NORMALISE_NONE || zero_i ||
          (is_spread && score_i[SCORE-1]);
      is_constant_1q <= (zero_i && mode_i != penstock_pkg::NORMALISE_NONE &&
                         mode_i != penstock_pkg::NORMALISE_DEFAULT) ||
          (is_spread && score_i[SCORE-1]);
      hundred_1q <= mode_i == penstock_pkg::NORMALISE_REVERSED ||
          (is_spread && !score_i[SCORE-1]);
      reversed_1q <= mode_i == penstock_pkg::NORMALISE_REVERSED && !zero_i;
      limited_1q <= mode_i != penstock_pkg::NORMALISE_NONE;
      f64_1q <= mode_i == penstock_pkg::NORMALISE_MIN_MAX_F64;
      divisor_1q <= divisor_i;
    end
  end

  // Its magnitude, times 100.
  logic [MAGNITUDE-1:0] magnitude, magnitude_2q;
  logic [WIDE-1:0] scaled_2q;
  logic hold_2q, negative_2q, reversed_2q, limited_2q, f64_2q;
  always_comb begin
    magnitude = distance_q[SCORE+2] ? MAGNITUDE'(-distance_q) : MAGNITUDE'(distance_q);
    if (is_constant_1q) magnitude = hundred_1q ? MAGNITUDE'(100) : '0;
  end
  always_ff @(posedge clk_i) begin
    if (token_i[1]) begin
      magnitude_2q <= magnitude;
      scaled_2q <= (WIDE'(magnitude) << 6) + (WIDE'(magnitude) << 5) + (WIDE'(magnitude) << 2);
      hold_2q <= hold_1q;
      negative_2q <= distance_q[SCORE+2] && !is_constant_1q;
      reversed_2q <= reversed_1q;
      limited_2q <= limited_1q;
      f64_2q <= f64_1q;
      divisor_2q <= divisor_1q;
    end
  end

  // What would not fit into the quotient is beyond the limit.
  logic [DIVIDEND-1:0] dividend_3q;
  logic [DIVIDEND-1:0] scaled_extended;
  logic too_large, hold_3q;
  logic [3:0] side_3q;
  /* verilator lint_off UNUSEDSIGNAL */  // small scores need no limit
  logic [3:0] side;
  /* verilator lint_on UNUSEDSIGNAL */
  assign scaled_extended = DIVIDEND'(scaled_2q);
  assign too_large = scaled_extended[DIVIDEND-1:QUOTIENT] >= divisor_2q;
  always_ff @(posedge clk_i) begin
    if (token_i[2]) begin
      hold_3q <= hold_2q || too_large;
      if (hold_2q) dividend_3q <= {magnitude_2q, {QUOTIENT{1'b0}}};
      else if (too_large) dividend_3q <= {MAGNITUDE'(1 << LIMIT_BIT), {QUOTIENT{1'b0}}};
      else dividend_3q <= scaled_extended;
      side_3q <= {negative_2q, reversed_2q, limited_2q, f64_2q};
      divisor_3q <= divisor_2q;
    end
  end

  logic hold;
  logic [QUOTIENT-1:0] quotient;
  logic [MAGNITUDE-1:0] rest;
  penstock_scan_divide #(
      .DIVISOR(MAGNITUDE),
      .QUOTIENT(QUOTIENT),
      .SIDE(4)
  ) i_divide (
      .clk_i,
      .token_i(token_i[QUOTIENT+2:3]),
      .hold_i(hold_3q),
      .dividend_i(dividend_3q),
      .divisor_i(divisor_3q),
      .side_i(side_3q),
      .hold_o(hold),
      .quotient_o(quotient),
      .remainder_o(rest),
      .side_o(side)
  );

  localparam logic signed [MAGNITUDE+1:0] HUNDRED = (MAGNITUDE + 2)'(100);
  logic [MAGNITUDE-1:0] size;
  logic signed [MAGNITUDE+1:0] value;
  always_comb begin
    size = hold ? rest : MAGNITUDE'(quotient);
    if (side[0] && !hold && rest == '0 && penstock_score_pkg::rounds_below(quotient[6:0]))
      size = size - MAGNITUDE'(1);
    value = {2'b0, size};
    if (side[3] != side[2]) value = -value;
    if (side[2]) value = value + HUNDRED;
  end
  if (SCORE > LIMIT_BIT + 1) begin : g_limited
    localparam logic signed [MAGNITUDE+1:0] LIMIT = (MAGNITUDE + 2)'(1 << LIMIT_BIT);
    always_ff @(posedge clk_i) begin
      if (token_i[QUOTIENT+3]) begin
        value_o <= SCORE'(value);
        if (side[1] && value > LIMIT) value_o <= SCORE'(LIMIT);
        if (side[1] && value < -LIMIT) value_o <= SCORE'(-LIMIT);
      end
    end
  end else begin : g_small
    always_ff @(posedge clk_i) begin
      if (token_i[QUOTIENT+3]) value_o <= SCORE'(value);
    end
  end
endmodule

`default_nettype wire
