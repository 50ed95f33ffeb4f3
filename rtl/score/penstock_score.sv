// The scoring engine: SELECT jobs, one after another. It reads and checks the table's header, the
// program and all tasks, in the order and with the answers of the host's engines; brings the table
// into the banks unless they hold it; then places task after task while the next one is read.
//
// The banks hold one table, known by its bus address, its generation and its geometry: whoever
// changes cells raises the generation, as UPDATE does. sel_forget_i drops what they hold; it has to
// pulse when bus addresses get another meaning.
`default_nettype none

module penstock_score #(
    parameter int unsigned ROWS = 131072,  // of a table; a multiple of 512, at least 1024
    parameter int unsigned RESOURCES = 8,  // of a table, 1..8
    parameter int unsigned BITS = 64,  // bit columns that are resident at once
    parameter int unsigned FREE = 8  // free columns of a table, 1..8
) (
    input wire logic clk_i,
    input wire logic rst_ni,

    // Jobs.
    input wire logic sel_valid_i,
    output logic sel_ready_o,
    input wire logic [5:0] sel_queue_i,
    input wire logic sel_commit_i,
    input wire logic [20:0] sel_count_i,
    input wire logic [63:0] sel_table_i,
    input wire logic [63:0] sel_program_i,
    input wire logic [63:0] sel_tasks_i,
    input wire logic [63:0] sel_results_i,
    output logic sel_done_valid_o,
    input wire logic sel_done_ready_i,
    output logic [5:0] sel_done_queue_o,
    output logic [4:0] sel_done_status_o,
    output logic [4:0] sel_done_field_o,
    output logic [63:0] sel_done_detail_o,

    // Windows of the job's queue: one request at a time.
    output logic win_valid_o,
    input wire logic win_ready_i,
    output logic [5:0] win_queue_o,
    output logic [63:0] win_address_o,
    output logic [63:0] win_bytes_o,
    output logic win_write_o,
    input wire logic win_rsp_valid_i,
    input wire logic win_rsp_ok_i,
    input wire logic [63:0] win_rsp_bus_i,

    input wire logic sel_forget_i,
    output logic idle_o,
    output logic decision_o,  // pulse: a task was decided
    output logic [15:0] rows_scanned_o,  // in this cycle

    output logic m_axi_awvalid,
    input wire logic m_axi_awready,
    output logic [63:0] m_axi_awaddr,
    output logic [3:0] m_axi_awid,
    output logic [7:0] m_axi_awlen,
    output logic m_axi_wvalid,
    input wire logic m_axi_wready,
    output logic [511:0] m_axi_wdata,
    output logic [63:0] m_axi_wstrb,
    output logic m_axi_wlast,
    input wire logic m_axi_bvalid,
    output logic m_axi_bready,
    input wire logic [3:0] m_axi_bid,
    input wire logic [1:0] m_axi_bresp,
    output logic m_axi_arvalid,
    input wire logic m_axi_arready,
    output logic [63:0] m_axi_araddr,
    output logic [3:0] m_axi_arid,
    output logic [7:0] m_axi_arlen,
    input wire logic m_axi_rvalid,
    output logic m_axi_rready,
    input wire logic [511:0] m_axi_rdata,
    input wire logic [3:0] m_axi_rid,
    input wire logic [1:0] m_axi_rresp,
    input wire logic m_axi_rlast
);
  localparam int unsigned SLOT = $clog2(BITS);
  localparam int unsigned GROUP = $clog2(ROWS / 8);
  localparam int unsigned Q = penstock_score_pkg::QUANTITY;
  localparam int unsigned F = penstock_score_pkg::FREE_VALUE;
  localparam int unsigned C = penstock_score_pkg::COEFFICIENT;
  localparam int unsigned A = penstock_score_pkg::ALLOCATION_STEP;
  localparam int unsigned B = penstock_score_pkg::BITS_STEP;
  localparam int unsigned FS = penstock_score_pkg::FEATURES_STEP;
  localparam int unsigned L = penstock_score_pkg::BALANCED_OP;
  localparam int unsigned STEPS = penstock_score_pkg::STEPS;
  localparam int unsigned KEY = 85;

  logic header_turn, program_turn, run_turn, commit;
  logic [63:0] program_bus, table_bus, result_address;

  logic request_valid, request_ready, data_valid, data_ready, reader_idle, read_error;
  logic read_stop, errors_clear, write_error, write_error_tag, writer_idle;
  logic [63:0] request_address, read_error_address, write_error_address;
  logic [31:0] request_bytes;
  logic [511:0] data;
  penstock_score_reader i_reader (
      .clk_i,
      .rst_ni,
      .request_valid_i(request_valid),
      .request_ready_o(request_ready),
      .request_address_i(request_address),
      .request_bytes_i(request_bytes),
      .stop_i(read_stop),
      .idle_o(reader_idle),
      .data_valid_o(data_valid),
      .data_ready_i(data_ready),
      .data_o(data),
      .clear_i(errors_clear),
      .error_o(read_error),
      .error_address_o(read_error_address),
      .m_axi_arvalid,
      .m_axi_arready,
      .m_axi_araddr,
      .m_axi_arid,
      .m_axi_arlen,
      .m_axi_rvalid,
      .m_axi_rready,
      .m_axi_rdata,
      .m_axi_rid,
      .m_axi_rresp,
      .m_axi_rlast
  );

  logic put_valid, put_ready, put_tag, commit_put_valid, commit_put_tag;
  logic [57:0] put_line, commit_put_line;
  logic [63:0] put_strobe, commit_put_strobe;
  logic [511:0] put_data, commit_put_data;
  penstock_score_writer i_writer (
      .clk_i,
      .rst_ni,
      .put_valid_i(put_valid),
      .put_ready_o(put_ready),
      .put_line_i(put_line),
      .put_strobe_i(put_strobe),
      .put_data_i(put_data),
      .put_tag_i(put_tag),
      .idle_o(writer_idle),
      .clear_i(errors_clear),
      .error_o(write_error),
      .error_tag_o(write_error_tag),
      .error_address_o(write_error_address),
      .m_axi_awvalid,
      .m_axi_awready,
      .m_axi_awaddr,
      .m_axi_awid,
      .m_axi_awlen,
      .m_axi_wvalid,
      .m_axi_wready,
      .m_axi_wdata,
      .m_axi_wstrb,
      .m_axi_wlast,
      .m_axi_bvalid,
      .m_axi_bready,
      .m_axi_bid,
      .m_axi_bresp
  );

  logic header_start, header_done;
  logic [4:0] header_status, n_resources;
  logic [63:0] table_bytes, allocatable, requested, scored, bits, free, generation;
  logic [20:0] capacity, rows;
  logic [12:0] n_bits, n_counts;
  logic [8:0] n_free;
  logic [6:0] n_domains;
  penstock_score_table i_table (
      .clk_i,
      .rst_ni,
      .start_i(header_start),
      .valid_i(data_valid && header_turn),
      .data_i(data),
      .done_o(header_done),
      .status_o(header_status),
      .bytes_o(table_bytes),
      .capacity_o(capacity),
      .rows_o(rows),
      .n_resources_o(n_resources),
      .n_bits_o(n_bits),
      .n_free_o(n_free),
      .n_domains_o(n_domains),
      .n_counts_o(n_counts),
      .allocatable_o(allocatable),
      .requested_o(requested),
      .scored_o(scored),
      .bits_o(bits),
      .free_o(free),
      .generation_o(generation)
  );

  logic program_start, program_done, program_request, program_data_ready, row_filter;
  logic [4:0] program_status;
  logic [6:0] program_detail;
  logic [63:0] program_request_address, base;
  logic [31:0] program_request_bytes;
  logic [1:0] tie;
  logic [3:0] best_count, first_interval, interval;
  /* verilator lint_off UNUSEDSIGNAL */  // no tie rule of the card hashes
  logic [63:0] seed;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [15:0] fit_program;
  logic [255:0] filter_groups, domain_filters, domain_scores, spread_scores;
  logic [STEPS*A-1:0] a_steps;
  logic [5:0] a_modes;
  logic [STEPS*B-1:0] b0_steps, b1_steps;
  logic [4*FS-1:0] f_steps;
  logic [2*L-1:0] l_ops;
  penstock_score_program i_program (
      .clk_i,
      .rst_ni,
      .start_i(program_start),
      .address_i(program_bus),
      .done_o(program_done),
      .status_o(program_status),
      .detail_o(program_detail),
      .n_resources_i(n_resources),
      .n_bits_i(n_bits),
      .n_free_i(n_free),
      .request_valid_o(program_request),
      .request_ready_i(request_ready && program_turn),
      .request_address_o(program_request_address),
      .request_bytes_o(program_request_bytes),
      .data_valid_i(data_valid && program_turn),
      .data_ready_o(program_data_ready),
      .data_i(data),
      .tie_o(tie),
      .best_o(best_count),
      .seed_o(seed),
      .fit_o(fit_program),
      .row_filter_o(row_filter),
      .filter_groups_o(filter_groups),
      .domain_filters_o(domain_filters),
      .domain_scores_o(domain_scores),
      .spread_scores_o(spread_scores),
      .first_interval_o(first_interval),
      .interval_o(interval),
      .a_steps_o(a_steps),
      .a_modes_o(a_modes),
      .b0_steps_o(b0_steps),
      .b1_steps_o(b1_steps),
      .f_steps_o(f_steps),
      .l_ops_o(l_ops),
      .base_o(base)
  );

  logic task_begin, task_valid, task_checked, task_invalid, task_unsupported;
  logic task_prepare, task_prepared, task_take, miss, loaded;
  logic [11:0] miss_column;
  logic [SLOT-1:0] miss_slot;
  logic [RESOURCES-1:0] fit;
  logic [RESOURCES*Q-1:0] request, scored_request;
  logic any_row;
  logic [19:0] task_row, start_row;
  logic [BITS-1:0] set, clear, used;
  logic [16*SLOT-1:0] term_slot;
  logic [15:0] term_clear;
  logic [16*21-1:0] term_weight;
  logic [STEPS*16-1:0] b0_terms, b1_terms;
  logic [4*FREE*C-1:0] coefficients;
  logic [8*12-1:0] set_bits;
  logic [8*SLOT-1:0] set_bits_slot;
  logic [15:0] task_count;
  penstock_score_task #(
      .RESOURCES(RESOURCES),
      .BITS(BITS),
      .FREE(FREE)
  ) i_task (
      .clk_i,
      .rst_ni,
      .begin_i(task_begin),
      .valid_i(task_valid),
      .data_i(data),
      .checked_o(task_checked),
      .invalid_o(task_invalid),
      .unsupported_o(task_unsupported),
      .prepare_i(task_prepare),
      .prepared_o(task_prepared),
      .take_i(task_take),
      .forget_i(load_table),
      .miss_o(miss),
      .miss_column_o(miss_column),
      .miss_slot_o(miss_slot),
      .loaded_i(loaded && run_turn),
      .commit_i(commit),
      .rows_i(rows),
      .capacity_i(capacity),
      .n_resources_i(n_resources),
      .n_bits_i(n_bits),
      .n_free_i(n_free),
      .n_domains_i(n_domains),
      .n_counts_i(n_counts),
      .tie_i(tie),
      .fit_i(fit_program),
      .row_filter_i(row_filter),
      .filter_groups_i(filter_groups),
      .domain_filters_i(domain_filters),
      .domain_scores_i(domain_scores),
      .spread_scores_i(spread_scores),
      .b0_steps_i(b0_steps),
      .b1_steps_i(b1_steps),
      .f_steps_i(f_steps),
      .fit_o(fit),
      .request_o(request),
      .scored_request_o(scored_request),
      .any_row_o(any_row),
      .row_o(task_row),
      .start_row_o(start_row),
      .set_o(set),
      .clear_o(clear),
      .used_o(used),
      .term_slot_o(term_slot),
      .term_clear_o(term_clear),
      .term_weight_o(term_weight),
      .b0_terms_o(b0_terms),
      .b1_terms_o(b1_terms),
      .coefficients_o(coefficients),
      .set_bits_o(set_bits),
      .set_bits_slot_o(set_bits_slot),
      .count_o(task_count)
  );

  logic load_table, load_column, load_request, load_data_ready, load_valid, load_ready;
  logic [63:0] load_request_address;
  logic [31:0] load_request_bytes;
  logic [2:0] load_kind;
  logic [SLOT-1:0] load_slot;
  logic [GROUP-1:0] load_index;
  penstock_score_loader #(
      .ROWS(ROWS),
      .BITS(BITS)
  ) i_loader (
      .clk_i,
      .rst_ni,
      .table_i(load_table),
      .column_i(load_column),
      .column_column_i(miss_column),
      .column_slot_i(miss_slot),
      .done_o(loaded),
      .address_i(table_bus),
      .rows_i(rows),
      .capacity_i(capacity),
      .n_resources_i(n_resources[3:0]),
      .n_free_i(n_free[3:0]),
      .allocatable_i(allocatable),
      .bits_i(bits),
      .free_i(free),
      .request_valid_o(load_request),
      .request_ready_i(request_ready),
      .request_address_o(load_request_address),
      .request_bytes_o(load_request_bytes),
      .data_valid_i(data_valid),
      .data_ready_o(load_data_ready),
      .load_valid_o(load_valid),
      .load_ready_i(load_ready),
      .load_kind_o(load_kind),
      .load_column_o(load_slot),
      .load_index_o(load_index)
  );

  logic scan_start, scan_done, write, peek;
  logic [2:0] write_kind, peek_column;
  logic [SLOT-1:0] write_column, peek_slot;
  logic [19:0] commit_row;
  logic [63:0] write_cell;
  logic [Q-1:0] peek_requested, peek_scored;
  logic [F-1:0] peek_free;
  logic [7:0] peek_byte;
  logic [20:0] feasible;
  logic [8*KEY-1:0] best;
  penstock_scan #(
      .ROWS(ROWS),
      .RESOURCES(RESOURCES),
      .BITS(BITS),
      .FREE(FREE)
  ) i_scan (
      .clk_i,
      .rst_ni,
      .load_valid_i(load_valid),
      .load_ready_o(load_ready),
      .load_kind_i(load_kind),
      .load_column_i(load_slot),
      .load_index_i(load_index),
      .load_data_i(data),
      .write_i(write),
      .write_kind_i(write_kind),
      .write_column_i(write_column),
      .write_row_i(commit_row),
      .write_cell_i(write_cell),
      .peek_i(peek),
      .peek_row_i(commit_row),
      .peek_column_i(peek_column),
      .peek_slot_i(peek_slot),
      .peek_requested_o(peek_requested),
      .peek_scored_o(peek_scored),
      .peek_free_o(peek_free),
      .peek_byte_o(peek_byte),
      .first_interval_i(first_interval),
      .interval_i(interval),
      .a_steps_i(a_steps),
      .a_modes_i(a_modes),
      .b0_steps_i(b0_steps),
      .b1_steps_i(b1_steps),
      .f_steps_i(f_steps),
      .l_ops_i(l_ops),
      .base_i(base),
      .best_i(best_count),
      .rows_i(rows),
      .fit_i(fit),
      .request_i(request),
      .scored_request_i(scored_request),
      .any_row_i(any_row),
      .row_i(task_row),
      .start_row_i(start_row),
      .set_i(set),
      .clear_i(clear),
      .used_i(used),
      .term_slot_i(term_slot),
      .term_clear_i(term_clear),
      .term_weight_i(term_weight),
      .b0_terms_i(b0_terms),
      .b1_terms_i(b1_terms),
      .coefficients_i(coefficients),
      .start_i(scan_start),
      .done_o(scan_done),
      .feasible_o(feasible),
      .best_o(best),
      .rows_scanned_o
  );

  logic commit_start, commit_ready, applied, committed;
  penstock_score_commit #(
      .RESOURCES(RESOURCES),
      .BITS(BITS)
  ) i_commit (
      .clk_i,
      .rst_ni,
      .start_i(commit_start),
      .ready_o(commit_ready),
      .applied_o(applied),
      .committed_o(committed),
      .commit_i(commit),
      .result_address_i(result_address),
      .feasible_i(feasible),
      .best_i(best),
      .best_count_i(best_count),
      .rows_i(rows),
      .start_row_i(start_row),
      .request_i(request),
      .scored_request_i(scored_request),
      .set_bits_i(set_bits),
      .set_bits_slot_i(set_bits_slot),
      .count_i(task_count),
      .address_i(table_bus),
      .capacity_i(capacity),
      .n_resources_i(n_resources),
      .requested_i(requested),
      .scored_i(scored),
      .bits_i(bits),
      .free_i(free),
      .peek_o(peek),
      .row_o(commit_row),
      .peek_column_o(peek_column),
      .peek_slot_o(peek_slot),
      .peek_requested_i(peek_requested),
      .peek_scored_i(peek_scored),
      .peek_free_i(peek_free),
      .peek_byte_i(peek_byte),
      .write_o(write),
      .write_kind_o(write_kind),
      .write_column_o(write_column),
      .write_cell_o(write_cell),
      .put_valid_o(commit_put_valid),
      .put_ready_i(put_ready),
      .put_line_o(commit_put_line),
      .put_strobe_o(commit_put_strobe),
      .put_data_o(commit_put_data),
      .put_tag_o(commit_put_tag)
  );

  penstock_score_control #(
      .ROWS(ROWS),
      .RESOURCES(RESOURCES),
      .FREE(FREE)
  ) i_control (
      .clk_i,
      .rst_ni,
      .sel_valid_i,
      .sel_ready_o,
      .sel_queue_i,
      .sel_commit_i,
      .sel_count_i,
      .sel_table_i,
      .sel_program_i,
      .sel_tasks_i,
      .sel_results_i,
      .sel_done_valid_o,
      .sel_done_ready_i,
      .sel_done_queue_o,
      .sel_done_status_o,
      .sel_done_field_o,
      .sel_done_detail_o,
      .win_valid_o,
      .win_ready_i,
      .win_queue_o,
      .win_address_o,
      .win_bytes_o,
      .win_write_o,
      .win_rsp_valid_i,
      .win_rsp_ok_i,
      .win_rsp_bus_i,
      .sel_forget_i,
      .idle_o,
      .decision_o,
      .request_ready_i(request_ready),
      .reader_idle_i(reader_idle),
      .read_error_i(read_error),
      .read_error_address_i(read_error_address),
      .data_valid_i(data_valid),
      .put_ready_i(put_ready),
      .writer_idle_i(writer_idle),
      .write_error_i(write_error),
      .write_error_tag_i(write_error_tag),
      .write_error_address_i(write_error_address),
      .header_done_i(header_done),
      .header_status_i(header_status),
      .table_bytes_i(table_bytes),
      .capacity_i(capacity),
      .rows_i(rows),
      .n_resources_i(n_resources),
      .n_bits_i(n_bits),
      .n_free_i(n_free),
      .generation_i(generation),
      .program_done_i(program_done),
      .program_status_i(program_status),
      .program_detail_i(program_detail),
      .program_request_i(program_request),
      .program_request_address_i(program_request_address),
      .program_request_bytes_i(program_request_bytes),
      .program_data_ready_i(program_data_ready),
      .task_checked_i(task_checked),
      .task_invalid_i(task_invalid),
      .task_unsupported_i(task_unsupported),
      .task_prepared_i(task_prepared),
      .miss_i(miss),
      .loaded_i(loaded),
      .load_request_i(load_request),
      .load_request_address_i(load_request_address),
      .load_request_bytes_i(load_request_bytes),
      .load_data_ready_i(load_data_ready),
      .scan_done_i(scan_done),
      .commit_ready_i(commit_ready),
      .applied_i(applied),
      .committed_i(committed),
      .commit_put_valid_i(commit_put_valid),
      .commit_put_line_i(commit_put_line),
      .commit_put_strobe_i(commit_put_strobe),
      .commit_put_data_i(commit_put_data),
      .commit_put_tag_i(commit_put_tag),
      .request_valid_o(request_valid),
      .request_address_o(request_address),
      .request_bytes_o(request_bytes),
      .data_ready_o(data_ready),
      .read_stop_o(read_stop),
      .errors_clear_o(errors_clear),
      .put_valid_o(put_valid),
      .put_line_o(put_line),
      .put_strobe_o(put_strobe),
      .put_data_o(put_data),
      .put_tag_o(put_tag),
      .header_start_o(header_start),
      .header_turn_o(header_turn),
      .program_start_o(program_start),
      .program_turn_o(program_turn),
      .program_bus_o(program_bus),
      .task_begin_o(task_begin),
      .task_valid_o(task_valid),
      .task_prepare_o(task_prepare),
      .task_take_o(task_take),
      .run_turn_o(run_turn),
      .load_table_o(load_table),
      .load_column_o(load_column),
      .scan_start_o(scan_start),
      .commit_start_o(commit_start),
      .commit_o(commit),
      .table_bus_o(table_bus),
      .result_address_o(result_address)
  );
endmodule

`default_nettype wire
