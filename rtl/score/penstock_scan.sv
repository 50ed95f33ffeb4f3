// The scan: a node table resident in banks, and one decision on it. Eight rows enter together as a
// group; a group takes as many cycles as the program has steps. Where scores are normalised, a
// first pass finds their ranges; the second one makes every row's total.
//
// start_i begins a decision with the program and the task that stand at the inputs until done_o.
// Between decisions cells may be read (peek) and written; columns of bits that no task in work
// names may be loaded at any time, other columns between decisions only.
`default_nettype none

module penstock_scan #(
    parameter int unsigned ROWS = 4096,  // a multiple of 512, at least 1024
    parameter int unsigned RESOURCES = 8,  // 1..8
    parameter int unsigned BITS = 64,  // resident bit columns: 64
    parameter int unsigned FREE = 8,  // 1..8
    localparam int unsigned DEPTH = ROWS / 8,
    localparam int unsigned GROUP = $clog2(DEPTH),
    localparam int unsigned SLOT = $clog2(BITS),
    localparam int unsigned Q = penstock_score_pkg::QUANTITY,
    localparam int unsigned F = penstock_score_pkg::FREE_VALUE,
    localparam int unsigned C = penstock_score_pkg::COEFFICIENT,
    localparam int unsigned STEPS = penstock_score_pkg::STEPS,
    localparam int unsigned KEY = 1 + 64 + 20
) (
    input wire logic clk_i,
    input wire logic rst_ni,

    // A beat of a column: cells of a group, or bits of 512 rows.
    input wire logic load_valid_i,
    output logic load_ready_o,
    input wire logic [2:0] load_kind_i,
    input wire logic [SLOT-1:0] load_column_i,
    input wire logic [GROUP-1:0] load_index_i,  // which beat
    input wire logic [511:0] load_data_i,

    // A cell, or for bits the byte of its group.
    input wire logic write_i,
    input wire logic [2:0] write_kind_i,
    input wire logic [SLOT-1:0] write_column_i,
    /* verilator lint_off UNUSEDSIGNAL */  // rows are below ROWS
    input wire logic [19:0] write_row_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input wire logic [63:0] write_cell_i,

    // Cells of a row: peek_i fetches the row; from the second cycle after it on, cells of a column
    // stand at the outputs a cycle after peek_column_i and peek_slot_i.
    input wire logic peek_i,
    /* verilator lint_off UNUSEDSIGNAL */
    input wire logic [19:0] peek_row_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input wire logic [2:0] peek_column_i,
    input wire logic [SLOT-1:0] peek_slot_i,
    output logic [Q-1:0] peek_requested_o,
    output logic [Q-1:0] peek_scored_o,
    output logic [F-1:0] peek_free_o,
    output logic [7:0] peek_byte_o,

    // The program.
    input wire logic [3:0] first_interval_i,  // steps of the first pass, 0: none
    input wire logic [3:0] interval_i,  // steps, at least 1
    input wire logic [STEPS*penstock_score_pkg::ALLOCATION_STEP-1:0] a_steps_i,
    input wire logic [5:0] a_modes_i,  // normalisation of slot 0, then 1
    input wire logic [STEPS*penstock_score_pkg::BITS_STEP-1:0] b0_steps_i,
    input wire logic [STEPS*penstock_score_pkg::BITS_STEP-1:0] b1_steps_i,
    input wire logic [4*penstock_score_pkg::FEATURES_STEP-1:0] f_steps_i,
    input wire logic [2*penstock_score_pkg::BALANCED_OP-1:0] l_ops_i,
    input wire logic [63:0] base_i,
    input wire logic [3:0] best_i,

    // The task.
    input wire logic [20:0] rows_i,
    input wire logic [RESOURCES-1:0] fit_i,
    input wire logic [RESOURCES*Q-1:0] request_i,
    input wire logic [RESOURCES*Q-1:0] scored_request_i,
    input wire logic any_row_i,
    input wire logic [19:0] row_i,
    input wire logic [19:0] start_row_i,  // from which ties are counted
    input wire logic [BITS-1:0] set_i,
    input wire logic [BITS-1:0] clear_i,
    input wire logic [BITS-1:0] used_i,
    input wire logic [16*SLOT-1:0] term_slot_i,
    input wire logic [15:0] term_clear_i,
    input wire logic [16*21-1:0] term_weight_i,
    input wire logic [STEPS*16-1:0] b0_terms_i,
    input wire logic [STEPS*16-1:0] b1_terms_i,
    input wire logic [4*FREE*C-1:0] coefficients_i,

    input wire logic start_i,
    output logic done_o,  // stays until the next start
    output logic [20:0] feasible_o,
    output logic [8*KEY-1:0] best_o,  // {there, score with its sign turned, ~distance}, best first
    output logic [15:0] rows_scanned_o  // in this cycle
);
  localparam int unsigned HEAD = penstock_score_pkg::STEP_HEAD;
  localparam int unsigned A = penstock_score_pkg::ALLOCATION_STEP;
  localparam int unsigned B = penstock_score_pkg::BITS_STEP;
  localparam int unsigned FS = penstock_score_pkg::FEATURES_STEP;
  localparam int unsigned L = penstock_score_pkg::BALANCED_OP;
  localparam int unsigned ENTRY = penstock_score_pkg::ALLOCATION_ENTRY;
  localparam int unsigned LAST = 81;  // the last stage

  // ---- passes ----

  typedef enum logic [2:0] {
    IDLE,
    FIRST,
    SETTLE,
    SECOND,
    DRAIN,
    MERGE
  } state_e;
  state_e state_q;
  logic [GROUP:0] group_q, groups;
  logic [2:0] step_q, settle_q;
  logic done_q, issues, last_step, last_group;
  logic [3:0] interval;
  logic uses_balanced;
  /* verilator lint_off UNUSEDSIGNAL */  // rows are at most ROWS
  logic [20:0] rows_up;
  /* verilator lint_on UNUSEDSIGNAL */
  assign rows_up = rows_i + 21'd7;
  assign groups = rows_up[GROUP+3:3];
  assign issues = state_q == FIRST || state_q == SECOND;
  assign interval = state_q == FIRST ? first_interval_i : interval_i;
  assign last_step = 4'(step_q) + 4'd1 == interval;
  assign last_group = group_q + (GROUP + 1)'(1) == groups;
  assign uses_balanced = l_ops_i[0];
  assign done_o = done_q;

  logic clear_ranges, start_second, inserted, merged;
  assign start_second = state_q == SETTLE && settle_q == '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= IDLE;
      done_q <= 1'b0;
    end else begin
      case (state_q)
        IDLE:
        if (start_i) begin
          done_q <= 1'b0;
          state_q <= first_interval_i != '0 ? FIRST : SECOND;
          if (groups == '0) state_q <= DRAIN;
        end
        FIRST:   if (last_step && last_group) state_q <= SETTLE;
        SETTLE:  if (settle_q == '0) state_q <= SECOND;
        SECOND:  if (last_step && last_group) state_q <= DRAIN;
        DRAIN:   if (inserted) state_q <= MERGE;
        default:
        if (merged) begin
          state_q <= IDLE;
          done_q <= 1'b1;
        end
      endcase
    end
  end
  // A range stands five cycles after the last score was in the stage in which scores enter their
  // normalisation, so that the second pass has to begin that much later.
  always_ff @(posedge clk_i) begin
    settle_q <= settle_q - 3'd1;
    if (state_q == FIRST) settle_q <= 3'd5;
    if (issues) begin
      step_q <= last_step ? '0 : step_q + 3'd1;
      if (last_step) group_q <= group_q + (GROUP + 1)'(1);
    end
    if (state_q == IDLE || start_second) begin
      group_q <= '0;
      step_q <= '0;
    end
  end
  assign clear_ranges = state_q == IDLE;

  // ---- what is in which stage ----

  /* verilator lint_off UNUSEDSIGNAL */  // stages and fields that nothing looks at
  logic [LAST:0] token, a_token, b0_token, b1_token, f_token, l_token;
  logic [LAST:0] last, first;  // last step of a group in the second pass; in the first pass
  logic [LAST:1] token_q, a_token_q, b0_token_q, b1_token_q, f_token_q, l_token_q;
  logic [LAST:1] last_q, first_q;
  logic [3*(LAST+1)-1:0] step;  // of each stage
  logic [3*(LAST+1)-1:3] step_late_q;
  logic [GROUP-1:0] group_1q, group_2q;
  assign token = {token_q, issues};
  assign a_token = {a_token_q, issues && a_steps_i[step_q*A]};
  assign b0_token = {b0_token_q, issues && b0_steps_i[step_q*B]};
  assign b1_token = {b1_token_q, issues && b1_steps_i[step_q*B]};
  assign f_token = {f_token_q, issues && !step_q[2] && f_steps_i[step_q[1:0]*FS]};
  assign l_token = {l_token_q, issues && l_ops_i[step_q[2]*L]};
  assign last = {last_q, issues && last_step && state_q == SECOND};
  assign first = {first_q, state_q == FIRST};
  assign step = {step_late_q, step_q};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      token_q <= '0;
      a_token_q <= '0;
      b0_token_q <= '0;
      b1_token_q <= '0;
      f_token_q <= '0;
      l_token_q <= '0;
      last_q <= '0;
    end else begin
      token_q <= token[LAST-1:0];
      a_token_q <= a_token[LAST-1:0];
      b0_token_q <= b0_token[LAST-1:0];
      b1_token_q <= b1_token[LAST-1:0];
      f_token_q <= f_token[LAST-1:0];
      l_token_q <= l_token[LAST-1:0];
      last_q <= last[LAST-1:0];
    end
    first_q <= first[LAST-1:0];
    step_late_q <= step[3*LAST-1:0];
    group_1q <= group_q[GROUP-1:0];
    group_2q <= group_1q;
  end

  // ---- what the task makes of a step ----

  logic [RESOURCES-1:0] asked;
  for (genvar r = 0; r < RESOURCES; r++) begin : g_asked
    assign asked[r] = request_i[r*Q+:Q] != '0;
  end
  logic [A-1:0] a_step_0;
  logic [L-1:0] l_op_0, l_op_2, l_op_67;
  assign a_step_0 = a_steps_i[step_q*A+:A];
  assign l_op_0 = l_ops_i[step_q[2]*L+:L];
  assign l_op_2 = l_ops_i[step[2*3+2]*L+:L];
  assign l_op_67 = l_ops_i[step[67*3+2]*L+:L];
  logic [5:0] a_column_1q, l_column_1q;
  logic [1:0] a_take_1q, l_take_3q, l_asks_67;
  logic [2*Q-1:0] a_request_1q, l_request_1q;
  for (genvar e = 0; e < 2; e++) begin : g_entry
    logic [ENTRY-1:0] a_entry_0;
    logic [4:0] l_entry_0, l_entry_2, l_entry_67;
    assign a_entry_0 = a_step_0[HEAD+3+e*ENTRY+:ENTRY];
    assign l_entry_0 = l_op_0[HEAD+e*5+:5];
    assign l_entry_2 = l_op_2[HEAD+e*5+:5];
    assign l_entry_67 = l_op_67[HEAD+e*5+:5];
    assign l_asks_67[e] = l_entry_67[0] && asked[l_entry_67[3:1]];
    always_ff @(posedge clk_i) begin
      if (a_token[0]) begin
        a_column_1q[e*3+:3] <= a_entry_0[3:1];
        a_take_1q[e] <= a_entry_0[0] && !(a_entry_0[11] && !asked[a_entry_0[3:1]]);
        a_request_1q[e*Q+:Q] <= scored_request_i[a_entry_0[3:1]*Q+:Q];
      end
      if (l_token[0]) begin
        l_column_1q[e*3+:3] <= l_entry_0[3:1];
        l_request_1q[e*Q+:Q] <= request_i[l_entry_0[3:1]*Q+:Q];
      end
      if (l_token[2])
        l_take_3q[e] <= l_entry_2[0] && !(l_entry_2[4] && !asked[l_entry_2[3:1]]);
    end
  end

  logic [A-1:0] a_step_2, a_step_11, a_step_19, a_step_30;
  logic [B-1:0] b0_step_5, b0_step_30, b1_step_5, b1_step_30;
  logic [FS-1:0] f_step_5, f_step_30;
  logic [L-1:0] l_op_68, l_op_79;
  assign a_step_2 = a_steps_i[step[2*3+:3]*A+:A];
  assign a_step_11 = a_steps_i[step[11*3+:3]*A+:A];
  assign a_step_19 = a_steps_i[step[19*3+:3]*A+:A];
  assign a_step_30 = a_steps_i[step[30*3+:3]*A+:A];
  assign b0_step_5 = b0_steps_i[step[5*3+:3]*B+:B];
  assign b1_step_5 = b1_steps_i[step[5*3+:3]*B+:B];
  assign b0_step_30 = b0_steps_i[step[30*3+:3]*B+:B];
  assign b1_step_30 = b1_steps_i[step[30*3+:3]*B+:B];
  assign f_step_5 = f_steps_i[step[5*3+:2]*FS+:FS];
  assign f_step_30 = f_steps_i[step[30*3+:2]*FS+:FS];
  assign l_op_68 = l_ops_i[step[68*3+2]*L+:L];
  assign l_op_79 = l_ops_i[step[79*3+2]*L+:L];
  logic a_works_30;
  assign a_works_30 = a_token[30] && a_step_30[HEAD+2];  // the last step has the score

  /* verilator lint_on UNUSEDSIGNAL */

  // ---- ranges ----

  logic [2*10-1:0] a_offset, l_offset;
  logic [2*9-1:0] a_divisor, l_divisor;
  logic [1:0] a_negate, a_zero, l_negate, l_zero;
  logic [2*28-1:0] b_offset[0:1];
  logic [2*27-1:0] b_divisor[0:1];
  logic [1:0] b_negate[0:1], b_zero[0:1];
  logic [2*55-1:0] f_offset;
  logic [2*54-1:0] f_divisor;
  logic [1:0] f_negate, f_zero;
  logic [8*8-1:0] a_scores;
  logic [8*26-1:0] b_scores[0:1];
  logic [8*53-1:0] f_scores;
  logic [2*8-1:0] l_scores;
  logic [8*66-1:0] feasible;  // stages 4 to 69
  logic [8*66-1:8] feasible_late_q;
  logic [7:0] feasible_4;
  logic [1:0] l_feasible_68;

  penstock_scan_range #(
      .SCORE(8),
      .LANES(8)
  ) i_range_allocation (
      .clk_i,
      .rst_ni,
      .clear_i(clear_ranges),
      .valid_i(first[19] && a_token[19] && a_step_19[HEAD+2] && a_step_19[3:1] != '0),
      .slot_i(a_step_19[4]),
      .without_negative_i(1'b0),
      .take_i(feasible[15*8+:8]),
      .score_i(a_scores),
      .mode_i(a_modes_i),
      .offset_o(a_offset),
      .negate_o(a_negate),
      .divisor_o(a_divisor),
      .zero_o(a_zero)
  );
  for (genvar u = 0; u < 2; u++) begin : g_range_bits
    /* verilator lint_off UNUSEDSIGNAL */
    logic [B-1:0] here;
    /* verilator lint_on UNUSEDSIGNAL */
    logic token_5;
    assign here = u == 0 ? b0_step_5 : b1_step_5;
    assign token_5 = u == 0 ? b0_token[5] : b1_token[5];
    penstock_scan_range #(
        .SCORE(26),
        .LANES(8)
    ) i_range (
        .clk_i,
        .rst_ni,
        .clear_i(clear_ranges),
        .valid_i(first[5] && token_5 && here[3:1] != '0),
        .slot_i(here[4]),
        .without_negative_i(here[3:1] == penstock_pkg::NORMALISE_SPREAD),
        .take_i(feasible[1*8+:8]),
        .score_i(b_scores[u]),
        .mode_i(u == 0 ? {b0_steps_i[B+1+:3], b0_steps_i[1+:3]}
                       : {b1_steps_i[B+1+:3], b1_steps_i[1+:3]}),
        .offset_o(b_offset[u]),
        .negate_o(b_negate[u]),
        .divisor_o(b_divisor[u]),
        .zero_o(b_zero[u])
    );
  end
  penstock_scan_range #(
      .SCORE(53),
      .LANES(8)
  ) i_range_features (
      .clk_i,
      .rst_ni,
      .clear_i(clear_ranges),
      .valid_i(first[5] && f_token[5] && f_step_5[3:1] != '0),
      .slot_i(f_step_5[4]),
      .without_negative_i(f_step_5[3:1] == penstock_pkg::NORMALISE_SPREAD),
      .take_i(feasible[1*8+:8]),
      .score_i(f_scores),
      .mode_i({f_steps_i[FS+1+:3], f_steps_i[1+:3]}),
      .offset_o(f_offset),
      .negate_o(f_negate),
      .divisor_o(f_divisor),
      .zero_o(f_zero)
  );
  penstock_scan_range #(
      .SCORE(8),
      .LANES(2)
  ) i_range_balanced (
      .clk_i,
      .rst_ni,
      .clear_i(clear_ranges),
      .valid_i(first[68] && l_token[68] && l_op_68[3:1] != '0),
      .slot_i(l_op_68[4]),
      .without_negative_i(1'b0),
      .take_i(l_feasible_68),
      .score_i(l_scores),
      .mode_i({l_ops_i[L+1+:3], l_ops_i[1+:3]}),
      .offset_o(l_offset),
      .negate_o(l_negate),
      .divisor_o(l_divisor),
      .zero_o(l_zero)
  );

  // ---- bit columns ----

  logic read, bits_load_ready;
  logic [GROUP-1:0] read_group;
  logic [7:0] bits_pass_3, exists_3q;
  logic [16*8-1:0] holds_3;
  assign read = peek_i || (issues && step_q == '0);
  assign read_group = peek_i ? peek_row_i[GROUP+2:3] : group_q[GROUP-1:0];
  assign load_ready_o = load_kind_i == penstock_score_pkg::KIND_BITS ? bits_load_ready : !write_i;
  penstock_scan_bits #(
      .BITS(BITS),
      .DEPTH(DEPTH)
  ) i_bits (
      .clk_i,
      .rst_ni,
      .load_valid_i(load_valid_i && load_kind_i == penstock_score_pkg::KIND_BITS),
      .load_ready_o(bits_load_ready),
      .load_slot_i(load_column_i),
      .load_beat_i(load_index_i[GROUP-7:0]),
      .load_data_i,
      .write_i(write_i && write_kind_i == penstock_score_pkg::KIND_BITS),
      .write_slot_i(write_column_i),
      .write_group_i(write_row_i[GROUP+2:3]),
      .write_byte_i(write_cell_i[7:0]),
      .read_i(read),
      .read_group_i(read_group),
      .peek_i(!issues),
      .peek_slot_i,
      .peek_byte_o,
      .token_i(token[2:1]),
      .used_i,
      .set_i,
      .clear_i,
      .term_slot_i,
      .term_clear_i,
      .passes_3o(bits_pass_3),
      .holds_3o(holds_3)
  );
  always_ff @(posedge clk_i) begin
    if (token[2]) begin
      for (int unsigned i = 0; i < 8; i++)
        exists_3q[i] <= 21'({group_2q, 3'(i)}) < rows_i &&
            (any_row_i || 20'({group_2q, 3'(i)}) == row_i);
    end
  end

  // ---- lanes ----

  logic [2:0] peek_lane_q;
  logic [8*Q-1:0] peek_requested, peek_scored;
  logic [8*F-1:0] peek_free;
  logic [8*64-1:0] totals_33;
  logic [8*2*Q-1:0] l_allocatable_2;
  logic [8*2*(Q+1)-1:0] l_used_2;
  logic a_slot_19, b0_slot_5, b1_slot_5, f_slot_5;
  assign a_slot_19 = a_step_19[4];
  assign b0_slot_5 = b0_step_5[4];
  assign b1_slot_5 = b1_step_5[4];
  assign f_slot_5 = f_step_5[4];
  always_ff @(posedge clk_i) if (peek_i) peek_lane_q <= peek_row_i[2:0];
  assign peek_requested_o = peek_requested[peek_lane_q*Q+:Q];
  assign peek_scored_o = peek_scored[peek_lane_q*Q+:Q];
  assign peek_free_o = peek_free[peek_lane_q*F+:F];

  for (genvar l = 0; l < 8; l++) begin : g_lane
    logic writes;
    logic [15:0] holds;
    for (genvar t = 0; t < 16; t++) begin : g_term
      assign holds[t] = holds_3[t*8+l];
    end
    assign writes = write_i ? write_row_i[2:0] == 3'(l) : load_valid_i;
    penstock_scan_lane #(
        .RESOURCES(RESOURCES),
        .FREE(FREE),
        .DEPTH(DEPTH)
    ) i_lane (
        .clk_i,
        .write_i(writes),
        .write_kind_i(write_i ? write_kind_i : load_kind_i),
        .write_column_i(write_i ? write_column_i[2:0] : load_column_i[2:0]),
        .write_group_i(write_i ? write_row_i[GROUP+2:3] : load_index_i),
        .write_cell_i(write_i ? write_cell_i : load_data_i[l*64+:64]),
        .read_i(read),
        .read_group_i(read_group),
        .peek_i(!issues),
        .peek_column_i,
        .peek_requested_o(peek_requested[l*Q+:Q]),
        .peek_scored_o(peek_scored[l*Q+:Q]),
        .peek_free_o(peek_free[l*F+:F]),
        .token_i(token[3:1]),
        .end_token_i(token[32:30]),
        .a_token_i(a_token[29:1]),
        .b0_token_i(b0_token[29:1]),
        .b1_token_i(b1_token[29:1]),
        .f_token_i(f_token[29:1]),
        .fit_i,
        .request_i,
        .a_column_1i(a_column_1q),
        .a_take_1i(a_take_1q),
        .a_request_1i(a_request_1q),
        .l_turn_1i(l_token[1] && step[3+:2] == 2'(l / 2)),
        .l_column_1i(l_column_1q),
        .l_request_1i(l_request_1q),
        .a_most_2i(a_step_2[HEAD]),
        .f_coefficient_2i(coefficients_i[step[2*3+:2]*FREE*C+:FREE*C]),
        .passes_3i(exists_3q[l] && bits_pass_3[l]),
        .holds_3i(holds),
        .b_terms_3i({b1_terms_i[step[3*3+:3]*16+:16], b0_terms_i[step[3*3+:3]*16+:16]}),
        .term_weight_i,
        .a_first_11i(a_step_11[HEAD+1]),
        .a_weight_11i({a_step_11[HEAD+3+ENTRY+4+:7], a_step_11[HEAD+3+4+:7]}),
        .a_mode_19i(a_step_19[3:1]),
        .a_offset_19i(a_offset[a_slot_19*10+:10]),
        .a_negate_zero_19i({a_negate[a_slot_19], a_zero[a_slot_19]}),
        .a_divisor_19i(a_divisor[a_slot_19*9+:9]),
        .b_mode_5i({b1_step_5[3:1], b0_step_5[3:1]}),
        .b_offset_5i({b_offset[1][b1_slot_5*28+:28], b_offset[0][b0_slot_5*28+:28]}),
        .b_negate_zero_5i({b_negate[1][b1_slot_5], b_zero[1][b1_slot_5],
                           b_negate[0][b0_slot_5], b_zero[0][b0_slot_5]}),
        .b_divisor_5i({b_divisor[1][b1_slot_5*27+:27], b_divisor[0][b0_slot_5*27+:27]}),
        .f_mode_5i(f_step_5[3:1]),
        .f_offset_5i(f_offset[f_slot_5*55+:55]),
        .f_negate_zero_5i({f_negate[f_slot_5], f_zero[f_slot_5]}),
        .f_divisor_5i(f_divisor[f_slot_5*54+:54]),
        .works_30i({f_token[30], b1_token[30], b0_token[30], a_works_30}),
        .weight_30i({f_step_30[5+:21], b1_step_30[5+:21], b0_step_30[5+:21], a_step_30[5+:21]}),
        .first_32i(step[32*3+:3] == '0),
        .base_i,
        .feasible_4o(feasible_4[l]),
        .a_score_19o(a_scores[l*8+:8]),
        .b_score_5o({b_scores[1][l*26+:26], b_scores[0][l*26+:26]}),
        .f_score_5o(f_scores[l*53+:53]),
        .l_allocatable_2o(l_allocatable_2[l*2*Q+:2*Q]),
        .l_used_2o(l_used_2[l*2*(Q+1)+:2*(Q+1)]),
        .total_33o(totals_33[l*64+:64])
    );
  end
  // Index k * 8: stage 4 + k. The lanes' registers are stage 4.
  always_ff @(posedge clk_i) feasible_late_q <= feasible[8*65-1:0];
  assign feasible = {feasible_late_q, feasible_4};

  // ---- balanced: two lanes in a cycle ----

  logic [1:0] l_turn_80;
  logic [8*30-1:0] l_totals_q;
  logic [2*30-1:0] l_products_80q, l_before;
  assign l_feasible_68 = feasible[64*8+step[68*3+:2]*2+:2];
  assign l_turn_80 = step[80*3+:2];
  for (genvar p = 0; p < 2; p++) begin : g_balanced
    logic [2*Q-1:0] allocatable_3q;
    logic [2*(Q+1)-1:0] used_3q;
    logic signed [7:0] value_79;
    always_ff @(posedge clk_i) begin
      if (l_token[2]) begin
        allocatable_3q <= l_allocatable_2[(step[2*3+:2]*2+p)*2*Q+:2*Q];
        used_3q <= l_used_2[(step[2*3+:2]*2+p)*2*(Q+1)+:2*(Q+1)];
      end
      if (l_token[79])
        l_products_80q[p*30+:30] <= 30'(value_79) * 30'($signed(l_op_79[5+:21]));
    end
    penstock_scan_balanced i_balanced (
        .clk_i,
        .token_i(l_token[67:3]),
        .take_i(l_take_3q),
        .allocatable_i(allocatable_3q),
        .used_i(used_3q),
        .asks_65i(l_asks_67 != '0),
        .score_o(l_scores[p*8+:8])
    );
    penstock_scan_normalise #(
        .SCORE(8),
        .QUOTIENT(7)
    ) i_normalise (
        .clk_i,
        .token_i(l_token[78:68]),
        .mode_i(l_op_68[3:1]),
        .score_i(l_scores[p*8+:8]),
        .offset_i(l_offset[l_op_68[4]*10+:10]),
        .negate_i(l_negate[l_op_68[4]]),
        .zero_i(l_zero[l_op_68[4]]),
        .divisor_i(l_divisor[l_op_68[4]*9+:9]),
        .value_o(value_79)
    );
  end

  assign l_before = step[80*3+2] ? l_totals_q[l_turn_80*60+:60] : '0;
  always_ff @(posedge clk_i) begin
    if (l_token[80])
      l_totals_q[l_turn_80*60+:60] <= {l_before[59:30] + l_products_80q[59:30],
                                       l_before[29:0] + l_products_80q[29:0]};
  end

  // ---- the best rows ----

  penstock_scan_best #(
      .GROUP(GROUP),
      .KEY(KEY)
  ) i_best (
      .clk_i,
      .rst_ni,
      .start_i(state_q == IDLE && start_i),
      .groups_i(groups),
      .rows_i,
      .start_row_i,
      .best_i,
      .put_i(last[33]),
      .put_feasible_i(feasible[29*8+:8]),
      .put_totals_i(totals_33),
      .waits_i(uses_balanced),
      .late_valid_i(last[81]),
      .late_i(l_totals_q),
      .inserted_o(inserted),
      .merge_i(state_q == MERGE),
      .merged_o(merged),
      .feasible_o,
      .best_o
  );

  // The last group may have fewer rows than lanes.
  logic [2:0] rest;
  assign rest = rows_i[2:0];
  assign rows_scanned_o = !(issues && last_step && state_q == SECOND) ? '0 :
      last_group && rest != '0 ? 16'(rest) : 16'd8;
endmodule

`default_nettype wire
