// The least and the largest of a unit's scores over the feasible rows, for up to two normalised
// operations ("slots"), and what penstock_scan_normalise needs of them: every value is
// 100 * |score - offset| / divisor, with the difference negated where negate_o says so, and zero_o
// where the divisor is 0. Takes LANES scores every cycle; outputs stand LEVELS + 3 cycles after
// the last. clear_i forgets, with nothing under way.
`default_nettype none

module penstock_scan_range #(
    parameter int unsigned SCORE = 26,  // bits of a score, signed
    parameter int unsigned LANES = 8,
    localparam int unsigned LEVELS = $clog2(LANES)
) (
    input wire logic clk_i,
    input wire logic rst_ni,
    input wire logic clear_i,
    input wire logic valid_i,
    input wire logic slot_i,
    input wire logic without_negative_i,  // NORMALISE_SPREAD leaves them out
    input wire logic [LANES-1:0] take_i,
    input wire logic [LANES*SCORE-1:0] score_i,
    input wire logic [5:0] mode_i,  // of slot 0, then 1
    output logic [2*(SCORE+2)-1:0] offset_o,  // slot 0, then 1; so are the others
    output logic [1:0] negate_o,
    output logic [2*(SCORE+1)-1:0] divisor_o,
    output logic [1:0] zero_o
);
  for (genvar l = 0; l <= LEVELS; l++) begin : g_level
    localparam int unsigned N = LANES >> l;
    logic valid, slot;
    logic [N-1:0] any;
    logic [N*SCORE-1:0] least, most;
    if (l == 0) begin : g_input
      assign valid = valid_i;
      assign slot = slot_i;
      assign least = score_i;
      assign most = score_i;
      for (genvar i = 0; i < N; i++) begin : g_lane
        assign any[i] = take_i[i] && !(without_negative_i && score_i[i*SCORE+SCORE-1]);
      end
    end else begin : g_pairs
      always_ff @(posedge clk_i) begin
        if (!rst_ni) valid <= 1'b0;
        else valid <= g_level[l-1].valid;
        if (g_level[l-1].valid) begin
          slot <= g_level[l-1].slot;
          for (int unsigned i = 0; i < N; i++) begin
            any[i] <= g_level[l-1].any[2*i] || g_level[l-1].any[2*i+1];
            least[i*SCORE+:SCORE] <= g_level[l-1].least[2*i*SCORE+:SCORE];
            most[i*SCORE+:SCORE] <= g_level[l-1].most[2*i*SCORE+:SCORE];
            if (!g_level[l-1].any[2*i] ||
                (g_level[l-1].any[2*i+1] &&
                 $signed(g_level[l-1].least[(2*i+1)*SCORE+:SCORE]) <
                 $signed(g_level[l-1].least[2*i*SCORE+:SCORE])))
              least[i*SCORE+:SCORE] <= g_level[l-1].least[(2*i+1)*SCORE+:SCORE];
            if (!g_level[l-1].any[2*i] ||
                (g_level[l-1].any[2*i+1] &&
                 $signed(g_level[l-1].most[(2*i+1)*SCORE+:SCORE]) >
                 $signed(g_level[l-1].most[2*i*SCORE+:SCORE])))
              most[i*SCORE+:SCORE] <= g_level[l-1].most[(2*i+1)*SCORE+:SCORE];
          end
        end
      end
    end
  end

  logic signed [SCORE-1:0] new_least, new_most;
  assign new_least = g_level[LEVELS].least;
  assign new_most = g_level[LEVELS].most;
  for (genvar s = 0; s < 2; s++) begin : g_slot
    logic any_q;
    logic signed [SCORE-1:0] least_q, most_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear_i) begin
        any_q <= 1'b0;
        least_q <= '0;  // what an empty range counts as
        most_q <= '0;
      end else if (g_level[LEVELS].valid && g_level[LEVELS].any[0] &&
                   g_level[LEVELS].slot == 1'(s)) begin
        any_q <= 1'b1;
        if (!any_q || new_least < least_q) least_q <= new_least;
        if (!any_q || new_most > most_q) most_q <= new_most;
      end
    end

    logic [2:0] mode;
    logic signed [SCORE-1:0] positive;
    logic [SCORE:0] divisor;
    logic signed [SCORE+1:0] offset;
    assign mode = mode_i[s*3+:3];
    assign positive = most_q[SCORE-1] ? '0 : most_q;
    always_comb begin
      offset = '0;
      divisor = (SCORE + 1)'(positive);
      if (mode == penstock_pkg::NORMALISE_MIN_MAX ||
          mode == penstock_pkg::NORMALISE_MIN_MAX_F64) begin
        offset = (SCORE + 2)'(least_q);
        divisor = (SCORE + 1)'(most_q) - (SCORE + 1)'(least_q);
      end else if (mode == penstock_pkg::NORMALISE_SPREAD) begin
        offset = (SCORE + 2)'(positive) + (SCORE + 2)'(least_q);
      end
    end
    always_ff @(posedge clk_i) begin
      offset_o[s*(SCORE+2)+:SCORE+2] <= offset;
      divisor_o[s*(SCORE+1)+:SCORE+1] <= divisor;
      negate_o[s] <= mode == penstock_pkg::NORMALISE_SPREAD;
      zero_o[s] <= divisor == '0 && mode != penstock_pkg::NORMALISE_NONE;
    end
  end
endmodule

`default_nettype wire
