// What must hold in penstock_read_dma, and what its tests have to reach. For Verilator alone.
`default_nettype none

module penstock_read_dma_properties #(
    parameter int unsigned BUFFER_BEATS = 512
) (
    input wire logic        clk_i,
    input wire logic        rst_ni,
    input wire logic        segment_valid_i,
    input wire logic        segment_ready_o,
    input wire logic [63:0] segment_address_i,
    input wire logic [12:0] segment_bytes_i,
    input wire logic        m_axi_arvalid,
    input wire logic        m_axi_arready,
    input wire logic [63:0] m_axi_araddr,
    input wire logic [7:0]  m_axi_arlen,
    input wire logic        m_axi_rvalid,
    input wire logic        m_axi_rresp,
    input wire logic        m_axi_rlast,
    input wire logic        burst_valid,   // issue
    input wire logic        burst_first,
    input wire logic        burst_last,
    input wire logic        enough,
    input wire logic        record_ready,
    input wire logic        record_valid,
    input wire logic        segment_valid,  // align
    input wire logic [5:0]  shift,
    input wire logic [6:0]  in_beats,
    input wire logic [6:0]  out_beats,
    input wire logic        behind,
    input wire logic        go,
    input wire logic        pops,
    input wire logic        room,
    input wire logic [31:0] stored,
    input wire logic        shifted_push,
    input wire logic        queue_ready
);

  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   segment_valid_i |-> segment_bytes_i != 13'd0 && segment_bytes_i <= 13'd4096);
  assert property (@(posedge clk_i) disable iff (!rst_ni) segment_valid_i && !segment_ready_o |=>
                   segment_valid_i && $stable(segment_address_i) && $stable(segment_bytes_i));
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   m_axi_arvalid |-> 32'(m_axi_araddr[11:6]) + 32'(m_axi_arlen) <= 32'd63);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   m_axi_arvalid && !m_axi_arready |=> m_axi_arvalid && $stable(m_axi_araddr));
  // Memory gives what was asked for, and there is room for it.
  assert property (@(posedge clk_i) disable iff (!rst_ni) m_axi_rvalid |-> record_valid);
  assert property (@(posedge clk_i) disable iff (!rst_ni) m_axi_rvalid |-> stored < BUFFER_BEATS);
  assert property (@(posedge clk_i) disable iff (!rst_ni) shifted_push |-> queue_ready);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   segment_valid |-> in_beats == out_beats || in_beats == out_beats + 7'd1);

  // Every misalignment; where the last beat that came holds bytes of two that leave; one beat
  // alone.
  for (genvar i = 1; i < 64; i++) begin : gen_behind
    cover property (@(posedge clk_i) rst_ni && go && shift == 6'(i) && behind);
  end
  for (genvar i = 0; i < 64; i++) begin : gen_shift
    cover property (@(posedge clk_i) rst_ni && go && shift == 6'(i) && in_beats == 7'd1);
  end
  cover property (@(posedge clk_i) rst_ni && go && behind && !pops);
  cover property (@(posedge clk_i) rst_ni && go && in_beats == 7'd65);
  cover property (@(posedge clk_i) rst_ni && go && in_beats == 7'd64 && shift == 6'd0);
  // A segment in two bursts, and in one.
  cover property (@(posedge clk_i) rst_ni && burst_valid && burst_first && !burst_last);
  cover property (@(posedge clk_i) rst_ni && burst_valid && burst_first && burst_last);
  // Held back: for room, for too many bursts, by the consumer.
  cover property (@(posedge clk_i) rst_ni && burst_valid && !enough);
  cover property (@(posedge clk_i) rst_ni && burst_valid && enough && !record_ready);
  cover property (@(posedge clk_i) rst_ni && segment_valid && !room);
  cover property (@(posedge clk_i) rst_ni && stored == BUFFER_BEATS);
  // A burst that fails, at its end and before.
  cover property (@(posedge clk_i) rst_ni && m_axi_rvalid && m_axi_rresp && m_axi_rlast);
  cover property (@(posedge clk_i) rst_ni && m_axi_rvalid && m_axi_rresp && !m_axi_rlast);

endmodule

bind penstock_read_dma penstock_read_dma_properties #(
    .BUFFER_BEATS(BUFFER_BEATS)
) properties (
    .clk_i,
    .rst_ni,
    .segment_valid_i,
    .segment_ready_o,
    .segment_address_i,
    .segment_bytes_i,
    .m_axi_arvalid,
    .m_axi_arready,
    .m_axi_araddr,
    .m_axi_arlen,
    .m_axi_rvalid,
    .m_axi_rresp  (m_axi_rresp[1]),
    .m_axi_rlast,
    .burst_valid  (issue.burst_valid),
    .burst_first  (issue.burst_first),
    .burst_last   (issue.burst_last),
    .enough       (issue.enough),
    .record_ready (issue.record_ready),
    .record_valid (issue.record_valid),
    .segment_valid(align.segment_valid),
    .shift        (align.shift),
    .in_beats     (align.in_beats),
    .out_beats    (align.out_beats),
    .behind       (align.behind),
    .go           (align.go),
    .pops         (align.pops),
    .room         (align.room),
    .stored       (32'(align.stored_q)),
    .shifted_push (align.shifted_push_q),
    .queue_ready  (align.queue_ready)
);

`default_nettype wire
