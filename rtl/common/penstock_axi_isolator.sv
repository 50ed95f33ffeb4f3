// Takes the card off its bus in mid-traffic, and leaves the bus clean.
//
// While isolate_i is low every channel passes in the same cycle. From the cycle in which it rises
// nothing new is asked for; what already stands on the bus stays until it is accepted, as AXI wants
// it. W beats that are owed to accepted write addresses are given with all strobes low, so that
// they change nothing. R and B are swallowed. When nothing is owed and nothing comes back any more,
// clean_o rises; then the inside may be reset. isolate_i stays high until that reset is over.
//
// The inside sees its valid signals unanswered meanwhile, and keeps them. The isolator is not reset
// with the inside.
`default_nettype none

module penstock_axi_isolator #(
    parameter int unsigned ID_BITS = 6,
    // Write bursts whose address was accepted and whose data is not yet out.
    parameter int unsigned BURSTS = 8,
    // Bursts that were asked for and have not ended, reads and writes each: more are held back.
    parameter int unsigned OUTSTANDING = 255
) (
    input  wire logic               clk_i,
    input  wire logic               rst_ni,
    input  wire logic               isolate_i,
    output      logic               clean_o,

    // The inside.
    input  wire logic               s_axi_awvalid,
    output      logic               s_axi_awready,
    input  wire logic [63:0]        s_axi_awaddr,
    input  wire logic [ID_BITS-1:0] s_axi_awid,
    input  wire logic [7:0]         s_axi_awlen,
    input  wire logic               s_axi_wvalid,
    output      logic               s_axi_wready,
    input  wire logic [511:0]       s_axi_wdata,
    input  wire logic [63:0]        s_axi_wstrb,
    input  wire logic               s_axi_wlast,
    output      logic               s_axi_bvalid,
    input  wire logic               s_axi_bready,
    output      logic [ID_BITS-1:0] s_axi_bid,
    output      logic [1:0]         s_axi_bresp,
    input  wire logic               s_axi_arvalid,
    output      logic               s_axi_arready,
    input  wire logic [63:0]        s_axi_araddr,
    input  wire logic [ID_BITS-1:0] s_axi_arid,
    input  wire logic [7:0]         s_axi_arlen,
    output      logic               s_axi_rvalid,
    input  wire logic               s_axi_rready,
    output      logic [511:0]       s_axi_rdata,
    output      logic [ID_BITS-1:0] s_axi_rid,
    output      logic [1:0]         s_axi_rresp,
    output      logic               s_axi_rlast,

    // The bus.
    output      logic               m_axi_awvalid,
    input  wire logic               m_axi_awready,
    output      logic [63:0]        m_axi_awaddr,
    output      logic [ID_BITS-1:0] m_axi_awid,
    output      logic [7:0]         m_axi_awlen,
    output      logic               m_axi_wvalid,
    input  wire logic               m_axi_wready,
    output      logic [511:0]       m_axi_wdata,
    output      logic [63:0]        m_axi_wstrb,
    output      logic               m_axi_wlast,
    input  wire logic               m_axi_bvalid,
    output      logic               m_axi_bready,
    input  wire logic [ID_BITS-1:0] m_axi_bid,
    input  wire logic [1:0]         m_axi_bresp,
    output      logic               m_axi_arvalid,
    input  wire logic               m_axi_arready,
    output      logic [63:0]        m_axi_araddr,
    output      logic [ID_BITS-1:0] m_axi_arid,
    output      logic [7:0]         m_axi_arlen,
    input  wire logic               m_axi_rvalid,
    output      logic               m_axi_rready,
    input  wire logic [511:0]       m_axi_rdata,
    input  wire logic [ID_BITS-1:0] m_axi_rid,
    input  wire logic [1:0]         m_axi_rresp,
    input  wire logic               m_axi_rlast
);

  localparam int unsigned COUNT_BITS = $clog2(OUTSTANDING + 1);

  // What stood on the bus in the last cycle and was not accepted.
  logic                  aw_held_q;
  logic                  w_held_q;
  logic                  ar_held_q;
  logic [COUNT_BITS-1:0] reads_q;   // read bursts without their last beat
  logic [COUNT_BITS-1:0] writes_q;  // write bursts without their response
  logic [7:0]            beat_q;    // of the burst whose data is next

  logic                  aw_open;
  logic                  w_open;
  logic                  ar_open;
  logic                  aw_taken;
  logic                  ar_taken;
  logic                  w_taken;
  logic                  owed;
  logic [7:0]            owed_len;
  logic                  owed_ready;
  logic                  owed_last;

  assign aw_open = aw_held_q || (!isolate_i && owed_ready && writes_q != COUNT_BITS'(OUTSTANDING));
  assign ar_open = ar_held_q || (!isolate_i && reads_q != COUNT_BITS'(OUTSTANDING));
  // The inside's beats pass; otherwise empty ones are given.
  assign w_open  = w_held_q || !isolate_i;

  assign m_axi_awvalid = s_axi_awvalid && aw_open;
  assign s_axi_awready = m_axi_awready && aw_open;
  assign m_axi_awaddr  = s_axi_awaddr;
  assign m_axi_awid    = s_axi_awid;
  assign m_axi_awlen   = s_axi_awlen;
  assign aw_taken      = m_axi_awvalid && m_axi_awready;

  assign m_axi_arvalid = s_axi_arvalid && ar_open;
  assign s_axi_arready = m_axi_arready && ar_open;
  assign m_axi_araddr  = s_axi_araddr;
  assign m_axi_arid    = s_axi_arid;
  assign m_axi_arlen   = s_axi_arlen;
  assign ar_taken      = m_axi_arvalid && m_axi_arready;

  /* verilator lint_off UNUSEDSIGNAL */  // only the proof counts
  logic [$clog2(BURSTS + 1)-1:0] owed_count;
  /* verilator lint_on UNUSEDSIGNAL */

  penstock_fifo #(
      .WIDTH(8),
      .DEPTH(BURSTS)
  ) i_owed (
      .clk_i,
      .rst_ni,
      .in_valid_i (aw_taken),
      .in_ready_o (owed_ready),
      .in_data_i  (s_axi_awlen),
      .out_valid_o(owed),
      .out_ready_i(w_taken && owed_last),
      .out_data_o (owed_len),
      .count_o    (owed_count)
  );

  assign owed_last    = beat_q == owed_len;
  assign m_axi_wvalid = owed && (w_open ? s_axi_wvalid : 1'b1);
  assign s_axi_wready = owed && w_open && m_axi_wready;
  assign m_axi_wdata  = w_open ? s_axi_wdata : '0;  // a beat that stands there must not change
  assign m_axi_wstrb  = w_open ? s_axi_wstrb : '0;
  assign m_axi_wlast  = w_open ? s_axi_wlast : owed_last;
  assign w_taken      = m_axi_wvalid && m_axi_wready;

  assign s_axi_bvalid = m_axi_bvalid && !isolate_i;
  assign m_axi_bready = s_axi_bready || isolate_i;
  assign s_axi_bid    = m_axi_bid;
  assign s_axi_bresp  = m_axi_bresp;

  assign s_axi_rvalid = m_axi_rvalid && !isolate_i;
  assign m_axi_rready = s_axi_rready || isolate_i;
  assign s_axi_rdata  = m_axi_rdata;
  assign s_axi_rid    = m_axi_rid;
  assign s_axi_rresp  = m_axi_rresp;
  assign s_axi_rlast  = m_axi_rlast;

  assign clean_o = isolate_i && !aw_held_q && !ar_held_q && !owed && reads_q == '0 &&
                   writes_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_held_q <= 1'b0;
      w_held_q  <= 1'b0;
      ar_held_q <= 1'b0;
      reads_q   <= '0;
      writes_q  <= '0;
      beat_q    <= '0;
    end else begin
      aw_held_q <= m_axi_awvalid && !m_axi_awready;
      ar_held_q <= m_axi_arvalid && !m_axi_arready;
      w_held_q  <= m_axi_wvalid && !m_axi_wready && w_open;
      if (w_taken) beat_q <= owed_last ? '0 : beat_q + 1'b1;
      reads_q  <= reads_q + COUNT_BITS'(ar_taken) -
                  COUNT_BITS'(m_axi_rvalid && m_axi_rready && m_axi_rlast);
      writes_q <= writes_q + COUNT_BITS'(aw_taken) - COUNT_BITS'(m_axi_bvalid && m_axi_bready);
    end
  end

`ifdef FORMAL
  // Masters and memory keep to AXI; the card isolates until the bus is clean.
  logic                  f_reset_q = 1'b0;
  logic [COUNT_BITS-1:0] f_reads_q;  // what memory still has to answer
  logic [COUNT_BITS-1:0] f_due_q;    // writes whose data is complete
  logic                  f_r_done;
  logic                  f_b_done;

  assign f_r_done = m_axi_rvalid && m_axi_rready && m_axi_rlast;
  assign f_b_done = m_axi_bvalid && m_axi_bready;

  always_ff @(posedge clk_i) begin
    f_reset_q <= 1'b1;
    if (!f_reset_q) assume (!rst_ni);
    if (!rst_ni) begin
      f_reads_q <= '0;
      f_due_q   <= '0;
    end else begin
      f_reads_q <= f_reads_q + COUNT_BITS'(ar_taken) - COUNT_BITS'(f_r_done);
      f_due_q   <= f_due_q + COUNT_BITS'(w_taken && m_axi_wlast) - COUNT_BITS'(f_b_done);
      assume (!m_axi_rvalid || f_reads_q != '0);
      assume (!m_axi_bvalid || f_due_q != '0);
      assume (!s_axi_wvalid || s_axi_wlast == owed_last);
      if ($past(rst_ni) && f_reset_q) begin
        if ($past(isolate_i) && !$past(clean_o)) assume (isolate_i);
        if ($past(s_axi_awvalid) && !$past(s_axi_awready)) begin
          assume (s_axi_awvalid && s_axi_awaddr == $past(s_axi_awaddr) &&
                  s_axi_awlen == $past(s_axi_awlen));
        end
        if ($past(s_axi_arvalid) && !$past(s_axi_arready)) begin
          assume (s_axi_arvalid && s_axi_araddr == $past(s_axi_araddr));
        end
        if ($past(s_axi_wvalid) && !$past(s_axi_wready)) begin
          assume (s_axi_wvalid && s_axi_wdata == $past(s_axi_wdata) &&
                  s_axi_wstrb == $past(s_axi_wstrb));
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (f_reset_q && rst_ni) begin
      assert (reads_q == f_reads_q && reads_q <= COUNT_BITS'(OUTSTANDING));
      assert ({2'd0, writes_q} == {2'd0, f_due_q} + (COUNT_BITS + 2)'(owed_count));
      assert (writes_q <= COUNT_BITS'(OUTSTANDING));
      // What is shown has room, and keeps it.
      if (aw_held_q) assert (owed_ready && writes_q != COUNT_BITS'(OUTSTANDING));
      if (ar_held_q) assert (reads_q != COUNT_BITS'(OUTSTANDING));
      assert (owed ? beat_q <= owed_len : beat_q == '0);
      // Each address gets exactly its beats.
      if (m_axi_wvalid) assert (owed && m_axi_wlast == owed_last);
      if (isolate_i) begin
        if (m_axi_awvalid) assert (aw_held_q);
        if (m_axi_arvalid) assert (ar_held_q);
        if (m_axi_wvalid && !w_held_q) assert (m_axi_wstrb == '0);
        assert (!s_axi_rvalid && !s_axi_bvalid && m_axi_rready && m_axi_bready);
      end
      if (clean_o) begin
        assert (f_reads_q == '0 && f_due_q == '0 && !owed);
        assert (!m_axi_awvalid && !m_axi_wvalid && !m_axi_arvalid);
      end
      if ($past(rst_ni)) begin
        assert (aw_held_q == ($past(m_axi_awvalid) && !$past(m_axi_awready)));
        assert (ar_held_q == ($past(m_axi_arvalid) && !$past(m_axi_arready)));
        if (aw_held_q) begin
          assert (m_axi_awvalid && m_axi_awaddr == $past(m_axi_awaddr) &&
                  m_axi_awlen == $past(m_axi_awlen));
        end
        if (ar_held_q) assert (m_axi_arvalid && m_axi_araddr == $past(m_axi_araddr));
        if ($past(m_axi_wvalid) && !$past(m_axi_wready)) begin
          assert (m_axi_wvalid && m_axi_wdata == $past(m_axi_wdata) &&
                  m_axi_wstrb == $past(m_axi_wstrb) && m_axi_wlast == $past(m_axi_wlast));
        end
      end
      cover (clean_o && $past(f_b_done) && $past(f_r_done));
      cover (isolate_i && w_taken && $past(isolate_i) && $past(w_held_q) && beat_q != '0);
      cover (!isolate_i && $past(clean_o));
    end
  end
`endif

endmodule

`default_nettype wire
