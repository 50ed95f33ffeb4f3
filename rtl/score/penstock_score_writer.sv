// Writes of the scoring engine: bytes of one line each, in order, each a burst of one beat. What
// was taken is written even when an earlier write failed. After a bus error error_o stays, with the
// line and the tag of the first write that failed, until clear_i.
`default_nettype none

module penstock_score_writer #(
    parameter int unsigned DEPTH = 32,  // writes that wait, a power of two
    parameter int unsigned DATA = 512  // bits of a line; smaller only in proofs
) (
    input wire logic clk_i,
    input wire logic rst_ni,
    input wire logic put_valid_i,
    output logic put_ready_o,
    input wire logic [57:0] put_line_i,
    input wire logic [DATA/8-1:0] put_strobe_i,
    input wire logic [DATA-1:0] put_data_i,
    input wire logic put_tag_i,  // comes back with an error
    output logic idle_o,  // everything that was taken is acknowledged
    input wire logic clear_i,
    output logic error_o,
    output logic error_tag_o,
    output logic [63:0] error_address_o,

    output logic m_axi_awvalid,
    input wire logic m_axi_awready,
    output logic [63:0] m_axi_awaddr,
    output logic [3:0] m_axi_awid,
    output logic [7:0] m_axi_awlen,
    output logic m_axi_wvalid,
    input wire logic m_axi_wready,
    output logic [DATA-1:0] m_axi_wdata,
    output logic [DATA/8-1:0] m_axi_wstrb,
    output logic m_axi_wlast,
    input wire logic m_axi_bvalid,
    output logic m_axi_bready,
    input wire logic [3:0] m_axi_bid,
    input wire logic [1:0] m_axi_bresp
);
  localparam int unsigned INDEX = $clog2(DEPTH);
  localparam int unsigned ENTRY = 1 + 58 + DATA / 8 + DATA;

  // An entry stays in the ring until its response came: the pointers follow one another.
  logic [ENTRY-1:0] ring[0:DEPTH-1];
  logic [INDEX:0] put_q, send_q, done_q;
  logic full, offers_q, sends_q, sent, put, done;
  /* verilator lint_off UNUSEDSIGNAL */
  logic unused;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [57:0] line_q;
  logic [DATA/8-1:0] strobe_q;
  logic [DATA-1:0] data_q;
  logic [58:0] names[0:DEPTH-1];  // tag and line, for errors
  logic [ENTRY-1:0] next;
  assign full = put_q == {~done_q[INDEX], done_q[INDEX-1:0]};
  assign put_ready_o = !full;
  assign put = put_valid_i && !full;
  assign sent = m_axi_wvalid && m_axi_wready;
  assign done = m_axi_bvalid && m_axi_bready;
  assign next = ring[send_q[INDEX-1:0]];
  assign unused = ^{m_axi_bid, m_axi_bresp[0], next[ENTRY-1]};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      put_q <= '0;
      send_q <= '0;
      done_q <= '0;
      offers_q <= 1'b0;
      sends_q <= 1'b0;
      error_o <= 1'b0;
    end else begin
      if (put) put_q <= put_q + (INDEX + 1)'(1);
      if (done) done_q <= done_q + (INDEX + 1)'(1);
      if (offers_q && m_axi_awready) begin
        offers_q <= 1'b0;
        sends_q <= 1'b1;
      end
      if (sent) sends_q <= 1'b0;
      if (send_q != put_q && !offers_q && (!sends_q || sent)) begin
        offers_q <= 1'b1;
        send_q <= send_q + (INDEX + 1)'(1);
      end
      if (clear_i) error_o <= 1'b0;
      else if (done && m_axi_bresp[1]) error_o <= 1'b1;
    end
    if (put) begin
      ring[put_q[INDEX-1:0]] <= {put_tag_i, put_line_i, put_strobe_i, put_data_i};
      names[put_q[INDEX-1:0]] <= {put_tag_i, put_line_i};
    end
    if (send_q != put_q && !offers_q && (!sends_q || sent)) begin
      {line_q, strobe_q, data_q} <= next[ENTRY-2:0];
    end
    if (done && m_axi_bresp[1] && !error_o) begin
      error_tag_o <= names[done_q[INDEX-1:0]][58];
      error_address_o <= {names[done_q[INDEX-1:0]][57:0], 6'b0};
    end
  end
  assign idle_o = put_q == done_q;
  assign m_axi_awvalid = offers_q;
  assign m_axi_awaddr = {line_q, 6'b0};
  assign m_axi_awid = '0;
  assign m_axi_awlen = '0;
  assign m_axi_wvalid = sends_q;
  assign m_axi_wdata = data_q;
  assign m_axi_wstrb = strobe_q;
  assign m_axi_wlast = 1'b1;
  assign m_axi_bready = 1'b1;

`ifdef FORMAL
  // Every write that is taken gets an address, then its data, then one response. Memory answers
  // what it got and no more.
  logic f_reset_q = 1'b0;
  logic [INDEX:0] f_waiting_q;  // data taken, no response yet
  logic [INDEX:0] f_under_way, f_sent;
  assign f_under_way = put_q - done_q;
  assign f_sent = send_q - done_q;
  always_ff @(posedge clk_i) begin
    f_reset_q <= 1'b1;
    if (!f_reset_q) assume (!rst_ni);
    assume (!m_axi_bvalid || f_waiting_q != '0);
    if (!rst_ni) f_waiting_q <= '0;
    else f_waiting_q <= f_waiting_q + (INDEX + 1)'(sent) - (INDEX + 1)'(done);
    if (f_reset_q && rst_ni) begin
      assert (f_under_way <= (INDEX + 1)'(DEPTH));
      assert (f_sent <= f_under_way && f_waiting_q <= f_sent);
      assert (f_sent == f_waiting_q + (INDEX + 1)'(offers_q) + (INDEX + 1)'(sends_q));
      assert (!(offers_q && sends_q));
      assert (idle_o == (f_waiting_q == '0 && !offers_q && !sends_q && send_q == put_q));
      if ($past(rst_ni)) begin
        if ($past(m_axi_awvalid) && !$past(m_axi_awready))
          assert (m_axi_awvalid && $stable(m_axi_awaddr));
        if ($past(m_axi_wvalid) && !$past(m_axi_wready))
          assert (m_axi_wvalid && $stable(m_axi_wstrb) && $stable(m_axi_wdata));
        if (m_axi_wvalid && !$past(m_axi_wvalid))
          assert ($past(m_axi_awvalid) && $past(m_axi_awready));
      end
      cover (full);
      cover (done && idle_o == 1'b0 && f_under_way == (INDEX + 1)'(1));
      cover (error_o && sent && done);
    end
  end
`endif
endmodule

`default_nettype wire
