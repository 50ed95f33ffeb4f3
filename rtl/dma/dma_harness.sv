// The reader and the writer beside each other on one port, for their unit test: each on its own,
// with the smallest buffers.
`default_nettype none

module dma_harness (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,

    input  wire logic         segment_valid_i,
    output      logic         segment_ready_o,
    input  wire logic [63:0]  segment_address_i,
    input  wire logic [12:0]  segment_bytes_i,
    input  wire logic [7:0]   segment_user_i,
    output      logic         out_valid_o,
    input  wire logic         out_ready_i,
    output      logic [511:0] out_data_o,
    output      logic [5:0]   out_index_o,
    output      logic         out_last_o,
    output      logic [7:0]   out_user_o,
    output      logic         read_error_valid_o,
    output      logic [7:0]   read_error_user_o,
    output      logic [63:0]  read_error_address_o,

    input  wire logic         chunk_valid_i,
    output      logic         chunk_ready_o,
    input  wire logic [14:0]  chunk_bytes_i,
    input  wire logic [2:0]   chunk_job_i,
    input  wire logic         chunk_last_i,
    input  wire logic         in_valid_i,
    output      logic         in_ready_o,
    input  wire logic [511:0] in_data_i,
    input  wire logic         in_last_i,
    input  wire logic         job_we_i,            // destinations of job job_index_i
    input  wire logic [2:0]   job_index_i,
    input  wire logic [1:0]   job_destinations_i,
    input  wire logic [191:0] job_dst_i,
    output      logic         done_o,
    output      logic         write_error_valid_o,
    output      logic [2:0]   write_error_job_o,
    output      logic [63:0]  write_error_address_o,

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

  logic [191:0] dst_q          [0:7];
  logic [1:0]   destinations_q [0:7];
  logic [2:0]   job;

  always_ff @(posedge clk_i) begin
    if (job_we_i) begin
      dst_q[job_index_i]          <= job_dst_i;
      destinations_q[job_index_i] <= job_destinations_i;
    end
  end

  penstock_read_dma #(
      .BUFFER_BEATS(64),
      .BURSTS      (2),
      .SEGMENTS    (3),
      .USER_WIDTH  (8)
  ) reader (
      .clk_i,
      .rst_ni,
      .segment_valid_i,
      .segment_ready_o,
      .segment_address_i,
      .segment_bytes_i,
      .segment_user_i,
      .out_valid_o,
      .out_ready_i,
      .out_data_o,
      .out_index_o,
      .out_last_o,
      .out_user_o,
      .error_valid_o  (read_error_valid_o),
      .error_user_o   (read_error_user_o),
      .error_address_o(read_error_address_o),
      .m_axi_arvalid,
      .m_axi_arready,
      .m_axi_araddr,
      .m_axi_arid,
      .m_axi_arlen,
      .m_axi_rvalid,
      .m_axi_rready,
      .m_axi_rdata,
      .m_axi_rid,
      .m_axi_rresp,
      .m_axi_rlast
  );

  penstock_write_dma #(
      .GROUPS   (2),
      .BURSTS   (2),
      .CHUNKS   (2),
      .JOB_WIDTH(3)
  ) writer (
      .clk_i,
      .rst_ni,
      .chunk_valid_i,
      .chunk_ready_o,
      .chunk_bytes_i,
      .chunk_job_i,
      .chunk_last_i,
      .in_valid_i,
      .in_ready_o,
      .in_data_i,
      .in_last_i,
      .job_o             (job),
      .job_destinations_i(destinations_q[job]),
      .job_dst_i         (dst_q[job]),
      .done_o,
      .error_valid_o     (write_error_valid_o),
      .error_job_o       (write_error_job_o),
      .error_address_o   (write_error_address_o),
      .m_axi_awvalid,
      .m_axi_awready,
      .m_axi_awaddr,
      .m_axi_awid,
      .m_axi_awlen,
      .m_axi_wvalid,
      .m_axi_wready,
      .m_axi_wdata,
      .m_axi_wstrb,
      .m_axi_wlast,
      .m_axi_bvalid,
      .m_axi_bready,
      .m_axi_bid,
      .m_axi_bresp
  );

endmodule

`default_nettype wire
