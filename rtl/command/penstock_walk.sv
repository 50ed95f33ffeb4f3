// Takes the records of all queues, one at a time: checks them, finds their operands on the bus, and
// hands them to whoever executes them, or answers at once. See penstock_schedule for what has to
// wait for what: then the record is left where it is, other queues go on, and it is looked at anew
// when what it waits for has come.
//
// In the order of the engines' definition: the record itself, the list of its sources, windows of
// destinations, windows of sources, overlaps. A refused record has touched nothing but its list.
//
// Cycles for one record, from its choice: 10 to an answer without operands; 7 more for each operand
// (8 to 10 with more than four windows), 3 for their comparison, and for a list its window, 5, and
// the latency of the read.
`default_nettype none

module penstock_walk #(
    // Queues: 1 to 64.
    parameter int unsigned QUEUES = 64,
    // Records that the card holds for a queue.
    parameter int unsigned SLOTS = 32,
    // Jobs of the reduction engine that may be under way.
    parameter int unsigned JOBS = 16,
    // Of a record's place. Not to be set.
    parameter int unsigned PLACE_BITS = $clog2(QUEUES) + $clog2(SLOTS)
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    // The rings' counters stand still in this cycle; it is clear_queue_i that starts anew.
    input  wire logic                  hold_i,
    input  wire logic [5:0]            clear_queue_i,
    // Queues with records that are enabled and not stopped; those that are cancelled.
    input  wire logic [QUEUES-1:0]     takeable_i,
    input  wire logic [QUEUES-1:0]     cancel_i,
    // The queue at hand: its counters, its context, its record.
    output      logic [5:0]            queue_o,
    output      logic                  walking_o,
    input  wire logic [31:0]           count_i,
    input  wire logic                  more_i,
    input  wire logic                  all_done_i,
    input  wire logic                  all_acknowledged_i,
    output      logic                  take_o,
    output      logic                  take_none_o,
    input  wire logic [63:0]           ring_i,
    input  wire logic [4:0]            depth_i,
    input  wire logic [31:0]           timeout_ms_i,
    output      logic                  read_o,  // held until read_ready_i; data in the next cycle
    input  wire logic                  read_ready_i,
    output      logic [PLACE_BITS-1:0] place_o,
    output      logic                  read_half_o,
    input  wire logic [511:0]          read_data_i,
    input  wire logic                  bad_i,
    // What others wait for.
    input  wire logic                  done_i,  // the last one under way of its queue
    input  wire logic [5:0]            done_queue_i,
    input  wire logic                  acknowledged_i,
    input  wire logic [5:0]            acknowledged_queue_i,
    // Windows.
    output      logic                  win_valid_o,
    input  wire logic                  win_ready_i,
    output      logic [63:0]           win_address_o,
    output      logic [63:0]           win_bytes_o,
    output      logic                  win_write_o,
    input  wire logic                  win_rsp_valid_i,
    input  wire logic                  win_rsp_ok_i,
    input  wire logic [63:0]           win_rsp_bus_i,
    // The list of sources (penstock_list).
    output      logic                  list_start_o,
    output      logic [63:3]           list_address_o,
    output      logic [6:0]            list_words_o,
    input  wire logic                  list_done_i,
    input  wire logic                  list_error_i,
    input  wire logic [63:0]           list_error_address_i,
    output      logic [5:0]            list_index_o,
    input  wire logic [63:0]           list_word_i,
    // Answers.
    output      logic                  answer_valid_o,
    input  wire logic                  answer_ready_i,
    output      logic [4:0]            answer_status_o,
    output      logic [4:0]            answer_field_o,
    output      logic [63:0]           answer_detail_o,
    output      logic                  answer_reported_o,  // its error is no operand's
    // A record that could not be read: held until it was reported.
    output      logic                  error_valid_o,
    input  wire logic                  error_ready_i,
    output      logic [31:0]           error_sequence_o,
    output      logic [63:0]           error_address_o,
    // Jobs of the reduction engine.
    output      logic                  op_we_o,
    output      logic                  op_slot_o,
    output      logic [5:0]            op_index_o,
    output      logic [63:0]           op_bus_o,
    output      logic                  job_valid_o,
    input  wire logic                  job_ready_i,
    output      logic                  job_slot_o,
    output      logic [5:0]            job_queue_o,
    output      logic                  job_copy_o,
    output      logic [3:0]            job_type_o,
    output      logic [2:0]            job_redop_o,
    output      logic [3:0]            job_out_type_o,
    output      logic [6:0]            job_sources_o,
    output      logic [1:0]            job_destinations_o,
    output      logic [32:0]           job_count_o,
    output      logic [63:0]           job_scale_o,
    output      logic [191:0]          job_dst_o,
    input  wire logic [1:0]            slot_free_i,
    input  wire logic                  job_done_i,
    // Jobs of the scoring engine.
    output      logic                  sel_valid_o,
    input  wire logic                  sel_ready_i,
    output      logic [5:0]            sel_queue_o,
    output      logic                  sel_commit_o,
    output      logic [20:0]           sel_count_o,
    output      logic [63:0]           sel_table_o,
    output      logic [63:0]           sel_program_o,
    output      logic [63:0]           sel_tasks_o,
    output      logic [63:0]           sel_results_o,
    // Jobs of the synchronisation unit.
    output      logic                  sync_valid_o,
    input  wire logic                  sync_ready_i,
    output      logic [5:0]            sync_queue_o,
    output      logic [3:0]            sync_opcode_o,
    output      logic [63:0]           sync_fence_o,
    output      logic [63:0]           sync_lines_o,
    output      logic [6:0]            sync_count_o,
    output      logic [63:0]           sync_value_o,
    output      logic [31:0]           sync_timeout_ms_o,
    output      logic                  idle_o
);

  localparam int unsigned QUEUE_BITS = $clog2(QUEUES);
  localparam int unsigned SLOT_BITS = $clog2(SLOTS);

  localparam logic [3:0] NOP = 4'(penstock_pkg::OP_NOP);
  localparam logic [3:0] COPY = 4'(penstock_pkg::OP_COPY);
  localparam logic [3:0] REDUCE = 4'(penstock_pkg::OP_REDUCE);
  localparam logic [3:0] WAIT = 4'(penstock_pkg::OP_WAIT);
  localparam logic [3:0] SIGNAL = 4'(penstock_pkg::OP_SIGNAL);
  localparam logic [3:0] SELECT = 4'(penstock_pkg::OP_SELECT);
  localparam logic [4:0] OK = 5'(penstock_pkg::OK);
  localparam logic [4:0] FIELD_DST = 5'(penstock_pkg::FIELD_DST);
  localparam logic [4:0] FIELD_SRC = 5'(penstock_pkg::FIELD_SRC);

  localparam logic [4:0] PICK = 5'd0;
  localparam logic [4:0] LOOK = 5'd1;           // whether there is a record; reads its first half
  localparam logic [4:0] HALF = 5'd2;           // reads the second one
  localparam logic [4:0] WHOLE = 5'd3;
  localparam logic [4:0] CHECK = 5'd4;
  localparam logic [4:0] CHECKED = 5'd5;
  localparam logic [4:0] DECIDE = 5'd6;
  localparam logic [4:0] LIST_WINDOW = 5'd7;
  localparam logic [4:0] LIST_PLACE = 5'd8;     // waits for the window, then compares
  localparam logic [4:0] LIST_COMPARE = 5'd9;
  localparam logic [4:0] LIST_READ = 5'd10;
  localparam logic [4:0] WINDOW = 5'd11;        // of one operand after the other
  localparam logic [4:0] PLACE = 5'd12;
  localparam logic [4:0] COMPARE = 5'd13;
  localparam logic [4:0] HAND = 5'd14;          // to an engine
  localparam logic [4:0] ANSWER = 5'd15;
  localparam logic [4:0] REPORT = 5'd16;        // that the record could not be read
  logic [4:0] state_q;

  // ---- which queue ----
  logic [5:0] queue_q;
  logic       picked;
  logic [5:0] pick;
  logic       wait_done;
  logic       wait_acknowledged;
  logic       wait_reduce;
  logic       wait_score;
  logic       kind_reduce;
  logic       kind_score;
  logic       kind_answer;
  logic       reduce_free;
  logic       score_free;
  logic       took_reduce;
  logic       took_score;
  logic       took_sync;
  logic       took_answer;
  penstock_schedule #(
      .QUEUES(QUEUES)
  ) u_schedule (
      .clk_i,
      .rst_ni,
      .clear_i            (hold_i),
      .clear_queue_i,
      .takeable_i,
      .pick_i             (state_q == PICK),
      .picked_o           (picked),
      .pick_o             (pick),
      .queue_i            (queue_q),
      .wait_done_i        (wait_done),
      .wait_acknowledged_i(wait_acknowledged),
      .wait_reduce_i      (wait_reduce),
      .wait_score_i       (wait_score),
      .took_reduce_i      (took_reduce),
      .took_score_i       (took_score),
      .took_sync_i        (took_sync),
      .took_answer_i      (took_answer),
      .kind_reduce_o      (kind_reduce),
      .kind_score_o       (kind_score),
      .kind_answer_o      (kind_answer),
      .done_i,
      .done_queue_i,
      .acknowledged_i,
      .acknowledged_queue_i,
      .reduce_free_i      (reduce_free),
      .score_free_i       (score_free)
  );
  assign queue_o   = queue_q;
  assign walking_o = state_q != PICK;

  // ---- the record ----
  logic [1023:0] record_q;
  logic [3:0]    opcode;
  logic [7:0]    n_src;
  logic [1:0]    n_dst;
  logic [63:0]   count;
  logic          list;
  logic [4:0]    check_status;
  logic [4:0]    check_field;
  logic [63:0]   check_detail;
  assign opcode      = record_q[8*penstock_pkg::AT_DESCRIPTOR_OPCODE+:4];
  assign n_src       = record_q[8*penstock_pkg::AT_DESCRIPTOR_N_SRC+:8];
  assign n_dst       = record_q[8*penstock_pkg::AT_DESCRIPTOR_N_DST+:2];
  assign count       = record_q[8*penstock_pkg::AT_DESCRIPTOR_COUNT+:64];
  assign list        = (record_q[8*penstock_pkg::AT_DESCRIPTOR_FLAGS+:32] &
                        32'(penstock_pkg::FLAG_SRC_LIST)) != '0;
  assign place_o     = {queue_q[QUEUE_BITS-1:0], count_i[SLOT_BITS-1:0]};
  assign read_o      = (state_q == LOOK && more_i) || state_q == HALF;
  assign read_half_o = state_q == HALF;

  penstock_check u_check (
      .clk_i,
      .valid_i (state_q == CHECK),
      .record_i(record_q),
      .status_o(check_status),
      .field_o (check_field),
      .detail_o(check_detail)
  );

  // ---- its operands: destinations, then sources ----
  function automatic logic [1:0] size_log2(input logic [3:0] element);
    case (element)
      4'(penstock_pkg::INT64), 4'(penstock_pkg::UINT64), 4'(penstock_pkg::F64): size_log2 = 2'd3;
      4'(penstock_pkg::INT32), 4'(penstock_pkg::UINT32), 4'(penstock_pkg::F32): size_log2 = 2'd2;
      4'(penstock_pkg::F16), 4'(penstock_pkg::BF16): size_log2 = 2'd1;
      default: size_log2 = 2'd0;
    endcase
  endfunction
  logic [3:0] element;
  logic [3:0] out_type;
  logic       moves;  // COPY or REDUCE
  assign element  = record_q[8*penstock_pkg::AT_DESCRIPTOR_TYPE+:4];
  assign out_type = record_q[8*penstock_pkg::AT_DESCRIPTOR_OUT_TYPE+:4];
  assign moves    = opcode == COPY || opcode == REDUCE;

  logic [38:0] src_bytes_q;
  logic [38:0] dst_bytes_q;
  logic [6:0]  sources_q;       // that are looked for in the windows
  logic [1:0]  destinations_q;
  logic        in_place_q;
  logic        slot_q;
  logic        sources_now_q;   // the operand at hand is a source
  logic [5:0]  index_q;
  logic        last_operand;
  logic [63:0] source;
  logic [63:0] operand;
  logic [63:0] bus_q;           // of the source at hand; of a fence the last one
  assign source       = list ? list_word_i : record_q[512+64*index_q[2:0]+:64];
  assign operand      = sources_now_q ? source : record_q[320+64*index_q[1:0]+:64];
  assign last_operand = sources_now_q ? {1'b0, index_q} + 7'd1 == sources_q
                                      : 2'(index_q) + 2'd1 == destinations_q && sources_q == '0;
  assign list_index_o = index_q;

  logic asks_list;
  assign asks_list     = state_q == LIST_WINDOW;
  assign win_valid_o   = state_q == WINDOW || asks_list;
  assign win_address_o = asks_list ? record_q[512+:64] : operand;
  assign win_bytes_o   = asks_list ? {53'd0, n_src, 3'd0} :
                         {25'd0, sources_now_q ? src_bytes_q : dst_bytes_q};
  assign win_write_o   = !asks_list && !sources_now_q;

  logic       placed;
  logic [2:0] clash;
  logic       hazard;
  logic       jobs_full;
  logic [191:0] dst_bus;
  logic [1:0]   steps_q;  // of the comparison
  assign placed = win_rsp_valid_i && win_rsp_ok_i;
  penstock_overlap #(
      .JOBS(JOBS)
  ) u_overlap (
      .clk_i,
      .rst_ni,
      .begin_i      (state_q == DECIDE),
      .queue_i      (queue_q),
      .place_i      (placed),
      .place_dst_i  (state_q == PLACE && !sources_now_q),
      .place_index_i(index_q[1:0]),
      .place_start_i(win_rsp_bus_i),
      .place_bytes_i(state_q == LIST_PLACE ? {28'd0, n_src, 3'd0} :
                     sources_now_q ? src_bytes_q : dst_bytes_q),
      .in_place_i   (in_place_q && state_q != LIST_PLACE),
      .clash_o      (clash),
      .hazard_o     (hazard),
      .dst_o        (dst_bus),
      .push_i       (took_reduce),
      .pop_i        (job_done_i),
      .full_o       (jobs_full)
  );

  // The addresses of a job's sources go into its slot as they are found; a refused job leaves them
  // there, to be written over.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) op_we_o <= 1'b0;
    else op_we_o <= state_q == PLACE && placed && sources_now_q && moves;
  end
  always_ff @(posedge clk_i) begin
    if (placed) begin
      op_slot_o  <= slot_q;
      op_index_o <= index_q;
      op_bus_o   <= win_rsp_bus_i;
      bus_q      <= win_rsp_bus_i;
    end
  end

  assign list_start_o   = state_q == LIST_COMPARE && steps_q == 2'd0 && !hazard;
  assign list_address_o = bus_q[63:3];
  assign list_words_o   = n_src[6:0];

  // ---- answers ----
  logic [4:0]  status_q;
  logic [4:0]  field_q;
  logic [63:0] detail_q;
  logic        bad_q;
  logic        reported_q;
  logic        in_turn;  // nothing before it can complete after it
  logic [63:0] record_bus;
  assign in_turn           = kind_answer || all_done_i;
  assign answer_valid_o    = state_q == ANSWER && in_turn && (!bad_q || reported_q) && !hold_i;
  assign answer_status_o   = status_q;
  assign answer_field_o    = field_q;
  assign answer_detail_o   = detail_q;
  assign answer_reported_o = reported_q;
  assign error_valid_o     = state_q == REPORT;
  assign error_sequence_o  = count_i + 32'd1;
  assign error_address_o   = detail_q;
  assign record_bus        = ring_i + (({32'd0, count_i} & ((64'd1 << depth_i) - 64'd1)) << 7);

  // ---- engines ----
  logic sync;
  logic same_kind;
  logic free;
  assign sync        = !moves && opcode != SELECT;
  assign reduce_free = slot_free_i != '0 && !job_valid_o && !jobs_full;
  assign score_free  = !sel_valid_o;
  assign same_kind   = all_acknowledged_i || (moves && kind_reduce) ||
                       (opcode == SELECT && kind_score);
  assign free        = moves ? reduce_free : opcode != SELECT || score_free;
  assign took_reduce = state_q == HAND && moves && !job_valid_o && !hold_i;
  assign took_score  = state_q == HAND && opcode == SELECT && !sel_valid_o && !hold_i;
  assign took_sync   = state_q == HAND && sync && !sync_valid_o && !hold_i;
  assign took_answer = answer_valid_o && answer_ready_i;
  assign take_o      = took_reduce || took_score || took_sync || took_answer;
  assign take_none_o = state_q == LOOK && !more_i && !hold_i;

  logic decided;  // a record that is sound and needs an engine
  logic no_operands;
  logic clashes;
  assign no_operands       = opcode == NOP || (moves && count == '0);
  assign decided           = state_q == DECIDE && check_status == OK && !no_operands;
  assign wait_acknowledged = decided && !same_kind;
  assign wait_reduce       = decided && same_kind && moves && !free;
  assign wait_score        = decided && same_kind && opcode == SELECT && !free;
  assign clashes           = moves && clash != '0;  // a fence may be one of a barrier's
  assign wait_done         = (state_q == ANSWER && !in_turn && !hold_i) ||
                             ((state_q == COMPARE || state_q == LIST_COMPARE) &&
                              steps_q == 2'd0 && hazard && !clashes && !all_done_i);

  penstock_dispatch u_dispatch (
      .clk_i,
      .rst_ni,
      .record_i      (record_q),
      .queue_i       (queue_q),
      .slot_i        (slot_q),
      .dst_i         (dst_bus),
      .lines_i       (bus_q),
      .timeout_ms_i,
      .take_job_i    (took_reduce),
      .take_sel_i    (took_score),
      .take_sync_i   (took_sync),
      .job_valid_o,
      .job_ready_i,
      .job_slot_o,
      .job_queue_o,
      .job_copy_o,
      .job_type_o,
      .job_redop_o,
      .job_out_type_o,
      .job_sources_o,
      .job_destinations_o,
      .job_count_o,
      .job_scale_o,
      .job_dst_o,
      .sel_valid_o,
      .sel_ready_i,
      .sel_queue_o,
      .sel_commit_o,
      .sel_count_o,
      .sel_table_o,
      .sel_program_o,
      .sel_tasks_o,
      .sel_results_o,
      .sync_valid_o,
      .sync_ready_i,
      .sync_queue_o,
      .sync_opcode_o,
      .sync_fence_o,
      .sync_lines_o,
      .sync_count_o,
      .sync_value_o,
      .sync_timeout_ms_o
  );

  // ---- the walk ----
  always_ff @(posedge clk_i) begin
    if (state_q == PICK && picked) queue_q <= pick;
    if (state_q == HALF) record_q[511:0] <= read_data_i;
    if (state_q == WHOLE) record_q[1023:512] <= read_data_i;
    if (state_q == LOOK) begin
      bad_q      <= bad_i;
      reported_q <= 1'b0;
      status_q   <= bad_i ? 5'(penstock_pkg::IO_ERROR) : 5'(penstock_pkg::CANCELLED);
      field_q    <= 5'(penstock_pkg::FIELD_NONE);
      detail_q   <= bad_i ? record_bus : '0;
    end
    if (state_q == REPORT) reported_q <= 1'b1;
    if (state_q == DECIDE) begin
      status_q      <= check_status;
      field_q       <= check_field;
      detail_q      <= check_detail;
      slot_q        <= !slot_free_i[0];
      sources_now_q <= opcode == WAIT;
      index_q       <= '0;
      case (opcode)
        COPY: sources_q <= 7'd1;
        REDUCE: sources_q <= n_src[6:0];
        SIGNAL: sources_q <= 7'd0;
        default: sources_q <= 7'd1;
      endcase
      destinations_q <= n_dst;
      in_place_q     <= opcode == COPY || size_log2(element) == size_log2(out_type);
      if (moves) begin
        src_bytes_q <= count[38:0] << (opcode == COPY ? 2'd0 : size_log2(element));
        dst_bytes_q <= count[38:0] << (opcode == COPY ? 2'd0 : size_log2(out_type));
      end else begin
        src_bytes_q <= {26'd0, opcode == WAIT ? 7'd1 : count[6:0], 6'd0};
        dst_bytes_q <= 39'd64;
      end
    end
    if (win_rsp_valid_i && !win_rsp_ok_i) begin
      status_q <= 5'(penstock_pkg::OUT_OF_RANGE);
      field_q  <= win_write_q ? FIELD_DST : FIELD_SRC;
      detail_q <= state_q == LIST_PLACE ? record_q[512+:64] : operand;
    end
    if (state_q == LIST_READ && list_done_i && list_error_i) begin
      status_q <= 5'(penstock_pkg::IO_ERROR);
      field_q  <= FIELD_SRC;
      detail_q <= list_error_address_i;
    end
    if (state_q == PLACE && placed) begin
      if (!sources_now_q && 2'(index_q) + 2'd1 == destinations_q) begin
        sources_now_q <= 1'b1;
        index_q       <= '0;
      end else index_q <= index_q + 6'd1;
    end
    if (state_q == COMPARE && steps_q == 2'd0 && clashes) begin
      status_q <= 5'(penstock_pkg::INVALID_ARGUMENT);
      field_q  <= FIELD_DST;
      detail_q <= clash[0] ? record_q[320+:64] : clash[1] ? record_q[384+:64] :
                                                            record_q[448+:64];
    end
    if (state_q == PLACE || state_q == LIST_PLACE) steps_q <= 2'd2;
    else if (steps_q != '0) steps_q <= steps_q - 2'd1;
  end

  logic win_write_q;
  always_ff @(posedge clk_i) begin
    if (win_valid_o && win_ready_i) win_write_q <= win_write_o;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= PICK;
    else begin
      case (state_q)
        PICK: if (picked) state_q <= LOOK;
        LOOK: begin
          if (!more_i) begin
            if (!hold_i) state_q <= PICK;
          end else if (bad_i || cancel_i[queue_q[QUEUE_BITS-1:0]]) state_q <= ANSWER;
          else if (read_ready_i) state_q <= HALF;
        end
        HALF: if (read_ready_i) state_q <= WHOLE;
        WHOLE: state_q <= CHECK;
        CHECK: state_q <= CHECKED;
        CHECKED: state_q <= DECIDE;
        DECIDE: begin
          if (check_status != OK || no_operands) state_q <= ANSWER;
          else if (!same_kind || !free) state_q <= PICK;
          else if (opcode == SELECT) state_q <= HAND;
          else state_q <= list ? LIST_WINDOW : WINDOW;
        end
        LIST_WINDOW: if (win_ready_i) state_q <= LIST_PLACE;
        LIST_PLACE: if (win_rsp_valid_i) state_q <= win_rsp_ok_i ? LIST_COMPARE : ANSWER;
        LIST_COMPARE: if (steps_q == '0) state_q <= hazard ? PICK : LIST_READ;
        LIST_READ: if (list_done_i) state_q <= list_error_i ? ANSWER : WINDOW;
        WINDOW: if (win_ready_i) state_q <= PLACE;
        PLACE: begin
          if (win_rsp_valid_i) begin
            state_q <= !win_rsp_ok_i ? ANSWER : !last_operand ? WINDOW : COMPARE;
          end
        end
        COMPARE: begin
          if (steps_q == '0) state_q <= clashes ? ANSWER : hazard ? PICK : HAND;
        end
        HAND: if (take_o) state_q <= PICK;
        ANSWER: begin
          if (hold_i) state_q <= ANSWER;
          else if (!in_turn) state_q <= PICK;
          else if (bad_q && !reported_q) state_q <= REPORT;
          else if (answer_ready_i) state_q <= PICK;
        end
        REPORT: if (error_ready_i) state_q <= ANSWER;
        default: state_q <= PICK;
      endcase
    end
  end

  assign idle_o = state_q == PICK && takeable_i == '0 && !job_valid_o && !sel_valid_o &&
                  !sync_valid_o;

endmodule

`default_nettype wire
