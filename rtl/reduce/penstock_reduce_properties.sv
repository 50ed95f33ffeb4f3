// What must hold in penstock_reduce, also of who offers the jobs, and what its tests have to reach.
// For Verilator alone.
`default_nettype none

module penstock_reduce_properties #(
    parameter int unsigned JOB_WIDTH = 4
) (
    input wire logic                 clk_i,
    input wire logic                 rst_ni,
    input wire logic                 op_we_i,
    input wire logic                 op_slot_i,
    input wire logic [1:0]           slot_free_o,
    input wire logic                 job_valid_i,
    input wire logic                 job_ready_o,
    input wire logic                 job_slot_i,
    input wire logic                 job_copy_i,
    input wire logic [6:0]           job_sources_i,
    input wire logic [1:0]           job_destinations_i,
    input wire logic [32:0]          job_count_i,
    input wire logic                 done_valid_o,
    input wire logic                 done_ready_i,
    input wire logic [5:0]           done_queue_o,
    input wire logic                 done_error_o,
    input wire logic [63:0]          done_bus_o,
    input wire logic                 room,
    input wire logic                 ended,
    input wire logic                 reported,
    input wire logic [JOB_WIDTH-1:0] oldest,
    input wire logic [JOB_WIDTH:0]   under_way,
    input wire logic [JOB_WIDTH:0]   ended_count,
    input wire logic                 read_failed,    // of the oldest job
    input wire logic                 write_failed,
    input wire logic                 segment_valid,
    input wire logic                 segment_first,
    input wire logic                 segment_last,
    input wire logic [JOB_WIDTH-1:0] segment_job,
    input wire logic                 beat_valid,
    input wire logic                 beat_ready,
    input wire logic [JOB_WIDTH-1:0] beat_job,
    input wire logic                 beat_last,
    input wire logic                 beat_last_source,
    input wire logic                 result_valid,
    input wire logic                 result_ready,
    input wire logic                 read_error,
    input wire logic [JOB_WIDTH-1:0] read_error_job,
    input wire logic                 write_error,
    input wire logic [JOB_WIDTH-1:0] write_error_job,
    input wire logic                 chunk_valid,
    input wire logic                 chunk_last,
    input wire logic                 failed,
    input wire logic                 source_last,
    input wire logic [35:0]          left
);

  // The command processor.
  assert property (@(posedge clk_i) disable iff (!rst_ni) op_we_i |-> slot_free_o[op_slot_i]);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   op_we_i && job_valid_i |-> op_slot_i != job_slot_i);
  assert property (@(posedge clk_i) disable iff (!rst_ni) job_valid_i |->
                   job_sources_i != 7'd0 && job_sources_i <= 7'd64 && job_destinations_i != 2'd0
                   && job_count_i != 33'd0 && (!job_copy_i || job_sources_i == 7'd1));
  assert property (@(posedge clk_i) disable iff (!rst_ni) job_valid_i && !job_ready_o |=>
                   job_valid_i && $stable(job_count_i) && $stable(job_slot_i));

  // No end without a job, and what is reported stays until it is taken.
  assert property (@(posedge clk_i) disable iff (!rst_ni) ended |-> ended_count < under_way);
  assert property (@(posedge clk_i) disable iff (!rst_ni) ended_count <= under_way);
  assert property (@(posedge clk_i) disable iff (!rst_ni) done_valid_o && !done_ready_i |=>
                   done_valid_o && $stable(done_queue_o) && $stable(done_error_o)
                   && (!done_error_o || $stable(done_bus_o)));
  // Errors name jobs that have not ended.
  assert property (@(posedge clk_i) disable iff (!rst_ni) read_error |->
                   {1'b0, read_error_job - oldest} >= ended_count
                   && {1'b0, read_error_job - oldest} < under_way);
  assert property (@(posedge clk_i) disable iff (!rst_ni) write_error |->
                   {1'b0, write_error_job - oldest} >= ended_count
                   && {1'b0, write_error_job - oldest} < under_way);

  // A slot is written while the job that had it before is still under way.
  cover property (@(posedge clk_i) rst_ni && op_we_i && under_way > (JOB_WIDTH + 1)'(2));
  cover property (@(posedge clk_i) rst_ni && slot_free_o == 2'b00);
  cover property (@(posedge clk_i) rst_ni && job_valid_i && !room);
  // One job is read, another is folded, another has not been reported.
  cover property (@(posedge clk_i) rst_ni && segment_valid && beat_valid
                  && segment_job != beat_job && beat_job != oldest);
  cover property (@(posedge clk_i) rst_ni && done_valid_o && !done_ready_i && ended);
  cover property (@(posedge clk_i) rst_ni && segment_valid && segment_first && segment_last);
  // Held back on the way.
  cover property (@(posedge clk_i) rst_ni && beat_valid && !beat_ready);
  cover property (@(posedge clk_i) rst_ni && result_valid && !result_ready);
  // A job that fails while more of it is still to be read; with its last chunk; both ways.
  cover property (@(posedge clk_i) rst_ni && chunk_valid && failed && left > 36'd4096);
  cover property (@(posedge clk_i) rst_ni && failed && !source_last);
  cover property (@(posedge clk_i) rst_ni && chunk_valid && chunk_last && !failed);
  cover property (@(posedge clk_i) rst_ni && reported && read_failed && write_failed);
  cover property (@(posedge clk_i) rst_ni && reported && write_failed && !read_failed);
  cover property (@(posedge clk_i) rst_ni && ended && write_error && write_error_job == oldest);
  // The last beat of a chunk is taken while the next job's first waits.
  cover property (@(posedge clk_i) rst_ni && beat_valid && beat_ready && beat_last
                  && beat_last_source);

endmodule

bind penstock_reduce penstock_reduce_properties #(
    .JOB_WIDTH(JOB_WIDTH)
) properties (
    .clk_i,
    .rst_ni,
    .op_we_i,
    .op_slot_i,
    .slot_free_o,
    .job_valid_i,
    .job_ready_o,
    .job_slot_i,
    .job_copy_i,
    .job_sources_i,
    .job_destinations_i,
    .job_count_i,
    .done_valid_o,
    .done_ready_i,
    .done_queue_o,
    .done_error_o,
    .done_bus_o,
    .room,
    .ended,
    .reported,
    .oldest      (oldest_q),
    .under_way   (under_way_q),
    .ended_count (ended_q),
    .read_failed (read_failed_q[oldest_q]),
    .write_failed(write_failed_q[oldest_q]),
    .segment_valid,
    .segment_first,
    .segment_last,
    .segment_job,
    .beat_valid,
    .beat_ready,
    .beat_job,
    .beat_last,
    .beat_last_source,
    .result_valid,
    .result_ready,
    .read_error,
    .read_error_job,
    .write_error,
    .write_error_job,
    .chunk_valid,
    .chunk_last,
    .failed      (jobs.failed_i),
    .source_last (jobs.source_last),
    .left        (jobs.left_q)
);

// The port is inside the card: a soft reset takes responses away.
bind penstock_reduce penstock_axi_check #(
    .ID_BITS       (4),
    .RESPONSES_STAY(1'b0)
) axi_check (
    .clk_i,
    .rst_ni,
    .off_i(1'b0),
    `PENSTOCK_AXI_CHECK_PORT(m_axi)
);

`default_nettype wire
