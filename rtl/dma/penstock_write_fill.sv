// Cuts the chunks that a writer is given into groups of up to 4 KiB, and finds each a place in the
// writer's buffer. A group that is complete is told to the side that writes. A chunk whose elements
// grew on their way may have more beats than its bytes need: what comes past them is dropped.
`default_nettype none

module penstock_write_fill #(
    // Groups that the buffer holds: a power of two.
    parameter int unsigned GROUPS = 4,
    // Chunks that may be known ahead.
    parameter int unsigned CHUNKS = 32,
    // Bits that name a job.
    parameter int unsigned JOB_WIDTH = 4,
    // Not to be set.
    parameter int unsigned GROUP_BITS = GROUPS > 1 ? $clog2(GROUPS) : 1
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,

    input  wire logic                  chunk_valid_i,
    output      logic                  chunk_ready_o,
    input  wire logic [14:0]           chunk_bytes_i,  // 1..16384
    input  wire logic [JOB_WIDTH-1:0]  chunk_job_i,
    input  wire logic                  chunk_last_i,   // of its job

    input  wire logic                  in_valid_i,
    output      logic                  in_ready_o,
    input  wire logic                  in_last_i,      // of its chunk
    output      logic                  write_o,        // this beat goes to that place
    output      logic [GROUP_BITS-1:0] write_group_o,
    output      logic [5:0]            write_beat_o,

    output      logic                  group_valid_o,
    input  wire logic                  group_ready_i,
    output      logic [12:0]           group_bytes_o,  // 1..4096
    output      logic [JOB_WIDTH-1:0]  group_job_o,
    output      logic                  group_last_o,   // of its job
    input  wire logic                  group_free_i    // the oldest group has been written
);

  localparam int unsigned RECORD_BITS = $clog2(GROUPS + 1);
  localparam int unsigned CHUNK_BITS = $clog2(CHUNKS + 1);

  logic                   chunk_valid;
  logic [14:0]            chunk_bytes;
  logic [JOB_WIDTH-1:0]   chunk_job;
  logic                   chunk_last;
  logic                   chunk_end;
  logic [14:0]            done_q;  // bytes of the chunk in groups before this one
  logic [14:0]            left;
  logic [5:0]             beat_q;
  logic [GROUP_BITS-1:0]  group_q;
  logic [RECORD_BITS-1:0] used_q;  // groups in the buffer, also the one that is being filled
  logic                   filling_q;
  logic                   past_q;  // the chunk's bytes are all in groups
  logic                   room;
  logic                   group_end;
  logic [12:0]            group_bytes;

  /* verilator lint_off UNUSEDSIGNAL */
  logic                   record_ready;
  logic [RECORD_BITS-1:0] records;
  logic [CHUNK_BITS-1:0]  chunks;
  /* verilator lint_on UNUSEDSIGNAL */

  penstock_fifo #(
      .WIDTH(15 + JOB_WIDTH + 1),
      .DEPTH(CHUNKS)
  ) known (
      .clk_i,
      .rst_ni,
      .in_valid_i (chunk_valid_i),
      .in_ready_o (chunk_ready_o),
      .in_data_i  ({chunk_bytes_i, chunk_job_i, chunk_last_i}),
      .out_valid_o(chunk_valid),
      .out_ready_i(in_valid_i && in_ready_o && in_last_i),
      .out_data_o ({chunk_bytes, chunk_job, chunk_last}),
      .count_o    (chunks)
  );

  // A group takes its place with its first beat.
  assign room          = filling_q || used_q != RECORD_BITS'(GROUPS);
  assign left          = chunk_bytes - done_q;
  assign group_bytes   = left > 15'd4096 ? 13'd4096 : left[12:0];
  assign group_end     = {1'b0, group_bytes} <= {1'b0, beat_q, 6'd0} + 13'd64;
  assign chunk_end     = group_end && left <= 15'd4096;
  assign in_ready_o    = chunk_valid && (past_q || room);
  assign write_o       = in_valid_i && in_ready_o && !past_q;
  assign write_group_o = group_q;
  assign write_beat_o  = beat_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      done_q    <= '0;
      beat_q    <= '0;
      group_q   <= '0;
      used_q    <= '0;
      filling_q <= 1'b0;
      past_q    <= 1'b0;
    end else begin
      if (in_valid_i && in_ready_o) past_q <= (past_q || chunk_end) && !in_last_i;
      if (write_o) begin
        beat_q    <= group_end ? 6'd0 : beat_q + 6'd1;
        filling_q <= !group_end;
        if (group_end) begin
          group_q <= group_q + 1'b1;
          done_q  <= chunk_end ? 15'd0 : done_q + 15'd4096;
        end
      end
      used_q <= used_q + RECORD_BITS'(write_o && !filling_q) - RECORD_BITS'(group_free_i);
    end
  end

  // As many places as groups: there is always room.
  penstock_fifo #(
      .WIDTH(13 + JOB_WIDTH + 1),
      .DEPTH(GROUPS)
  ) complete (
      .clk_i,
      .rst_ni,
      .in_valid_i (write_o && group_end),
      .in_ready_o (record_ready),
      .in_data_i  ({group_bytes, chunk_job, chunk_last && chunk_end}),
      .out_valid_o(group_valid_o),
      .out_ready_i(group_ready_i),
      .out_data_o ({group_bytes_o, group_job_o, group_last_o}),
      .count_o    (records)
  );

`ifdef FORMAL
  // The groups of a chunk hold its bytes, all of them and none twice (f_told_q), and there is a
  // place for each: complete ones (f_complete_q) and the one that is being filled. The producer
  // marks a chunk's last beat with its last byte or after it; only a group that was taken is freed.
  logic                   f_reset_q = 1'b0;
  logic [14:0]            f_told_q;
  logic [RECORD_BITS-1:0] f_complete_q;

  always_ff @(posedge clk_i) begin
    f_reset_q <= 1'b1;
    if (!f_reset_q) assume (!rst_ni);
    assume (!chunk_valid_i || (chunk_bytes_i >= 15'd1 && chunk_bytes_i <= 15'd16384));
    assume (!(in_valid_i && in_ready_o && in_last_i) || past_q || chunk_end);
    assume (!group_free_i || f_complete_q > records);
    if (!rst_ni) begin
      f_told_q     <= '0;
      f_complete_q <= '0;
    end else begin
      if (in_valid_i && in_ready_o) begin
        if (in_last_i) f_told_q <= '0;
        else if (write_o && group_end) f_told_q <= f_told_q + {2'd0, group_bytes};
      end
      f_complete_q <= f_complete_q + RECORD_BITS'(write_o && group_end)
          - RECORD_BITS'(group_free_i);
    end
    if (f_reset_q && rst_ni) begin
      assert (32'(used_q) == 32'(f_complete_q) + 32'(filling_q));
      assert (32'(used_q) <= GROUPS);
      assert (records <= f_complete_q);
      assert (!(write_o && group_end) || record_ready);
      assert (filling_q == (beat_q != '0));
      assert (done_q[11:0] == 12'd0);
      if (!chunk_valid) assert (!past_q && done_q == '0 && !filling_q && f_told_q == '0);
      if (chunk_valid) begin
        assume (chunk_bytes >= 15'd1 && chunk_bytes <= 15'd16384);  // as it entered the queue
        assert (f_told_q == (past_q ? chunk_bytes : done_q));
        if (!past_q) assert (done_q < chunk_bytes && {7'd0, beat_q, 6'd0} < {6'd0, group_bytes});
        if (past_q) assert (!filling_q && done_q == '0);
        if (write_o && chunk_end) assert (f_told_q + {2'd0, group_bytes} == chunk_bytes);
        cover (write_o && chunk_end && chunk_bytes > 15'd64);
        cover (past_q && in_valid_i && in_ready_o && in_last_i);
        cover (in_valid_i && !room);
      end
    end
  end
`endif

endmodule

`default_nettype wire
