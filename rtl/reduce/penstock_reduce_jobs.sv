// Takes REDUCE and COPY jobs and turns each into segments to read: chunk by chunk, and in a chunk
// source by source. With the last source of a chunk it says what the chunk's results are.
//
// A job's sources wait in one of two slots; their addresses are written before the job is offered.
// The slot is free again as soon as the job's last segment has been asked for, long before the job
// ends, so that the next job is walked while this one runs.
`default_nettype none

module penstock_reduce_jobs #(
    // Bits that name a job that is under way.
    parameter int unsigned JOB_WIDTH = 4
) (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,

    input  wire logic                   op_we_i,
    input  wire logic                   op_slot_i,
    input  wire logic [5:0]             op_index_i,
    input  wire logic [63:0]            op_bus_i,       // bus address of that source
    output      logic [1:0]             slot_free_o,

    input  wire logic                   job_valid_i,
    output      logic                   job_ready_o,
    input  wire logic                   job_slot_i,
    input  wire logic [JOB_WIDTH-1:0]   job_i,          // its name
    input  wire logic [6:0]             job_sources_i,  // 1..64
    input  wire logic [32:0]            job_count_i,    // elements, 1 or more
    input  wire logic [1:0]             job_size_i,     // log2 of an element's bytes, of a source
    input  wire logic [1:0]             job_out_size_i, // and of the result

    // The job whose segments are asked for, and whether it has failed: then it ends with the chunk
    // that is being read.
    output      logic [JOB_WIDTH-1:0]   current_o,
    input  wire logic                   failed_i,

    output      logic                   segment_valid_o,
    input  wire logic                   segment_ready_i,
    output      logic [63:0]            segment_address_o,
    output      logic [12:0]            segment_bytes_o,
    output      logic [JOB_WIDTH-1:0]   segment_job_o,
    output      logic                   segment_first_o,  // its source is the first
    output      logic                   segment_last_o,   // or the last

    output      logic                   chunk_valid_o,
    input  wire logic                   chunk_ready_i,
    output      logic [14:0]            chunk_bytes_o,    // of its results
    output      logic [JOB_WIDTH-1:0]   chunk_job_o,
    output      logic                   chunk_last_o      // of its job
);

  localparam int unsigned WIDTH = 1 + JOB_WIDTH + 7 + 33 + 2 + 2;

  logic [63:0]          sources_q [0:127];
  logic [1:0]           busy_q;

  logic                 waiting_valid;
  logic                 waiting_ready;
  logic                 waiting_slot;
  logic [JOB_WIDTH-1:0] waiting_job;
  logic [6:0]           waiting_sources;
  logic [32:0]          waiting_count;
  logic [1:0]           waiting_size;
  logic [1:0]           waiting_out_size;

  // The job whose segments are asked for.
  logic                 active_q;
  logic                 slot_q;
  logic [JOB_WIDTH-1:0] job_q;
  logic [5:0]           last_source_q;
  logic [1:0]           size_q;
  logic [1:0]           out_size_q;
  logic [5:0]           source_q;
  logic [35:0]          left_q;    // bytes of each source, from this chunk on
  logic [35:0]          offset_q;  // and before it
  logic                 source_last;
  logic [12:0]          chunk_bytes;
  logic                 last_chunk;
  logic                 step;
  logic                 leave;
  logic                 take;

  // One stage for the read of the address.
  logic                 stage_valid_q;
  logic [63:0]          stage_base_q;
  logic [35:0]          stage_offset_q;

  /* verilator lint_off UNUSEDSIGNAL */
  logic                 queue_ready;
  logic [1:0]           queued;
  /* verilator lint_on UNUSEDSIGNAL */

  assign slot_free_o = ~busy_q;
  assign job_ready_o = !busy_q[job_slot_i];

  // As many places as slots: there is always room.
  penstock_fifo #(
      .WIDTH(WIDTH),
      .DEPTH(2)
  ) waiting (
      .clk_i,
      .rst_ni,
      .in_valid_i (job_valid_i && job_ready_o),
      .in_ready_o (queue_ready),
      .in_data_i  ({job_slot_i, job_i, job_sources_i, job_count_i, job_size_i, job_out_size_i}),
      .out_valid_o(waiting_valid),
      .out_ready_i(waiting_ready),
      .out_data_o ({waiting_slot, waiting_job, waiting_sources, waiting_count, waiting_size,
                    waiting_out_size}),
      .count_o    (queued)
  );

  assign source_last   = source_q == last_source_q;
  assign chunk_bytes   = left_q > 36'd4096 ? 13'd4096 : left_q[12:0];
  assign last_chunk    = left_q <= 36'd4096 || failed_i;
  assign chunk_valid_o = active_q && source_last && (!stage_valid_q || segment_ready_i);
  assign chunk_bytes_o = 15'(({3'd0, chunk_bytes} >> size_q) << out_size_q);
  assign chunk_job_o   = job_q;
  assign chunk_last_o  = last_chunk;
  assign current_o     = job_q;
  assign step          = active_q && (!stage_valid_q || segment_ready_i)
      && (!source_last || chunk_ready_i);
  assign leave         = step && source_last && last_chunk;
  assign waiting_ready = !active_q || leave;
  assign take          = waiting_valid && waiting_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q        <= 2'b00;
      active_q      <= 1'b0;
      stage_valid_q <= 1'b0;
    end else begin
      for (int unsigned i = 0; i < 2; i++) begin
        if (job_valid_i && job_ready_o && job_slot_i == 1'(i)) busy_q[i] <= 1'b1;
        else if (leave && slot_q == 1'(i)) busy_q[i] <= 1'b0;
      end
      if (waiting_ready) active_q <= waiting_valid;
      if (!stage_valid_q || segment_ready_i) stage_valid_q <= step;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      slot_q        <= waiting_slot;
      job_q         <= waiting_job;
      last_source_q <= 6'(waiting_sources - 7'd1);
      size_q        <= waiting_size;
      out_size_q    <= waiting_out_size;
      source_q      <= '0;
      left_q        <= {3'd0, waiting_count} << waiting_size;
      offset_q      <= '0;
    end else if (step) begin
      source_q <= source_last ? 6'd0 : source_q + 6'd1;
      if (source_last) begin
        left_q   <= left_q - 36'd4096;
        offset_q <= offset_q + 36'd4096;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (op_we_i) sources_q[{op_slot_i, op_index_i}] <= op_bus_i;
  end
  always_ff @(posedge clk_i) begin
    if (step) begin
      stage_base_q    <= sources_q[{slot_q, source_q}];
      stage_offset_q  <= offset_q;
      segment_bytes_o <= chunk_bytes;
      segment_job_o   <= job_q;
      segment_first_o <= source_q == 6'd0;
      segment_last_o  <= source_last;
    end
  end

  assign segment_valid_o   = stage_valid_q;
  assign segment_address_o = stage_base_q + 64'(stage_offset_q);

endmodule

`default_nettype wire
