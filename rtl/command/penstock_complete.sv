// Writes completions. Answers come from the walker and from three engines; whichever comes first
// has the next sequence of its queue (penstock_schedule sees to it that this is the queue's order).
// The record is 32 bytes: cookie, status, field, detail, sequence. When memory has confirmed it,
// the queue's COMPLETED rises and its interrupt cause is set.
//
// One completion takes six cycles; up to OUTSTANDING of them wait for memory, which confirms in
// order. A bus error that a job met is reported before its completion is written. A completion
// whose write failed is reported, too: its queue stops, and its COMPLETED stays.
`default_nettype none

module penstock_complete #(
    // Queues: 1 to 64.
    parameter int unsigned QUEUES = 64,
    // Completions that wait for memory: 1 or more.
    parameter int unsigned OUTSTANDING = 16,
    // The rings' first count (penstock_ring).
    parameter logic [31:0] START = 32'd0
) (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,
    // The rings' counters stand still in this cycle; it is clear_queue_i that starts anew.
    input  wire logic         hold_i,
    input  wire logic [5:0]   clear_queue_i,
    // Answers: of the walker, and of reduce, score and sync in this order. Each of `in`: queue 6,
    // status 5, field 5, detail 64, and whether the error was reported already (bit 80).
    input  wire logic [3:0]   in_valid_i,
    output      logic [3:0]   in_ready_o,
    input  wire logic [323:0] in_i,
    // The ring of the answer at hand; its cookie comes a cycle later.
    output      logic [5:0]   queue_o,
    input  wire logic [63:0]  count_i,
    input  wire logic [63:0]  cookie_i,
    input  wire logic [63:0]  base_i,
    input  wire logic [4:0]   depth_i,
    output      logic         done_o,
    // Of the completion that memory confirms.
    output      logic         acknowledge_o,
    output      logic [5:0]   acknowledge_queue_o,
    output      logic         event_o,  // it stands in memory
    // COMPLETED of a queue.
    input  wire logic [5:0]   completed_queue_i,
    output      logic [31:0]  completed_o,
    // Errors, held until they were reported. A bus error of an operand; its record is still there.
    output      logic         operand_error_valid_o,
    input  wire logic         operand_error_ready_i,
    output      logic [31:0]  operand_error_sequence_o,
    output      logic [63:0]  operand_error_address_o,
    // A completion that could not be written.
    output      logic         write_error_valid_o,
    input  wire logic         write_error_ready_i,
    output      logic [31:0]  write_error_sequence_o,
    output      logic [63:0]  write_error_address_o,
    // Writes of one beat; the data is offered after its address was taken.
    output      logic         aw_valid_o,
    input  wire logic         aw_ready_i,
    output      logic [63:0]  aw_address_o,
    output      logic         w_valid_o,
    input  wire logic         w_ready_i,
    output      logic [511:0] w_data_o,
    output      logic [63:0]  w_strobe_o,
    input  wire logic         b_valid_i,
    output      logic         b_ready_o,
    input  wire logic         b_error_i,
    output      logic         idle_o
);

  localparam int unsigned QUEUE_BITS = QUEUES > 1 ? $clog2(QUEUES) : 1;
  localparam int unsigned WIDTH = 81;
  localparam int unsigned COUNT_BITS = $clog2(OUTSTANDING + 1);

  localparam logic [2:0] IDLE = 3'd0;
  localparam logic [2:0] FORM = 3'd1;     // the record, from the queue's context
  localparam logic [2:0] REPORT = 3'd2;   // a bus error
  localparam logic [2:0] ADDRESS = 3'd3;
  localparam logic [2:0] DATA = 3'd4;
  localparam logic [2:0] LOOK = 3'd5;     // the cookie is being read
  logic [2:0] state_q;

  // ---- whose answer ----
  logic       any;
  logic [1:0] which;
  logic [3:0] grant;
  penstock_arbiter #(
      .N(4)
  ) u_arbiter (
      .clk_i,
      .rst_ni,
      .request_i(state_q == IDLE ? in_valid_i : '0),
      .valid_o  (any),
      .ready_i  (1'b1),
      .grant_o  (grant),
      .index_o  (which)
  );
  assign in_ready_o = grant;

  logic [5:0]  queue_q;
  logic [4:0]  status_q;
  logic [4:0]  field_q;
  logic [63:0] detail_q;
  logic        reported_q;
  always_ff @(posedge clk_i) begin
    if (any) begin
      queue_q    <= in_i[WIDTH*which+:6];
      status_q   <= in_i[WIDTH*which+6+:5];
      field_q    <= in_i[WIDTH*which+11+:5];
      detail_q   <= in_i[WIDTH*which+16+:64];
      reported_q <= in_i[WIDTH*which+80];
    end else if (state_q == REPORT) reported_q <= 1'b1;
  end

  // ---- its record ----
  logic         faulty;
  logic [63:0]  sequence_now;
  logic         form;
  logic [63:0]  address_q;
  logic [255:0] record_q;
  logic [31:0]  sequence_q;
  logic         room;
  assign queue_o      = queue_q;
  assign faulty       = status_q == 5'(penstock_pkg::IO_ERROR) && !reported_q;
  assign sequence_now = count_i + 64'd1;
  assign form         = state_q == FORM && !faulty && room && !hold_i;
  assign done_o       = form;
  always_ff @(posedge clk_i) begin
    if (form) begin
      address_q  <= base_i + ((count_i & ((64'd1 << depth_i) - 64'd1)) << 5);
      record_q   <= {sequence_now, detail_q, 27'd0, field_q, 27'd0, status_q, cookie_i};
      sequence_q <= sequence_now[31:0];
    end
  end
  assign operand_error_valid_o    = state_q == REPORT;
  assign operand_error_sequence_o = sequence_now[31:0];
  assign operand_error_address_o  = detail_q;
  assign aw_valid_o   = state_q == ADDRESS;
  assign aw_address_o = {address_q[63:6], 6'd0};
  assign w_valid_o    = state_q == DATA;
  assign w_data_o     = {2{record_q}};
  assign w_strobe_o   = address_q[5] ? {32'hffffffff, 32'd0} : {32'd0, 32'hffffffff};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= IDLE;
    else begin
      case (state_q)
        IDLE: if (any) state_q <= LOOK;
        LOOK: state_q <= FORM;
        FORM: begin
          if (faulty) state_q <= REPORT;
          else if (form) state_q <= ADDRESS;
        end
        REPORT: if (operand_error_ready_i) state_q <= FORM;
        ADDRESS: if (aw_ready_i) state_q <= DATA;
        default: if (w_ready_i) state_q <= IDLE;
      endcase
    end
  end

  // ---- what memory says ----
  logic                  waiting;
  logic [101:0]          oldest;
  logic [COUNT_BITS-1:0] outstanding;
  logic                  confirmed;
  logic                  failed_q;    // the oldest one was confirmed as failed
  logic                  lost;
  logic [QUEUES-1:0]     lost_q;      // queues with a failed completion
  logic [31:0]           completed_m[0:QUEUES-1];
  logic [QUEUE_BITS-1:0] oldest_queue;

  // Its place is taken in `form`, so that its address cannot be offered without one.
  penstock_fifo #(
      .WIDTH(102),
      .DEPTH(OUTSTANDING)
  ) u_outstanding (
      .clk_i,
      .rst_ni,
      .in_valid_i (state_q == ADDRESS && aw_ready_i),
      .in_ready_o (room),
      .in_data_i  ({queue_q, sequence_q, address_q}),
      .out_valid_o(waiting),
      .out_ready_i(acknowledge_o),
      .out_data_o (oldest),
      .count_o    (outstanding)
  );
  assign acknowledge_queue_o    = oldest[101:96];
  assign oldest_queue           = oldest[96+:QUEUE_BITS];
  assign write_error_valid_o    = failed_q;
  assign write_error_sequence_o = oldest[95:64];
  assign write_error_address_o  = oldest[63:0];
  assign b_ready_o     = waiting && !failed_q && !hold_i;
  assign confirmed     = b_valid_i && b_ready_o;
  assign acknowledge_o = (confirmed && !b_error_i) ||
                         (failed_q && write_error_ready_i && !hold_i);
  assign lost          = lost_q[oldest_queue] || failed_q;
  assign event_o       = acknowledge_o && !lost;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      failed_q <= 1'b0;
      lost_q   <= '0;
    end else begin
      if (confirmed && b_error_i) failed_q <= 1'b1;
      else if (acknowledge_o) failed_q <= 1'b0;
      if (failed_q) lost_q[oldest_queue] <= 1'b1;
      if (hold_i) lost_q[clear_queue_i[QUEUE_BITS-1:0]] <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (hold_i) completed_m[clear_queue_i[QUEUE_BITS-1:0]] <= START;
    else if (event_o) completed_m[oldest_queue] <= completed_m[oldest_queue] + 32'd1;
  end
  assign completed_o = completed_m[completed_queue_i[QUEUE_BITS-1:0]];
  assign idle_o      = state_q == IDLE && in_valid_i == '0 && outstanding == '0;

`ifdef FORMAL
  // Each answer that is taken becomes one completion: one sequence, one address, one beat, one
  // confirmation. Counted modulo 16; no more than OUTSTANDING + 1 are in between. Memory confirms
  // only what was written.
  logic       f_reset_q = 1'b0;
  logic [3:0] f_taken_q;
  logic [3:0] f_done_q;
  logic [3:0] f_addressed_q;
  logic [3:0] f_written_q;
  logic [3:0] f_confirmed_q;
  logic [3:0] f_acknowledged_q;
  logic [3:0] f_outstanding;
  assign f_outstanding = 4'(outstanding);

  always_ff @(posedge clk_i) begin
    f_reset_q <= 1'b1;
    if (!f_reset_q) assume (!rst_ni);
    assume (!b_valid_i || f_written_q != f_confirmed_q);
    if (!rst_ni) begin
      f_taken_q        <= '0;
      f_done_q         <= '0;
      f_addressed_q    <= '0;
      f_written_q      <= '0;
      f_confirmed_q    <= '0;
      f_acknowledged_q <= '0;
    end else begin
      f_taken_q        <= f_taken_q + 4'((in_valid_i & in_ready_o) != '0);
      f_done_q         <= f_done_q + 4'(done_o);
      f_addressed_q    <= f_addressed_q + 4'(aw_valid_o && aw_ready_i);
      f_written_q      <= f_written_q + 4'(w_valid_o && w_ready_i);
      f_confirmed_q    <= f_confirmed_q + 4'(b_valid_i && b_ready_o);
      f_acknowledged_q <= f_acknowledged_q + 4'(acknowledge_o);
    end
  end

  always_ff @(posedge clk_i) begin
    if (f_reset_q && rst_ni) begin
      assert (state_q <= LOOK);
      assert ((in_ready_o & (in_ready_o - 4'd1)) == '0 && (in_ready_o & ~in_valid_i) == '0);
      assert (f_taken_q - f_done_q == 4'(state_q == LOOK || state_q == FORM ||
                                            state_q == REPORT));
      assert (f_done_q - f_addressed_q == 4'(state_q == ADDRESS));
      assert (f_addressed_q - f_written_q == 4'(state_q == DATA));
      assert (f_addressed_q - f_acknowledged_q == f_outstanding);
      assert (f_confirmed_q - f_acknowledged_q == 4'(failed_q));
      assert (f_written_q - f_confirmed_q <= 4'(OUTSTANDING));
      assert (state_q != ADDRESS || room);
      assert (!event_o || acknowledge_o);
      assert (!hold_i || (!done_o && !acknowledge_o));
      assert (!failed_q || waiting);
      cover (f_outstanding == 4'(OUTSTANDING));
      cover (write_error_valid_o && write_error_ready_i);
      cover (operand_error_valid_o && operand_error_ready_i);
    end
  end
`endif

endmodule

`default_nettype wire
