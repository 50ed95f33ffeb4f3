// What must hold in the scoring engine, also of who offers the jobs, and what its tests have to
// reach. For Verilator alone.
`default_nettype none

module penstock_score_properties (
    input wire logic clk_i,
    input wire logic rst_ni,
    input wire logic sel_valid_i,
    input wire logic sel_ready_o,
    input wire logic [20:0] sel_count_i,
    input wire logic sel_done_valid_o,
    input wire logic sel_done_ready_i,
    input wire logic [5:0] sel_done_queue_o,
    input wire logic [4:0] sel_done_status_o,
    input wire logic [4:0] sel_done_field_o,
    input wire logic [63:0] sel_done_detail_o,
    input wire logic win_valid_o,
    input wire logic win_ready_i,
    input wire logic [63:0] win_address_o,
    input wire logic [63:0] win_bytes_o,
    input wire logic win_rsp_valid_i,
    input wire logic decision_o,
    input wire logic reader_idle,
    input wire logic writer_idle,
    input wire logic scan_start,
    input wire logic scan_done,
    input wire logic commit_start,
    input wire logic commit_ready,
    input wire logic committed,
    input wire logic write,
    input wire logic load_valid,
    input wire logic [2:0] load_kind,
    input wire logic miss,
    input wire logic load_table,
    input wire logic read_error,
    input wire logic write_error
);
  // ---- jobs and windows ----

  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   sel_valid_i && sel_ready_o |-> sel_count_i <= 21'(penstock_pkg::MAX_TASKS));
  // A completion stays until it is taken; everything has come to an end before it.
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   sel_done_valid_o && !sel_done_ready_i |=> sel_done_valid_o &&
                   $stable(sel_done_queue_o) && $stable(sel_done_status_o) &&
                   $stable(sel_done_field_o) && $stable(sel_done_detail_o));
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   sel_done_valid_o |-> reader_idle && writer_idle);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   sel_done_valid_o && sel_done_status_o == 5'(penstock_pkg::OK) |->
                   sel_done_field_o == '0 && sel_done_detail_o == '0);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   sel_done_valid_o && sel_done_status_o != 5'(penstock_pkg::OK) |->
                   sel_done_field_o >= 5'(penstock_pkg::FIELD_DST) &&
                   sel_done_field_o <= 5'(penstock_pkg::FIELD_TASK));
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   win_valid_o && !win_ready_i |=> win_valid_o && $stable(win_address_o) &&
                   $stable(win_bytes_o));
  assert property (@(posedge clk_i) disable iff (!rst_ni) win_valid_o |-> win_bytes_o != '0);
  // No answer without a request, and one at a time.
  logic window_open_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) window_open_q <= 1'b0;
    else if (win_valid_o && win_ready_i) window_open_q <= 1'b1;
    else if (win_rsp_valid_i) window_open_q <= 1'b0;
  end
  assert property (@(posedge clk_i) disable iff (!rst_ni) win_rsp_valid_i |-> window_open_q);
  assert property (@(posedge clk_i) disable iff (!rst_ni) window_open_q |-> !win_valid_o);

  // ---- a decision: scanned, committed, and the banks are nobody else's meanwhile ----

  logic scans_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) scans_q <= 1'b0;
    else if (scan_start) scans_q <= 1'b1;
    else if (commit_start) scans_q <= 1'b0;
  end
  assert property (@(posedge clk_i) disable iff (!rst_ni) scan_start |-> !scans_q);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   commit_start |-> scans_q && scan_done && commit_ready);
  assert property (@(posedge clk_i) disable iff (!rst_ni) write |-> !scans_q);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   load_valid && scans_q |-> load_kind == penstock_score_pkg::KIND_BITS);
  assert property (@(posedge clk_i) disable iff (!rst_ni) committed |=> decision_o);

  // ---- reached by the tests ----

  cover property (@(posedge clk_i) load_valid && scans_q);  // a column comes during a scan
  cover property (@(posedge clk_i) miss && write);
  cover property (@(posedge clk_i) load_table && scan_done);
  cover property (@(posedge clk_i) sel_done_valid_o &&
                  sel_done_status_o == 5'(penstock_pkg::CORRUPT) &&
                  sel_done_field_o == 5'(penstock_pkg::FIELD_TASK));
  cover property (@(posedge clk_i) read_error && scans_q);
  cover property (@(posedge clk_i) write_error && scans_q);
endmodule

bind penstock_score penstock_score_properties i_properties (.*);

bind penstock_score penstock_axi_check #(
    .ID_BITS(4),
    .RESPONSES_STAY(1'b0)
) i_axi_check (
    .clk_i,
    .rst_ni,
    .off_i(1'b0),
    `PENSTOCK_AXI_CHECK_PORT(m_axi)
);

`default_nettype wire
