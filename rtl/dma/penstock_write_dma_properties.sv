// What must hold in penstock_write_dma, and what its tests have to reach. For Verilator alone.
`default_nettype none

module penstock_write_dma_properties #(
    parameter int unsigned GROUPS = 4
) (
    input wire logic        clk_i,
    input wire logic        rst_ni,
    input wire logic        chunk_valid_i,
    input wire logic [14:0] chunk_bytes_i,
    input wire logic        in_valid_i,
    input wire logic        in_ready_o,
    input wire logic        in_last_i,
    input wire logic [1:0]  job_destinations_i,
    input wire logic        m_axi_awvalid,
    input wire logic        m_axi_awready,
    input wire logic [63:0] m_axi_awaddr,
    input wire logic [7:0]  m_axi_awlen,
    input wire logic        m_axi_wvalid,
    input wire logic        m_axi_wready,
    input wire logic [63:0] m_axi_wstrb,
    input wire logic        m_axi_bvalid,
    input wire logic        m_axi_bresp,
    input wire logic        chunk_valid,     // fill
    input wire logic        chunk_end,
    input wire logic        past,
    input wire logic        group_room,
    input wire logic        group_end,
    input wire logic        write,
    input wire logic        group_record_ready,
    input wire logic [31:0] used,
    input wire logic        group_valid,     // issue
    input wire logic        split_valid,
    input wire logic        split_first,
    input wire logic        split_last,
    input wire logic        record_ready,
    input wire logic        answer_ready,
    input wire logic        answer_valid,
    input wire logic        answer_last,
    input wire logic        go,              // send
    input wire logic        read,
    input wire logic        first,
    input wire logic        last,
    input wire logic        room,
    input wire logic        burst_valid,
    input wire logic [5:0]  burst_shift,
    input wire logic        sent_valid,
    input wire logic        queue_ready
);

  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   chunk_valid_i |-> chunk_bytes_i != 15'd0 && chunk_bytes_i <= 15'd16384);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   group_valid |-> job_destinations_i != 2'd0);
  // A chunk's last beat comes with its last byte or after it.
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   in_valid_i && in_ready_o && in_last_i |-> past || chunk_end);
  assert property (@(posedge clk_i) disable iff (!rst_ni) used <= GROUPS);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   write && group_end |-> group_record_ready);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   m_axi_awvalid |-> 32'(m_axi_awaddr[11:6]) + 32'(m_axi_awlen) <= 32'd63);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   m_axi_awvalid && !m_axi_awready |=> m_axi_awvalid && $stable(m_axi_awaddr));
  assert property (@(posedge clk_i) disable iff (!rst_ni) m_axi_bvalid |-> answer_valid);
  assert property (@(posedge clk_i) disable iff (!rst_ni) sent_valid |-> queue_ready);
  // No beat is sent that writes nothing.
  assert property (@(posedge clk_i) disable iff (!rst_ni) m_axi_wvalid |-> m_axi_wstrb != 64'd0);

  // Every misalignment; a last beat that holds no new word of the buffer; a beat that is first and
  // last.
  for (genvar i = 0; i < 64; i++) begin : gen_shift
    cover property (@(posedge clk_i) rst_ni && go && burst_shift == 6'(i) && !first);
    cover property (@(posedge clk_i) rst_ni && go && burst_shift == 6'(i) && first && last);
  end
  cover property (@(posedge clk_i) rst_ni && go && !read);
  cover property (@(posedge clk_i) rst_ni && m_axi_wvalid && m_axi_wstrb == 64'd1);
  // A segment in two bursts, and in one.
  cover property (@(posedge clk_i) rst_ni && split_valid && split_first && !split_last);
  cover property (@(posedge clk_i) rst_ni && split_valid && split_first && split_last);
  // Beats past a chunk's bytes; a buffer that is full while a beat waits.
  cover property (@(posedge clk_i) rst_ni && in_valid_i && in_ready_o && past);
  cover property (@(posedge clk_i) rst_ni && chunk_valid && in_valid_i && !past && !group_room);
  // Held back: by memory, by bursts whose data is not sent yet, by answers that are outstanding.
  cover property (@(posedge clk_i) rst_ni && burst_valid && !room && !m_axi_wready);
  cover property (@(posedge clk_i) rst_ni && split_valid && !record_ready);
  cover property (@(posedge clk_i) rst_ni && split_valid && !answer_ready);
  // A burst that fails: the last of its job, and before.
  cover property (@(posedge clk_i) rst_ni && m_axi_bvalid && m_axi_bresp && answer_last);
  cover property (@(posedge clk_i) rst_ni && m_axi_bvalid && m_axi_bresp && !answer_last);

endmodule

bind penstock_write_dma penstock_write_dma_properties #(
    .GROUPS(GROUPS)
) properties (
    .clk_i,
    .rst_ni,
    .chunk_valid_i,
    .chunk_bytes_i,
    .in_valid_i,
    .in_ready_o,
    .in_last_i,
    .job_destinations_i,
    .m_axi_awvalid,
    .m_axi_awready,
    .m_axi_awaddr,
    .m_axi_awlen,
    .m_axi_wvalid,
    .m_axi_wready,
    .m_axi_wstrb,
    .m_axi_bvalid,
    .m_axi_bresp       (m_axi_bresp[1]),
    .chunk_valid       (fill.chunk_valid),
    .chunk_end         (fill.chunk_end),
    .past              (fill.past_q),
    .group_room        (fill.room),
    .group_end         (fill.group_end),
    .write             (fill.write_o),
    .group_record_ready(fill.record_ready),
    .used              (32'(fill.used_q)),
    .group_valid       (issue.group_valid_i),
    .split_valid       (issue.split_valid),
    .split_first       (issue.split_first),
    .split_last        (issue.split_last),
    .record_ready      (issue.record_ready),
    .answer_ready      (issue.answer_ready),
    .answer_valid      (issue.answer_valid),
    .answer_last       (issue.answer_last),
    .go                (send.go),
    .read              (send.read),
    .first             (send.first),
    .last              (send.last),
    .room              (send.room),
    .burst_valid       (send.burst_valid_i),
    .burst_shift       (send.burst_shift_i),
    .sent_valid        (send.sent_valid_q),
    .queue_ready       (send.queue_ready)
);

`default_nettype wire
