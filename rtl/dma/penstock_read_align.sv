// The buffer of a reader, and the shifter behind it: beats come in as memory holds them, and leave
// with the segment's first byte at byte 0.
//
// A segment that begins `shift` bytes into its first beat needs two neighbours of the beats that
// came for one that leaves: {this, previous} shifted down. So the first beat that came gives
// nothing, unless it is alone; and if the last one holds bytes of two that leave, one more step
// brings out the second. Each step takes a cycle. Steps are begun only when the small queue at the
// output has room for what they will give, so that the pipeline behind them never stops.
`default_nettype none

module penstock_read_align #(
    // Beats that the buffer holds: a power of two, 64 or more.
    parameter int unsigned BUFFER_BEATS = 512,
    // Segments that are known ahead.
    parameter int unsigned SEGMENTS = 64,
    // Bits that travel with a segment.
    parameter int unsigned USER_WIDTH = 4
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,

    input  wire logic                  segment_valid_i,
    output      logic                  segment_ready_o,
    input  wire logic [5:0]            segment_shift_i,
    input  wire logic [12:0]           segment_bytes_i,
    input  wire logic [USER_WIDTH-1:0] segment_user_i,

    input  wire logic                  beat_i,       // a beat has come; there is room
    input  wire logic [511:0]          beat_data_i,
    output      logic                  pop_o,        // a beat leaves the buffer

    output      logic                  out_valid_o,
    input  wire logic                  out_ready_i,
    output      logic [511:0]          out_data_o,   // undefined past the segment's end
    output      logic [5:0]            out_index_o,  // beat of its segment
    output      logic                  out_last_o,   // the segment's last
    output      logic [USER_WIDTH-1:0] out_user_o
);

  localparam int unsigned ADDRESS_BITS = $clog2(BUFFER_BEATS);
  // Covers the steps between the decision and the queue, and back.
  localparam int unsigned QUEUE = 8;
  localparam int unsigned QUEUE_BITS = $clog2(QUEUE + 1);
  localparam int unsigned SEGMENT_COUNT_BITS = $clog2(SEGMENTS + 1);

  // The segment whose steps are taken.
  logic                          segment_valid;
  logic [5:0]                    shift;
  logic [12:0]                   bytes;
  logic [USER_WIDTH-1:0]         user;
  logic [6:0]                    in_beats;   // that come for it, 1..65
  logic [6:0]                    out_beats;  // that leave, 1..64
  logic                          behind;     // each beat leaves with its successor's step
  logic [6:0]                    steps;
  logic [6:0]                    step_q;
  logic                          pops;
  logic                          pushes;
  logic                          step_last;
  logic                          go;

  logic [511:0]                  words_q         [0:BUFFER_BEATS-1];
  logic [ADDRESS_BITS-1:0]       tail_q;
  logic [ADDRESS_BITS-1:0]       head_q;
  logic [ADDRESS_BITS:0]         stored_q;

  // Stage 1: the beat read from the buffer. Stage 2: shifted.
  logic                          read_push_q;
  logic                          read_pop_q;
  logic [511:0]                  read_data_q;
  logic [511:0]                  previous_q;
  logic [5:0]                    read_shift_q;
  logic                          read_behind_q;
  logic [5:0]                    read_index_q;
  logic                          read_last_q;
  logic [USER_WIDTH-1:0]         read_user_q;
  logic                          shifted_push_q;
  logic [511:0]                  shifted_data_q;
  logic [5:0]                    shifted_index_q;
  logic                          shifted_last_q;
  logic [USER_WIDTH-1:0]         shifted_user_q;
  logic                          room;

  // The segment's last byte, from its first beat's first byte and from its own first.
  /* verilator lint_off UNUSEDSIGNAL */
  logic [12:0]                   in_span;
  logic [12:0]                   out_span;
  logic [SEGMENT_COUNT_BITS-1:0] segments;
  logic [QUEUE_BITS-1:0]         queued;
  logic [QUEUE_BITS-1:0]         free;
  logic                          queue_ready;
  logic [1023:0]                 pair;
  /* verilator lint_on UNUSEDSIGNAL */

  penstock_fifo #(
      .WIDTH(6 + 13 + USER_WIDTH),
      .DEPTH(SEGMENTS)
  ) known (
      .clk_i,
      .rst_ni,
      .in_valid_i (segment_valid_i),
      .in_ready_o (segment_ready_o),
      .in_data_i  ({segment_shift_i, segment_bytes_i, segment_user_i}),
      .out_valid_o(segment_valid),
      .out_ready_i(go && step_last),
      .out_data_o ({shift, bytes, user}),
      .count_o    (segments)
  );

  assign in_span   = {7'd0, shift} + bytes - 13'd1;
  assign in_beats  = in_span[12:6] + 7'd1;
  assign out_span  = bytes - 13'd1;
  assign out_beats = {1'b0, out_span[11:6]} + 7'd1;
  assign behind    = shift != 6'd0 && in_beats != 7'd1;
  assign steps     = behind ? out_beats + 7'd1 : out_beats;
  assign pops      = step_q < in_beats;
  assign pushes    = !behind || step_q != 7'd0;
  assign step_last = step_q + 7'd1 == steps;
  assign go        = segment_valid && (!pops || stored_q != '0) && (!pushes || room);
  assign pop_o     = go && pops;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      step_q         <= '0;
      tail_q         <= '0;
      head_q         <= '0;
      stored_q       <= '0;
      read_push_q    <= 1'b0;
      read_pop_q     <= 1'b0;
      shifted_push_q <= 1'b0;
    end else begin
      if (go) step_q <= step_last ? '0 : step_q + 7'd1;
      if (beat_i) tail_q <= tail_q + 1'b1;
      if (pop_o) head_q <= head_q + 1'b1;
      stored_q       <= stored_q + (ADDRESS_BITS + 1)'(beat_i) - (ADDRESS_BITS + 1)'(pop_o);
      read_push_q    <= go && pushes;
      read_pop_q     <= pop_o;
      shifted_push_q <= read_push_q;
    end
  end

  // A read never meets the write of the same word: what is stored was written a cycle before.
  always_ff @(posedge clk_i) begin
    if (beat_i) words_q[tail_q] <= beat_data_i;
  end
  always_ff @(posedge clk_i) begin
    if (pop_o) read_data_q <= words_q[head_q];
  end

  always_ff @(posedge clk_i) begin
    if (go) begin
      read_shift_q  <= shift;
      read_behind_q <= behind;
      read_index_q  <= 6'(step_q - (behind ? 7'd1 : 7'd0));
      read_last_q   <= step_last;
      read_user_q   <= user;
    end
  end

  assign pair = {read_data_q, read_behind_q ? previous_q : read_data_q} >> {read_shift_q, 3'd0};

  always_ff @(posedge clk_i) begin
    if (read_pop_q) previous_q <= read_data_q;
    if (read_push_q) begin
      shifted_data_q  <= pair[511:0];
      shifted_index_q <= read_index_q;
      shifted_last_q  <= read_last_q;
      shifted_user_q  <= read_user_q;
    end
  end

  penstock_credit #(
      .CREDITS(QUEUE)
  ) credit (
      .clk_i,
      .rst_ni,
      .amount_i(QUEUE_BITS'(1)),
      .enough_o(room),
      .take_i  (go && pushes),
      .give_i  (QUEUE_BITS'(out_valid_o && out_ready_i)),
      .free_o  (free)
  );

  penstock_fifo #(
      .WIDTH(512 + 6 + 1 + USER_WIDTH),
      .DEPTH(QUEUE)
  ) queue (
      .clk_i,
      .rst_ni,
      .in_valid_i (shifted_push_q),
      .in_ready_o (queue_ready),
      .in_data_i  ({shifted_data_q, shifted_index_q, shifted_last_q, shifted_user_q}),
      .out_valid_o(out_valid_o),
      .out_ready_i(out_ready_i),
      .out_data_o ({out_data_o, out_index_o, out_last_o, out_user_o}),
      .count_o    (queued)
  );

endmodule

`default_nettype wire
