// Three masters, the multiplexer and the isolator, for their unit test. The masters' ports are
// apart, so that each can be bound like a port of its own.
`default_nettype none

module axi_harness (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,
    // Resets the multiplexer, as the card does with all that is inside.
    input  wire logic         inside_rst_ni,
    input  wire logic         isolate_i,
    output      logic         clean_o,

    input  wire logic [2:0]   s_axi_awvalid,
    output      logic [2:0]   s_axi_awready,
    input  wire logic [191:0] s_axi_awaddr,
    input  wire logic [11:0]  s_axi_awid,
    input  wire logic [23:0]  s_axi_awlen,
    input  wire logic [2:0]   s_axi_wvalid,
    output      logic [2:0]   s_axi_wready,
    // A beat holds 16 times its 32 bits.
    input  wire logic [95:0]  s_axi_wword,
    input  wire logic [191:0] s_axi_wstrb,
    input  wire logic [2:0]   s_axi_wlast,
    output      logic [2:0]   s_axi_bvalid,
    input  wire logic [2:0]   s_axi_bready,
    output      logic [11:0]  s_axi_bid,
    output      logic [5:0]   s_axi_bresp,
    input  wire logic [2:0]   s_axi_arvalid,
    output      logic [2:0]   s_axi_arready,
    input  wire logic [191:0] s_axi_araddr,
    input  wire logic [11:0]  s_axi_arid,
    input  wire logic [23:0]  s_axi_arlen,
    output      logic [2:0]   s_axi_rvalid,
    input  wire logic [2:0]   s_axi_rready,
    // The data is the same for all.
    output      logic [511:0] s_axi_rdata,
    output      logic [11:0]  s_axi_rid,
    output      logic [5:0]   s_axi_rresp,
    output      logic [2:0]   s_axi_rlast,

    output      logic         m_axi_awvalid,
    input  wire logic         m_axi_awready,
    output      logic [63:0]  m_axi_awaddr,
    output      logic [5:0]   m_axi_awid,
    output      logic [7:0]   m_axi_awlen,
    output      logic         m_axi_wvalid,
    input  wire logic         m_axi_wready,
    output      logic [511:0] m_axi_wdata,
    output      logic [63:0]  m_axi_wstrb,
    output      logic         m_axi_wlast,
    input  wire logic         m_axi_bvalid,
    output      logic         m_axi_bready,
    input  wire logic [5:0]   m_axi_bid,
    input  wire logic [1:0]   m_axi_bresp,
    output      logic         m_axi_arvalid,
    input  wire logic         m_axi_arready,
    output      logic [63:0]  m_axi_araddr,
    output      logic [5:0]   m_axi_arid,
    output      logic [7:0]   m_axi_arlen,
    input  wire logic         m_axi_rvalid,
    output      logic         m_axi_rready,
    input  wire logic [511:0] m_axi_rdata,
    input  wire logic [5:0]   m_axi_rid,
    input  wire logic [1:0]   m_axi_rresp,
    input  wire logic         m_axi_rlast
);

  logic [1535:0] wdata;
  logic [1535:0] rdata;

  assign wdata = {{16{s_axi_wword[95:64]}}, {16{s_axi_wword[63:32]}}, {16{s_axi_wword[31:0]}}};
  assign s_axi_rdata = rdata[511:0];

  logic         awvalid;
  logic         awready;
  logic [63:0]  awaddr;
  logic [5:0]   awid;
  logic [7:0]   awlen;
  logic         wvalid;
  logic         wready;
  logic [511:0] wbeat;
  logic [63:0]  wstrb;
  logic         wlast;
  logic         bvalid;
  logic         bready;
  logic [5:0]   bid;
  logic [1:0]   bresp;
  logic         arvalid;
  logic         arready;
  logic [63:0]  araddr;
  logic [5:0]   arid;
  logic [7:0]   arlen;
  logic         rvalid;
  logic         rready;
  logic [511:0] rbeat;
  logic [5:0]   rid;
  logic [1:0]   rresp;
  logic         rlast;

  penstock_axi_mux #(
      .N     (3),
      .BURSTS(4)
  ) i_mux (
      .clk_i,
      .rst_ni       (inside_rst_ni),
      .s_axi_awvalid,
      .s_axi_awready,
      .s_axi_awaddr,
      .s_axi_awid,
      .s_axi_awlen,
      .s_axi_wvalid,
      .s_axi_wready,
      .s_axi_wdata  (wdata),
      .s_axi_wstrb,
      .s_axi_wlast,
      .s_axi_bvalid,
      .s_axi_bready,
      .s_axi_bid,
      .s_axi_bresp,
      .s_axi_arvalid,
      .s_axi_arready,
      .s_axi_araddr,
      .s_axi_arid,
      .s_axi_arlen,
      .s_axi_rvalid,
      .s_axi_rready,
      .s_axi_rdata  (rdata),
      .s_axi_rid,
      .s_axi_rresp,
      .s_axi_rlast,
      .m_axi_awvalid(awvalid),
      .m_axi_awready(awready),
      .m_axi_awaddr (awaddr),
      .m_axi_awid   (awid),
      .m_axi_awlen  (awlen),
      .m_axi_wvalid (wvalid),
      .m_axi_wready (wready),
      .m_axi_wdata  (wbeat),
      .m_axi_wstrb  (wstrb),
      .m_axi_wlast  (wlast),
      .m_axi_bvalid (bvalid),
      .m_axi_bready (bready),
      .m_axi_bid    (bid),
      .m_axi_bresp  (bresp),
      .m_axi_arvalid(arvalid),
      .m_axi_arready(arready),
      .m_axi_araddr (araddr),
      .m_axi_arid   (arid),
      .m_axi_arlen  (arlen),
      .m_axi_rvalid (rvalid),
      .m_axi_rready (rready),
      .m_axi_rdata  (rbeat),
      .m_axi_rid    (rid),
      .m_axi_rresp  (rresp),
      .m_axi_rlast  (rlast)
  );

  penstock_axi_isolator #(
      .BURSTS     (4),
      .OUTSTANDING(20)
  ) i_isolator (
      .clk_i,
      .rst_ni,
      .isolate_i,
      .clean_o,
      .s_axi_awvalid(awvalid),
      .s_axi_awready(awready),
      .s_axi_awaddr (awaddr),
      .s_axi_awid   (awid),
      .s_axi_awlen  (awlen),
      .s_axi_wvalid (wvalid),
      .s_axi_wready (wready),
      .s_axi_wdata  (wbeat),
      .s_axi_wstrb  (wstrb),
      .s_axi_wlast  (wlast),
      .s_axi_bvalid (bvalid),
      .s_axi_bready (bready),
      .s_axi_bid    (bid),
      .s_axi_bresp  (bresp),
      .s_axi_arvalid(arvalid),
      .s_axi_arready(arready),
      .s_axi_araddr (araddr),
      .s_axi_arid   (arid),
      .s_axi_arlen  (arlen),
      .s_axi_rvalid (rvalid),
      .s_axi_rready (rready),
      .s_axi_rdata  (rbeat),
      .s_axi_rid    (rid),
      .s_axi_rresp  (rresp),
      .s_axi_rlast  (rlast),
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
      .m_axi_bresp,
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

endmodule

`default_nettype wire
