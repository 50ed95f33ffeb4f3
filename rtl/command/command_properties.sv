// What the command processor promises to its engines and its bus, and what its units promise to the
// rings' counters: the proofs of penstock_ring assume exactly that.
`default_nettype none
/* verilator lint_off DECLFILENAME */

bind penstock_command penstock_axi_check #(
    .ID_BITS       (4),
    .RESPONSES_STAY(1'b0)
) i_axi_check (
    .clk_i,
    .rst_ni,
    .off_i(1'b0),
    `PENSTOCK_AXI_CHECK_PORT(m_axi)
);

module penstock_ring_properties #(
    parameter int unsigned BITS = 32
) (
    input wire logic            clk_i,
    input wire logic            rst_ni,
    input wire logic            clear_i,
    input wire logic            doorbell_i,
    input wire logic            doorbell_legal_o,
    input wire logic            issue_i,
    input wire logic            issue_more_o,
    input wire logic            issue_none_i,
    input wire logic            take_i,
    input wire logic            take_more_o,
    input wire logic            take_none_i,
    input wire logic            arrive_i,
    input wire logic [BITS-1:0] arriving,  // issued and not arrived, of the queue that arrives
    input wire logic            done_i,
    input wire logic [BITS-1:0] working,
    input wire logic            acknowledge_i,
    input wire logic [BITS-1:0] writing,
    input wire logic            wraps      // of the queue that takes: one is below an older one
);
  a_doorbell :
  assert property (@(posedge clk_i) disable iff (!rst_ni) doorbell_i |-> doorbell_legal_o);
  a_issue :
  assert property (@(posedge clk_i) disable iff (!rst_ni) issue_i |-> issue_more_o);
  a_take :
  assert property (@(posedge clk_i) disable iff (!rst_ni) take_i |-> take_more_o);
  a_none :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   !(issue_none_i && issue_more_o) && !(take_none_i && take_more_o));
  a_arrive :
  assert property (@(posedge clk_i) disable iff (!rst_ni) arrive_i |-> arriving != '0);
  a_done :
  assert property (@(posedge clk_i) disable iff (!rst_ni) done_i |-> working != '0);
  a_acknowledge :
  assert property (@(posedge clk_i) disable iff (!rst_ni) acknowledge_i |-> writing != '0);
  a_clear :
  assert property (@(posedge clk_i) disable iff (!rst_ni) clear_i |->
                   !doorbell_i && !issue_i && !arrive_i && !take_i && !done_i && !acknowledge_i);
  c_wrap :
  cover property (@(posedge clk_i) disable iff (!rst_ni) take_i && wraps);
endmodule
bind penstock_ring penstock_ring_properties #(
    .BITS(BITS)
) i_properties (
    .clk_i, .rst_ni, .clear_i, .doorbell_i, .doorbell_legal_o, .issue_i, .issue_more_o,
    .issue_none_i, .take_i, .take_more_o, .take_none_i, .arrive_i,
    .arriving(issued_m[arrive_queue] - arrived_m[arrive_queue]),
    .done_i,
    .working(taken_m[done_queue] - BITS'(done_m[done_queue])),
    .acknowledge_i,
    .writing(BITS'(done_m[acknowledge_queue]) - acknowledged_m[acknowledge_queue]),
    .wraps(submitted_m[take_queue] < taken_m[take_queue])
);

module penstock_walk_properties (
    input wire logic         clk_i,
    input wire logic         rst_ni,
    input wire logic         op_we_o,
    input wire logic         op_slot_o,
    input wire logic [1:0]   slot_free_i,
    input wire logic         job_valid_o,
    input wire logic         job_ready_i,
    input wire logic         job_slot_o,
    input wire logic [5:0]   job_queue_o,
    input wire logic [6:0]   job_sources_o,
    input wire logic [32:0]  job_count_o,
    input wire logic [191:0] job_dst_o,
    input wire logic         job_done_i,
    input wire logic         sel_valid_o,
    input wire logic         sel_ready_i,
    input wire logic [5:0]   sel_queue_o,
    input wire logic         sync_valid_o,
    input wire logic         sync_ready_i,
    input wire logic [5:0]   sync_queue_o,
    input wire logic         took_reduce,
    input wire logic         took_score,
    input wire logic         took_sync,
    input wire logic         all_acknowledged_i,
    input wire logic         kind_reduce,
    input wire logic         kind_score,
    input wire logic         answer_valid_o,
    input wire logic         all_done_i,
    input wire logic         kind_answer,
    input wire logic         wait_done,
    input wire logic         hazard,
    input wire logic         clashes,
    input wire logic         wait_acknowledged,
    input wire logic         wait_reduce,
    input wire logic         wait_score,
    input wire logic [4:0]   state_q,
    input wire logic         list_error_i
);
  // An offer stays until it is taken.
  a_job :
  assert property (@(posedge clk_i) disable iff (!rst_ni) job_valid_o && !job_ready_i |=>
                   job_valid_o && $stable({job_slot_o, job_queue_o, job_sources_o, job_count_o,
                                           job_dst_o}));
  a_sel :
  assert property (@(posedge clk_i) disable iff (!rst_ni) sel_valid_o && !sel_ready_i |=>
                   sel_valid_o && $stable(sel_queue_o));
  a_sync :
  assert property (@(posedge clk_i) disable iff (!rst_ni) sync_valid_o && !sync_ready_i |=>
                   sync_valid_o && $stable(sync_queue_o));
  // Addresses go into a free slot that has no job on offer.
  a_op :
  assert property (@(posedge clk_i) disable iff (!rst_ni) op_we_o |->
                   slot_free_i[op_slot_o] && !(job_valid_o && job_slot_o == op_slot_o));
  a_size :
  assert property (@(posedge clk_i) disable iff (!rst_ni) job_valid_o |->
                   job_count_o != '0 && job_sources_o != '0 && job_sources_o <= 7'd64);
  // One kind of job at a time; an answer has nothing before it that could come after it.
  a_kind :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   all_acknowledged_i || !((took_reduce && !kind_reduce) ||
                                           (took_score && !kind_score) || took_sync));
  a_answer :
  assert property (@(posedge clk_i) disable iff (!rst_ni) answer_valid_o |->
                   all_done_i || kind_answer);
  c_hazard :
  cover property (@(posedge clk_i) disable iff (!rst_ni) wait_done && hazard);
  c_turn :
  cover property (@(posedge clk_i) disable iff (!rst_ni) wait_done && !hazard);
  c_clash :
  cover property (@(posedge clk_i) disable iff (!rst_ni) clashes);
  c_acknowledged :
  cover property (@(posedge clk_i) disable iff (!rst_ni) wait_acknowledged);
  c_reduce :
  cover property (@(posedge clk_i) disable iff (!rst_ni) wait_reduce);
  c_score :
  cover property (@(posedge clk_i) disable iff (!rst_ni) wait_score);
  c_list_error :
  cover property (@(posedge clk_i) disable iff (!rst_ni) state_q == 5'd10 && list_error_i);
  c_done_in_offer :
  cover property (@(posedge clk_i) disable iff (!rst_ni) job_done_i && job_valid_o);
endmodule
bind penstock_walk penstock_walk_properties i_properties (.*);

module penstock_fetch_properties (
    input wire logic clk_i,
    input wire logic rst_ni,
    input wire logic issue_o,
    input wire logic room,
    input wire logic across,
    input wire logic ar_valid_o,
    input wire logic beat,
    input wire logic arriving_valid,
    input wire logic r_error_i,
    input wire logic second_q,
    input wire logic hold_i,
    input wire logic r_valid_i
);
  // No request without a place for its data, no data without a request.
  a_room :
  assert property (@(posedge clk_i) disable iff (!rst_ni) issue_o |-> room);
  a_asked :
  assert property (@(posedge clk_i) disable iff (!rst_ni) beat |-> arriving_valid);
  c_across :
  cover property (@(posedge clk_i) disable iff (!rst_ni) ar_valid_o && across);
  c_first_failed :
  cover property (@(posedge clk_i) disable iff (!rst_ni) beat && r_error_i && !second_q);
  c_second_failed :
  cover property (@(posedge clk_i) disable iff (!rst_ni) beat && r_error_i && second_q);
  c_held :
  cover property (@(posedge clk_i) disable iff (!rst_ni) hold_i && r_valid_i);
endmodule
bind penstock_fetch penstock_fetch_properties i_properties (.*);

module penstock_window_properties (
    input wire logic       clk_i,
    input wire logic       rst_ni,
    input wire logic       win_rsp_valid_o,
    input wire logic       score_win_rsp_valid_o,
    input wire logic       rsp_ok_o,
    input wire logic [1:0] group_q,
    input wire logic       looking_q,
    input wire logic       win_valid_i,
    input wire logic       score_win_valid_i,
    input wire logic       config_start
);
  a_one :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   !(win_rsp_valid_o && score_win_rsp_valid_o));
  c_last_group :
  cover property (@(posedge clk_i) disable iff (!rst_ni) looking_q && group_q == 2'd3);
  c_refused :
  cover property (@(posedge clk_i) disable iff (!rst_ni) win_rsp_valid_o && !rsp_ok_o);
  c_both :
  cover property (@(posedge clk_i) disable iff (!rst_ni) win_valid_i && score_win_valid_i);
  c_config :
  cover property (@(posedge clk_i) disable iff (!rst_ni) config_start && win_valid_i);
endmodule
bind penstock_window penstock_window_properties i_properties (.*);

module penstock_finish_properties (
    input wire logic       clk_i,
    input wire logic       rst_ni,
    input wire logic       error_valid_o,
    input wire logic [7:0] error_code_o,
    input wire logic       event_o,
    input wire logic       acknowledge_o
);
  a_event :
  assert property (@(posedge clk_i) disable iff (!rst_ni) event_o |-> acknowledge_o);
  c_fetch :
  cover property (@(posedge clk_i) disable iff (!rst_ni) error_valid_o && error_code_o == 8'd1);
  c_completion :
  cover property (@(posedge clk_i) disable iff (!rst_ni) error_valid_o && error_code_o == 8'd2);
  c_doorbell :
  cover property (@(posedge clk_i) disable iff (!rst_ni) error_valid_o && error_code_o == 8'd3);
  c_operand :
  cover property (@(posedge clk_i) disable iff (!rst_ni) error_valid_o && error_code_o == 8'd4);
endmodule
bind penstock_finish penstock_finish_properties i_properties (.*);

`default_nettype wire
