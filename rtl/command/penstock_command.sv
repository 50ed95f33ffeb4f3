// The command processor: doorbells in, completions out. Descriptors are read from the rings and
// checked, their operands found in the queue's windows, and handed to the engine that executes
// them; the completions of a queue are written in the order of its descriptors.
//
//   configuration bus ─ penstock_queues ─ penstock_ring (counters)
//   penstock_fetch ─ penstock_walk (schedule, check, list, overlap, dispatch) ─ reduce, score, sync
//                          penstock_window            penstock_complete ──────────────┘
//                                                     penstock_errors
`default_nettype none

module penstock_command #(
    // Queues: 2 to 64.
    parameter int unsigned QUEUES = 64,
    // Records that the card holds for a queue: a power of two, from 2 to 32.
    parameter int unsigned SLOTS = 32,
    // Of them, those that were not begun.
    parameter int unsigned PREFETCH = 8,
    // Jobs of the reduction engine that may be under way: a power of two.
    parameter int unsigned JOBS = 16,
    // The rings' first count; not 0 only in tests, to see counters wrap.
    parameter logic [31:0] START = 32'd0
) (
    input  wire logic              clk_i,
    input  wire logic              rst_ni,
    // Descriptors are fetched and begun.
    input  wire logic              enable_i,
    // Configuration bus, offsets from 0x1000 (penstock_queues).
    input  wire logic              cfg_valid_i,
    input  wire logic              cfg_write_i,
    input  wire logic [15:0]       cfg_addr_i,
    input  wire logic [31:0]       cfg_wdata_i,
    output      logic              cfg_ready_o,
    output      logic [31:0]       cfg_rdata_o,
    output      logic              cfg_error_o,
    // Descriptors and lists are read, completions written.
    output      logic              m_axi_awvalid,
    input  wire logic              m_axi_awready,
    output      logic [63:0]       m_axi_awaddr,
    output      logic [3:0]        m_axi_awid,
    output      logic [7:0]        m_axi_awlen,
    output      logic              m_axi_wvalid,
    input  wire logic              m_axi_wready,
    output      logic [511:0]      m_axi_wdata,
    output      logic [63:0]       m_axi_wstrb,
    output      logic              m_axi_wlast,
    input  wire logic              m_axi_bvalid,
    output      logic              m_axi_bready,
    input  wire logic [3:0]        m_axi_bid,
    input  wire logic [1:0]        m_axi_bresp,
    output      logic              m_axi_arvalid,
    input  wire logic              m_axi_arready,
    output      logic [63:0]       m_axi_araddr,
    output      logic [3:0]        m_axi_arid,
    output      logic [7:0]        m_axi_arlen,
    input  wire logic              m_axi_rvalid,
    output      logic              m_axi_rready,
    input  wire logic [511:0]      m_axi_rdata,
    input  wire logic [3:0]        m_axi_rid,
    input  wire logic [1:0]        m_axi_rresp,
    input  wire logic              m_axi_rlast,
    // Reduction engine.
    output      logic              op_we_o,
    output      logic              op_slot_o,
    output      logic [5:0]        op_index_o,
    output      logic [63:0]       op_bus_o,
    output      logic              job_valid_o,
    input  wire logic              job_ready_i,
    output      logic              job_slot_o,
    output      logic [5:0]        job_queue_o,
    output      logic              job_copy_o,
    output      logic [3:0]        job_type_o,
    output      logic [2:0]        job_redop_o,
    output      logic [3:0]        job_out_type_o,
    output      logic [6:0]        job_sources_o,
    output      logic [1:0]        job_destinations_o,
    output      logic [32:0]       job_count_o,
    output      logic [63:0]       job_scale_o,
    output      logic [191:0]      job_dst_o,
    input  wire logic [1:0]        slot_free_i,
    input  wire logic              done_valid_i,
    output      logic              done_ready_o,
    input  wire logic [5:0]        done_queue_i,
    input  wire logic              done_error_i,
    input  wire logic              done_write_i,
    input  wire logic [63:0]       done_bus_i,
    // Scoring engine, and its window requests. It forgets the table that it holds when a queue is
    // enabled: another may stand at the same address by now.
    output      logic              sel_forget_o,
    output      logic              sel_valid_o,
    input  wire logic              sel_ready_i,
    output      logic [5:0]        sel_queue_o,
    output      logic              sel_commit_o,
    output      logic [20:0]       sel_count_o,
    output      logic [63:0]       sel_table_o,
    output      logic [63:0]       sel_program_o,
    output      logic [63:0]       sel_tasks_o,
    output      logic [63:0]       sel_results_o,
    input  wire logic              sel_done_valid_i,
    output      logic              sel_done_ready_o,
    input  wire logic [5:0]        sel_done_queue_i,
    input  wire logic [4:0]        sel_done_status_i,
    input  wire logic [4:0]        sel_done_field_i,
    input  wire logic [63:0]       sel_done_detail_i,
    input  wire logic              score_win_valid_i,
    output      logic              score_win_ready_o,
    input  wire logic [5:0]        score_win_queue_i,
    input  wire logic [63:0]       score_win_address_i,
    input  wire logic [63:0]       score_win_bytes_i,
    input  wire logic              score_win_write_i,
    output      logic              score_win_rsp_valid_o,
    output      logic              score_win_rsp_ok_o,
    output      logic [63:0]       score_win_rsp_bus_o,
    // Synchronisation unit. A bit per queue: cancelled; a wait is in progress.
    output      logic              sync_valid_o,
    input  wire logic              sync_ready_i,
    output      logic [5:0]        sync_queue_o,
    output      logic [3:0]        sync_opcode_o,
    output      logic [63:0]       sync_fence_o,
    output      logic [63:0]       sync_lines_o,
    output      logic [6:0]        sync_count_o,
    output      logic [63:0]       sync_value_o,
    output      logic [31:0]       sync_timeout_ms_o,
    output      logic [QUEUES-1:0] sync_cancel_o,
    input  wire logic [QUEUES-1:0] sync_waiting_i,
    input  wire logic              sync_done_valid_i,
    output      logic              sync_done_ready_o,
    input  wire logic [5:0]        sync_done_queue_i,
    input  wire logic [4:0]        sync_done_status_i,
    input  wire logic [4:0]        sync_done_field_i,
    input  wire logic [63:0]       sync_done_detail_i,
    // A completion of this queue stands in memory.
    output      logic              queue_event_valid_o,
    output      logic [5:0]        queue_event_queue_o,
    // An error (a pulse).
    output      logic              error_valid_o,
    output      logic [7:0]        error_code_o,
    output      logic [5:0]        error_queue_o,
    output      logic [31:0]       error_sequence_o,
    output      logic [63:0]       error_address_o,
    output      logic [1023:0]     error_descriptor_o,
    // Events that are counted: a descriptor was begun.
    output      logic              descriptor_o,
    // Nothing is to be done, and nothing under way.
    output      logic              idle_o
);

  localparam int unsigned PLACE_BITS = $clog2(QUEUES) + $clog2(SLOTS);

  // ---- queues and their counters ----
  logic              clear;
  logic [5:0]        cfg_queue;
  logic              doorbell;
  logic [31:0]       doorbell_depth;
  logic              doorbell_legal;
  logic [31:0]       submitted;
  logic [31:0]       arrived;
  logic [31:0]       completed;
  logic              settled;
  logic              finished;
  logic [QUEUES-1:0] runs;
  logic [QUEUES-1:0] enabled;
  logic [QUEUES-1:0] cancelled;
  logic [QUEUES-1:0] stopped;
  logic              window_cfg_valid;
  logic              window_cfg_ready;
  logic [31:0]       window_cfg_data;
  logic              stop;
  logic [5:0]        stop_queue;
  logic [7:0]        stop_code;
  logic [5:0]        window_count_queue;
  logic [4:0]        window_count;
  logic              sweeping;

  logic [QUEUES-1:0] fetchable;
  logic [5:0]        issue_queue;
  logic [31:0]       issue_count;
  logic              issue_more, issue, issue_none, arrive;
  logic [5:0]        arrive_queue;
  logic [63:0]       fetch_ring;
  logic [4:0]        fetch_depth;

  logic [QUEUES-1:0] takeable;
  logic [5:0]        walk_queue;
  logic              walking;
  logic [31:0]       take_count;
  logic              take_more, take_done, take_acknowledged, take, take_none;
  logic [63:0]       walk_ring;
  logic [4:0]        walk_depth;
  logic [31:0]       walk_timeout_ms;

  logic [5:0]        done_queue;
  logic [63:0]       done_count;
  logic              done;
  logic              done_last;
  logic [63:0]       complete_base;
  logic [4:0]        complete_depth;
  logic              acknowledge;
  logic [5:0]        acknowledge_queue;
  logic              acknowledge_last;

  logic              doorbell_error_valid;
  logic              doorbell_error_ready;

  assign sync_cancel_o = cancelled;
  assign sel_forget_o  = clear;
  assign runs          = enable_i ? enabled & ~stopped : '0;

  penstock_queues #(
      .QUEUES(QUEUES)
  ) u_queues (
      .clk_i, .rst_ni, .cfg_valid_i, .cfg_write_i, .cfg_addr_i, .cfg_wdata_i, .cfg_ready_o,
      .cfg_rdata_o, .cfg_error_o,
      .window_valid_o   (window_cfg_valid),
      .window_ready_i   (window_cfg_ready),
      .window_data_i    (window_cfg_data),
      .queue_o          (cfg_queue),
      .clear_o          (clear),
      .doorbell_o       (doorbell),
      .doorbell_depth_o (doorbell_depth),
      .doorbell_legal_i (doorbell_legal),
      .submitted_i      (submitted),
      .arrived_i        (arrived),
      .completed_i      (completed),
      .settled_i        (settled),
      .finished_i       (finished),
      .walking_i        (walking),
      .walking_queue_i  (walk_queue),
      .enabled_o        (enabled),
      .cancel_o         (cancelled),
      .stopped_o        (stopped),
      .waiting_i        (sync_waiting_i),
      .stop_i           (stop),
      .stop_queue_i     (stop_queue),
      .stop_code_i      (stop_code),
      .error_valid_o    (doorbell_error_valid),
      .error_ready_i    (doorbell_error_ready),
      .fetch_queue_i    (issue_queue),
      .fetch_ring_o     (fetch_ring),
      .fetch_depth_o    (fetch_depth),
      .walk_queue_i     (walk_queue),
      .walk_ring_o      (walk_ring),
      .walk_depth_o     (walk_depth),
      .walk_timeout_ms_o(walk_timeout_ms),
      .complete_queue_i (done_queue),
      .complete_base_o  (complete_base),
      .complete_depth_o (complete_depth),
      .count_queue_i    (window_count_queue),
      .count_o          (window_count),
      .sweeping_o       (sweeping)
  );

  penstock_ring #(
      .QUEUES  (QUEUES),
      .SLOTS   (SLOTS),
      .PREFETCH(PREFETCH),
      .START   (START)
  ) u_ring (
      .clk_i, .rst_ni,
      .clear_i             (clear),
      .clear_queue_i       (cfg_queue),
      .doorbell_i          (doorbell),
      .doorbell_queue_i    (cfg_queue),
      .doorbell_count_i    (cfg_wdata_i),
      .doorbell_depth_i    (doorbell_depth),
      .doorbell_legal_o    (doorbell_legal),
      .doorbell_submitted_o(submitted),
      .doorbell_arrived_o  (arrived),
      .doorbell_settled_o  (settled),
      .doorbell_finished_o (finished),
      .fetchable_o         (fetchable),
      .issue_queue_i       (issue_queue),
      .issue_count_o       (issue_count),
      .issue_more_o        (issue_more),
      .issue_i             (issue),
      .issue_none_i        (issue_none),
      .arrive_i            (arrive),
      .arrive_queue_i      (arrive_queue),
      .takeable_o          (takeable),
      .take_queue_i        (walk_queue),
      .take_count_o        (take_count),
      .take_more_o         (take_more),
      .take_done_o         (take_done),
      .take_acknowledged_o (take_acknowledged),
      .take_i              (take),
      .take_none_i         (take_none),
      .done_i              (done),
      .done_queue_i        (done_queue),
      .done_count_o        (done_count),
      .done_last_o         (done_last),
      .acknowledge_i       (acknowledge),
      .acknowledge_queue_i (acknowledge_queue),
      .acknowledge_last_o  (acknowledge_last)
  );

  // ---- records ----
  logic                  fetch_ar_valid;
  logic                  fetch_ar_ready;
  logic [63:0]           fetch_ar_address;
  logic                  fetch_ar_two;
  logic                  fetch_r_ready;
  logic                  walk_read;
  logic [PLACE_BITS-1:0] walk_place;
  logic                  walk_half;
  logic                  error_read;
  logic [PLACE_BITS-1:0] error_place;
  logic                  error_half;
  logic [511:0]          read_data;
  logic                  bad;
  logic [63:0]           cookie;
  logic                  fetch_idle;
  logic                  r_error;
  assign r_error = m_axi_rresp != 2'b00;

  penstock_fetch #(
      .QUEUES(QUEUES),
      .SLOTS (SLOTS)
  ) u_fetch (
      .clk_i, .rst_ni,
      .hold_i        (clear),
      .fetchable_i   (fetchable & runs),
      .issue_queue_o (issue_queue),
      .issue_count_i (issue_count),
      .issue_more_i  (issue_more),
      .issue_o       (issue),
      .issue_none_o  (issue_none),
      .arrive_o      (arrive),
      .arrive_queue_o(arrive_queue),
      .ring_i        (fetch_ring),
      .depth_i       (fetch_depth),
      .ar_valid_o    (fetch_ar_valid),
      .ar_ready_i    (fetch_ar_ready),
      .ar_address_o  (fetch_ar_address),
      .ar_two_o      (fetch_ar_two),
      .r_valid_i     (m_axi_rvalid && m_axi_rid == 4'd0),
      .r_ready_o     (fetch_r_ready),
      .r_data_i      (m_axi_rdata),
      .r_error_i     (r_error),
      .read_i        (error_read || walk_read),
      .read_place_i  (error_read ? error_place : walk_place),
      .read_half_i   (error_read ? error_half : walk_half),
      .read_data_o   (read_data),
      .bad_place_i   (walk_place),
      .bad_o         (bad),
      .cookie_place_i({done_queue[PLACE_BITS-$clog2(SLOTS)-1:0], done_count[$clog2(SLOTS)-1:0]}),
      .cookie_o      (cookie),
      .idle_o        (fetch_idle)
  );

  // ---- windows ----
  logic        win_valid, win_ready, win_write, win_rsp_valid, win_rsp_ok;
  logic [63:0] win_address, win_bytes, win_rsp_bus;
  penstock_window #(
      .QUEUES(QUEUES)
  ) u_window (
      .clk_i, .rst_ni,
      .count_queue_o  (window_count_queue),
      .count_i        (window_count),
      .win_valid_i    (win_valid),
      .win_ready_o    (win_ready),
      .win_queue_i    (walk_queue),
      .win_address_i  (win_address),
      .win_bytes_i    (win_bytes),
      .win_write_i    (win_write),
      .win_rsp_valid_o(win_rsp_valid),
      .score_win_valid_i, .score_win_ready_o, .score_win_queue_i, .score_win_address_i,
      .score_win_bytes_i, .score_win_write_i, .score_win_rsp_valid_o,
      .rsp_ok_o       (win_rsp_ok),
      .rsp_bus_o      (win_rsp_bus),
      .config_valid_i (window_cfg_valid),
      .config_write_i (cfg_write_i),
      .config_queue_i (cfg_queue),
      .config_window_i(cfg_addr_i[8:5]),
      .config_word_i  (cfg_addr_i[4:2]),
      .config_data_i  (cfg_wdata_i),
      .config_ready_o (window_cfg_ready),
      .config_data_o  (window_cfg_data)
  );
  assign score_win_rsp_ok_o  = win_rsp_ok;
  assign score_win_rsp_bus_o = win_rsp_bus;

  // ---- the walk ----
  logic         list_start, list_done, list_error;
  logic [63:3]  list_address;
  logic [6:0]   list_words;
  logic [63:0]  list_error_address;
  logic [5:0]   list_index;
  logic [63:0]  list_word;
  logic         list_ar_valid, list_ar_ready;
  logic [63:0]  list_ar_address;
  logic [3:0]   list_ar_beats;
  logic         answer_valid, answer_ready, answer_reported;
  logic [4:0]   answer_status, answer_field;
  logic [63:0]  answer_detail;
  logic         fetch_error_valid, fetch_error_ready;
  logic [31:0]  fetch_error_sequence;
  logic [63:0]  fetch_error_address;
  logic         walk_idle;
  assign descriptor_o = take;

  penstock_walk #(
      .QUEUES(QUEUES),
      .SLOTS (SLOTS),
      .JOBS  (JOBS)
  ) u_walk (
      .clk_i, .rst_ni,
      .hold_i              (clear),
      .clear_queue_i       (cfg_queue),
      .takeable_i          (takeable & runs),
      .cancel_i            (cancelled),
      .queue_o             (walk_queue),
      .walking_o           (walking),
      .count_i             (take_count),
      .more_i              (take_more),
      .all_done_i          (take_done),
      .all_acknowledged_i  (take_acknowledged),
      .take_o              (take),
      .take_none_o         (take_none),
      .ring_i              (walk_ring),
      .depth_i             (walk_depth),
      .timeout_ms_i        (walk_timeout_ms),
      .read_o              (walk_read),
      .read_ready_i        (!error_read),
      .place_o             (walk_place),
      .read_half_o         (walk_half),
      .read_data_i         (read_data),
      .bad_i               (bad),
      .done_i              (done && done_last),
      .done_queue_i        (done_queue),
      .acknowledged_i      (acknowledge && acknowledge_last),
      .acknowledged_queue_i(acknowledge_queue),
      .win_valid_o         (win_valid),
      .win_ready_i         (win_ready),
      .win_address_o       (win_address),
      .win_bytes_o         (win_bytes),
      .win_write_o         (win_write),
      .win_rsp_valid_i     (win_rsp_valid),
      .win_rsp_ok_i        (win_rsp_ok),
      .win_rsp_bus_i       (win_rsp_bus),
      .list_start_o        (list_start),
      .list_address_o      (list_address),
      .list_words_o        (list_words),
      .list_done_i         (list_done),
      .list_error_i        (list_error),
      .list_error_address_i(list_error_address),
      .list_index_o        (list_index),
      .list_word_i         (list_word),
      .answer_valid_o      (answer_valid),
      .answer_ready_i      (answer_ready),
      .answer_status_o     (answer_status),
      .answer_field_o      (answer_field),
      .answer_detail_o     (answer_detail),
      .answer_reported_o   (answer_reported),
      .error_valid_o       (fetch_error_valid),
      .error_ready_i       (fetch_error_ready),
      .error_sequence_o    (fetch_error_sequence),
      .error_address_o     (fetch_error_address),
      .op_we_o, .op_slot_o, .op_index_o, .op_bus_o, .job_valid_o, .job_ready_i, .job_slot_o,
      .job_queue_o, .job_copy_o, .job_type_o, .job_redop_o, .job_out_type_o, .job_sources_o,
      .job_destinations_o, .job_count_o, .job_scale_o, .job_dst_o, .slot_free_i,
      .job_done_i          (done_valid_i && done_ready_o),
      .sel_valid_o, .sel_ready_i, .sel_queue_o, .sel_commit_o, .sel_count_o, .sel_table_o,
      .sel_program_o, .sel_tasks_o, .sel_results_o, .sync_valid_o, .sync_ready_i, .sync_queue_o,
      .sync_opcode_o, .sync_fence_o, .sync_lines_o, .sync_count_o, .sync_value_o,
      .sync_timeout_ms_o,
      .idle_o              (walk_idle)
  );

  penstock_list u_list (
      .clk_i, .rst_ni,
      .start_i        (list_start),
      .address_i      (list_address),
      .words_i        (list_words),
      .done_o         (list_done),
      .error_o        (list_error),
      .error_address_o(list_error_address),
      .index_i        (list_index),
      .word_o         (list_word),
      .ar_valid_o     (list_ar_valid),
      .ar_ready_i     (list_ar_ready),
      .ar_address_o   (list_ar_address),
      .ar_beats_o     (list_ar_beats),
      .r_valid_i      (m_axi_rvalid && m_axi_rid == 4'd1 && m_axi_rready),
      .r_data_i       (m_axi_rdata),
      .r_error_i      (r_error)
  );

  // ---- completions and errors ----
  logic finish_idle;
  penstock_finish #(
      .QUEUES(QUEUES),
      .SLOTS (SLOTS),
      .START (START)
  ) u_finish (
      .clk_i, .rst_ni,
      .hold_i                (clear),
      .clear_queue_i         (cfg_queue),
      .answer_valid_i        (answer_valid),
      .answer_ready_o        (answer_ready),
      .answer_queue_i        (walk_queue),
      .answer_status_i       (answer_status),
      .answer_field_i        (answer_field),
      .answer_detail_i       (answer_detail),
      .answer_reported_i     (answer_reported),
      .done_valid_i, .done_ready_o, .done_queue_i, .done_error_i, .done_write_i, .done_bus_i,
      .sel_done_valid_i, .sel_done_ready_o, .sel_done_queue_i, .sel_done_status_i,
      .sel_done_field_i, .sel_done_detail_i, .sync_done_valid_i, .sync_done_ready_o,
      .sync_done_queue_i, .sync_done_status_i, .sync_done_field_i, .sync_done_detail_i,
      .queue_o               (done_queue),
      .count_i               (done_count),
      .cookie_i              (cookie),
      .base_i                (complete_base),
      .depth_i               (complete_depth),
      .done_o                (done),
      .acknowledge_o         (acknowledge),
      .acknowledge_queue_o   (acknowledge_queue),
      .event_o               (queue_event_valid_o),
      .completed_queue_i     (cfg_queue),
      .completed_o           (completed),
      .fetch_error_valid_i   (fetch_error_valid),
      .fetch_error_ready_o   (fetch_error_ready),
      .fetch_error_queue_i   (walk_queue),
      .fetch_error_sequence_i(fetch_error_sequence),
      .fetch_error_address_i (fetch_error_address),
      .doorbell_error_valid_i(doorbell_error_valid),
      .doorbell_error_ready_o(doorbell_error_ready),
      .doorbell_error_queue_i(cfg_queue),
      .doorbell_error_count_i(cfg_wdata_i),
      .read_o                (error_read),
      .read_place_o          (error_place),
      .read_half_o           (error_half),
      .read_data_i           (read_data),
      .stop_o                (stop),
      .stop_queue_o          (stop_queue),
      .stop_code_o           (stop_code),
      .error_valid_o, .error_code_o, .error_queue_o, .error_sequence_o, .error_address_o,
      .error_descriptor_o,
      .aw_valid_o            (m_axi_awvalid),
      .aw_ready_i            (m_axi_awready),
      .aw_address_o          (m_axi_awaddr),
      .w_valid_o             (m_axi_wvalid),
      .w_ready_i             (m_axi_wready),
      .w_data_o              (m_axi_wdata),
      .w_strobe_o            (m_axi_wstrb),
      .b_valid_i             (m_axi_bvalid),
      .b_ready_o             (m_axi_bready),
      .b_error_i             (m_axi_bresp != 2'b00),
      .idle_o                (finish_idle)
  );
  assign queue_event_queue_o = acknowledge_queue;
  assign m_axi_awid          = 4'd0;
  assign m_axi_awlen         = 8'd0;
  assign m_axi_wlast         = 1'b1;

  // ---- reads: records are ID 0, lists ID 1 ----
  logic       ar_index;
  logic [1:0] ar_grant;
  penstock_arbiter #(
      .N(2)
  ) u_reads (
      .clk_i, .rst_ni,
      .request_i({list_ar_valid, fetch_ar_valid}),
      .valid_o  (m_axi_arvalid),
      .ready_i  (m_axi_arready),
      .grant_o  (ar_grant),
      .index_o  (ar_index)
  );
  assign fetch_ar_ready = ar_grant[0] && m_axi_arready;
  assign list_ar_ready  = ar_grant[1] && m_axi_arready;
  assign m_axi_araddr   = ar_index ? list_ar_address : fetch_ar_address;
  assign m_axi_arlen    = ar_index ? {4'd0, list_ar_beats - 4'd1} : {7'd0, fetch_ar_two};
  assign m_axi_arid     = {3'd0, ar_index};
  assign m_axi_rready   = fetch_r_ready;

  assign idle_o = fetch_idle && walk_idle && finish_idle && !sweeping && all_completed;

  // Begun, and not yet acknowledged: also what is in the hands of an engine.
  localparam int unsigned UNDER_WAY_BITS = PLACE_BITS + 1;
  logic [UNDER_WAY_BITS-1:0] under_way_q;
  logic                      all_completed;
  assign all_completed = under_way_q == '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) under_way_q <= '0;
    else if (take && !acknowledge) under_way_q <= under_way_q + 1'b1;
    else if (acknowledge && !take) under_way_q <= under_way_q - 1'b1;
  end

  /* verilator lint_off UNUSEDSIGNAL */
  logic unused;
  assign unused = &{1'b0, m_axi_bid, m_axi_rlast};
  /* verilator lint_on UNUSEDSIGNAL */

endmodule

`default_nettype wire
