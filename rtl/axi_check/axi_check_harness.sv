// Both checkers with nothing but ports, so that a test can be a bad master and a bad memory.
`default_nettype none

module axi_check_harness (
    input wire logic         clk_i,
    input wire logic         rst_ni,
    input wire logic         off_i,
    input wire logic         axi_awvalid,
    input wire logic         axi_awready,
    input wire logic [63:0]  axi_awaddr,
    input wire logic [1:0]   axi_awid,
    input wire logic [7:0]   axi_awlen,
    input wire logic         axi_wvalid,
    input wire logic         axi_wready,
    input wire logic [511:0] axi_wdata,
    input wire logic [63:0]  axi_wstrb,
    input wire logic         axi_wlast,
    input wire logic         axi_bvalid,
    input wire logic         axi_bready,
    input wire logic [1:0]   axi_bid,
    input wire logic [1:0]   axi_bresp,
    input wire logic         axi_arvalid,
    input wire logic         axi_arready,
    input wire logic [63:0]  axi_araddr,
    input wire logic [1:0]   axi_arid,
    input wire logic [7:0]   axi_arlen,
    input wire logic         axi_rvalid,
    input wire logic         axi_rready,
    input wire logic [511:0] axi_rdata,
    input wire logic [1:0]   axi_rid,
    input wire logic [1:0]   axi_rresp,
    input wire logic         axi_rlast,
    input wire logic         axil_awvalid,
    input wire logic         axil_awready,
    input wire logic [15:0]  axil_awaddr,
    input wire logic         axil_wvalid,
    input wire logic         axil_wready,
    input wire logic [31:0]  axil_wdata,
    input wire logic [3:0]   axil_wstrb,
    input wire logic         axil_bvalid,
    input wire logic         axil_bready,
    input wire logic [1:0]   axil_bresp,
    input wire logic         axil_arvalid,
    input wire logic         axil_arready,
    input wire logic [15:0]  axil_araddr,
    input wire logic         axil_rvalid,
    input wire logic         axil_rready,
    input wire logic [31:0]  axil_rdata,
    input wire logic [1:0]   axil_rresp
);

  penstock_axi_check #(
      .ID_BITS  (2),
      .MAX_BEATS(16),
      .DEPTH    (4)
  ) i_axi_check (
      .clk_i,
      .rst_ni,
      .off_i,
      `PENSTOCK_AXI_CHECK_PORT(axi)
  );

  penstock_axil_check i_axil_check (
      .clk_i,
      .rst_ni,
      `PENSTOCK_AXIL_CHECK_PORT(axil)
  );

endmodule

`default_nettype wire
