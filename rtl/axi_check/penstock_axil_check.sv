// Watches one AXI4-Lite port (32-bit data) as penstock_axi_check does an AXI4 port. It drives
// nothing. For Verilator.
//
//   axil.stable.<channel>  what is valid and not taken stays, with all that goes with it
//   axil.b                 a response comes after both its address and its data were taken
//   axil.r                 data comes after its address was taken
//   axil.resp              the response is no EXOKAY
//
// The macro at the end connects a port by its prefix.
`default_nettype none

module penstock_axil_check #(
    parameter int unsigned ADDRESS_BITS = 16
) (
    input wire logic                    clk_i,
    input wire logic                    rst_ni,
    input wire logic                    axil_awvalid,
    input wire logic                    axil_awready,
    input wire logic [ADDRESS_BITS-1:0] axil_awaddr,
    input wire logic                    axil_wvalid,
    input wire logic                    axil_wready,
    input wire logic [31:0]             axil_wdata,
    input wire logic [3:0]              axil_wstrb,
    input wire logic                    axil_bvalid,
    input wire logic                    axil_bready,
    input wire logic [1:0]              axil_bresp,
    input wire logic                    axil_arvalid,
    input wire logic                    axil_arready,
    input wire logic [ADDRESS_BITS-1:0] axil_araddr,
    input wire logic                    axil_rvalid,
    input wire logic                    axil_rready,
    input wire logic [31:0]             axil_rdata,
    input wire logic [1:0]              axil_rresp
);

  // Accesses under way; more than one is legal.
  logic [15:0] addresses_q;  // write addresses without their response
  logic [15:0] words_q;      // write data without its response
  logic [15:0] reads_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      addresses_q <= '0;
      words_q     <= '0;
      reads_q     <= '0;
    end else begin
      addresses_q <= addresses_q + 16'(axil_awvalid && axil_awready) -
                     16'(axil_bvalid && axil_bready);
      words_q     <= words_q + 16'(axil_wvalid && axil_wready) - 16'(axil_bvalid && axil_bready);
      reads_q     <= reads_q + 16'(axil_arvalid && axil_arready) -
                     16'(axil_rvalid && axil_rready);
    end
  end

  a_stable_aw: assert property (@(posedge clk_i) disable iff (!rst_ni)
      rst_ni && axil_awvalid && !axil_awready |=> axil_awvalid && $stable(axil_awaddr))
  else $error("axil.stable.aw: what is valid and not taken has to stay");
  a_stable_w: assert property (@(posedge clk_i) disable iff (!rst_ni)
      rst_ni && axil_wvalid && !axil_wready |=>
      axil_wvalid && $stable(axil_wdata) && $stable(axil_wstrb))
  else $error("axil.stable.w: what is valid and not taken has to stay");
  a_stable_b: assert property (@(posedge clk_i) disable iff (!rst_ni)
      rst_ni && axil_bvalid && !axil_bready |=> axil_bvalid && $stable(axil_bresp))
  else $error("axil.stable.b: what is valid and not taken has to stay");
  a_stable_ar: assert property (@(posedge clk_i) disable iff (!rst_ni)
      rst_ni && axil_arvalid && !axil_arready |=> axil_arvalid && $stable(axil_araddr))
  else $error("axil.stable.ar: what is valid and not taken has to stay");
  a_stable_r: assert property (@(posedge clk_i) disable iff (!rst_ni)
      rst_ni && axil_rvalid && !axil_rready |=>
      axil_rvalid && $stable(axil_rdata) && $stable(axil_rresp))
  else $error("axil.stable.r: what is valid and not taken has to stay");

  a_b: assert property (@(posedge clk_i) disable iff (!rst_ni)
      axil_bvalid |-> addresses_q != '0 && words_q != '0)
  else $error("axil.b: a response that no write waits for");
  a_r: assert property (@(posedge clk_i) disable iff (!rst_ni) axil_rvalid |-> reads_q != '0)
  else $error("axil.r: data that no read waits for");
  a_bresp: assert property (@(posedge clk_i) disable iff (!rst_ni)
      axil_bvalid |-> axil_bresp != 2'd1)
  else $error("axil.resp: EXOKAY of a write");
  a_rresp: assert property (@(posedge clk_i) disable iff (!rst_ni)
      axil_rvalid |-> axil_rresp != 2'd1)
  else $error("axil.resp: EXOKAY of a read");

  c_refused_write: cover property (@(posedge clk_i) rst_ni && axil_bvalid && axil_bresp == 2'd2);
  c_refused_read: cover property (@(posedge clk_i) rst_ni && axil_rvalid && axil_rresp == 2'd2);
  c_b_stall: cover property (@(posedge clk_i) rst_ni && axil_bvalid && !axil_bready);
  c_r_stall: cover property (@(posedge clk_i) rst_ni && axil_rvalid && !axil_rready);

endmodule

`define PENSTOCK_AXIL_CHECK_PORT(prefix) \
  .axil_awvalid(prefix``_awvalid), .axil_awready(prefix``_awready), \
  .axil_awaddr(prefix``_awaddr), .axil_wvalid(prefix``_wvalid), .axil_wready(prefix``_wready), \
  .axil_wdata(prefix``_wdata), .axil_wstrb(prefix``_wstrb), .axil_bvalid(prefix``_bvalid), \
  .axil_bready(prefix``_bready), .axil_bresp(prefix``_bresp), .axil_arvalid(prefix``_arvalid), \
  .axil_arready(prefix``_arready), .axil_araddr(prefix``_araddr), \
  .axil_rvalid(prefix``_rvalid), .axil_rready(prefix``_rready), .axil_rdata(prefix``_rdata), \
  .axil_rresp(prefix``_rresp)

`default_nettype wire
