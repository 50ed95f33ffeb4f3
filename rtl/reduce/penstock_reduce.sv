// REDUCE and COPY: takes jobs in order, reads their sources, folds them and writes the results to
// every destination. The reading of a job begins while those before it are still folded and
// written. See README.md.
`default_nettype none

module penstock_reduce #(
    // Beats that the reader's buffer holds: a power of two, 64 or more. Covers the memory's latency
    // in cycles, and 64 on top.
    parameter int unsigned READ_BUFFER_BEATS = 512,
    // Bursts of reads, and of writes, that may be on their way.
    parameter int unsigned READ_BURSTS = 32,
    parameter int unsigned WRITE_BURSTS = 32,
    // Groups of 4 KiB in the writer's buffer: a power of two, 2 or more.
    parameter int unsigned WRITE_GROUPS = 4,
    // log2 of the jobs that may be under way, from their acceptance to their end.
    parameter int unsigned JOB_WIDTH = 4
) (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,

    // The bus address of a source. Only for a slot that is free and has no job on offer.
    input  wire logic         op_we_i,
    input  wire logic         op_slot_i,
    input  wire logic [5:0]   op_index_i,
    input  wire logic [63:0]  op_bus_i,
    output      logic [1:0]   slot_free_o,

    input  wire logic         job_valid_i,
    output      logic         job_ready_o,
    input  wire logic         job_slot_i,
    input  wire logic [5:0]   job_queue_i,
    input  wire logic         job_copy_i,          // bytes; type, redop and scale mean nothing
    input  wire logic [3:0]   job_type_i,
    input  wire logic [2:0]   job_redop_i,
    input  wire logic [3:0]   job_out_type_i,
    input  wire logic [6:0]   job_sources_i,       // 1..64
    input  wire logic [1:0]   job_destinations_i,  // 1..3
    input  wire logic [32:0]  job_count_i,         // elements, bytes of a COPY: 1 or more
    input  wire logic [63:0]  job_scale_i,
    input  wire logic [191:0] job_dst_i,           // bus address of destination d at bit 64 * d

    // The oldest job has ended: all it wrote is in memory.
    output      logic         done_valid_o,
    input  wire logic         done_ready_i,
    output      logic [5:0]   done_queue_o,
    output      logic         done_error_o,
    output      logic         done_write_o,        // the error is a destination's
    output      logic [63:0]  done_bus_o,          // where

    output      logic         m_axi_awvalid,
    input  wire logic         m_axi_awready,
    output      logic [63:0]  m_axi_awaddr,
    output      logic [3:0]   m_axi_awid,
    output      logic [7:0]   m_axi_awlen,
    output      logic         m_axi_wvalid,
    input  wire logic         m_axi_wready,
    output      logic [511:0] m_axi_wdata,
    output      logic [63:0]  m_axi_wstrb,
    output      logic         m_axi_wlast,
    input  wire logic         m_axi_bvalid,
    output      logic         m_axi_bready,
    input  wire logic [3:0]   m_axi_bid,
    input  wire logic [1:0]   m_axi_bresp,
    output      logic         m_axi_arvalid,
    input  wire logic         m_axi_arready,
    output      logic [63:0]  m_axi_araddr,
    output      logic [3:0]   m_axi_arid,
    output      logic [7:0]   m_axi_arlen,
    input  wire logic         m_axi_rvalid,
    output      logic         m_axi_rready,
    input  wire logic [511:0] m_axi_rdata,
    input  wire logic [3:0]   m_axi_rid,
    input  wire logic [1:0]   m_axi_rresp,
    input  wire logic         m_axi_rlast
);

  localparam int unsigned JOBS = 1 << JOB_WIDTH;
  localparam int unsigned USER_WIDTH = JOB_WIDTH + 2;
  localparam int unsigned FOLD_WIDTH = 1 + 4 + 3 + 4 + 7 + 64;

  // Jobs under way, by name: names are given in a circle.
  logic [FOLD_WIDTH-1:0]  fold_q         [0:JOBS-1];
  logic [191:0]           dst_q          [0:JOBS-1];
  logic [1:0]             destinations_q [0:JOBS-1];
  logic [5:0]             queue_q        [0:JOBS-1];
  logic [63:0]            read_bus_q     [0:JOBS-1];
  logic [63:0]            write_bus_q    [0:JOBS-1];
  logic [JOBS-1:0]        read_failed_q;
  logic [JOBS-1:0]        write_failed_q;
  logic [JOB_WIDTH-1:0]   next_q;      // the name of the next job
  logic [JOB_WIDTH-1:0]   oldest_q;    // that has not been reported
  logic [JOB_WIDTH:0]     under_way_q;
  logic [JOB_WIDTH:0]     ended_q;     // and not reported yet
  logic                   accept;
  logic                   reported;
  logic                   slot_ready;
  logic                   room;

  logic [JOB_WIDTH-1:0]   current;
  logic                   segment_valid;
  logic                   segment_ready;
  logic [63:0]            segment_address;
  logic [12:0]            segment_bytes;
  logic [JOB_WIDTH-1:0]   segment_job;
  logic                   segment_first;
  logic                   segment_last;
  logic                   chunk_valid;
  logic                   chunk_ready;
  logic [14:0]            chunk_bytes;
  logic [JOB_WIDTH-1:0]   chunk_job;
  logic                   chunk_last;

  logic                   beat_valid;
  logic                   beat_ready;
  logic [511:0]           beat_data;
  logic [5:0]             beat_index;
  logic                   beat_last;
  logic [JOB_WIDTH-1:0]   beat_job;
  logic                   beat_first_source;
  logic                   beat_last_source;
  logic                   beat_copy;
  logic [3:0]             beat_type;
  logic [2:0]             beat_redop;
  logic [3:0]             beat_out_type;
  logic [6:0]             beat_sources;
  logic [63:0]            beat_scale;
  logic                   result_valid;
  logic                   result_ready;
  logic [511:0]           result_data;
  logic                   result_last;

  logic                   read_error;
  logic [JOB_WIDTH-1:0]   read_error_job;
  logic [63:0]            read_error_address;
  logic                   write_error;
  logic [JOB_WIDTH-1:0]   write_error_job;
  logic [63:0]            write_error_address;
  logic                   ended;
  /* verilator lint_off UNUSEDSIGNAL */
  logic [1:0]             read_error_source;  // a job's error is no source's in particular
  /* verilator lint_on UNUSEDSIGNAL */
  logic [JOB_WIDTH-1:0]   write_job;

  // log2 of the bytes of an element.
  function automatic logic [1:0] size_of(input logic [3:0] kind);
    case (kind)
      4'(penstock_pkg::F16), 4'(penstock_pkg::BF16): size_of = 2'd1;
      4'(penstock_pkg::INT32), 4'(penstock_pkg::UINT32), 4'(penstock_pkg::F32): size_of = 2'd2;
      4'(penstock_pkg::INT64), 4'(penstock_pkg::UINT64), 4'(penstock_pkg::F64): size_of = 2'd3;
      default: size_of = 2'd0;
    endcase
  endfunction

  assign room        = !under_way_q[JOB_WIDTH];
  assign job_ready_o = slot_ready && room;
  assign accept      = job_valid_i && job_ready_o;
  assign reported    = done_valid_o && done_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      next_q         <= '0;
      oldest_q       <= '0;
      under_way_q    <= '0;
      ended_q        <= '0;
      read_failed_q  <= '0;
      write_failed_q <= '0;
    end else begin
      if (accept) next_q <= next_q + 1'b1;
      if (reported) oldest_q <= oldest_q + 1'b1;
      under_way_q <= under_way_q + (JOB_WIDTH + 1)'(accept) - (JOB_WIDTH + 1)'(reported);
      ended_q     <= ended_q + (JOB_WIDTH + 1)'(ended) - (JOB_WIDTH + 1)'(reported);
      if (read_error) read_failed_q[read_error_job] <= 1'b1;
      if (write_error) write_failed_q[write_error_job] <= 1'b1;
      if (accept) begin
        read_failed_q[next_q]  <= 1'b0;
        write_failed_q[next_q] <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (accept) begin
      fold_q[next_q] <= {job_copy_i, job_type_i, job_redop_i, job_out_type_i, job_sources_i,
                         job_scale_i};
      dst_q[next_q]          <= job_dst_i;
      destinations_q[next_q] <= job_destinations_i;
      queue_q[next_q]        <= job_queue_i;
    end
  end
  // Of several failed bursts the first is told.
  always_ff @(posedge clk_i) begin
    if (read_error && !read_failed_q[read_error_job]) begin
      read_bus_q[read_error_job] <= read_error_address;
    end
  end
  always_ff @(posedge clk_i) begin
    if (write_error && !write_failed_q[write_error_job]) begin
      write_bus_q[write_error_job] <= write_error_address;
    end
  end

  assign done_valid_o = ended_q != '0;
  assign done_queue_o = queue_q[oldest_q];
  assign done_error_o = read_failed_q[oldest_q] || write_failed_q[oldest_q];
  assign done_write_o = !read_failed_q[oldest_q];
  assign done_bus_o   = read_failed_q[oldest_q] ? read_bus_q[oldest_q] : write_bus_q[oldest_q];

  penstock_reduce_jobs #(
      .JOB_WIDTH(JOB_WIDTH)
  ) jobs (
      .clk_i,
      .rst_ni,
      .op_we_i          (op_we_i),
      .op_slot_i        (op_slot_i),
      .op_index_i       (op_index_i),
      .op_bus_i         (op_bus_i),
      .slot_free_o      (slot_free_o),
      .job_valid_i      (job_valid_i && room),
      .job_ready_o      (slot_ready),
      .job_slot_i       (job_slot_i),
      .job_i            (next_q),
      .job_sources_i    (job_sources_i),
      .job_count_i      (job_count_i),
      .job_size_i       (job_copy_i ? 2'd0 : size_of(job_type_i)),
      .job_out_size_i   (job_copy_i ? 2'd0 : size_of(job_out_type_i)),
      .current_o        (current),
      .failed_i         (read_failed_q[current] || write_failed_q[current]),
      .segment_valid_o  (segment_valid),
      .segment_ready_i  (segment_ready),
      .segment_address_o(segment_address),
      .segment_bytes_o  (segment_bytes),
      .segment_job_o    (segment_job),
      .segment_first_o  (segment_first),
      .segment_last_o   (segment_last),
      .chunk_valid_o    (chunk_valid),
      .chunk_ready_i    (chunk_ready),
      .chunk_bytes_o    (chunk_bytes),
      .chunk_job_o      (chunk_job),
      .chunk_last_o     (chunk_last)
  );

  penstock_read_dma #(
      .BUFFER_BEATS(READ_BUFFER_BEATS),
      .BURSTS      (READ_BURSTS),
      .SEGMENTS    (64),
      .USER_WIDTH  (USER_WIDTH)
  ) reader (
      .clk_i,
      .rst_ni,
      .segment_valid_i  (segment_valid),
      .segment_ready_o  (segment_ready),
      .segment_address_i(segment_address),
      .segment_bytes_i  (segment_bytes),
      .segment_user_i   ({segment_job, segment_first, segment_last}),
      .out_valid_o      (beat_valid),
      .out_ready_i      (beat_ready),
      .out_data_o       (beat_data),
      .out_index_o      (beat_index),
      .out_last_o       (beat_last),
      .out_user_o       ({beat_job, beat_first_source, beat_last_source}),
      .error_valid_o    (read_error),
      .error_user_o     ({read_error_job, read_error_source}),
      .error_address_o  (read_error_address),
      .m_axi_arvalid    (m_axi_arvalid),
      .m_axi_arready    (m_axi_arready),
      .m_axi_araddr     (m_axi_araddr),
      .m_axi_arid       (m_axi_arid),
      .m_axi_arlen      (m_axi_arlen),
      .m_axi_rvalid     (m_axi_rvalid),
      .m_axi_rready     (m_axi_rready),
      .m_axi_rdata      (m_axi_rdata),
      .m_axi_rid        (m_axi_rid),
      .m_axi_rresp      (m_axi_rresp),
      .m_axi_rlast      (m_axi_rlast)
  );

  assign {beat_copy, beat_type, beat_redop, beat_out_type, beat_sources, beat_scale} =
      fold_q[beat_job];

  penstock_fold fold (
      .clk_i,
      .rst_ni,
      .in_valid_i       (beat_valid),
      .in_ready_o       (beat_ready),
      .in_data_i        (beat_data),
      .in_index_i       (beat_index),
      .in_last_i        (beat_last),
      .in_first_source_i(beat_first_source),
      .in_last_source_i (beat_last_source),
      .in_type_i        (beat_type),
      .in_redop_i       (beat_redop),
      .in_out_type_i    (beat_out_type),
      .in_sources_i     (beat_sources),
      .in_scale_i       (beat_scale),
      .in_copy_i        (beat_copy),
      .out_valid_o      (result_valid),
      .out_ready_i      (result_ready),
      .out_data_o       (result_data),
      .out_last_o       (result_last)
  );

  penstock_write_dma #(
      .GROUPS   (WRITE_GROUPS),
      .BURSTS   (WRITE_BURSTS),
      .CHUNKS   (32),
      .JOB_WIDTH(JOB_WIDTH)
  ) writer (
      .clk_i,
      .rst_ni,
      .chunk_valid_i     (chunk_valid),
      .chunk_ready_o     (chunk_ready),
      .chunk_bytes_i     (chunk_bytes),
      .chunk_job_i       (chunk_job),
      .chunk_last_i      (chunk_last),
      .in_valid_i        (result_valid),
      .in_ready_o        (result_ready),
      .in_data_i         (result_data),
      .in_last_i         (result_last),
      .job_o             (write_job),
      .job_destinations_i(destinations_q[write_job]),
      .job_dst_i         (dst_q[write_job]),
      .done_o            (ended),
      .error_valid_o     (write_error),
      .error_job_o       (write_error_job),
      .error_address_o   (write_error_address),
      .m_axi_awvalid     (m_axi_awvalid),
      .m_axi_awready     (m_axi_awready),
      .m_axi_awaddr      (m_axi_awaddr),
      .m_axi_awid        (m_axi_awid),
      .m_axi_awlen       (m_axi_awlen),
      .m_axi_wvalid      (m_axi_wvalid),
      .m_axi_wready      (m_axi_wready),
      .m_axi_wdata       (m_axi_wdata),
      .m_axi_wstrb       (m_axi_wstrb),
      .m_axi_wlast       (m_axi_wlast),
      .m_axi_bvalid      (m_axi_bvalid),
      .m_axi_bready      (m_axi_bready),
      .m_axi_bid         (m_axi_bid),
      .m_axi_bresp       (m_axi_bresp)
  );

endmodule

`default_nettype wire
