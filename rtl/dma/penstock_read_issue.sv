// Asks for the bursts of a reader, and says where one failed. It keeps the promise that every beat
// has room: a beat's place in the buffer is taken before its burst is asked for, and given back
// when the beat leaves the buffer.
`default_nettype none

module penstock_read_issue #(
    // Beats that the buffer holds: 64 or more.
    parameter int unsigned BUFFER_BEATS = 512,
    // Bursts that may be on their way.
    parameter int unsigned BURSTS = 32,
    // Bits that travel with a segment.
    parameter int unsigned USER_WIDTH = 4
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,

    input  wire logic                  segment_valid_i,
    output      logic                  segment_ready_o,
    input  wire logic [63:0]           segment_address_i,
    input  wire logic [12:0]           segment_bytes_i,
    input  wire logic [USER_WIDTH-1:0] segment_user_i,

    output      logic                  arvalid_o,
    input  wire logic                  arready_i,
    output      logic [63:0]           araddr_o,
    output      logic [7:0]            arlen_o,
    input  wire logic                  beat_i,        // a beat has come
    input  wire logic                  beat_last_i,   // the last of its burst
    input  wire logic                  beat_error_i,  // and it reports an error
    input  wire logic                  pop_i,         // a beat leaves the buffer

    // One pulse per beat that reports an error, two cycles later.
    output      logic                  error_valid_o,
    output      logic [USER_WIDTH-1:0] error_user_o,
    // The first byte that was wanted of the burst.
    output      logic [63:0]           error_address_o
);

  localparam int unsigned COUNT_BITS = $clog2(BUFFER_BEATS + 1);
  localparam int unsigned BURST_COUNT_BITS = $clog2(BURSTS + 1);

  logic                        burst_valid;
  logic                        burst_ready;
  logic [63:0]                 burst_address;
  logic [6:0]                  burst_beats;
  logic [USER_WIDTH-1:0]       burst_user;
  logic                        record_ready;
  logic                        record_valid;
  logic [63:0]                 record_address;
  logic [USER_WIDTH-1:0]       record_user;
  logic                        enough;
  logic                        error_q;

  /* verilator lint_off UNUSEDSIGNAL */
  logic                        burst_first;
  logic                        burst_last;
  logic [COUNT_BITS-1:0]       free;
  logic [BURST_COUNT_BITS-1:0] records;
  /* verilator lint_on UNUSEDSIGNAL */

`ifdef FORMAL
  // Any bursts as penstock_burst_split, which is proven by itself, may give them: each stays until
  // it is taken.
  (* anyseq *) logic                  f_burst_valid;
  (* anyseq *) logic [11:0]           f_burst_address;
  (* anyseq *) logic [6:0]            f_burst_beats;
  (* anyseq *) logic [USER_WIDTH-1:0] f_burst_user;
  assign burst_valid     = f_burst_valid;
  assign burst_address   = {52'd0, f_burst_address};
  assign burst_beats     = f_burst_beats;
  assign burst_user      = f_burst_user;
  assign burst_first     = 1'b0;
  assign burst_last      = 1'b0;
  assign segment_ready_o = 1'b0;
`else
  penstock_burst_split #(
      .USER_WIDTH(USER_WIDTH)
  ) split (
      .clk_i,
      .rst_ni,
      .in_valid_i   (segment_valid_i),
      .in_ready_o   (segment_ready_o),
      .in_address_i (segment_address_i),
      .in_bytes_i   (segment_bytes_i),
      .in_user_i    (segment_user_i),
      .out_valid_o  (burst_valid),
      .out_ready_i  (burst_ready),
      .out_address_o(burst_address),
      .out_beats_o  (burst_beats),
      .out_first_o  (burst_first),
      .out_last_o   (burst_last),
      .out_user_o   (burst_user)
  );
`endif

  // Both conditions stay once they hold: only a burst that is taken takes room.
  assign arvalid_o   = burst_valid && enough && record_ready;
  assign araddr_o    = {burst_address[63:6], 6'd0};
  assign arlen_o     = {1'b0, burst_beats} - 8'd1;
  assign burst_ready = arready_i && enough && record_ready;

  penstock_credit #(
      .CREDITS(BUFFER_BEATS)
  ) credit (
      .clk_i,
      .rst_ni,
      .amount_i(COUNT_BITS'(burst_beats)),
      .enough_o(enough),
      .take_i  (arvalid_o && arready_i),
      .give_i  (COUNT_BITS'(pop_i)),
      .free_o  (free)
  );

  penstock_fifo #(
      .WIDTH(64 + USER_WIDTH),
      .DEPTH(BURSTS)
  ) bursts (
      .clk_i,
      .rst_ni,
      .in_valid_i (arvalid_o && arready_i),
      .in_ready_o (record_ready),
      .in_data_i  ({burst_address, burst_user}),
      .out_valid_o(record_valid),
      .out_ready_i(beat_i && beat_last_i),
      .out_data_o ({record_address, record_user}),
      .count_o    (records)
  );

  assign error_valid_o = error_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) error_q <= 1'b0;
    else error_q <= beat_i && beat_error_i && record_valid;
  end

  always_ff @(posedge clk_i) begin
    if (beat_i && beat_error_i) begin
      error_user_o    <= record_user;
      error_address_o <= record_address;
    end
  end

`ifdef FORMAL
  // Beats are asked for (f_due_q), come, and stand in the buffer (f_stored_q); together with the
  // free places they are always BUFFER_BEATS. Memory gives what was asked for and no more.
  logic                  f_reset_q = 1'b0;
  logic [COUNT_BITS-1:0] f_due_q;
  logic [COUNT_BITS-1:0] f_stored_q;

  always_ff @(posedge clk_i) begin
    f_reset_q <= 1'b1;
    if (!f_reset_q) assume (!rst_ni);
    assume (!beat_i || f_due_q != '0);
    assume (!pop_i || f_stored_q != '0);
    assume (burst_beats >= 7'd1 && burst_beats <= 7'd64);
    if (f_reset_q && $past(rst_ni) && $past(burst_valid) && !$past(burst_ready)) begin
      assume (burst_valid && burst_beats == $past(burst_beats));
      assume (burst_address == $past(burst_address));
    end
    if (!rst_ni) begin
      f_due_q    <= '0;
      f_stored_q <= '0;
    end else begin
      f_due_q <= f_due_q + (arvalid_o && arready_i ? COUNT_BITS'(burst_beats) : '0)
          - COUNT_BITS'(beat_i);
      f_stored_q <= f_stored_q + COUNT_BITS'(beat_i) - COUNT_BITS'(pop_i);
    end
    if (f_reset_q && rst_ni) begin
      assert (32'(f_due_q) + 32'(f_stored_q) + 32'(free) == BUFFER_BEATS);
      assert (32'(f_stored_q) <= BUFFER_BEATS);
      if ($past(rst_ni) && $past(arvalid_o) && !$past(arready_i)) begin
        assert (arvalid_o && araddr_o == $past(araddr_o) && arlen_o == $past(arlen_o));
      end
      cover (f_stored_q != '0 && pop_i && beat_i);
      cover (burst_valid && !enough);
      cover (burst_valid && enough && !record_ready);
    end
  end
`endif

endmodule

`default_nettype wire
