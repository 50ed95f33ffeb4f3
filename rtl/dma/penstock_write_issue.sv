// Asks for the bursts of a writer and takes their answers: each group goes to every destination of
// its job, at the place where the job's groups before it end. A group comes here when all of its
// data is in the buffer, so no burst is asked for before its data is there.
`default_nettype none

module penstock_write_issue #(
    // Groups that the buffer holds: a power of two.
    parameter int unsigned GROUPS = 4,
    // Bursts whose answers may be outstanding.
    parameter int unsigned BURSTS = 32,
    // Bits that name a job.
    parameter int unsigned JOB_WIDTH = 4,
    // Not to be set.
    parameter int unsigned GROUP_BITS = GROUPS > 1 ? $clog2(GROUPS) : 1
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,

    input  wire logic                  group_valid_i,
    output      logic                  group_ready_o,
    input  wire logic [12:0]           group_bytes_i,
    input  wire logic [JOB_WIDTH-1:0]  group_job_i,
    input  wire logic                  group_last_i,

    // Where the named job's results go, in the same cycle.
    output      logic [JOB_WIDTH-1:0]  job_o,
    input  wire logic [1:0]            job_destinations_i,  // 1..3
    input  wire logic [191:0]          job_dst_i,           // destination d at bit 64 * d

    output      logic                  awvalid_o,
    input  wire logic                  awready_i,
    output      logic [63:0]           awaddr_o,
    output      logic [7:0]            awlen_o,
    input  wire logic                  bvalid_i,
    input  wire logic                  berror_i,

    // A burst that was asked for, for the side that sends the data.
    output      logic                  burst_valid_o,
    input  wire logic                  burst_ready_i,
    output      logic [6:0]            burst_beats_o,
    output      logic                  burst_last_o,    // of its segment: one group's way to one
                                                        // destination
    output      logic                  burst_free_o,    // with this segment the group has been used
    output      logic [5:0]            burst_shift_o,   // of the segment's first byte in its beat
    output      logic [12:0]           burst_bytes_o,   // of the segment
    output      logic [GROUP_BITS-1:0] burst_group_o,

    // Pulses. The answer to a job's last burst ends the job; errors come no later.
    output      logic                  done_o,
    output      logic                  error_valid_o,
    output      logic [JOB_WIDTH-1:0]  error_job_o,
    output      logic [63:0]           error_address_o  // the first byte that it should write
);

  localparam int unsigned USER_WIDTH = 6 + 13 + GROUP_BITS + 1 + 1 + JOB_WIDTH;
  localparam int unsigned RECORDS = 4;
  localparam int unsigned RECORD_BITS = $clog2(RECORDS + 1);
  localparam int unsigned ANSWER_BITS = $clog2(BURSTS + 1);

  // Which destination is next, of which group, and where.
  logic [1:0]             destination_q;
  logic [GROUP_BITS-1:0]  group_q;
  logic [35:0]            offset_q;
  logic [63:0]            base;
  logic                   last_destination;
  logic                   next;

  // A stage between the choice of the destination and the sum.
  logic                   sum_valid_q;
  logic                   sum_ready;
  logic [63:0]            sum_base_q;
  logic [35:0]            sum_offset_q;
  logic [12:0]            sum_bytes_q;
  logic [GROUP_BITS-1:0]  sum_group_q;
  logic                   sum_free_q;
  logic                   sum_last_q;
  logic [JOB_WIDTH-1:0]   sum_job_q;
  logic [63:0]            address;

  logic                   split_valid;
  logic                   split_ready;
  logic [63:0]            split_address;
  logic [6:0]             split_beats;
  logic                   split_last;
  logic [5:0]             split_shift;
  logic [12:0]            split_bytes;
  logic [GROUP_BITS-1:0]  split_group;
  logic                   split_free;
  logic                   split_job_last;
  logic [JOB_WIDTH-1:0]   split_job;
  logic                   record_ready;
  logic                   answer_ready;
  logic                   answer_valid;
  logic [63:0]            answer_address;
  logic [JOB_WIDTH-1:0]   answer_job;
  logic                   answer_last;
  logic                   accepted;
  logic                   done_q;
  logic                   error_q;

  /* verilator lint_off UNUSEDSIGNAL */
  logic                   split_first;
  logic [RECORD_BITS-1:0] records;
  logic [ANSWER_BITS-1:0] answers;
  /* verilator lint_on UNUSEDSIGNAL */

  assign job_o            = group_job_i;
  assign base             = destination_q == 2'd0 ? job_dst_i[63:0]
                          : destination_q == 2'd1 ? job_dst_i[127:64] : job_dst_i[191:128];
  assign last_destination = destination_q + 2'd1 == job_destinations_i;
  assign next             = group_valid_i && (!sum_valid_q || sum_ready);
  assign group_ready_o    = next && last_destination;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      destination_q <= '0;
      group_q       <= '0;
      offset_q      <= '0;
      sum_valid_q   <= 1'b0;
    end else begin
      if (!sum_valid_q || sum_ready) sum_valid_q <= group_valid_i;
      if (next) destination_q <= last_destination ? 2'd0 : destination_q + 2'd1;
      if (group_ready_o) begin
        group_q  <= group_q + 1'b1;
        offset_q <= group_last_i ? 36'd0 : offset_q + 36'(group_bytes_i);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (next) begin
      sum_base_q   <= base;
      sum_offset_q <= offset_q;
      sum_bytes_q  <= group_bytes_i;
      sum_group_q  <= group_q;
      sum_free_q   <= last_destination;
      sum_last_q   <= last_destination && group_last_i;
      sum_job_q    <= group_job_i;
    end
  end

  assign address = sum_base_q + 64'(sum_offset_q);

  penstock_burst_split #(
      .USER_WIDTH(USER_WIDTH)
  ) split (
      .clk_i,
      .rst_ni,
      .in_valid_i   (sum_valid_q),
      .in_ready_o   (sum_ready),
      .in_address_i (address),
      .in_bytes_i   (sum_bytes_q),
      .in_user_i    ({address[5:0], sum_bytes_q, sum_group_q, sum_free_q, sum_last_q, sum_job_q}),
      .out_valid_o  (split_valid),
      .out_ready_i  (split_ready),
      .out_address_o(split_address),
      .out_beats_o  (split_beats),
      .out_first_o  (split_first),
      .out_last_o   (split_last),
      .out_user_o   ({split_shift, split_bytes, split_group, split_free, split_job_last, split_job})
  );

  // Room for the records stays once it is there: only a burst that is taken uses it.
  assign awvalid_o   = split_valid && record_ready && answer_ready;
  assign awaddr_o    = {split_address[63:6], 6'd0};
  assign awlen_o     = {1'b0, split_beats} - 8'd1;
  assign split_ready = awready_i && record_ready && answer_ready;
  assign accepted    = awvalid_o && awready_i;

  // From the cycle after the request was accepted its data may follow.
  penstock_fifo #(
      .WIDTH(7 + 2 + 6 + 13 + GROUP_BITS),
      .DEPTH(RECORDS)
  ) bursts (
      .clk_i,
      .rst_ni,
      .in_valid_i (accepted),
      .in_ready_o (record_ready),
      .in_data_i  ({split_beats, split_last, split_free, split_shift, split_bytes, split_group}),
      .out_valid_o(burst_valid_o),
      .out_ready_i(burst_ready_i),
      .out_data_o ({burst_beats_o, burst_last_o, burst_free_o, burst_shift_o, burst_bytes_o,
                    burst_group_o}),
      .count_o    (records)
  );

  penstock_fifo #(
      .WIDTH(64 + JOB_WIDTH + 1),
      .DEPTH(BURSTS)
  ) outstanding (
      .clk_i,
      .rst_ni,
      .in_valid_i (accepted),
      .in_ready_o (answer_ready),
      .in_data_i  ({split_address, split_job, split_job_last && split_last}),
      .out_valid_o(answer_valid),
      .out_ready_i(bvalid_i),
      .out_data_o ({answer_address, answer_job, answer_last}),
      .count_o    (answers)
  );

  assign done_o        = done_q;
  assign error_valid_o = error_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      done_q  <= 1'b0;
      error_q <= 1'b0;
    end else begin
      done_q  <= bvalid_i && answer_valid && answer_last;
      error_q <= bvalid_i && answer_valid && berror_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (bvalid_i && berror_i) begin
      error_job_o     <= answer_job;
      error_address_o <= answer_address;
    end
  end

endmodule

`default_nettype wire
