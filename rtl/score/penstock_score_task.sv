// Tasks: checked as penstock_task_check does while their 16 beats come, and prepared for the scan:
// which columns of bits have to be resident, and in which slot each of them is. Holds two tasks:
// the next one, and the one that is being placed, to which take_i makes the next one.
//
// checked_o comes with the cycle after the last beat; preparing takes 34 cycles at most beside the
// columns that have to be loaded. A missing column is asked for by miss_*; the slot that it gets is
// none that the next task or the one in work looks at.
`default_nettype none

module penstock_score_task #(
    parameter int unsigned RESOURCES = 8,
    parameter int unsigned BITS = 64,
    parameter int unsigned FREE = 8,
    localparam int unsigned SLOT = $clog2(BITS),
    localparam int unsigned Q = penstock_score_pkg::QUANTITY,
    localparam int unsigned C = penstock_score_pkg::COEFFICIENT,
    localparam int unsigned B = penstock_score_pkg::BITS_STEP,
    localparam int unsigned FS = penstock_score_pkg::FEATURES_STEP,
    localparam int unsigned STEPS = penstock_score_pkg::STEPS
) (
    input wire logic clk_i,
    input wire logic rst_ni,
    input wire logic begin_i,  // before a task's first beat
    input wire logic valid_i,
    input wire logic [511:0] data_i,
    output logic checked_o,  // pulse
    output logic invalid_o,
    output logic unsupported_o,  // well formed, but it needs what the card lacks
    input wire logic prepare_i,  // pulse, after checked_o
    output logic prepared_o,  // until the next begin_i
    input wire logic take_i,

    // Residence of columns.
    input wire logic forget_i,  // only column 0 is resident, in slot 0
    output logic miss_o,  // until it is loaded
    output logic [11:0] miss_column_o,
    output logic [SLOT-1:0] miss_slot_o,
    input wire logic loaded_i,  // pulse: the missing column is there

    // Of the descriptor, the table and the program.
    input wire logic commit_i,
    input wire logic [20:0] rows_i,
    input wire logic [20:0] capacity_i,
    input wire logic [4:0] n_resources_i,
    input wire logic [12:0] n_bits_i,
    input wire logic [8:0] n_free_i,
    input wire logic [6:0] n_domains_i,
    input wire logic [12:0] n_counts_i,
    input wire logic [1:0] tie_i,
    input wire logic [15:0] fit_i,
    input wire logic row_filter_i,
    input wire logic [255:0] filter_groups_i,
    input wire logic [255:0] domain_filters_i,
    input wire logic [255:0] domain_scores_i,
    input wire logic [255:0] spread_scores_i,
    input wire logic [STEPS*B-1:0] b0_steps_i,
    input wire logic [STEPS*B-1:0] b1_steps_i,
    input wire logic [4*FS-1:0] f_steps_i,

    // The task in work, for penstock_scan and penstock_score_commit.
    output logic [RESOURCES-1:0] fit_o,
    output logic [RESOURCES*Q-1:0] request_o,
    output logic [RESOURCES*Q-1:0] scored_request_o,
    output logic any_row_o,
    output logic [19:0] row_o,
    output logic [19:0] start_row_o,
    output logic [BITS-1:0] set_o,
    output logic [BITS-1:0] clear_o,
    output logic [BITS-1:0] used_o,
    output logic [16*SLOT-1:0] term_slot_o,
    output logic [15:0] term_clear_o,
    output logic [16*21-1:0] term_weight_o,
    output logic [STEPS*16-1:0] b0_terms_o,
    output logic [STEPS*16-1:0] b1_terms_o,
    output logic [4*FREE*C-1:0] coefficients_o,
    output logic [8*12-1:0] set_bits_o,  // columns, 0: none
    output logic [8*SLOT-1:0] set_bits_slot_o,
    output logic [4*4-1:0] count_o  // free columns plus 1, 0: none
);
  // ---- beats ----

  logic [4:0] beat_q;
  logic beat;
  logic invalid_q, unsupported_q, bad, lacks;
  assign beat = valid_i && !beat_q[4];

  /* verilator lint_off UNUSEDSIGNAL */  // tables with more resources are refused
  logic [16*Q-1:0] request_q, scored_request_q;
  /* verilator lint_on UNUSEDSIGNAL */
  logic any_row_q;
  logic [19:0] row_q;
  logic [63:0] tie_q;
  logic [4:0] n_terms_q;
  logic [3:0] n_domain_terms_q;
  logic [4:0] n_raises_q;
  logic [15:0] term_clear_q;
  logic [16*12-1:0] term_column_q;
  logic [16*8-1:0] term_group_q;
  logic [16*21-1:0] term_weight_q;
  logic [8*10-1:0] feature_q;
  logic [8*12-1:0] set_bits_q;
  logic [4*4-1:0] count_q;

  // Requests: eight in a beat.
  logic [7:0] request_bad;
  for (genvar i = 0; i < 8; i++) begin : g_request
    assign request_bad[i] = data_i[i*64+:64] >
        (5'({beat_q[0], 3'(i)}) < n_resources_i ? penstock_pkg::MAX_REQUEST : 64'd0);
  end
  // Terms: word i of a beat.
  logic [7:0] term_bad;
  for (genvar i = 0; i < 8; i++) begin : g_term
    logic signed [31:0] weight;
    assign weight = data_i[i*64+32+:32];
    assign term_bad[i] = data_i[i*64+:16] >= {3'b0, n_bits_i} || data_i[i*64+24+:8] > 8'd1 ||
        weight > 32'sd1000000 || weight < -32'sd1000000;
  end
  // Features.
  logic [7:0] feature_bad;
  for (genvar i = 0; i < 8; i++) begin : g_feature
    assign feature_bad[i] =
        $signed(data_i[i*64+:64]) > 64'sd256 || $signed(data_i[i*64+:64]) < -64'sd256;
  end
  // Bits that are set and columns that are counted.
  logic [7:0] set_bad;
  logic [3:0] count_bad;
  for (genvar i = 0; i < 8; i++) begin : g_set
    logic [15:0] column;
    assign column = data_i[256+i*16+:16];
    assign set_bad[i] = column == 16'd1 || column >= {3'b0, n_bits_i};
  end
  for (genvar i = 0; i < 4; i++) begin : g_count
    assign count_bad[i] = data_i[384+i*16+:16] > {7'b0, n_free_i};
  end
  // Domain terms: two in a beat, the first in beat 8.
  logic [1:0] domain_bad, domain_lacks;
  for (genvar i = 0; i < 2; i++) begin : g_domain
    /* verilator lint_off UNUSEDSIGNAL */  // min_domains may be anything
    logic [255:0] term;
    /* verilator lint_on UNUSEDSIGNAL */
    logic [7:0] group, kind;
    logic signed [31:0] weight;
    logic there, unsuited;
    assign term = data_i[i*256+:256];
    assign group = term[55:48];
    assign kind = term[63:56];
    assign weight = term[95:64];
    assign there = {beat_q[2:0], 1'(i)} < n_domain_terms_q;
    assign unsuited =
        (domain_scores_i[group] && (kind != '0 || weight > 32'sd1000000)) ||
        (spread_scores_i[group] && (weight < 32'sd1 || n_domains_i == '0)) ||
        (domain_filters_i[group] && (kind > 8'd2 || (kind == 8'd2 && weight < 32'sd1)));
    assign domain_bad[i] = there &&
        ((term[15:0] != 16'hffff && term[15:0] >= {9'b0, n_domains_i}) ||
         term[31:16] >= {3'b0, n_counts_i} || term[47:32] >= {3'b0, n_counts_i} ||
         kind > 8'd3 || term[127:96] > 32'd1 || term[159:128] > {11'b0, capacity_i} ||
         weight < -32'sd1000000 || term[255:192] != '0 || unsuited);
    assign domain_lacks[i] = there &&
        (domain_scores_i[group] || spread_scores_i[group] || domain_filters_i[group]);
  end
  // Raises: eight in a beat, the first in beat 14.
  logic [7:0] raise_bad;
  for (genvar i = 0; i < 8; i++) begin : g_raise
    logic [63:0] raise;
    assign raise = data_i[i*64+:64];
    assign raise_bad[i] = 5'({beat_q[0], 3'(i)}) < n_raises_q &&
        (raise[15:0] >= {3'b0, n_counts_i} ||
         (raise[31:16] != 16'hffff && raise[31:16] >= {9'b0, n_domains_i}) ||
         raise[47:32] >= {3'b0, n_bits_i} || raise[63:48] != '0);
  end

  // Which of a beat's terms are there: those of beat 4 are its last four words, and so on.
  logic [31:0] gpu_count, gpu_milli, n_terms, klass, n_domain_terms, n_raises;
  logic [63:0] row;
  logic [7:0] term_there;
  logic [4:0] terms_known;
  assign gpu_count = data_i[31:0];
  assign gpu_milli = data_i[63:32];
  assign row = data_i[127:64];
  assign n_terms = data_i[223:192];
  assign klass = data_i[255:224];
  assign n_domain_terms = data_i[479:448];
  assign n_raises = data_i[511:480];
  assign terms_known = beat_q[1:0] == 2'd0 ? n_terms[4:0] : n_terms_q;
  always_comb begin
    for (int unsigned i = 0; i < 8; i++) begin
      case (beat_q[1:0])
        2'd0: term_there[i] = i >= 4 && 5'(i - 4) < terms_known;
        2'd1: term_there[i] = 5'(i + 4) < terms_known;
        default: term_there[i] = i < 4 && 5'(i + 12) < terms_known;
      endcase
    end
  end
  always_comb begin
    bad = 1'b0;
    lacks = 1'b0;
    case (beat_q)
      5'd0, 5'd1, 5'd2, 5'd3: bad = request_bad != '0;
      5'd4: begin
        bad = gpu_count > 32'(penstock_pkg::MAX_GPUS) ||
            (gpu_count == '0 ? gpu_milli != '0 : gpu_milli == '0 || gpu_milli > 32'd1000) ||
            $signed(row) < -64'sd1 || $signed(row) >= 64'(penstock_pkg::MAX_ROWS) ||
            n_terms > 32'(penstock_pkg::MAX_TERMS) ||
            klass >= 32'(penstock_pkg::MAX_RESOURCES) || (term_bad & term_there) != '0;
        lacks = gpu_count != '0;
      end
      5'd5: bad = (term_bad & term_there) != '0;
      5'd6: bad = (term_bad & term_there) != '0 || feature_bad[7:4] != '0;
      5'd7: begin
        bad = feature_bad[3:0] != '0 || set_bad != '0 || count_bad != '0 ||
            n_domain_terms > 32'(penstock_pkg::MAX_DOMAIN_TERMS) ||
            n_raises > 32'(penstock_pkg::MAX_RAISES);
        lacks = commit_i && n_raises != '0;
      end
      5'd14, 5'd15: bad = raise_bad != '0;
      default: begin
        bad = domain_bad != '0;
        lacks = domain_lacks != '0;
      end
    endcase
  end

  always_ff @(posedge clk_i) begin
    checked_o <= rst_ni && beat && beat_q == 5'd15;
    if (!rst_ni || begin_i) begin
      beat_q <= rst_ni ? '0 : 5'd16;
      invalid_q <= 1'b0;
      unsupported_q <= 1'b0;
    end else if (beat) begin
      beat_q <= beat_q + 5'd1;
      if (bad) invalid_q <= 1'b1;
      if (lacks) unsupported_q <= 1'b1;
    end
    if (beat) begin
      case (beat_q)
        5'd4: begin
          any_row_q <= row[63] || !row_filter_i;
          row_q <= row[19:0];
          tie_q <= data_i[191:128];
          n_terms_q <= n_terms[4:0];
        end
        5'd7: begin
          for (int unsigned i = 0; i < 8; i++) set_bits_q[i*12+:12] <= data_i[256+i*16+:12];
          for (int unsigned i = 0; i < 4; i++) count_q[i*4+:4] <= data_i[384+i*16+:4];
          n_domain_terms_q <= n_domain_terms[3:0];
          n_raises_q <= n_raises[4:0];
        end
        default: ;
      endcase
      for (int unsigned i = 0; i < 16; i++) begin
        if (beat_q == 5'(i / 8)) request_q[i*Q+:Q] <= data_i[(i%8)*64+:Q];
        if (beat_q == 5'(i / 8 + 2)) scored_request_q[i*Q+:Q] <= data_i[(i%8)*64+:Q];
        if (beat_q == 5'((i + 4) / 8 + 4)) begin
          term_column_q[i*12+:12] <= data_i[((i+4)%8)*64+:12];
          term_group_q[i*8+:8] <= data_i[((i+4)%8)*64+16+:8];
          term_clear_q[i] <= data_i[((i+4)%8)*64+24];
          term_weight_q[i*21+:21] <= data_i[((i+4)%8)*64+32+:21];
        end
      end
      for (int unsigned i = 0; i < 8; i++)
        if (beat_q == 5'(i / 4 + 6)) feature_q[i*10+:10] <= data_i[((i+4)%8)*64+:10];
    end
  end
  assign invalid_o = invalid_q;
  assign unsupported_o = unsupported_q;

  // ---- preparing: a column in a cycle, the tie rule's start two bits in a cycle ----

  logic prepares_q;
  logic [4:0] column_q;  // 0..15 terms, 16..23 bits to set, 24: done
  logic [5:0] digit_q;  // 0..31, 32: done
  /* verilator lint_off UNUSEDSIGNAL */  // below rows, which is at most 2^20
  logic [20:0] start_q, start_once, start_twice;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [15:0] valid_terms;
  logic [BITS-1:0] set_q, clear_q, used_q, locked_q, locked_now_q;
  logic [16*SLOT-1:0] term_slot_q;
  logic [8*SLOT-1:0] set_bits_slot_q;
  logic [STEPS*16-1:0] b0_terms_q, b1_terms_q;
  logic [4*FREE*C-1:0] coefficients_q;

  // Slots.
  logic [BITS*12-1:0] tag_q;
  logic [BITS-1:0] resident_q;
  logic [SLOT-1:0] victim_q, slot;
  logic [BITS-1:0] here;
  logic [11:0] column;
  logic hit, wanted, is_term, misses_q;
  logic [3:0] term;
  assign is_term = !column_q[4];
  assign term = column_q[3:0];
  assign column = is_term ? term_column_q[term*12+:12] : set_bits_q[column_q[2:0]*12+:12];
  assign wanted = is_term ? column_q < n_terms_q : column != '0 && commit_i;
  for (genvar b = 0; b < BITS; b++) begin : g_slot
    assign here[b] = resident_q[b] && tag_q[b*12+:12] == column;
  end
  assign hit = here != '0;
  always_comb begin
    slot = '0;
    for (int unsigned b = 0; b < BITS; b++) if (here[b]) slot = slot | SLOT'(b);
  end
  assign miss_o = misses_q;
  assign miss_column_o = column;
  assign miss_slot_o = victim_q;

  logic [4*3-1:0] f_column;  // of entry column_q of each step
  logic [3:0] f_takes;
  logic signed [C-1:0] feature;
  for (genvar s = 0; s < 4; s++) begin : g_column
    assign f_column[s*3+:3] = f_steps_i[s*FS+30+column_q[2:0]*3+:3];
    assign f_takes[s] = column_q < {1'b0, f_steps_i[s*FS+26+:4]};
  end
  assign feature = C'($signed(feature_q[column_q[2:0]*10+:10]));

  logic [7:0] group;
  logic [1:0] digits;
  assign group = term_group_q[term*8+:8];
  assign digits = tie_q[(6'd31-digit_q)*2+:2];
  assign start_once = {start_q[19:0], digits[1]} >= rows_i ? {start_q[19:0], digits[1]} - rows_i
                                                           : {start_q[19:0], digits[1]};
  assign start_twice = {start_once[19:0], digits[0]} >= rows_i ?
      {start_once[19:0], digits[0]} - rows_i : {start_once[19:0], digits[0]};

  for (genvar t = 0; t < 16; t++) begin : g_there
    assign valid_terms[t] = 5'(t) < n_terms_q;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      prepares_q <= 1'b0;
      prepared_o <= 1'b0;
      misses_q <= 1'b0;
      resident_q <= BITS'(1);
      victim_q <= '0;
      locked_now_q <= '0;
    end else begin
      if (begin_i) begin
        prepared_o <= 1'b0;
        prepares_q <= 1'b0;
        misses_q <= 1'b0;
      end else if (prepare_i) begin
        prepares_q <= 1'b1;
      end else if (prepares_q && column_q == 5'd24 && digit_q == 6'd32) begin
        prepares_q <= 1'b0;
        prepared_o <= 1'b1;
      end
      if (prepares_q && column_q != 5'd24 && wanted && !hit && !misses_q) begin
        // The next slot that nobody looks at.
        if (victim_q == '0 || locked_q[victim_q] || locked_now_q[victim_q])
          victim_q <= victim_q + SLOT'(1);
        else begin
          misses_q <= 1'b1;
          resident_q[victim_q] <= 1'b0;
        end
      end
      if (misses_q && loaded_i) begin
        misses_q <= 1'b0;
        resident_q[victim_q] <= 1'b1;
      end
      if (forget_i) resident_q <= BITS'(1);
      if (take_i) locked_now_q <= locked_q;
    end
    tag_q[11:0] <= '0;
    for (int unsigned b = 1; b < BITS; b++)
      if (misses_q && loaded_i && victim_q == SLOT'(b)) tag_q[b*12+:12] <= column;

    if (prepare_i) begin
      column_q <= '0;
      set_q <= '0;
      clear_q <= '0;
      used_q <= BITS'(1);
      locked_q <= '0;
      b0_terms_q <= '0;
      b1_terms_q <= '0;
      coefficients_q <= '0;
    end else if (prepares_q && column_q != 5'd24) begin
      if (!wanted || hit) begin
        column_q <= column_q + 5'd1;
        if (wanted) begin
          locked_q[slot] <= 1'b1;
          if (is_term) begin
            used_q[slot] <= 1'b1;
            for (int unsigned t = 0; t < 16; t++)
              if (term == 4'(t)) term_slot_q[t*SLOT+:SLOT] <= slot;
            if (filter_groups_i[group]) begin
              if (term_clear_q[term]) clear_q[slot] <= 1'b1;
              else set_q[slot] <= 1'b1;
            end
            for (int unsigned s = 0; s < STEPS; s++) begin
              if (b0_steps_i[s*B] && b0_steps_i[s*B+26+:8] == group)
                b0_terms_q[s*16+:16] <= b0_terms_q[s*16+:16] | (16'd1 << term);
              if (b1_steps_i[s*B] && b1_steps_i[s*B+26+:8] == group)
                b1_terms_q[s*16+:16] <= b1_terms_q[s*16+:16] | (16'd1 << term);
            end
          end else begin
            for (int unsigned i = 0; i < 8; i++)
              if (column_q[2:0] == 3'(i)) set_bits_slot_q[i*SLOT+:SLOT] <= slot;
          end
        end
        // Features, beside it: entry column_q of every step.
        if (column_q < 5'd8) begin
          for (int unsigned s = 0; s < 4; s++)
            for (int unsigned c = 0; c < FREE; c++)
              if (f_takes[s] && f_column[s*3+:3] == 3'(c))
                coefficients_q[(s*FREE+c)*C+:C] <= coefficients_q[(s*FREE+c)*C+:C] + feature;
        end
      end
    end

    if (prepare_i) begin
      start_q <= '0;
      digit_q <= tie_i == 2'(penstock_pkg::TIE_ROTATING) && rows_i != '0 ? '0 : 6'd32;
    end else if (digit_q != 6'd32) begin
      digit_q <= digit_q + 6'd1;
      start_q <= start_twice;
    end

    // ---- the task in work ----

    if (take_i) begin
      request_o <= request_q[RESOURCES*Q-1:0];
      scored_request_o <= scored_request_q[RESOURCES*Q-1:0];
      for (int unsigned r = 0; r < RESOURCES; r++)
        fit_o[r] <= fit_i[r] && request_q[r*Q+:Q] != '0;
      any_row_o <= any_row_q;
      row_o <= row_q;
      start_row_o <= start_q[19:0];
      set_o <= set_q;
      clear_o <= clear_q;
      used_o <= used_q;
      for (int unsigned t = 0; t < 16; t++)
        term_slot_o[t*SLOT+:SLOT] <= valid_terms[t] ? term_slot_q[t*SLOT+:SLOT] : '0;
      term_clear_o <= term_clear_q;
      term_weight_o <= term_weight_q;
      b0_terms_o <= b0_terms_q;
      b1_terms_o <= b1_terms_q;
      coefficients_o <= coefficients_q;
      set_bits_o <= set_bits_q;
      set_bits_slot_o <= set_bits_slot_q;
      count_o <= count_q;
    end
  end
endmodule

`default_nettype wire
