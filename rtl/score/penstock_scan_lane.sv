// One lane of the scan: the banks of every LANES-th row, and what is computed for one row. A step
// enters every cycle. Signals that end in a number belong to the step in that stage; stage 1 is
// where what was read from the banks stands.
//
//   stage  resources                   bits                  free columns
//   2      fit of each resource,       bytes of columns      cells decoded
//          columns selected
//   3      all fit                     terms that hold       products with the features
//   4      feasible                    partial sums          partial sums
//   5                                  score                 score
//   19     score of the allocation
//   30     values in their ranges
//   31     times their weights
//   32     summed up
//   33     total of the row, after the last step
`default_nettype none

module penstock_scan_lane #(
    parameter int unsigned RESOURCES = 8,
    parameter int unsigned FREE = 8,
    parameter int unsigned DEPTH = 512,  // groups of rows
    localparam int unsigned Q = penstock_score_pkg::QUANTITY,
    localparam int unsigned F = penstock_score_pkg::FREE_VALUE,
    localparam int unsigned C = penstock_score_pkg::COEFFICIENT,
    localparam int unsigned GROUP = DEPTH > 1 ? $clog2(DEPTH) : 1,
    localparam int unsigned BITS_SCORE = 26,
    localparam int unsigned FREE_SCORE = 53
) (
    input wire logic clk_i,
    // Banks: a cell as it stands in memory is written.
    input wire logic write_i,
    input wire logic [2:0] write_kind_i,
    input wire logic [2:0] write_column_i,
    input wire logic [GROUP-1:0] write_group_i,
    input wire logic [63:0] write_cell_i,
    input wire logic read_i,
    input wire logic [GROUP-1:0] read_group_i,
    // Cells as they are kept, of the column of each kind; a cycle after peek_i.
    input wire logic peek_i,
    input wire logic [2:0] peek_column_i,
    output logic [Q-1:0] peek_requested_o,
    output logic [Q-1:0] peek_scored_o,
    output logic [F-1:0] peek_free_o,
    // Which stages hold a step, and one in which the unit works: bit k is stage k.
    input wire logic [3:1] token_i,
    input wire logic [32:30] end_token_i,
    input wire logic [29:1] a_token_i,
    input wire logic [29:1] b0_token_i,
    input wire logic [29:1] b1_token_i,
    input wire logic [29:1] f_token_i,
    // Stage 1.
    input wire logic [RESOURCES-1:0] fit_i,  // resources that have to fit
    input wire logic [RESOURCES*Q-1:0] request_i,
    input wire logic [5:0] a_column_1i,
    input wire logic [1:0] a_take_1i,
    input wire logic [2*Q-1:0] a_request_1i,
    input wire logic l_turn_1i,  // the balanced unit takes this lane
    input wire logic [5:0] l_column_1i,
    input wire logic [2*Q-1:0] l_request_1i,
    // Later stages.
    input wire logic a_most_2i,
    input wire logic [FREE*C-1:0] f_coefficient_2i,
    input wire logic passes_3i,  // the row exists and the terms of the filters hold
    input wire logic [15:0] holds_3i,  // terms that hold
    input wire logic [31:0] b_terms_3i,  // those of unit 0's group, then of unit 1's
    input wire logic [16*21-1:0] term_weight_i,
    input wire logic a_first_11i,
    input wire logic [13:0] a_weight_11i,
    // Normalisation: mode, then the range's constants.
    input wire logic [2:0] a_mode_19i,
    input wire logic [9:0] a_offset_19i,
    input wire logic [1:0] a_negate_zero_19i,
    input wire logic [8:0] a_divisor_19i,
    input wire logic [5:0] b_mode_5i,
    input wire logic [2*(BITS_SCORE+2)-1:0] b_offset_5i,
    input wire logic [3:0] b_negate_zero_5i,  // unit 0's two bits, then unit 1's
    input wire logic [2*(BITS_SCORE+1)-1:0] b_divisor_5i,
    input wire logic [2:0] f_mode_5i,
    input wire logic [FREE_SCORE+1:0] f_offset_5i,
    input wire logic [1:0] f_negate_zero_5i,
    input wire logic [FREE_SCORE:0] f_divisor_5i,
    input wire logic [3:0] works_30i,  // allocation, bits 0, bits 1, features
    input wire logic [4*21-1:0] weight_30i,
    input wire logic first_32i,
    input wire logic [63:0] base_i,  // what every row's total begins with

    output logic feasible_4o,
    output logic [7:0] a_score_19o,
    output logic [2*BITS_SCORE-1:0] b_score_5o,
    output logic [FREE_SCORE-1:0] f_score_5o,
    output logic [2*Q-1:0] l_allocatable_2o,
    output logic [2*(Q+1)-1:0] l_used_2o,
    output logic [63:0] total_33o
);
  /* verilator no_inline_module */  // built once, not for each instance
  // ---- banks ----

  logic [RESOURCES*Q-1:0] allocatable, requested, scored;
  logic [FREE*F-1:0] free;
  logic [Q-1:0] write_quantity;
  assign write_quantity = penstock_score_pkg::encode_quantity(write_cell_i);
  penstock_scan_bank #(
      .WIDTH(Q),
      .CELLS(RESOURCES),
      .DEPTH(DEPTH)
  ) i_allocatable (
      .clk_i,
      .write_i(write_i && write_kind_i == penstock_score_pkg::KIND_ALLOCATABLE),
      .write_column_i,
      .write_address_i(write_group_i),
      .write_data_i(write_quantity),
      .read_i,
      .read_address_i(read_group_i),
      .data_o(allocatable)
  );
  penstock_scan_bank #(
      .WIDTH(Q),
      .CELLS(RESOURCES),
      .DEPTH(DEPTH)
  ) i_requested (
      .clk_i,
      .write_i(write_i && write_kind_i == penstock_score_pkg::KIND_REQUESTED),
      .write_column_i,
      .write_address_i(write_group_i),
      .write_data_i(write_quantity),
      .read_i,
      .read_address_i(read_group_i),
      .data_o(requested)
  );
  penstock_scan_bank #(
      .WIDTH(Q),
      .CELLS(RESOURCES),
      .DEPTH(DEPTH)
  ) i_scored (
      .clk_i,
      .write_i(write_i && write_kind_i == penstock_score_pkg::KIND_SCORED),
      .write_column_i,
      .write_address_i(write_group_i),
      .write_data_i(write_quantity),
      .read_i,
      .read_address_i(read_group_i),
      .data_o(scored)
  );
  penstock_scan_bank #(
      .WIDTH(F),
      .CELLS(FREE),
      .DEPTH(DEPTH)
  ) i_free (
      .clk_i,
      .write_i(write_i && write_kind_i == penstock_score_pkg::KIND_FREE),
      .write_column_i,
      .write_address_i(write_group_i),
      .write_data_i(penstock_score_pkg::encode_free(write_cell_i)),
      .read_i,
      .read_address_i(read_group_i),
      .data_o(free)
  );
  always_ff @(posedge clk_i) begin
    if (peek_i) begin
      peek_requested_o <= requested[peek_column_i*Q+:Q];
      peek_scored_o <= scored[peek_column_i*Q+:Q];
      peek_free_o <= free[peek_column_i*F+:F];
    end
  end

  // ---- filters ----

  logic [RESOURCES-1:0] fits_2q;
  logic fits_3q;
  always_ff @(posedge clk_i) begin
    if (token_i[1]) begin
      for (int unsigned r = 0; r < RESOURCES; r++)
        fits_2q[r] <= !fit_i[r] ||
            {1'b0, penstock_score_pkg::decode_quantity(allocatable[r*Q+:Q])} >=
            {1'b0, penstock_score_pkg::decode_quantity(requested[r*Q+:Q])} +
            {1'b0, request_i[r*Q+:Q]};
    end
    if (token_i[2]) fits_3q <= &fits_2q;
    if (token_i[3]) feasible_4o <= fits_3q && passes_3i;
  end

  // ---- allocation, and the operands of the balanced unit ----

  logic [2*Q-1:0] a_allocatable_2q;
  logic [2*(Q+1)-1:0] a_used_2q;
  logic [1:0] a_take_2q;
  always_ff @(posedge clk_i) begin
    if (a_token_i[1] || l_turn_1i) begin
      a_take_2q <= a_take_1i;
      for (int unsigned e = 0; e < 2; e++) begin
        if (a_take_1i[e]) begin
          a_allocatable_2q[e*Q+:Q] <=
              penstock_score_pkg::decode_quantity(allocatable[a_column_1i[e*3+:3]*Q+:Q]);
          a_used_2q[e*(Q+1)+:Q+1] <=
              {1'b0, penstock_score_pkg::decode_quantity(scored[a_column_1i[e*3+:3]*Q+:Q])} +
              {1'b0, a_request_1i[e*Q+:Q]};
        end
        if (l_turn_1i) begin
          l_allocatable_2o[e*Q+:Q] <=
              penstock_score_pkg::decode_quantity(allocatable[l_column_1i[e*3+:3]*Q+:Q]);
          l_used_2o[e*(Q+1)+:Q+1] <=
              {1'b0, penstock_score_pkg::decode_quantity(requested[l_column_1i[e*3+:3]*Q+:Q])} +
              {1'b0, l_request_1i[e*Q+:Q]};
        end
      end
    end
  end

  penstock_scan_allocation i_allocation (
      .clk_i,
      .token_i(a_token_i[18:2]),
      .most_i(a_most_2i),
      .take_i(a_take_2q),
      .allocatable_i(a_allocatable_2q),
      .used_i(a_used_2q),
      .first_9i(a_first_11i),
      .weight_9i(a_weight_11i),
      .score_o(a_score_19o)
  );
  logic signed [7:0] a_value_30;
  penstock_scan_normalise #(
      .SCORE(8),
      .QUOTIENT(7)
  ) i_normalise_allocation (
      .clk_i,
      .token_i(a_token_i[29:19]),
      .mode_i(a_mode_19i),
      .score_i(a_score_19o),
      .offset_i(a_offset_19i),
      .negate_i(a_negate_zero_19i[1]),
      .zero_i(a_negate_zero_19i[0]),
      .divisor_i(a_divisor_19i),
      .value_o(a_value_30)
  );

  // ---- bits ----

  logic signed [BITS_SCORE-1:0] b_value_30[0:1];
  for (genvar u = 0; u < 2; u++) begin : g_bits
    logic [15:0] counts;
    /* verilator lint_off UNUSEDSIGNAL */  // the first two stages are shared
    logic [29:1] token;
    /* verilator lint_on UNUSEDSIGNAL */
    assign token = u == 0 ? b0_token_i : b1_token_i;
    logic signed [BITS_SCORE-1:0] sum_4q[0:3];
    logic signed [BITS_SCORE-1:0] sum_5q;
    assign counts = holds_3i & b_terms_3i[u*16+:16];
    always_ff @(posedge clk_i) begin
      if (token[3]) begin
        for (int unsigned i = 0; i < 4; i++)
          sum_4q[i] <=
              (counts[4*i] ? BITS_SCORE'($signed(term_weight_i[(4*i)*21+:21])) : '0) +
              (counts[4*i+1] ? BITS_SCORE'($signed(term_weight_i[(4*i+1)*21+:21])) : '0) +
              (counts[4*i+2] ? BITS_SCORE'($signed(term_weight_i[(4*i+2)*21+:21])) : '0) +
              (counts[4*i+3] ? BITS_SCORE'($signed(term_weight_i[(4*i+3)*21+:21])) : '0);
      end
      if (token[4]) sum_5q <= sum_4q[0] + sum_4q[1] + sum_4q[2] + sum_4q[3];
    end
    assign b_score_5o[u*BITS_SCORE+:BITS_SCORE] = sum_5q;
    penstock_scan_normalise #(
        .SCORE(BITS_SCORE),
        .QUOTIENT(21)
    ) i_normalise (
        .clk_i,
        .token_i(token[29:5]),
        .mode_i(b_mode_5i[u*3+:3]),
        .score_i(sum_5q),
        .offset_i(b_offset_5i[u*(BITS_SCORE+2)+:BITS_SCORE+2]),
        .negate_i(b_negate_zero_5i[u*2+1]),
        .zero_i(b_negate_zero_5i[u*2]),
        .divisor_i(b_divisor_5i[u*(BITS_SCORE+1)+:BITS_SCORE+1]),
        .value_o(b_value_30[u])
    );
  end

  // ---- features ----

  localparam int unsigned PRODUCT = F + C;
  logic signed [F-1:0] free_2q[0:FREE-1];
  logic signed [PRODUCT-1:0] product_3q[0:FREE-1];
  logic signed [FREE_SCORE-1:0] half_4q[0:1];
  logic signed [FREE_SCORE-1:0] f_sum_5q, half[0:1], f_value_30;
  always_comb begin
    half[0] = '0;
    half[1] = '0;
    for (int unsigned c = 0; c < FREE; c++)
      half[c%2] = half[c%2] + FREE_SCORE'(product_3q[c]);
  end
  always_ff @(posedge clk_i) begin
    for (int unsigned c = 0; c < FREE; c++) begin
      if (f_token_i[1]) free_2q[c] <= penstock_score_pkg::decode_free(free[c*F+:F]);
      if (f_token_i[2])
        product_3q[c] <= PRODUCT'(free_2q[c]) * PRODUCT'($signed(f_coefficient_2i[c*C+:C]));
    end
    if (f_token_i[3]) begin
      half_4q[0] <= half[0];
      half_4q[1] <= half[1];
    end
    if (f_token_i[4]) f_sum_5q <= half_4q[0] + half_4q[1];
  end
  assign f_score_5o = f_sum_5q;
  penstock_scan_normalise #(
      .SCORE(FREE_SCORE),
      .QUOTIENT(21)
  ) i_normalise_features (
      .clk_i,
      .token_i(f_token_i[29:5]),
      .mode_i(f_mode_5i),
      .score_i(f_sum_5q),
      .offset_i(f_offset_5i),
      .negate_i(f_negate_zero_5i[1]),
      .zero_i(f_negate_zero_5i[0]),
      .divisor_i(f_divisor_5i),
      .value_o(f_value_30)
  );

  // ---- the weighted sum; the program's bound keeps it within 64 bits ----

  logic signed [28:0] a_product_31q;
  logic signed [46:0] b_product_31q[0:1];
  logic signed [63:0] f_product_31q;
  logic signed [63:0] sum_32q;
  always_ff @(posedge clk_i) begin
    if (end_token_i[30]) begin
      a_product_31q <= works_30i[0] ? 29'(a_value_30) * 29'($signed(weight_30i[0+:21])) : '0;
      b_product_31q[0] <= works_30i[1] ? 47'(b_value_30[0]) * 47'($signed(weight_30i[21+:21])) : '0;
      b_product_31q[1] <= works_30i[2] ? 47'(b_value_30[1]) * 47'($signed(weight_30i[42+:21])) : '0;
      f_product_31q <= works_30i[3] ? 64'(f_value_30) * 64'($signed(weight_30i[63+:21])) : '0;
    end
    if (end_token_i[31])
      sum_32q <= 64'(a_product_31q) + 64'(b_product_31q[0]) + 64'(b_product_31q[1]) + f_product_31q;
    if (end_token_i[32]) total_33o <= (first_32i ? base_i : total_33o) + sum_32q;
  end
endmodule

`default_nettype wire
