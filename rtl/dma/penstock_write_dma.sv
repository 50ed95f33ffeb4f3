// Writes the results of jobs: takes chunks of dense beats, and sends each to every destination of
// its job, whatever byte that begins at. See README.md.
`default_nettype none

module penstock_write_dma #(
    // Groups of 4 KiB that the buffer holds: a power of two, 2 or more.
    parameter int unsigned GROUPS = 4,
    // Bursts whose answers may be outstanding.
    parameter int unsigned BURSTS = 32,
    // Chunks that may be known before their data.
    parameter int unsigned CHUNKS = 32,
    // Bits that name a job.
    parameter int unsigned JOB_WIDTH = 4
) (
    input  wire logic                 clk_i,
    input  wire logic                 rst_ni,

    // What comes: a chunk's size, before its first beat is taken.
    input  wire logic                 chunk_valid_i,
    output      logic                 chunk_ready_o,
    input  wire logic [14:0]          chunk_bytes_i,  // 1..16384
    input  wire logic [JOB_WIDTH-1:0] chunk_job_i,
    input  wire logic                 chunk_last_i,   // of its job

    input  wire logic                 in_valid_i,
    output      logic                 in_ready_o,
    input  wire logic [511:0]         in_data_i,
    input  wire logic                 in_last_i,      // of its chunk

    // Where the named job's results go, in the same cycle.
    output      logic [JOB_WIDTH-1:0] job_o,
    input  wire logic [1:0]           job_destinations_i,  // 1..3
    input  wire logic [191:0]         job_dst_i,           // destination d at bit 64 * d

    // Pulses: the oldest job's writes are all in memory; a burst of that job failed. An error comes
    // no later than its job's end.
    output      logic                 done_o,
    output      logic                 error_valid_o,
    output      logic [JOB_WIDTH-1:0] error_job_o,
    output      logic [63:0]          error_address_o,  // the first byte that it should write

    output      logic                 m_axi_awvalid,
    input  wire logic                 m_axi_awready,
    output      logic [63:0]          m_axi_awaddr,
    output      logic [3:0]           m_axi_awid,
    output      logic [7:0]           m_axi_awlen,
    output      logic                 m_axi_wvalid,
    input  wire logic                 m_axi_wready,
    output      logic [511:0]         m_axi_wdata,
    output      logic [63:0]          m_axi_wstrb,
    output      logic                 m_axi_wlast,
    input  wire logic                 m_axi_bvalid,
    output      logic                 m_axi_bready,
    input  wire logic [3:0]           m_axi_bid,
    input  wire logic [1:0]           m_axi_bresp
);

  localparam int unsigned GROUP_BITS = GROUPS > 1 ? $clog2(GROUPS) : 1;

  logic                  write;
  logic [GROUP_BITS-1:0] write_group;
  logic [5:0]            write_beat;
  logic                  group_valid;
  logic                  group_ready;
  logic [12:0]           group_bytes;
  logic [JOB_WIDTH-1:0]  group_job;
  logic                  group_last;
  logic                  group_free;
  logic                  burst_valid;
  logic                  burst_ready;
  logic [6:0]            burst_beats;
  logic                  burst_last;
  logic                  burst_free;
  logic [5:0]            burst_shift;
  logic [12:0]           burst_bytes;
  logic [GROUP_BITS-1:0] burst_group;

  // One ID, so that answers come in order.
  assign m_axi_awid   = 4'd0;
  assign m_axi_bready = 1'b1;

  penstock_write_fill #(
      .GROUPS   (GROUPS),
      .CHUNKS   (CHUNKS),
      .JOB_WIDTH(JOB_WIDTH)
  ) fill (
      .clk_i,
      .rst_ni,
      .chunk_valid_i(chunk_valid_i),
      .chunk_ready_o(chunk_ready_o),
      .chunk_bytes_i(chunk_bytes_i),
      .chunk_job_i  (chunk_job_i),
      .chunk_last_i (chunk_last_i),
      .in_valid_i   (in_valid_i),
      .in_ready_o   (in_ready_o),
      .in_last_i    (in_last_i),
      .write_o      (write),
      .write_group_o(write_group),
      .write_beat_o (write_beat),
      .group_valid_o(group_valid),
      .group_ready_i(group_ready),
      .group_bytes_o(group_bytes),
      .group_job_o  (group_job),
      .group_last_o (group_last),
      .group_free_i (group_free)
  );

  penstock_write_issue #(
      .GROUPS   (GROUPS),
      .BURSTS   (BURSTS),
      .JOB_WIDTH(JOB_WIDTH)
  ) issue (
      .clk_i,
      .rst_ni,
      .group_valid_i     (group_valid),
      .group_ready_o     (group_ready),
      .group_bytes_i     (group_bytes),
      .group_job_i       (group_job),
      .group_last_i      (group_last),
      .job_o             (job_o),
      .job_destinations_i(job_destinations_i),
      .job_dst_i         (job_dst_i),
      .awvalid_o         (m_axi_awvalid),
      .awready_i         (m_axi_awready),
      .awaddr_o          (m_axi_awaddr),
      .awlen_o           (m_axi_awlen),
      .bvalid_i          (m_axi_bvalid),
      .berror_i          (m_axi_bresp[1]),
      .burst_valid_o     (burst_valid),
      .burst_ready_i     (burst_ready),
      .burst_beats_o     (burst_beats),
      .burst_last_o      (burst_last),
      .burst_free_o      (burst_free),
      .burst_shift_o     (burst_shift),
      .burst_bytes_o     (burst_bytes),
      .burst_group_o     (burst_group),
      .done_o            (done_o),
      .error_valid_o     (error_valid_o),
      .error_job_o       (error_job_o),
      .error_address_o   (error_address_o)
  );

  penstock_write_send #(
      .GROUPS(GROUPS)
  ) send (
      .clk_i,
      .rst_ni,
      .write_i      (write),
      .write_group_i(write_group),
      .write_beat_i (write_beat),
      .write_data_i (in_data_i),
      .burst_valid_i(burst_valid),
      .burst_ready_o(burst_ready),
      .burst_beats_i(burst_beats),
      .burst_last_i (burst_last),
      .burst_free_i (burst_free),
      .burst_shift_i(burst_shift),
      .burst_bytes_i(burst_bytes),
      .burst_group_i(burst_group),
      .group_free_o (group_free),
      .wvalid_o     (m_axi_wvalid),
      .wready_i     (m_axi_wready),
      .wdata_o      (m_axi_wdata),
      .wstrb_o      (m_axi_wstrb),
      .wlast_o      (m_axi_wlast)
  );

  // With one ID in use the answers' ID says nothing, nor does the difference of OKAY and EXOKAY.
  /* verilator lint_off UNUSEDSIGNAL */
  logic unused;
  assign unused = &{m_axi_bid, m_axi_bresp[0]};
  /* verilator lint_on UNUSEDSIGNAL */

endmodule

`default_nettype wire
