// Watches one AXI4 port (512-bit data, INCR bursts of 64-byte beats) and fails an assertion where
// master or memory breaks a rule. It drives nothing. For Verilator.
//
//   axi.stable.<channel>  what is valid and not taken stays, with all that goes with it
//   axi.reset             no valid from the master in the first cycle after reset
//   axi.address           addresses are multiples of 64
//   axi.length            at most MAX_BEATS beats
//   axi.page              no burst crosses a boundary of 4 KiB
//   axi.early_data        W comes in a cycle after its address was taken, never before
//   axi.wlast             the last beat of a write, and only it, has wlast
//   axi.b                 a response belongs to a write of its ID whose data is complete
//   axi.r                 data belongs to a read of its ID that was taken in an earlier cycle
//   axi.rlast             the last beat of a read, and only it, has rlast
//   axi.resp              the response is no EXOKAY
//   axi.outstanding       at most DEPTH bursts of one ID and direction are under way
//
// The macros at the end connect a port by its prefix:
//   bind penstock_x penstock_axi_check #(.ID_BITS(4)) i_axi_check (
//       .clk_i, .rst_ni, .off_i(1'b0), `PENSTOCK_AXI_CHECK_PORT(m_axi));
`default_nettype none

module penstock_axi_check #(
    parameter int unsigned ID_BITS = 4,
    parameter int unsigned MAX_BEATS = 64,
    // Bursts of one ID, in each direction.
    parameter int unsigned DEPTH = 64,
    // 0: axi.stable.b and .r are not checked. For ports inside the card, from which a soft reset
    // takes responses away.
    parameter bit RESPONSES_STAY = 1'b1
) (
    input wire logic               clk_i,
    input wire logic               rst_ni,
    // High: nothing is checked, and what is under way is forgotten.
    input wire logic               off_i,
    input wire logic               axi_awvalid,
    input wire logic               axi_awready,
    input wire logic [63:0]        axi_awaddr,
    input wire logic [ID_BITS-1:0] axi_awid,
    input wire logic [7:0]         axi_awlen,
    input wire logic               axi_wvalid,
    input wire logic               axi_wready,
    input wire logic [511:0]       axi_wdata,
    input wire logic [63:0]        axi_wstrb,
    input wire logic               axi_wlast,
    input wire logic               axi_bvalid,
    input wire logic               axi_bready,
    input wire logic [ID_BITS-1:0] axi_bid,
    input wire logic [1:0]         axi_bresp,
    input wire logic               axi_arvalid,
    input wire logic               axi_arready,
    input wire logic [63:0]        axi_araddr,
    input wire logic [ID_BITS-1:0] axi_arid,
    input wire logic [7:0]         axi_arlen,
    input wire logic               axi_rvalid,
    input wire logic               axi_rready,
    input wire logic [511:0]       axi_rdata,
    input wire logic [ID_BITS-1:0] axi_rid,
    input wire logic [1:0]         axi_rresp,
    input wire logic               axi_rlast
);

  localparam int unsigned IDS = 1 << ID_BITS;
  localparam int unsigned PLACE_BITS = DEPTH > 1 ? $clog2(DEPTH) : 1;
  localparam int unsigned COUNT_BITS = $clog2(DEPTH + 1);

  logic off;
  assign off = !rst_ni || off_i;

  // ---- stability ----

  logic live_q;  // the last cycle was watched, too
  logic reset_q;

  always_ff @(posedge clk_i) begin
    live_q  <= !off;
    reset_q <= !rst_ni;
  end

  logic               aw_held_q;
  logic [63:0]        awaddr_q;
  logic [ID_BITS-1:0] awid_q;
  logic [7:0]         awlen_q;
  logic               w_held_q;
  logic [511:0]       wdata_q;
  logic [63:0]        wstrb_q;
  logic               wlast_q;
  logic               b_held_q;
  logic [ID_BITS-1:0] bid_q;
  logic [1:0]         bresp_q;
  logic               ar_held_q;
  logic [63:0]        araddr_q;
  logic [ID_BITS-1:0] arid_q;
  logic [7:0]         arlen_q;
  logic               r_held_q;
  logic [511:0]       rdata_q;
  logic [ID_BITS-1:0] rid_q;
  logic [1:0]         rresp_q;
  logic               rlast_q;

  always_ff @(posedge clk_i) begin
    aw_held_q <= axi_awvalid && !axi_awready;
    ar_held_q <= axi_arvalid && !axi_arready;
    w_held_q  <= axi_wvalid && !axi_wready;
    b_held_q  <= axi_bvalid && !axi_bready;
    r_held_q  <= axi_rvalid && !axi_rready;
    if (axi_awvalid) begin
      awaddr_q <= axi_awaddr;
      awid_q   <= axi_awid;
      awlen_q  <= axi_awlen;
    end
    if (axi_arvalid) begin
      araddr_q <= axi_araddr;
      arid_q   <= axi_arid;
      arlen_q  <= axi_arlen;
    end
    if (axi_wvalid && !axi_wready) begin
      wdata_q <= axi_wdata;
      wstrb_q <= axi_wstrb;
      wlast_q <= axi_wlast;
    end
    if (axi_bvalid) begin
      bid_q   <= axi_bid;
      bresp_q <= axi_bresp;
    end
    if (axi_rvalid && !axi_rready) begin
      rdata_q <= axi_rdata;
      rid_q   <= axi_rid;
      rresp_q <= axi_rresp;
      rlast_q <= axi_rlast;
    end
  end

  a_stable_aw: assert property (@(posedge clk_i) disable iff (off) live_q && aw_held_q |->
      axi_awvalid && axi_awaddr == awaddr_q && axi_awid == awid_q && axi_awlen == awlen_q)
  else $error("axi.stable.aw: what is valid and not taken has to stay");
  a_stable_ar: assert property (@(posedge clk_i) disable iff (off) live_q && ar_held_q |->
      axi_arvalid && axi_araddr == araddr_q && axi_arid == arid_q && axi_arlen == arlen_q)
  else $error("axi.stable.ar: what is valid and not taken has to stay");
  a_stable_w: assert property (@(posedge clk_i) disable iff (off) live_q && w_held_q |->
      axi_wvalid && axi_wdata == wdata_q && axi_wstrb == wstrb_q && axi_wlast == wlast_q)
  else $error("axi.stable.w: what is valid and not taken has to stay");
  a_stable_b: assert property (@(posedge clk_i) disable iff (off)
      RESPONSES_STAY && live_q && b_held_q |->
      axi_bvalid && axi_bid == bid_q && axi_bresp == bresp_q)
  else $error("axi.stable.b: what is valid and not taken has to stay");
  a_stable_r: assert property (@(posedge clk_i) disable iff (off)
      RESPONSES_STAY && live_q && r_held_q |->
      axi_rvalid && axi_rdata == rdata_q && axi_rid == rid_q && axi_rresp == rresp_q &&
      axi_rlast == rlast_q)
  else $error("axi.stable.r: what is valid and not taken has to stay");
  a_reset: assert property (@(posedge clk_i) disable iff (off) reset_q |->
      !axi_awvalid && !axi_wvalid && !axi_arvalid)
  else $error("axi.reset: nothing is valid in the first cycle after reset");

  // ---- bursts ----

  a_aw_address: assert property (@(posedge clk_i) disable iff (off)
      axi_awvalid |-> axi_awaddr[5:0] == '0)
  else $error("axi.address: a write at 0x%x", axi_awaddr);
  a_ar_address: assert property (@(posedge clk_i) disable iff (off)
      axi_arvalid |-> axi_araddr[5:0] == '0)
  else $error("axi.address: a read at 0x%x", axi_araddr);
  a_aw_length: assert property (@(posedge clk_i) disable iff (off)
      axi_awvalid |-> 32'(axi_awlen) < MAX_BEATS)
  else $error("axi.length: a write of %0d beats", 32'(axi_awlen) + 1);
  a_ar_length: assert property (@(posedge clk_i) disable iff (off)
      axi_arvalid |-> 32'(axi_arlen) < MAX_BEATS)
  else $error("axi.length: a read of %0d beats", 32'(axi_arlen) + 1);
  a_aw_page: assert property (@(posedge clk_i) disable iff (off)
      axi_awvalid |-> {3'd0, axi_awaddr[11:6]} + {1'b0, axi_awlen} <= 9'd63)
  else $error("axi.page: a write at 0x%x of %0d beats", axi_awaddr, 32'(axi_awlen) + 1);
  a_ar_page: assert property (@(posedge clk_i) disable iff (off)
      axi_arvalid |-> {3'd0, axi_araddr[11:6]} + {1'b0, axi_arlen} <= 9'd63)
  else $error("axi.page: a read at 0x%x of %0d beats", axi_araddr, 32'(axi_arlen) + 1);

  // ---- writes: data in the order of the addresses, then one response for each ----

  localparam int unsigned WRITE_BITS = $clog2(IDS * DEPTH);
  localparam int unsigned WRITES = 1 << WRITE_BITS;  // where head and tail wrap

  logic [7:0]            w_len_q[0:WRITES-1];  // of the writes whose data is not complete
  logic [ID_BITS-1:0]    w_id_q[0:WRITES-1];
  logic [WRITE_BITS-1:0] w_head_q;
  logic [WRITE_BITS-1:0] w_tail_q;
  logic [WRITE_BITS:0]   w_count_q;
  logic [7:0]            w_beat_q;
  logic [COUNT_BITS-1:0] b_due_q[0:IDS-1];   // responses that may come
  logic [COUNT_BITS-1:0] aw_out_q[0:IDS-1];  // writes without their response

  logic aw_taken;
  logic w_taken;
  logic w_last;
  logic b_taken;

  // Of the signals in question: elements of arrays have to be named outside of properties.
  logic [7:0]            w_len;
  logic [ID_BITS-1:0]    w_id;
  logic [COUNT_BITS-1:0] b_due;
  logic [COUNT_BITS-1:0] aw_out;

  assign aw_taken = axi_awvalid && axi_awready;
  assign w_taken  = axi_wvalid && axi_wready;
  assign w_len    = w_len_q[w_head_q];
  assign w_id     = w_id_q[w_head_q];
  assign w_last   = w_beat_q == w_len;
  assign b_taken  = axi_bvalid && axi_bready;
  assign b_due    = b_due_q[axi_bid];
  assign aw_out   = aw_out_q[axi_awid];

  always_ff @(posedge clk_i) begin
    if (off) begin
      w_head_q  <= '0;
      w_tail_q  <= '0;
      w_count_q <= '0;
      w_beat_q  <= '0;
      for (int unsigned i = 0; i < IDS; i++) begin
        b_due_q[i]  <= '0;
        aw_out_q[i] <= '0;
      end
    end else begin
      if (aw_taken) begin
        w_len_q[w_tail_q] <= axi_awlen;
        w_id_q[w_tail_q]  <= axi_awid;
        w_tail_q          <= w_tail_q + 1'b1;
      end
      if (w_taken) begin
        w_beat_q  <= w_last ? '0 : w_beat_q + 1'b1;
        if (w_last) w_head_q <= w_head_q + 1'b1;
      end
      w_count_q <= w_count_q + (WRITE_BITS + 1)'(aw_taken) - (WRITE_BITS + 1)'(w_taken && w_last);
      if (w_taken && w_last && !(b_taken && axi_bid == w_id)) b_due_q[w_id] <= b_due_q[w_id] + 1'b1;
      if (b_taken && !(w_taken && w_last && axi_bid == w_id)) b_due_q[axi_bid] <= b_due - 1'b1;
      if (aw_taken && !(b_taken && axi_bid == axi_awid)) aw_out_q[axi_awid] <= aw_out + 1'b1;
      if (b_taken && !(aw_taken && axi_bid == axi_awid)) begin
        aw_out_q[axi_bid] <= aw_out_q[axi_bid] - 1'b1;
      end
    end
  end

  a_early_data: assert property (@(posedge clk_i) disable iff (off)
      axi_wvalid |-> w_count_q != '0)
  else $error("axi.early_data: a beat before its address was taken");
  a_wlast: assert property (@(posedge clk_i) disable iff (off)
      axi_wvalid && w_count_q != '0 |-> axi_wlast == w_last)
  else $error("axi.wlast: beat %0d of %0d", 32'(w_beat_q) + 1, 32'(w_len) + 1);
  a_b: assert property (@(posedge clk_i) disable iff (off)
      axi_bvalid |-> b_due != '0)
  else $error("axi.b: a response of ID %0d that no write waits for", axi_bid);
  a_bresp: assert property (@(posedge clk_i) disable iff (off) axi_bvalid |-> axi_bresp != 2'd1)
  else $error("axi.resp: EXOKAY of a write");
  a_aw_outstanding: assert property (@(posedge clk_i) disable iff (off)
      aw_taken |-> aw_out < COUNT_BITS'(DEPTH))
  else $error("axi.outstanding: too many writes of ID %0d", axi_awid);

  // ---- reads: in order for each ID ----

  logic [7:0]            r_len_q[0:IDS*DEPTH-1];
  logic [PLACE_BITS-1:0] r_head_q[0:IDS-1];
  logic [PLACE_BITS-1:0] r_tail_q[0:IDS-1];
  logic [COUNT_BITS-1:0] r_count_q[0:IDS-1];
  logic [7:0]            r_beat_q[0:IDS-1];

  logic       ar_taken;
  logic       r_taken;
  logic       r_last;

  // Of the signals in question.
  logic [7:0]            r_len;
  logic [7:0]            r_beat;
  logic [COUNT_BITS-1:0] r_count;
  logic [COUNT_BITS-1:0] ar_out;

  function automatic logic [PLACE_BITS-1:0] next_place(input logic [PLACE_BITS-1:0] place);
    next_place = place == PLACE_BITS'(DEPTH - 1) ? '0 : place + 1'b1;
  endfunction

  assign ar_taken = axi_arvalid && axi_arready;
  assign r_taken  = axi_rvalid && axi_rready;
  assign r_len    = r_len_q[32'(axi_rid) * DEPTH + 32'(r_head_q[axi_rid])];
  assign r_beat   = r_beat_q[axi_rid];
  assign r_last   = r_beat == r_len;
  assign r_count  = r_count_q[axi_rid];
  assign ar_out   = r_count_q[axi_arid];

  always_ff @(posedge clk_i) begin
    if (off) begin
      for (int unsigned i = 0; i < IDS; i++) begin
        r_head_q[i]  <= '0;
        r_tail_q[i]  <= '0;
        r_count_q[i] <= '0;
        r_beat_q[i]  <= '0;
      end
    end else begin
      if (ar_taken) begin
        r_len_q[32'(axi_arid) * DEPTH + 32'(r_tail_q[axi_arid])] <= axi_arlen;
        r_tail_q[axi_arid] <= next_place(r_tail_q[axi_arid]);
        if (!(r_taken && r_last && axi_rid == axi_arid)) begin
          r_count_q[axi_arid] <= ar_out + 1'b1;
        end
      end
      if (r_taken) begin
        r_beat_q[axi_rid] <= r_last ? '0 : r_beat + 1'b1;
        if (r_last) begin
          r_head_q[axi_rid] <= next_place(r_head_q[axi_rid]);
          if (!(ar_taken && axi_rid == axi_arid)) r_count_q[axi_rid] <= r_count - 1'b1;
        end
      end
    end
  end

  a_r: assert property (@(posedge clk_i) disable iff (off)
      axi_rvalid |-> r_count != '0)
  else $error("axi.r: data of ID %0d that no read waits for", axi_rid);
  a_rlast: assert property (@(posedge clk_i) disable iff (off)
      axi_rvalid && r_count != '0 |-> axi_rlast == r_last)
  else $error("axi.rlast: beat %0d of %0d", 32'(r_beat) + 1, 32'(r_len) + 1);
  a_rresp: assert property (@(posedge clk_i) disable iff (off) axi_rvalid |-> axi_rresp != 2'd1)
  else $error("axi.resp: EXOKAY of a read");
  a_ar_outstanding: assert property (@(posedge clk_i) disable iff (off)
      ar_taken |-> ar_out < COUNT_BITS'(DEPTH))
  else $error("axi.outstanding: too many reads of ID %0d", axi_arid);

  // ---- what a test should have seen ----

  c_aw_stall: cover property (@(posedge clk_i) !off && axi_awvalid && !axi_awready);
  c_w_stall: cover property (@(posedge clk_i) !off && axi_wvalid && !axi_wready);
  c_ar_stall: cover property (@(posedge clk_i) !off && axi_arvalid && !axi_arready);
  c_r_beat: cover property (@(posedge clk_i) !off && r_taken && !axi_rlast);
  c_b: cover property (@(posedge clk_i) !off && b_taken);

endmodule

`define PENSTOCK_AXI_CHECK_WRITE(prefix) \
  .axi_awvalid(prefix``_awvalid), .axi_awready(prefix``_awready), .axi_awaddr(prefix``_awaddr), \
  .axi_awid(prefix``_awid), .axi_awlen(prefix``_awlen), .axi_wvalid(prefix``_wvalid), \
  .axi_wready(prefix``_wready), .axi_wdata(prefix``_wdata), .axi_wstrb(prefix``_wstrb), \
  .axi_wlast(prefix``_wlast), .axi_bvalid(prefix``_bvalid), .axi_bready(prefix``_bready), \
  .axi_bid(prefix``_bid), .axi_bresp(prefix``_bresp)
`define PENSTOCK_AXI_CHECK_READ(prefix) \
  .axi_arvalid(prefix``_arvalid), .axi_arready(prefix``_arready), .axi_araddr(prefix``_araddr), \
  .axi_arid(prefix``_arid), .axi_arlen(prefix``_arlen), .axi_rvalid(prefix``_rvalid), \
  .axi_rready(prefix``_rready), .axi_rdata(prefix``_rdata), .axi_rid(prefix``_rid), \
  .axi_rresp(prefix``_rresp), .axi_rlast(prefix``_rlast)
`define PENSTOCK_AXI_CHECK_NO_WRITE \
  .axi_awvalid(1'b0), .axi_awready(1'b0), .axi_awaddr('0), .axi_awid('0), .axi_awlen('0), \
  .axi_wvalid(1'b0), .axi_wready(1'b0), .axi_wdata('0), .axi_wstrb('0), .axi_wlast(1'b0), \
  .axi_bvalid(1'b0), .axi_bready(1'b0), .axi_bid('0), .axi_bresp('0)
`define PENSTOCK_AXI_CHECK_NO_READ \
  .axi_arvalid(1'b0), .axi_arready(1'b0), .axi_araddr('0), .axi_arid('0), .axi_arlen('0), \
  .axi_rvalid(1'b0), .axi_rready(1'b0), .axi_rdata('0), .axi_rid('0), .axi_rresp('0), \
  .axi_rlast(1'b0)
`define PENSTOCK_AXI_CHECK_PORT(prefix) \
  `PENSTOCK_AXI_CHECK_WRITE(prefix), `PENSTOCK_AXI_CHECK_READ(prefix)
`define PENSTOCK_AXI_CHECK_READ_PORT(prefix) \
  `PENSTOCK_AXI_CHECK_NO_WRITE, `PENSTOCK_AXI_CHECK_READ(prefix)
`define PENSTOCK_AXI_CHECK_WRITE_PORT(prefix) \
  `PENSTOCK_AXI_CHECK_WRITE(prefix), `PENSTOCK_AXI_CHECK_NO_READ

`default_nettype wire
