// Joins the AXI4 masters of N blocks into one.
//
// Read and write addresses are granted in circles. W beats go out in the order of the write
// addresses, from the cycle after the address was accepted. The port's number stands above the
// block's ID, and brings R and B back. Nothing is stored but the order of the writes, so that every
// channel passes in the same cycle, and one port alone has the full rate.
//
// Ports of the blocks are vectors: port i has bits [i] of the flags, [i*W +: W] of what is W wide.
`default_nettype none

module penstock_axi_mux #(
    // Blocks: 1 to 2^PORT_BITS.
    parameter int unsigned N = 2,
    // Bits of a block's ID, and of the port's number above it.
    parameter int unsigned ID_BITS = 4,
    parameter int unsigned PORT_BITS = 2,
    // Write bursts whose address was accepted and whose data is not yet out.
    parameter int unsigned BURSTS = 8,
    // Not to be set.
    parameter int unsigned OUT_ID_BITS = ID_BITS + PORT_BITS
) (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,

    input  wire logic [N-1:0]           s_axi_awvalid,
    output      logic [N-1:0]           s_axi_awready,
    input  wire logic [N*64-1:0]        s_axi_awaddr,
    input  wire logic [N*ID_BITS-1:0]   s_axi_awid,
    input  wire logic [N*8-1:0]         s_axi_awlen,
    input  wire logic [N-1:0]           s_axi_wvalid,
    output      logic [N-1:0]           s_axi_wready,
    input  wire logic [N*512-1:0]       s_axi_wdata,
    input  wire logic [N*64-1:0]        s_axi_wstrb,
    input  wire logic [N-1:0]           s_axi_wlast,
    output      logic [N-1:0]           s_axi_bvalid,
    input  wire logic [N-1:0]           s_axi_bready,
    output      logic [N*ID_BITS-1:0]   s_axi_bid,
    output      logic [N*2-1:0]         s_axi_bresp,
    input  wire logic [N-1:0]           s_axi_arvalid,
    output      logic [N-1:0]           s_axi_arready,
    input  wire logic [N*64-1:0]        s_axi_araddr,
    input  wire logic [N*ID_BITS-1:0]   s_axi_arid,
    input  wire logic [N*8-1:0]         s_axi_arlen,
    output      logic [N-1:0]           s_axi_rvalid,
    input  wire logic [N-1:0]           s_axi_rready,
    output      logic [N*512-1:0]       s_axi_rdata,
    output      logic [N*ID_BITS-1:0]   s_axi_rid,
    output      logic [N*2-1:0]         s_axi_rresp,
    output      logic [N-1:0]           s_axi_rlast,

    output      logic                   m_axi_awvalid,
    input  wire logic                   m_axi_awready,
    output      logic [63:0]            m_axi_awaddr,
    output      logic [OUT_ID_BITS-1:0] m_axi_awid,
    output      logic [7:0]             m_axi_awlen,
    output      logic                   m_axi_wvalid,
    input  wire logic                   m_axi_wready,
    output      logic [511:0]           m_axi_wdata,
    output      logic [63:0]            m_axi_wstrb,
    output      logic                   m_axi_wlast,
    input  wire logic                   m_axi_bvalid,
    output      logic                   m_axi_bready,
    input  wire logic [OUT_ID_BITS-1:0] m_axi_bid,
    input  wire logic [1:0]             m_axi_bresp,
    output      logic                   m_axi_arvalid,
    input  wire logic                   m_axi_arready,
    output      logic [63:0]            m_axi_araddr,
    output      logic [OUT_ID_BITS-1:0] m_axi_arid,
    output      logic [7:0]             m_axi_arlen,
    input  wire logic                   m_axi_rvalid,
    output      logic                   m_axi_rready,
    input  wire logic [511:0]           m_axi_rdata,
    input  wire logic [OUT_ID_BITS-1:0] m_axi_rid,
    input  wire logic [1:0]             m_axi_rresp,
    input  wire logic                   m_axi_rlast
);

  localparam int unsigned INDEX_BITS = N > 1 ? $clog2(N) : 1;

  // ---- read addresses ----

  logic [N-1:0]          ar_grant;
  logic [INDEX_BITS-1:0] ar_index;

  penstock_arbiter #(
      .N(N)
  ) i_ar_arbiter (
      .clk_i,
      .rst_ni,
      .request_i(s_axi_arvalid),
      .valid_o  (m_axi_arvalid),
      .ready_i  (m_axi_arready),
      .grant_o  (ar_grant),
      .index_o  (ar_index)
  );

  assign s_axi_arready = m_axi_arready ? ar_grant : '0;
  assign m_axi_araddr  = s_axi_araddr[ar_index*64+:64];
  assign m_axi_arid    = {PORT_BITS'(ar_index), s_axi_arid[ar_index*ID_BITS+:ID_BITS]};
  assign m_axi_arlen   = s_axi_arlen[ar_index*8+:8];

  // ---- write addresses, and the order that they give to the data ----

  logic [N-1:0]          aw_grant;
  logic [INDEX_BITS-1:0] aw_index;
  logic                  aw_valid;
  logic                  order_in_ready;
  logic                  order_valid;
  logic [INDEX_BITS-1:0] order_index;

  penstock_arbiter #(
      .N(N)
  ) i_aw_arbiter (
      .clk_i,
      .rst_ni,
      .request_i(s_axi_awvalid),
      .valid_o  (aw_valid),
      .ready_i  (m_axi_awready && order_in_ready),
      .grant_o  (aw_grant),
      .index_o  (aw_index)
  );

  assign m_axi_awvalid = aw_valid && order_in_ready;
  assign s_axi_awready = m_axi_awready && order_in_ready ? aw_grant : '0;
  assign m_axi_awaddr  = s_axi_awaddr[aw_index*64+:64];
  assign m_axi_awid    = {PORT_BITS'(aw_index), s_axi_awid[aw_index*ID_BITS+:ID_BITS]};
  assign m_axi_awlen   = s_axi_awlen[aw_index*8+:8];

  /* verilator lint_off PINCONNECTEMPTY */  // how many bursts wait is of no interest
  penstock_fifo #(
      .WIDTH(INDEX_BITS),
      .DEPTH(BURSTS)
  ) i_order (
      .clk_i,
      .rst_ni,
      .in_valid_i (m_axi_awvalid && m_axi_awready),
      .in_ready_o (order_in_ready),
      .in_data_i  (aw_index),
      .out_valid_o(order_valid),
      .out_ready_i(m_axi_wvalid && m_axi_wready && m_axi_wlast),
      .out_data_o (order_index),
      .count_o    ()
  );
  /* verilator lint_on PINCONNECTEMPTY */

  assign m_axi_wvalid = order_valid && s_axi_wvalid[order_index];
  assign m_axi_wdata  = s_axi_wdata[order_index*512+:512];
  assign m_axi_wstrb  = s_axi_wstrb[order_index*64+:64];
  assign m_axi_wlast  = s_axi_wlast[order_index];

  // ---- back to the ports ----

  logic [PORT_BITS-1:0] r_port;
  logic [PORT_BITS-1:0] b_port;

  assign r_port = m_axi_rid[ID_BITS+:PORT_BITS];
  assign b_port = m_axi_bid[ID_BITS+:PORT_BITS];

  always_comb begin
    s_axi_wready = '0;
    s_axi_rvalid = '0;
    s_axi_bvalid = '0;
    m_axi_rready = 1'b0;
    m_axi_bready = 1'b0;
    for (int unsigned i = 0; i < N; i++) begin
      s_axi_wready[i] = order_valid && m_axi_wready && order_index == INDEX_BITS'(i);
      if (r_port == PORT_BITS'(i)) begin
        s_axi_rvalid[i] = m_axi_rvalid;
        m_axi_rready    = s_axi_rready[i];
      end
      if (b_port == PORT_BITS'(i)) begin
        s_axi_bvalid[i] = m_axi_bvalid;
        m_axi_bready    = s_axi_bready[i];
      end
    end
  end

  assign s_axi_rdata = {N{m_axi_rdata}};
  assign s_axi_rid   = {N{m_axi_rid[ID_BITS-1:0]}};
  assign s_axi_rresp = {N{m_axi_rresp}};
  assign s_axi_rlast = {N{m_axi_rlast}};
  assign s_axi_bid   = {N{m_axi_bid[ID_BITS-1:0]}};
  assign s_axi_bresp = {N{m_axi_bresp}};

endmodule

`default_nettype wire
