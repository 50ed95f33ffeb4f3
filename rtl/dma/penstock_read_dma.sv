// Reads segments of memory, each up to 4 KiB and beginning at any byte, and gives them one after
// another as beats with the segment's first byte at byte 0. See README.md.
`default_nettype none

module penstock_read_dma #(
    // Beats that the buffer holds: a power of two, 64 or more. Reads are kept up at the full rate
    // if it covers the memory's latency in cycles, and a burst's 64 on top.
    parameter int unsigned BUFFER_BEATS = 512,
    // Bursts that may be on their way.
    parameter int unsigned BURSTS = 32,
    // Segments that may be under way, from the request to their last beat.
    parameter int unsigned SEGMENTS = 64,
    // Bits that travel with a segment.
    parameter int unsigned USER_WIDTH = 4
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,

    input  wire logic                  segment_valid_i,
    output      logic                  segment_ready_o,
    input  wire logic [63:0]           segment_address_i,
    input  wire logic [12:0]           segment_bytes_i,    // 1..4096
    input  wire logic [USER_WIDTH-1:0] segment_user_i,

    output      logic                  out_valid_o,
    input  wire logic                  out_ready_i,
    output      logic [511:0]          out_data_o,   // undefined past the segment's end
    output      logic [5:0]            out_index_o,  // beat of its segment
    output      logic                  out_last_o,   // the segment's last
    output      logic [USER_WIDTH-1:0] out_user_o,

    // A pulse for each beat that memory could not give, before any of its segment's beats from
    // there on leaves.
    output      logic                  error_valid_o,
    output      logic [USER_WIDTH-1:0] error_user_o,
    output      logic [63:0]           error_address_o,  // the first wanted byte of its burst

    output      logic                  m_axi_arvalid,
    input  wire logic                  m_axi_arready,
    output      logic [63:0]           m_axi_araddr,
    output      logic [3:0]            m_axi_arid,
    output      logic [7:0]            m_axi_arlen,
    input  wire logic                  m_axi_rvalid,
    output      logic                  m_axi_rready,
    input  wire logic [511:0]          m_axi_rdata,
    input  wire logic [3:0]            m_axi_rid,
    input  wire logic [1:0]            m_axi_rresp,
    input  wire logic                  m_axi_rlast
);

  logic issue_ready;
  logic align_ready;
  logic pop;

  // One ID, so that beats come in order.
  assign m_axi_arid      = 4'd0;
  assign m_axi_rready    = 1'b1;
  assign segment_ready_o = issue_ready && align_ready;

  penstock_read_issue #(
      .BUFFER_BEATS(BUFFER_BEATS),
      .BURSTS      (BURSTS),
      .USER_WIDTH  (USER_WIDTH)
  ) issue (
      .clk_i,
      .rst_ni,
      .segment_valid_i  (segment_valid_i && align_ready),
      .segment_ready_o  (issue_ready),
      .segment_address_i(segment_address_i),
      .segment_bytes_i  (segment_bytes_i),
      .segment_user_i   (segment_user_i),
      .arvalid_o        (m_axi_arvalid),
      .arready_i        (m_axi_arready),
      .araddr_o         (m_axi_araddr),
      .arlen_o          (m_axi_arlen),
      .beat_i           (m_axi_rvalid),
      .beat_last_i      (m_axi_rlast),
      .beat_error_i     (m_axi_rresp[1]),
      .pop_i            (pop),
      .error_valid_o    (error_valid_o),
      .error_user_o     (error_user_o),
      .error_address_o  (error_address_o)
  );

  penstock_read_align #(
      .BUFFER_BEATS(BUFFER_BEATS),
      .SEGMENTS    (SEGMENTS),
      .USER_WIDTH  (USER_WIDTH)
  ) align (
      .clk_i,
      .rst_ni,
      .segment_valid_i(segment_valid_i && issue_ready),
      .segment_ready_o(align_ready),
      .segment_shift_i(segment_address_i[5:0]),
      .segment_bytes_i(segment_bytes_i),
      .segment_user_i (segment_user_i),
      .beat_i         (m_axi_rvalid),
      .beat_data_i    (m_axi_rdata),
      .pop_o          (pop),
      .out_valid_o    (out_valid_o),
      .out_ready_i    (out_ready_i),
      .out_data_o     (out_data_o),
      .out_index_o    (out_index_o),
      .out_last_o     (out_last_o),
      .out_user_o     (out_user_o)
  );

  // With one ID in use the answers' ID says nothing, nor does the difference of OKAY and EXOKAY.
  /* verilator lint_off UNUSEDSIGNAL */
  logic unused;
  assign unused = &{m_axi_rid, m_axi_rresp[0]};
  /* verilator lint_on UNUSEDSIGNAL */

endmodule

`default_nettype wire
