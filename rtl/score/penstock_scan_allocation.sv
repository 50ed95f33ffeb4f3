// LEAST_ALLOCATED and MOST_ALLOCATED of one row: two entries of the list in a step, as many steps
// as the list needs. Takes a step every cycle; the score of an operation stands 17 cycles after its
// last step was taken, from 0 to 100.
//
//   cycle  stage
//   1      min or difference          10     products with the entries' weights, summed up
//   2      times 100                  11     the sum divided by the weights' sum, 7 stages
//   3..9   divided by allocatable
`default_nettype none

module penstock_scan_allocation (
    input wire logic clk_i,
    input wire logic [16:0] token_i,  // which stages hold something, from the input on
    input wire logic most_i,
    input wire logic [1:0] take_i,  // entries that count, as far as the task says
    input wire logic [2*54-1:0] allocatable_i,
    input wire logic [2*55-1:0] used_i,
    // Of the step that is in stage 9.
    input wire logic first_9i,
    input wire logic [13:0] weight_9i,
    output logic [7:0] score_o
);
  localparam int unsigned Q = penstock_score_pkg::QUANTITY;

  for (genvar e = 0; e < 2; e++) begin : g_entry
    logic [Q-1:0] allocatable, allocatable_1q, allocatable_2q, counted_1q;
    logic [Q:0] used;
    logic [Q+6:0] scaled_2q;
    logic take_1q, take_2q, take, above;
    logic [6:0] quotient;
    assign allocatable = allocatable_i[e*Q+:Q];
    assign used = used_i[e*(Q+1)+:Q+1];
    assign above = used > {1'b0, allocatable};
    always_ff @(posedge clk_i) begin
      if (token_i[0]) begin
        allocatable_1q <= allocatable;
        take_1q <= take_i[e] && allocatable != '0;
        if (most_i) counted_1q <= above ? allocatable : used[Q-1:0];
        else counted_1q <= above ? '0 : allocatable - used[Q-1:0];
      end
      if (token_i[1]) begin
        allocatable_2q <= allocatable_1q;
        take_2q <= take_1q;
        scaled_2q <= ((Q + 7)'(counted_1q) << 6) + ((Q + 7)'(counted_1q) << 5) +
            ((Q + 7)'(counted_1q) << 2);
      end
    end
    /* verilator lint_off PINCONNECTEMPTY */
    penstock_scan_divide #(
        .DIVISOR(Q),
        .QUOTIENT(7),
        .SIDE(1)
    ) i_divide (
        .clk_i,
        .token_i(token_i[8:2]),
        .hold_i(1'b0),
        .dividend_i(scaled_2q),
        .divisor_i(allocatable_2q),
        .side_i(take_2q),
        .hold_o(),
        .quotient_o(quotient),
        .remainder_o(),
        .side_o(take)
    );
    /* verilator lint_on PINCONNECTEMPTY */
    logic [13:0] share;
    logic [6:0] weight;
    assign weight = take ? weight_9i[e*7+:7] : '0;
    assign share = quotient * weight;
  end

  logic [17:0] sum_q;
  logic [10:0] weights_q;
  always_ff @(posedge clk_i) begin
    if (token_i[9]) begin
      sum_q <= (first_9i ? '0 : sum_q) + 18'(g_entry[0].share) + 18'(g_entry[1].share);
      weights_q <= (first_9i ? '0 : weights_q) + 11'(g_entry[0].weight) + 11'(g_entry[1].weight);
    end
  end

  logic [6:0] score;
  logic there;
  /* verilator lint_off PINCONNECTEMPTY */
  penstock_scan_divide #(
      .DIVISOR(11),
      .QUOTIENT(7),
      .SIDE(1)
  ) i_mean (
      .clk_i,
      .token_i(token_i[16:10]),
      .hold_i(1'b0),
      .dividend_i(sum_q),
      .divisor_i(weights_q),
      .side_i(weights_q != '0),
      .hold_o(),
      .quotient_o(score),
      .remainder_o(),
      .side_o(there)
  );
  /* verilator lint_on PINCONNECTEMPTY */
  assign score_o = there ? {1'b0, score} : '0;
endmodule

`default_nettype wire
