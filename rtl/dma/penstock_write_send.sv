// Sends the data of a writer's bursts from its buffer, shifted to where the destination begins in
// its beats. A segment that begins `shift` bytes into its first beat takes two neighbours of the
// buffer's beats for one that is sent: {this, previous} shifted up.
//
// Each beat that is sent is begun only when the small queue at the output has room for it, so that
// the pipeline behind never stops.
`default_nettype none

module penstock_write_send #(
    // Groups that the buffer holds: a power of two.
    parameter int unsigned GROUPS = 4,
    // Not to be set.
    parameter int unsigned GROUP_BITS = GROUPS > 1 ? $clog2(GROUPS) : 1
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,

    input  wire logic                  write_i,
    input  wire logic [GROUP_BITS-1:0] write_group_i,
    input  wire logic [5:0]            write_beat_i,
    input  wire logic [511:0]          write_data_i,

    // See penstock_write_issue.
    input  wire logic                  burst_valid_i,
    output      logic                  burst_ready_o,
    input  wire logic [6:0]            burst_beats_i,
    input  wire logic                  burst_last_i,
    input  wire logic                  burst_free_i,
    input  wire logic [5:0]            burst_shift_i,
    input  wire logic [12:0]           burst_bytes_i,
    input  wire logic [GROUP_BITS-1:0] burst_group_i,
    output      logic                  group_free_o,  // the oldest group has been read for the last
                                                      // time
    output      logic                  wvalid_o,
    input  wire logic                  wready_i,
    output      logic [511:0]          wdata_o,
    output      logic [63:0]           wstrb_o,
    output      logic                  wlast_o
);

  localparam int unsigned ADDRESS_BITS = GROUP_BITS + 6;
  // Covers the steps between the decision and the queue, and back.
  localparam int unsigned QUEUE = 8;
  localparam int unsigned QUEUE_BITS = $clog2(QUEUE + 1);

  logic [511:0]          words_q      [0:(1<<ADDRESS_BITS)-1];

  logic [6:0]            sent_q;      // beats of the burst
  logic [6:0]            word_q;      // beats of the segment, 0..64
  logic                  burst_end;
  logic                  first;       // of the segment
  logic                  last;
  logic                  read;
  logic                  go;
  logic                  room;

  logic                  read_q;      // stage 1: the word that was read
  logic [511:0]          read_data_q;
  logic [511:0]          previous_q;
  logic [5:0]            read_shift_q;
  logic                  read_first_q;
  logic                  read_last_q;
  logic [5:0]            read_end_q;  // the segment's last byte in its beat
  logic                  read_burst_end_q;
  logic                  sent_valid_q;  // stage 2: shifted
  logic [511:0]          sent_data_q;
  logic [63:0]           sent_strobe_q;
  logic                  sent_burst_end_q;

  // The segment's last byte, from its first beat's first byte and in the buffer.
  /* verilator lint_off UNUSEDSIGNAL */
  logic [12:0]           last_span;
  logic [12:0]           word_span;
  logic [1023:0]         pair;
  logic                  queue_ready;
  logic [QUEUE_BITS-1:0] queued;
  logic [QUEUE_BITS-1:0] free;
  /* verilator lint_on UNUSEDSIGNAL */

  assign last_span     = {7'd0, burst_shift_i} + burst_bytes_i - 13'd1;
  assign word_span     = burst_bytes_i - 13'd1;
  assign burst_end     = sent_q + 7'd1 == burst_beats_i;
  assign first         = word_q == 7'd0;
  assign last          = burst_last_i && burst_end;
  assign read          = word_q <= {1'b0, word_span[11:6]};
  assign go            = burst_valid_i && room;
  assign burst_ready_o = go && burst_end;
  assign group_free_o  = go && last && burst_free_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sent_q            <= '0;
      word_q            <= '0;
      read_q            <= 1'b0;
      sent_valid_q      <= 1'b0;
    end else begin
      if (go) begin
        sent_q <= burst_end ? 7'd0 : sent_q + 7'd1;
        word_q <= last ? 7'd0 : word_q + 7'd1;
      end
      read_q            <= go;
      sent_valid_q      <= read_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (write_i) words_q[{write_group_i, write_beat_i}] <= write_data_i;
  end
  always_ff @(posedge clk_i) begin
    if (go && read) read_data_q <= words_q[{burst_group_i, word_q[5:0]}];
  end

  always_ff @(posedge clk_i) begin
    if (go) begin
      read_shift_q     <= burst_shift_i;
      read_first_q     <= first;
      read_last_q      <= last;
      read_end_q       <= last_span[5:0];
      read_burst_end_q <= burst_end;
    end
  end

  assign pair = {read_data_q, previous_q} << {read_shift_q, 3'd0};

  always_ff @(posedge clk_i) begin
    if (read_q) begin
      previous_q       <= read_data_q;
      sent_data_q      <= pair[1023:512];
      sent_strobe_q    <= (read_first_q ? ~64'd0 << read_shift_q : ~64'd0)
          & (read_last_q ? ~64'd0 >> (6'd63 - read_end_q) : ~64'd0);
      sent_burst_end_q <= read_burst_end_q;
    end
  end

  penstock_credit #(
      .CREDITS(QUEUE)
  ) credit (
      .clk_i,
      .rst_ni,
      .amount_i(QUEUE_BITS'(1)),
      .enough_o(room),
      .take_i  (go),
      .give_i  (QUEUE_BITS'(wvalid_o && wready_i)),
      .free_o  (free)
  );

  penstock_fifo #(
      .WIDTH(512 + 64 + 1),
      .DEPTH(QUEUE)
  ) queue (
      .clk_i,
      .rst_ni,
      .in_valid_i (sent_valid_q),
      .in_ready_o (queue_ready),
      .in_data_i  ({sent_data_q, sent_strobe_q, sent_burst_end_q}),
      .out_valid_o(wvalid_o),
      .out_ready_i(wready_i),
      .out_data_o ({wdata_o, wstrb_o, wlast_o}),
      .count_o    (queued)
  );

endmodule

`default_nettype wire
