// A program: read, checked as penstock_program_check does, and compiled to what penstock_scan runs.
// The header comes first, then what stands behind the operations, then the operations.
//
// Compiling puts the scores into steps: a step holds at most two entries of an allocation score,
// two scores of bits and one of features; a balanced one takes four steps. Normalised ones come
// first, so that the first pass is short. What does not fit, or what the card lacks, is UNSUPPORTED
// with the operation's index.
//
// 2 cycles for each operation in compiling and 4 in checking it, beside the beats: 1 for the
// header, 2 + n_typical / 2 + 13 for what is behind, 2 for each operation.
`default_nettype none

module penstock_score_program #(
    localparam int unsigned A = penstock_score_pkg::ALLOCATION_STEP,
    localparam int unsigned B = penstock_score_pkg::BITS_STEP,
    localparam int unsigned FS = penstock_score_pkg::FEATURES_STEP,
    localparam int unsigned L = penstock_score_pkg::BALANCED_OP,
    localparam int unsigned STEPS = penstock_score_pkg::STEPS
) (
    input wire logic clk_i,
    input wire logic rst_ni,
    input wire logic start_i,
    input wire logic [63:0] address_i,  // bus address, until it is done
    output logic done_o,  // until the next start; what follows means something then
    output logic [4:0] status_o,
    output logic [6:0] detail_o,
    // Of the table.
    input wire logic [4:0] n_resources_i,
    input wire logic [12:0] n_bits_i,
    input wire logic [8:0] n_free_i,
    // To penstock_score_reader.
    output logic request_valid_o,
    input wire logic request_ready_i,
    output logic [63:0] request_address_o,
    output logic [31:0] request_bytes_o,
    input wire logic data_valid_i,
    output logic data_ready_o,
    input wire logic [511:0] data_i,
    // What it says.
    output logic [1:0] tie_o,
    output logic [3:0] best_o,
    output logic [63:0] seed_o,
    output logic [15:0] fit_o,  // resources that FILTER_FIT names
    output logic row_filter_o,
    // Groups, a bit for each.
    output logic [255:0] filter_groups_o,  // of FILTER_BITS
    output logic [255:0] domain_filters_o,  // of FILTER_DOMAINS
    output logic [255:0] domain_scores_o,  // of SCORE_DOMAINS
    output logic [255:0] spread_scores_o,  // of SCORE_SPREAD
    // Steps.
    output logic [3:0] first_interval_o,
    output logic [3:0] interval_o,
    output logic [STEPS*A-1:0] a_steps_o,
    output logic [5:0] a_modes_o,
    output logic [STEPS*B-1:0] b0_steps_o,
    output logic [STEPS*B-1:0] b1_steps_o,
    output logic [4*FS-1:0] f_steps_o,
    output logic [2*L-1:0] l_ops_o,
    output logic [63:0] base_o
);
  localparam logic [6:0] NO_OP = 7'(penstock_pkg::MAX_OPS);

  typedef enum logic [3:0] {
    IDLE,
    HEAD,
    SHAPE,
    TYPICAL,
    THRESHOLD,
    OP_FIRST,
    OP_SECOND,
    CHECK,
    BOUND,
    PLACE,
    DONE
  } state_e;
  state_e state_q;
  logic beat;
  assign data_ready_o = state_q == HEAD || state_q == SHAPE || state_q == TYPICAL ||
      state_q == THRESHOLD || state_q == OP_FIRST || state_q == OP_SECOND;
  assign beat = data_valid_i && data_ready_o;
  assign done_o = state_q == DONE;

  // ---- header ----

  logic [15:0] n_ops;
  logic [31:0] n_typical;
  logic head_corrupt, head_invalid;
  assign n_ops = data_i[penstock_pkg::AT_PROGRAM_N_OPS*8+:16];
  assign n_typical = data_i[penstock_pkg::AT_PROGRAM_N_TYPICAL*8+:32];
  assign head_corrupt = data_i[31:0] != 32'(penstock_pkg::PROGRAM_MAGIC) ||
      data_i[penstock_pkg::AT_PROGRAM_VERSION*8+:16] != 16'(penstock_pkg::PROGRAM_VERSION);
  assign head_invalid = n_ops > 16'(penstock_pkg::MAX_OPS) ||
      data_i[penstock_pkg::AT_PROGRAM_TIE*8+:8] > 8'(penstock_pkg::TIE_HASH) ||
      data_i[penstock_pkg::AT_PROGRAM_GPU_PICK*8+:8] > 8'(penstock_pkg::GPU_FGD) ||
      data_i[penstock_pkg::AT_PROGRAM_BEST*8+:8] == '0 ||
      data_i[penstock_pkg::AT_PROGRAM_BEST*8+:8] > 8'(penstock_pkg::MAX_BEST) ||
      data_i[penstock_pkg::AT_PROGRAM_RESERVED*8+:40] != '0 ||
      n_typical > 32'(penstock_pkg::MAX_TYPICAL) ||
      data_i[511:penstock_pkg::AT_PROGRAM_RESERVED2*8] != '0;

  logic [6:0] n_ops_q;
  logic [8:0] n_typical_q;
  logic picks_fgd_q, has_fgd_q;

  // ---- what stands behind the operations ----

  logic [8:0] count_q;  // beats, or typical tasks, so far
  logic shape_bad, threshold_bad;
  logic [1:0] typical_bad;
  logic [63:0] threshold_q;
  logic [20:0] room_typical_q, room_typical_next;
  always_comb begin
    shape_bad = 1'b0;
    for (int unsigned i = 0; i < 64; i++)
      if (data_i[i*8+:8] > (count_q[0] && i >= 37 ? 8'd0 : 8'd100)) shape_bad = 1'b1;
  end
  always_comb begin
    threshold_bad = count_q != '0 && $signed(data_i[63:0]) < $signed(threshold_q);
    for (int unsigned i = 1; i < 8; i++)
      if ($signed(data_i[i*64+:64]) < $signed(data_i[(i-1)*64+:64]) &&
          !(count_q == 9'd12 && i >= 3))
        threshold_bad = 1'b1;
  end
  always_comb begin
    room_typical_next = room_typical_q;
    for (int unsigned i = 0; i < 2; i++) begin
      typical_bad[i] = data_i[i*256+:64] > penstock_pkg::MAX_REQUEST ||
          data_i[i*256+64+:32] > 32'(penstock_pkg::MAX_GPUS) ||
          data_i[i*256+128+:16] >= 16'(n_bits_i) ||
          (data_i[i*256+64+:32] == '0 ? data_i[i*256+96+:32] != '0 :
           data_i[i*256+96+:32] == '0 || data_i[i*256+96+:32] > 32'd1000) ||
          data_i[i*256+144+:48] != '0 ||
          data_i[i*256+192+:64] == '0 || data_i[i*256+192+:64] > 64'(room_typical_next);
      if (count_q + 9'(i) >= n_typical_q) typical_bad[i] = 1'b0;
      else if (!typical_bad[i])
        room_typical_next = room_typical_next - data_i[i*256+192+:21];
    end
  end

  // ---- one operation ----

  logic [1023:0] op_q;
  logic [6:0] index_q;
  logic [7:0] op, normalise, n, group;
  logic signed [31:0] weight;
  logic [31:0] skip;
  assign op = op_q[7:0];
  assign normalise = op_q[15:8];
  assign n = op_q[23:16];
  assign group = op_q[31:24];
  assign weight = op_q[63:32];
  assign skip = op_q[95:64];

  // What it takes, as the rules of penstock_program_check.
  logic known, of_resources, has_group, has_weights, may_skip, negative, is_score;
  logic [1:0] scales;  // 0: none, 1: the first, 2: entry by entry
  logic [4:0] least_n, most_n;
  logic [5:0] bound_log2;  // where the score may be negative; else 100
  always_comb begin
    {known, of_resources, has_group, has_weights, may_skip, negative} = '0;
    scales = 2'd0;
    least_n = 5'd0;
    most_n = 5'd0;
    bound_log2 = 6'd0;
    case (op)
      8'(penstock_pkg::FILTER_GPU), 8'(penstock_pkg::FILTER_ROW): known = 1'b1;
      8'(penstock_pkg::FILTER_BITS), 8'(penstock_pkg::FILTER_DOMAINS): {known, has_group} = '1;
      8'(penstock_pkg::FILTER_FIT): begin
        {known, of_resources} = '1;
        most_n = 5'd16;
      end
      8'(penstock_pkg::SCORE_LEAST_ALLOCATED), 8'(penstock_pkg::SCORE_MOST_ALLOCATED),
      8'(penstock_pkg::SCORE_RATIO): begin
        {known, of_resources, has_weights, may_skip} = '1;
        most_n = 5'd16;
      end
      8'(penstock_pkg::SCORE_BALANCED): begin
        {known, of_resources, may_skip} = '1;
        most_n = 5'd16;
      end
      8'(penstock_pkg::SCORE_BITS): begin
        {known, has_group, negative} = '1;
        bound_log2 = 6'd24;
      end
      8'(penstock_pkg::SCORE_FEATURES): begin
        {known, negative} = '1;
        most_n = 5'd8;
        bound_log2 = 6'd51;
      end
      8'(penstock_pkg::SCORE_BEST_FIT), 8'(penstock_pkg::SCORE_DOT_PRODUCT): begin
        {known, of_resources, negative} = '1;
        scales = 2'd2;
        least_n = op == 8'(penstock_pkg::SCORE_DOT_PRODUCT) ? 5'd1 : 5'd0;
        most_n = 5'd6;
        bound_log2 = 6'd40;
      end
      8'(penstock_pkg::SCORE_GPU_PACKING), 8'(penstock_pkg::SCORE_FGD): begin
        {known, of_resources} = '1;
        least_n = 5'd1;
        most_n = 5'd1;
      end
      8'(penstock_pkg::SCORE_GPU_CLUSTERING): begin
        {known, negative} = '1;
        scales = 2'd1;
        most_n = 5'd16;
        bound_log2 = 6'd20;
      end
      8'(penstock_pkg::SCORE_DOMAINS): begin
        {known, has_group, negative} = '1;
        bound_log2 = 6'd46;
      end
      8'(penstock_pkg::SCORE_SPREAD): begin
        {known, has_group, negative} = '1;
        bound_log2 = 6'd36;
      end
      default: ;
    endcase
  end
  assign is_score = op >= 8'd32;

  logic [15:0] lists_bad;
  logic [5:0] scales_bad;
  logic weight_bad, op_invalid, op_unknown;
  for (genvar i = 0; i < 16; i++) begin : g_entry
    logic used;
    logic [15:0] column, list_weight;
    assign used = n > 8'(i);
    assign column = op_q[penstock_pkg::AT_COLUMN_OP_COLUMN*8+i*16+:16];
    assign list_weight = op_q[penstock_pkg::AT_COLUMN_OP_LIST_WEIGHT*8+i*16+:16];
    assign lists_bad[i] =
        (used ? column >= (of_resources ? {11'b0, n_resources_i} : {7'b0, n_free_i}) :
         column != '0) ||
        (used && has_weights ? list_weight == '0 || list_weight > 16'd100 : list_weight != '0);
  end
  for (genvar i = 0; i < 6; i++) begin : g_scale
    logic used;
    logic [63:0] scale;
    assign used = scales == 2'd2 ? n > 8'(i) : scales == 2'd1 && i == 0;
    assign scale = op_q[penstock_pkg::AT_COLUMN_OP_SCALE*8+i*64+:64];
    assign scales_bad[i] =
        used ? scale == '0 || scale > penstock_pkg::MAX_QUANTITY : scale != '0;
  end
  always_comb begin
    weight_bad = is_score ? weight > 32'sd1000000 || weight < -32'sd1000000 :
        weight != '0 || normalise != '0;
    op_unknown = !known || normalise > 8'(penstock_pkg::NORMALISE_SPREAD);
    op_invalid = op_q[127:96] != '0 || n > {3'b0, most_n} || n < {3'b0, least_n} ||
        (!has_group && group != '0) ||
        (may_skip ? (skip >> n[4:0]) != '0 : skip != '0) ||
        weight_bad || lists_bad != '0 || scales_bad != '0;
  end

  // The bound: |weight| times what the score can reach.
  logic [20:0] weight_size;
  logic [71:0] bound, room_q;
  logic [5:0] shift;
  logic percent, scores_q;
  assign weight_size = weight[31] ? 21'(-weight) : weight[20:0];
  always_comb begin
    percent = !negative || normalise == 8'(penstock_pkg::NORMALISE_MIN_MAX) ||
        normalise == 8'(penstock_pkg::NORMALISE_MIN_MAX_F64) ||
        normalise == 8'(penstock_pkg::NORMALISE_SPREAD);
    shift = normalise == 8'(penstock_pkg::NORMALISE_NONE) ? bound_log2 : 6'd20;
    bound = percent ? 72'(weight_size) * 72'd100 : 72'(weight_size) << shift;
  end

  // What the card lacks.
  logic lacks;
  always_comb begin
    case (op)
      8'(penstock_pkg::SCORE_BALANCED): lacks = n > 8'd2;
      8'(penstock_pkg::SCORE_FEATURES):
      lacks = normalise == 8'(penstock_pkg::NORMALISE_MIN_MAX_F64);
      8'(penstock_pkg::SCORE_BEST_FIT), 8'(penstock_pkg::SCORE_DOT_PRODUCT),
      8'(penstock_pkg::SCORE_GPU_PACKING), 8'(penstock_pkg::SCORE_GPU_CLUSTERING),
      8'(penstock_pkg::SCORE_RATIO), 8'(penstock_pkg::SCORE_FGD):
      lacks = 1'b1;
      default: lacks = 1'b0;
    endcase
  end

  // ---- compiling ----

  // Operations that are placed, as they were read: op, normalisation, n, group, weight, skip,
  // columns, weights of the list.
  localparam int unsigned SAVED = 4 + 3 + 5 + 8 + 21 + 16 + 48 + 112;
  logic [SAVED-1:0] saved[0:63];
  logic [SAVED-1:0] saved_now;
  logic [47:0] columns;
  logic [111:0] list_weights;
  logic [6:0] saved_index_q[0:63];
  for (genvar i = 0; i < 16; i++) begin : g_saved
    assign columns[i*3+:3] = op_q[penstock_pkg::AT_COLUMN_OP_COLUMN*8+i*16+:3];
    assign list_weights[i*7+:7] = op_q[penstock_pkg::AT_COLUMN_OP_LIST_WEIGHT*8+i*16+:7];
  end
  logic [6:0] saved_n_q, place_q;
  logic places;  // the operation in work is a score that takes a step
  assign places = op == 8'(penstock_pkg::SCORE_LEAST_ALLOCATED) ||
      op == 8'(penstock_pkg::SCORE_MOST_ALLOCATED) || op == 8'(penstock_pkg::SCORE_BALANCED) ||
      op == 8'(penstock_pkg::SCORE_BITS) || op == 8'(penstock_pkg::SCORE_FEATURES);

  logic [3:0] p_op;
  logic [2:0] p_normalise;
  logic [4:0] p_n;
  logic [7:0] p_group;
  logic [20:0] p_weight;
  logic [15:0] p_skip;
  logic [47:0] p_columns;
  logic [111:0] p_list_weights;
  logic plain_q;  // in the second round, those that are not normalised
  assign saved_now = saved[place_q[5:0]];
  assign {p_op, p_normalise, p_n, p_group, p_weight, p_skip, p_columns, p_list_weights} =
      saved_now;

  logic [3:0] a_count_q, b_count_q, entry_q;  // b counts both units; entry_q: pairs of entries
  logic [2:0] f_count_q;
  logic [1:0] l_count_q;
  logic [1:0] a_ranged_q;  // normalised allocations so far
  logic mine, no_room, a_last, is_a, is_b, is_f, is_l, ranged;
  logic [25:0] head;
  logic [3:0] needed;
  assign is_a = p_op <= 4'd1;
  assign is_l = p_op == 4'd2;
  assign is_b = p_op == 4'd3;
  assign is_f = p_op == 4'd4;
  assign ranged = p_normalise != '0;
  assign mine = place_q != saved_n_q && ranged != plain_q;
  assign a_last = {1'b0, entry_q} + 5'd1 >= (p_n + 5'd1) >> 1;
  always_comb begin
    no_room = 1'b0;
    if (is_a) no_room = a_count_q[3] || (ranged && a_ranged_q[1]);
    if (is_b) no_room = b_count_q == 4'd14 || (ranged && b_count_q[2]);
    if (is_f) no_room = f_count_q[2] || (ranged && f_count_q[1]);
    if (is_l) no_room = l_count_q[1];
    head = {p_weight, 1'b0, p_normalise, 1'b1};
    head[4] = is_a ? a_ranged_q[0] : is_b ? b_count_q[1] : is_f ? f_count_q[0] : l_count_q[0];
  end
  logic [23:0] a_entries;
  for (genvar e = 0; e < 2; e++) begin : g_pair
    logic [4:0] i;
    assign i = {entry_q, 1'(e)};
    assign a_entries[e*12+:12] = {p_skip[i[3:0]], p_list_weights[i[3:0]*7+:7],
                                  p_columns[i[3:0]*3+:3], i < p_n};
  end
  // Steps that what is placed so far needs.
  always_comb begin
    needed = a_count_q;
    if ((b_count_q + 4'd1) >> 1 > needed) needed = (b_count_q + 4'd1) >> 1;
    if ({1'b0, f_count_q} > needed) needed = {1'b0, f_count_q};
    if ({l_count_q, 2'b0} > needed) needed = {l_count_q, 2'b0};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= IDLE;
    end else if (start_i) begin
      state_q <= HEAD;
    end else begin
      case (state_q)
        HEAD: if (beat) state_q <= head_corrupt || head_invalid ? DONE : SHAPE;
        SHAPE: if (beat && count_q[0]) state_q <= n_typical_q != '0 ? TYPICAL : THRESHOLD;
        TYPICAL: if (beat && count_q + 9'd2 >= n_typical_q) state_q <= THRESHOLD;
        THRESHOLD: if (beat && count_q == 9'd12) state_q <= n_ops_q != '0 ? OP_FIRST : PLACE;
        OP_FIRST: if (beat) state_q <= OP_SECOND;
        OP_SECOND: if (beat) state_q <= CHECK;
        CHECK: state_q <= BOUND;
        BOUND: state_q <= index_q + 7'd1 == n_ops_q ? PLACE : OP_FIRST;
        PLACE: if (place_q == saved_n_q && plain_q) state_q <= DONE;
        default: ;
      endcase
    end
  end

  logic refused_q;  // the first refusal stands
  logic lacking_q;
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      status_o <= 5'(penstock_pkg::OK);
      detail_o <= NO_OP;
      refused_q <= 1'b0;
      lacking_q <= 1'b0;
      count_q <= '0;
      index_q <= '0;
      room_typical_q <= 21'(penstock_pkg::MAX_TYPICAL_WEIGHT);
      room_q <= 72'(penstock_pkg::MAX_SCORE);
      scores_q <= 1'b0;
      has_fgd_q <= 1'b0;
      fit_o <= '0;
      row_filter_o <= 1'b0;
      filter_groups_o <= '0;
      domain_filters_o <= '0;
      domain_scores_o <= '0;
      spread_scores_o <= '0;
      base_o <= '0;
      a_steps_o <= '0;
      a_modes_o <= '0;
      b0_steps_o <= '0;
      b1_steps_o <= '0;
      f_steps_o <= '0;
      l_ops_o <= '0;
      saved_n_q <= '0;
      place_q <= '0;
      plain_q <= 1'b0;
      a_count_q <= '0;
      a_ranged_q <= '0;
      b_count_q <= '0;
      f_count_q <= '0;
      l_count_q <= '0;
      entry_q <= '0;
      first_interval_o <= '0;
    end
    if (beat) begin
      case (state_q)
        HEAD: begin
          n_ops_q <= n_ops[6:0];
          n_typical_q <= n_typical[8:0];
          tie_o <= data_i[penstock_pkg::AT_PROGRAM_TIE*8+:2];
          best_o <= data_i[penstock_pkg::AT_PROGRAM_BEST*8+:4];
          seed_o <= data_i[penstock_pkg::AT_PROGRAM_SEED*8+:64];
          picks_fgd_q <= data_i[penstock_pkg::AT_PROGRAM_GPU_PICK*8+:8] ==
              8'(penstock_pkg::GPU_FGD);
          if (head_invalid) status_o <= 5'(penstock_pkg::INVALID_ARGUMENT);
          if (head_corrupt) status_o <= 5'(penstock_pkg::CORRUPT);
        end
        SHAPE: begin
          count_q <= count_q[0] ? '0 : 9'd1;
          if (shape_bad) refused_q <= 1'b1;
        end
        TYPICAL: begin
          count_q <= count_q + 9'd2 >= n_typical_q ? '0 : count_q + 9'd2;
          room_typical_q <= room_typical_next;
          if (typical_bad != '0) refused_q <= 1'b1;
        end
        THRESHOLD: begin
          count_q <= count_q + 9'd1;
          threshold_q <= data_i[511:448];
          if (threshold_bad) refused_q <= 1'b1;
          if (threshold_bad || refused_q) status_o <= 5'(penstock_pkg::INVALID_ARGUMENT);
        end
        OP_FIRST: op_q[511:0] <= data_i;
        default: op_q[1023:512] <= data_i;
      endcase
    end

    if (state_q == CHECK && !refused_q) begin
      if (op_unknown || op_invalid || (!is_score && scores_q)) begin
        refused_q <= 1'b1;
        detail_o <= index_q;
        status_o <= op_unknown ? 5'(penstock_pkg::UNSUPPORTED)
                               : 5'(penstock_pkg::INVALID_ARGUMENT);
      end
    end
    if (state_q == BOUND) begin
      index_q <= index_q + 7'd1;
      if (is_score) begin
        scores_q <= 1'b1;
        room_q <= room_q - bound;
      end
      if (op == 8'(penstock_pkg::SCORE_FGD)) has_fgd_q <= 1'b1;
      if (!refused_q && is_score && bound > room_q) begin
        refused_q <= 1'b1;
        detail_o <= index_q;
        status_o <= 5'(penstock_pkg::INVALID_ARGUMENT);
      end else if (!refused_q) begin
        // Malformed operations further on come before what is lacking.
        if (lacks && !lacking_q) begin
          lacking_q <= 1'b1;
          detail_o <= index_q;
        end
        case (op)
          8'(penstock_pkg::FILTER_BITS): filter_groups_o[group] <= 1'b1;
          8'(penstock_pkg::FILTER_DOMAINS): domain_filters_o[group] <= 1'b1;
          8'(penstock_pkg::FILTER_ROW): row_filter_o <= 1'b1;
          8'(penstock_pkg::FILTER_FIT):
          for (int unsigned i = 0; i < 16; i++)
            if (n > 8'(i)) fit_o[op_q[penstock_pkg::AT_COLUMN_OP_COLUMN*8+i*16+:4]] <= 1'b1;
          8'(penstock_pkg::SCORE_DOMAINS): domain_scores_o[group] <= 1'b1;
          8'(penstock_pkg::SCORE_SPREAD): spread_scores_o[group] <= 1'b1;
          default: ;
        endcase
        // Without a term of its group SCORE_DOMAINS gives 0, which is 100 in these ranges.
        if (op == 8'(penstock_pkg::SCORE_DOMAINS) &&
            (normalise == 8'(penstock_pkg::NORMALISE_REVERSED) ||
             normalise == 8'(penstock_pkg::NORMALISE_SPREAD)))
          base_o <= base_o + 64'(weight) * 64'sd100;
        if (places && !lacks) begin
          saved[saved_n_q[5:0]] <= {op[3:0], normalise[2:0], n[4:0], group, weight[20:0],
                                    skip[15:0], columns, list_weights};
          saved_index_q[saved_n_q[5:0]] <= index_q;
          saved_n_q <= saved_n_q + 7'd1;
        end
      end
    end

    if (state_q == PLACE) begin
      if (place_q == saved_n_q) begin
        place_q <= '0;
        plain_q <= 1'b1;
        if (!plain_q) first_interval_o <= needed;
        interval_o <= needed == '0 ? 4'd1 : needed;
        if (plain_q && !refused_q) begin
          detail_o <= '0;
          if (picks_fgd_q && !has_fgd_q) begin
            status_o <= 5'(penstock_pkg::INVALID_ARGUMENT);
            detail_o <= NO_OP;
          end else if (lacking_q) begin
            status_o <= 5'(penstock_pkg::UNSUPPORTED);
            detail_o <= detail_o;
          end else if (tie_o == 2'(penstock_pkg::TIE_HASH)) begin
            status_o <= 5'(penstock_pkg::UNSUPPORTED);
            detail_o <= NO_OP;
          end
        end
      end else if (!mine) begin
        place_q <= place_q + 7'd1;
      end else begin
        if (!is_a || a_last || no_room) place_q <= place_q + 7'd1;
        if (no_room) begin
          if (!lacking_q && !refused_q) detail_o <= saved_index_q[place_q[5:0]];
          lacking_q <= 1'b1;
          entry_q <= '0;
        end else begin
          if (is_a) begin
            a_steps_o[a_count_q[2:0]*A+:A] <=
                {a_entries, a_last, entry_q == '0, p_op[0], head};
            if (ranged) a_modes_o[a_ranged_q[0]*3+:3] <= p_normalise;
            a_count_q <= a_count_q + 4'd1;
            entry_q <= a_last ? '0 : entry_q + 4'd1;
            if (a_last && ranged) a_ranged_q <= a_ranged_q + 2'd1;
          end
          if (is_b) begin
            if (b_count_q[0]) b1_steps_o[b_count_q[3:1]*B+:B] <= {p_group, head};
            else b0_steps_o[b_count_q[3:1]*B+:B] <= {p_group, head};
            b_count_q <= b_count_q + 4'd1;
          end
          if (is_f) begin
            f_steps_o[f_count_q[1:0]*FS+:FS] <= {p_columns[23:0], p_n[3:0], head};
            f_count_q <= f_count_q + 3'd1;
          end
          if (is_l) begin
            l_ops_o[l_count_q[0]*L+:L] <= {p_skip[1], p_columns[5:3], p_n > 5'd1,
                                           p_skip[0], p_columns[2:0], p_n > 5'd0, head};
            l_count_q <= l_count_q + 2'd1;
          end
        end
      end
    end
  end

  // ---- requests: the header, then three more as they are taken ----

  logic [1:0] request_q;
  logic asks_q;
  assign request_valid_o = asks_q;
  always_comb begin
    request_address_o = address_i;
    request_bytes_o = 32'd64;
    case (request_q)
      2'd0: ;
      2'd1: begin
        request_address_o = address_i + 64'(penstock_pkg::AT_PROGRAM_SHAPE);
        request_bytes_o = 32'd128 + {18'b0, n_typical_q, 5'b0};
      end
      2'd2: begin
        request_address_o = address_i + 64'(penstock_pkg::AT_PROGRAM_THRESHOLD);
        request_bytes_o = 32'(penstock_pkg::FGD_THRESHOLDS * 8);
      end
      default: begin
        request_address_o = address_i + 64'(penstock_pkg::AT_PROGRAM_OPS);
        request_bytes_o = {18'b0, n_ops_q, 7'b0};
      end
    endcase
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      asks_q <= 1'b0;
    end else if (start_i) begin
      asks_q <= 1'b1;
      request_q <= 2'd0;
    end else begin
      if (asks_q && request_ready_i) begin
        request_q <= request_q + 2'd1;
        if (request_q == 2'd0 || request_q == 2'd3 || (request_q == 2'd2 && n_ops_q == '0))
          asks_q <= 1'b0;
      end
      if (state_q == HEAD && beat && !head_corrupt && !head_invalid) asks_q <= 1'b1;
    end
  end
endmodule

`default_nettype wire
