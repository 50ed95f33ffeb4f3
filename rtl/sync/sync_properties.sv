// What the synchronisation unit promises on its bus, and the corners that its test has to reach.
`default_nettype none
/* verilator lint_off DECLFILENAME */

bind penstock_sync penstock_axi_check #(
    .ID_BITS       (4),
    .MAX_BEATS     (16),
    .RESPONSES_STAY(1'b0)
) i_axi_check (
    .clk_i,
    .rst_ni,
    .off_i(1'b0),
    `PENSTOCK_AXI_CHECK_PORT(m_axi)
);

module penstock_sync_properties #(
    parameter int unsigned QUEUES = 64
) (
    input wire logic              clk_i,
    input wire logic              rst_ni,
    input wire logic              enter,
    input wire logic              in_free,       // its queue has no entry
    input wire logic              finish,
    input wire logic              finish_known,  // its queue has one
    input wire logic              coming,
    input wire logic              m_axi_rvalid,
    input wire logic              m_axi_bvalid,
    input wire logic              m_axi_bready,
    input wire logic              sync_done_valid_o,
    input wire logic              sync_done_ready_i,
    input wire logic [5:0]        sync_done_queue_o,
    input wire logic [1:0]        read_state_q,
    input wire logic              read_go,
    input wire logic [6:0]        read_beats,
    input wire logic [6:0]        read_to_page,
    input wire logic [6:0]        read_left,
    input wire logic              b_valid_q,
    input wire logic              b_error_q,
    input wire logic              b_polls,
    input wire logic              b_raise,
    input wire logic              b_raised,
    input wire logic              b_finish,
    input wire logic [4:0]        b_status,
    input wire logic              written_finish,
    input wire logic              b_ok,
    input wire logic [QUEUES-1:0] sync_waiting_o
);
  // One job of a queue at a time, and each ends once.
  a_enter :
  assert property (@(posedge clk_i) disable iff (!rst_ni) enter |-> in_free);
  a_finish :
  assert property (@(posedge clk_i) disable iff (!rst_ni) finish |-> finish_known);
  a_asked :
  assert property (@(posedge clk_i) disable iff (!rst_ni) m_axi_rvalid |-> coming);
  a_done :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   sync_done_valid_o && !sync_done_ready_i |=>
                   sync_done_valid_o && $stable(sync_done_queue_o));
  c_burst :
  cover property (@(posedge clk_i) disable iff (!rst_ni) read_go && read_beats == 7'd16);
  c_page :
  cover property (@(posedge clk_i) disable iff (!rst_ni)
                  read_go && read_to_page < 7'd16 && read_to_page < read_left);
  c_same_line :
  cover property (@(posedge clk_i) disable iff (!rst_ni) read_state_q == 2'd1 && !read_go);
  c_raise :
  cover property (@(posedge clk_i) disable iff (!rst_ni) b_raise);
  c_raised :
  cover property (@(posedge clk_i) disable iff (!rst_ni) b_raised);
  c_read_error :
  cover property (@(posedge clk_i) disable iff (!rst_ni) b_valid_q && b_error_q && !b_polls);
  c_poll_error :
  cover property (@(posedge clk_i) disable iff (!rst_ni) b_valid_q && b_error_q && b_polls);
  c_write_error :
  cover property (@(posedge clk_i) disable iff (!rst_ni) written_finish && !b_ok);
  c_cancelled :
  cover property (@(posedge clk_i) disable iff (!rst_ni)
                  b_finish && b_status == 5'(penstock_pkg::CANCELLED));
  c_deadline :
  cover property (@(posedge clk_i) disable iff (!rst_ni)
                  b_finish && b_status == 5'(penstock_pkg::DEADLINE_EXCEEDED));
  c_both_end :
  cover property (@(posedge clk_i) disable iff (!rst_ni)
                  b_valid_q && m_axi_bvalid && !m_axi_bready);
  c_all_wait :
  cover property (@(posedge clk_i) disable iff (!rst_ni) sync_waiting_o == '1);
endmodule
bind penstock_sync penstock_sync_properties #(
    .QUEUES(QUEUES)
) i_properties (
    .in_free(!active_q[in_queue]),
    .finish_known(active_q[finish_queue]),
    .*
);

`default_nettype wire
