// The synchronisation unit: SIGNAL, WAIT and BARRIER on fences, monotonic 64-bit counters that
// stand alone on their lines of 64 bytes in memory.
//
// One entry per queue, so that no wait holds back another queue. Entries take turns, raises before
// polls: each turn reads lines of one entry, and several reads are under way. What an entry does:
//
//   raise  (SIGNAL, BARRIER) reads the line of its own fence, and writes the 8 bytes of the value
//          if the fence is behind it: fences never go back. Two raises of lines that are equal in
//          address bits 9 to 6 never overlap, so that none writes an old value over a newer one.
//   poll   (WAIT, BARRIER) reads the lines of the fences that it waits for, up to 16 of those that
//          follow one another in one burst, from the first that was behind, until none is.
//
// A poll that finds a fence behind ends the wait if its queue is cancelled or its deadline is over:
// the deadline is timeout_ms * clock_khz_i cycles after the entry was taken, and there is always
// one poll. Data is always taken.
`default_nettype none

module penstock_sync #(
    // Queues: 2 to 64.
    parameter int unsigned QUEUES = 64,
    // Reads, and writes, under way: 1 or more each.
    parameter int unsigned READS = 16,
    parameter int unsigned WRITES = 4
) (
    input  wire logic              clk_i,
    input  wire logic              rst_ni,
    // Cycles of a millisecond.
    input  wire logic [31:0]       clock_khz_i,
    // A job; at most one of each queue at a time. Bus addresses: the fence that SIGNAL and BARRIER
    // raise, and the first of the `count` (1 to 64) that WAIT and BARRIER wait for.
    input  wire logic              sync_valid_i,
    output      logic              sync_ready_o,
    input  wire logic [5:0]        sync_queue_i,
    input  wire logic [3:0]        sync_opcode_i,
    input  wire logic [63:0]       sync_fence_i,
    input  wire logic [63:0]       sync_lines_i,
    input  wire logic [6:0]        sync_count_i,
    input  wire logic [63:0]       sync_value_i,
    input  wire logic [31:0]       sync_timeout_ms_i,
    // A bit per queue: its waits end as cancelled; it has a wait.
    input  wire logic [QUEUES-1:0] sync_cancel_i,
    output      logic [QUEUES-1:0] sync_waiting_o,
    // How a job ended. Detail: of a WAIT the value seen, of a BARRIER that is late the number of
    // the first fence that is behind, of a bus error the address of the burst.
    output      logic              sync_done_valid_o,
    input  wire logic              sync_done_ready_i,
    output      logic [5:0]        sync_done_queue_o,
    output      logic [4:0]        sync_done_status_o,
    output      logic [4:0]        sync_done_field_o,
    output      logic [63:0]       sync_done_detail_o,
    // A line was read (a pulse); nothing is under way.
    output      logic              poll_o,
    output      logic              idle_o,
    output      logic              m_axi_awvalid,
    input  wire logic              m_axi_awready,
    output      logic [63:0]       m_axi_awaddr,
    output      logic [3:0]        m_axi_awid,
    output      logic [7:0]        m_axi_awlen,
    output      logic              m_axi_wvalid,
    input  wire logic              m_axi_wready,
    output      logic [511:0]      m_axi_wdata,
    output      logic [63:0]       m_axi_wstrb,
    output      logic              m_axi_wlast,
    input  wire logic              m_axi_bvalid,
    output      logic              m_axi_bready,
    input  wire logic [3:0]        m_axi_bid,
    input  wire logic [1:0]        m_axi_bresp,
    output      logic              m_axi_arvalid,
    input  wire logic              m_axi_arready,
    output      logic [63:0]       m_axi_araddr,
    output      logic [3:0]        m_axi_arid,
    output      logic [7:0]        m_axi_arlen,
    input  wire logic              m_axi_rvalid,
    output      logic              m_axi_rready,
    input  wire logic [511:0]      m_axi_rdata,
    input  wire logic [3:0]        m_axi_rid,
    input  wire logic [1:0]        m_axi_rresp,
    input  wire logic              m_axi_rlast
);

  localparam int unsigned QUEUE_BITS = $clog2(QUEUES);
  localparam logic [6:0] MAX_BEATS = 7'd16;

  // ---- entries ----
  logic [QUEUES-1:0] active_q;
  logic [QUEUES-1:0] pending_q;  // a read or a write of it is under way
  logic [QUEUES-1:0] waits_q;    // WAIT or BARRIER
  logic [QUEUES-1:0] single_q;   // WAIT
  logic [QUEUES-1:0] polls_q;    // is past its raise
  logic [63:0]       fence_m[0:QUEUES-1];
  logic [63:0]       lines_m[0:QUEUES-1];
  logic [6:0]        count_m[0:QUEUES-1];
  logic [63:0]       value_m[0:QUEUES-1];
  logic [63:0]       deadline_m[0:QUEUES-1];
  logic [6:0]        at_m[0:QUEUES-1];  // the first fence that was behind
  logic [15:0]       raising_q;         // by address bits 9 to 6
  assign sync_waiting_o = active_q & waits_q;

  // ---- jobs come in ----
  localparam logic [1:0] TAKE = 2'd0;
  localparam logic [1:0] MULTIPLY = 2'd1;
  localparam logic [1:0] ADD = 2'd2;
  localparam logic [1:0] ENTER = 2'd3;
  logic [1:0]            in_state_q;
  logic [63:0]           now_q;
  logic [63:0]           cycles_q;
  logic [64:0]           deadline_q;
  logic [QUEUE_BITS-1:0] in_queue;
  logic                  in_waits;
  logic                  in_raises;
  logic                  enter;
  logic                  progress;  // the poll's step forward is being written
  assign in_queue     = sync_queue_i[QUEUE_BITS-1:0];
  assign in_waits     = sync_opcode_i != 4'(penstock_pkg::OP_SIGNAL);
  assign in_raises    = sync_opcode_i != 4'(penstock_pkg::OP_WAIT);
  assign enter        = in_state_q == ENTER && !progress;
  assign sync_ready_o = enter;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      in_state_q <= TAKE;
      now_q      <= '0;
    end else begin
      now_q <= now_q + 64'd1;
      case (in_state_q)
        TAKE: if (sync_valid_i) in_state_q <= MULTIPLY;
        MULTIPLY: in_state_q <= ADD;
        ADD: in_state_q <= ENTER;
        default: if (enter) in_state_q <= TAKE;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (in_state_q == MULTIPLY) cycles_q <= {32'd0, sync_timeout_ms_i} * {32'd0, clock_khz_i};
    if (in_state_q == ADD) deadline_q <= {1'b0, now_q} + {1'b0, cycles_q};
    if (enter) begin
      fence_m[in_queue]    <= sync_fence_i;
      lines_m[in_queue]    <= sync_lines_i;
      count_m[in_queue]    <= sync_count_i;
      value_m[in_queue]    <= sync_value_i;
      deadline_m[in_queue] <= deadline_q[64] ? '1 : deadline_q[63:0];
    end
  end

  // ---- whose turn it is to read ----
  localparam logic [1:0] PICK = 2'd0;
  localparam logic [1:0] LOOK = 2'd1;
  localparam logic [1:0] SEND = 2'd2;
  logic [1:0]            read_state_q;
  logic                  picked;
  logic [QUEUE_BITS-1:0] pick;
  logic [QUEUE_BITS-1:0] read_queue_q;
  logic                  read_polls;
  logic                  read_go;
  logic [63:0]           read_fence;
  logic [63:0]           read_address;
  logic [6:0]            read_left;
  logic [6:0]            read_to_page;
  logic [6:0]            read_beats;
  logic [63:0]           araddr_q;
  logic [6:0]            beats_q;
  logic                  room;
  logic [QUEUES-1:0]     raises;
  logic [QUEUES-1:0]     candidates;
  logic                  blocked_q;  // the last raise had to wait for another one
  logic [QUEUES-1:0]     grant_unused;
  assign raises     = active_q & ~pending_q & ~polls_q;
  assign candidates = raises != '0 && !blocked_q ? raises : active_q & ~pending_q;
  penstock_arbiter #(
      .N(QUEUES)
  ) u_arbiter (
      .clk_i,
      .rst_ni,
      .request_i(read_state_q == PICK && room ? candidates : '0),
      .valid_o  (picked),
      .ready_i  (1'b1),
      .grant_o  (grant_unused),
      .index_o  (pick)
  );
  assign read_polls   = polls_q[read_queue_q];
  assign read_fence   = fence_m[read_queue_q];
  assign read_address = read_polls
                            ? lines_m[read_queue_q] + {51'd0, at_m[read_queue_q], 6'd0}
                            : read_fence;
  assign read_left    = count_m[read_queue_q] - at_m[read_queue_q];
  assign read_to_page = 7'd64 - {1'b0, read_address[11:6]};
  assign read_go      = read_state_q == LOOK && (read_polls || !raising_q[read_fence[9:6]]);
  always_comb begin
    read_beats = read_left < read_to_page ? read_left : read_to_page;
    if (read_beats > MAX_BEATS) read_beats = MAX_BEATS;
    if (!read_polls) read_beats = 7'd1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      read_state_q <= PICK;
      blocked_q    <= 1'b0;
    end else begin
      case (read_state_q)
        PICK: if (picked) read_state_q <= LOOK;
        LOOK: begin
          read_state_q <= read_go ? SEND : PICK;
          blocked_q    <= !read_go;
        end
        default: if (m_axi_arready) read_state_q <= PICK;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (picked) read_queue_q <= pick;
    if (read_go) begin
      araddr_q <= read_address;
      beats_q  <= read_beats;
    end
  end
  assign m_axi_arvalid = read_state_q == SEND;
  assign m_axi_araddr  = araddr_q;
  assign m_axi_arlen   = {1'b0, beats_q - 7'd1};
  assign m_axi_arid    = 4'd0;

  // ---- data comes back, in order ----
  localparam int unsigned FLIGHT_BITS = QUEUE_BITS + 5;
  localparam int unsigned READ_COUNT_BITS = $clog2(READS + 1);
  logic                       coming;
  logic [FLIGHT_BITS-1:0]     flight;
  logic [4:0]                 beat_q;
  logic                       beat_last;
  logic [READ_COUNT_BITS-1:0] reads;
  assign m_axi_rready = 1'b1;
  assign poll_o       = m_axi_rvalid;
  assign beat_last    = beat_q + 5'd1 == flight[4:0];
  penstock_fifo #(
      .WIDTH(FLIGHT_BITS),
      .DEPTH(READS)
  ) u_flight (
      .clk_i,
      .rst_ni,
      .in_valid_i (m_axi_arvalid && m_axi_arready),
      .in_ready_o (room),
      .in_data_i  ({read_queue_q, beats_q[4:0]}),
      .out_valid_o(coming),
      .out_ready_i(m_axi_rvalid && beat_last),
      .out_data_o (flight),
      .count_o    (reads)
  );

  // Step 1: a line's counter. Step 2: whether it has reached the value; sums over a burst.
  logic                  a_valid_q;
  logic                  a_last_q;
  logic                  a_error_q;
  logic [63:0]           a_seen_q;
  logic [QUEUE_BITS-1:0] a_queue_q;
  logic                  b_valid_q;
  logic                  b_error_q;
  logic                  b_behind_q;
  logic [4:0]            b_passed_q;  // lines before the first that is behind
  logic [63:0]           b_seen_q;
  logic [QUEUE_BITS-1:0] b_queue_q;
  logic                  fresh_q;     // the next line is the first of a burst
  logic                  reached;
  logic                  behind;
  assign reached = a_seen_q >= value_m[a_queue_q];
  assign behind  = !reached || (!fresh_q && b_behind_q);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beat_q    <= '0;
      a_valid_q <= 1'b0;
      b_valid_q <= 1'b0;
      fresh_q   <= 1'b1;
    end else begin
      if (m_axi_rvalid) beat_q <= beat_last ? '0 : beat_q + 5'd1;
      a_valid_q <= m_axi_rvalid;
      b_valid_q <= a_valid_q && a_last_q;
      if (a_valid_q) fresh_q <= a_last_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (m_axi_rvalid) begin
      a_last_q  <= beat_last;
      a_error_q <= m_axi_rresp != 2'b00;
      a_seen_q  <= m_axi_rdata[63:0];
      a_queue_q <= flight[FLIGHT_BITS-1:5];
    end
    if (a_valid_q) begin
      b_error_q  <= a_error_q || (!fresh_q && b_error_q);
      b_behind_q <= behind;
      b_passed_q <= (fresh_q ? 5'd0 : b_passed_q) + {4'd0, !behind};
      b_seen_q   <= a_seen_q;
      b_queue_q  <= a_queue_q;
    end
  end

  // Step 3: what follows for the entry.
  logic        b_polls;
  logic [63:0] b_address;
  logic [6:0]  b_at;
  logic [6:0]  b_at_next;
  logic        b_raise;     // the fence has to be written
  logic        b_raised;    // it needs not
  logic        b_finish;
  logic [4:0]  b_status;
  logic [4:0]  b_field;
  logic [63:0] b_detail;
  assign b_polls   = polls_q[b_queue_q];
  assign b_at      = at_m[b_queue_q];
  assign b_at_next = b_at + {2'd0, b_passed_q};
  assign b_address = b_polls ? lines_m[b_queue_q] + {51'd0, b_at, 6'd0} : fence_m[b_queue_q];
  assign b_raise   = b_valid_q && !b_error_q && !b_polls && b_behind_q;
  assign b_raised  = b_valid_q && !b_error_q && !b_polls && !b_behind_q;
  assign progress  = b_valid_q && !b_error_q && b_polls;
  always_comb begin
    b_finish = 1'b0;
    b_status = 5'(penstock_pkg::OK);
    b_field  = 5'(penstock_pkg::FIELD_NONE);
    b_detail = '0;
    if (b_error_q) begin
      b_finish = b_valid_q;
      b_status = 5'(penstock_pkg::IO_ERROR);
      b_field  = b_polls ? 5'(penstock_pkg::FIELD_SRC) : 5'(penstock_pkg::FIELD_DST);
      b_detail = b_address;
    end else if (!b_polls) begin
      b_finish = b_raised && !waits_q[b_queue_q];
    end else if (!b_behind_q) begin
      b_finish = b_valid_q && b_at_next == count_m[b_queue_q];
      if (single_q[b_queue_q]) b_detail = b_seen_q;
    end else if (sync_cancel_i[b_queue_q]) begin
      b_finish = b_valid_q;
      b_status = 5'(penstock_pkg::CANCELLED);
    end else if (now_q >= deadline_m[b_queue_q]) begin
      b_finish = b_valid_q;
      b_status = 5'(penstock_pkg::DEADLINE_EXCEEDED);
      b_detail = single_q[b_queue_q] ? b_seen_q : {57'd0, b_at_next};
    end
  end
  always_ff @(posedge clk_i) begin
    if (progress) at_m[b_queue_q] <= b_at_next;
    else if (enter) at_m[in_queue] <= '0;
  end

  // ---- writes ----
  localparam logic [1:0] NEXT = 2'd0;
  localparam logic [1:0] ADDRESS = 2'd1;
  localparam logic [1:0] DATA = 2'd2;
  localparam int unsigned WRITE_COUNT_BITS = $clog2(WRITES + 1);
  localparam int unsigned RAISE_COUNT_BITS = $clog2(QUEUES + 1);
  logic [1:0]                  write_state_q;
  logic                        to_write;
  logic [QUEUE_BITS-1:0]       to_write_queue;
  logic [RAISE_COUNT_BITS-1:0] to_write_count;
  logic                        raise_room_unused;
  logic                        write_room;
  logic                        written;
  logic                        written_valid;
  logic [QUEUE_BITS-1:0]       written_queue;
  logic [WRITE_COUNT_BITS-1:0] writes;
  logic [63:0]                 awaddr_q;
  logic [63:0]                 wvalue_q;
  logic                        b_ok;

  // A place for each queue, so that no answer of a read waits for a write.
  penstock_fifo #(
      .WIDTH(QUEUE_BITS),
      .DEPTH(QUEUES)
  ) u_raises (
      .clk_i,
      .rst_ni,
      .in_valid_i (b_raise),
      .in_ready_o (raise_room_unused),
      .in_data_i  (b_queue_q),
      .out_valid_o(to_write),
      .out_ready_i(m_axi_wvalid && m_axi_wready),
      .out_data_o (to_write_queue),
      .count_o    (to_write_count)
  );
  penstock_fifo #(
      .WIDTH(QUEUE_BITS),
      .DEPTH(WRITES)
  ) u_writes (
      .clk_i,
      .rst_ni,
      .in_valid_i (m_axi_wvalid && m_axi_wready),
      .in_ready_o (write_room),
      .in_data_i  (to_write_queue),
      .out_valid_o(written_valid),
      .out_ready_i(written),
      .out_data_o (written_queue),
      .count_o    (writes)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) write_state_q <= NEXT;
    else begin
      case (write_state_q)
        NEXT: if (to_write && write_room) write_state_q <= ADDRESS;
        ADDRESS: if (m_axi_awready) write_state_q <= DATA;
        default: if (m_axi_wready) write_state_q <= NEXT;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (write_state_q == NEXT && to_write) begin
      awaddr_q <= fence_m[to_write_queue];
      wvalue_q <= value_m[to_write_queue];
    end
  end
  assign m_axi_awvalid = write_state_q == ADDRESS;
  assign m_axi_awaddr  = awaddr_q;
  assign m_axi_awid    = 4'd0;
  assign m_axi_awlen   = 8'd0;
  assign m_axi_wvalid  = write_state_q == DATA;
  assign m_axi_wdata   = {448'd0, wvalue_q};
  assign m_axi_wstrb   = 64'hff;
  assign m_axi_wlast   = 1'b1;
  // Answers of reads go first; there is one in three cycles at most.
  assign m_axi_bready  = !b_valid_q && written_valid;
  assign written       = m_axi_bvalid && m_axi_bready;
  assign b_ok          = m_axi_bresp == 2'b00;

  // ---- how jobs end ----
  localparam int unsigned DONE_COUNT_BITS = $clog2(QUEUES + 1);
  logic                       finish;
  logic                       written_finish;
  logic [79:0]                done_in;
  logic [79:0]                done_out;
  logic                       done_room_unused;
  logic [DONE_COUNT_BITS-1:0] done_count;
  logic [QUEUE_BITS-1:0]      finish_queue;
  assign written_finish = written && (!b_ok || !waits_q[written_queue]);
  assign finish         = b_finish || written_finish;
  assign finish_queue   = b_valid_q ? b_queue_q : written_queue;
  assign done_in        = b_valid_q ? {b_detail, b_field, b_status, 6'(b_queue_q)} :
                          b_ok ? {64'd0, 5'(penstock_pkg::FIELD_NONE), 5'(penstock_pkg::OK),
                                  6'(written_queue)} :
                                 {fence_m[written_queue], 5'(penstock_pkg::FIELD_DST),
                                  5'(penstock_pkg::IO_ERROR), 6'(written_queue)};
  // A place for each queue, as above.
  penstock_fifo #(
      .WIDTH(80),
      .DEPTH(QUEUES)
  ) u_done (
      .clk_i,
      .rst_ni,
      .in_valid_i (finish),
      .in_ready_o (done_room_unused),
      .in_data_i  (done_in),
      .out_valid_o(sync_done_valid_o),
      .out_ready_i(sync_done_ready_i),
      .out_data_o (done_out),
      .count_o    (done_count)
  );
  assign sync_done_queue_o  = done_out[5:0];
  assign sync_done_status_o = done_out[10:6];
  assign sync_done_field_o  = done_out[15:11];
  assign sync_done_detail_o = done_out[79:16];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q  <= '0;
      pending_q <= '0;
      waits_q   <= '0;
      single_q  <= '0;
      polls_q   <= '0;
      raising_q <= '0;
    end else begin
      if (read_go) begin
        pending_q[read_queue_q] <= 1'b1;
        if (!read_polls) raising_q[read_fence[9:6]] <= 1'b1;
      end
      if (b_valid_q && !b_raise) pending_q[b_queue_q] <= 1'b0;
      if (b_raised) polls_q[b_queue_q] <= 1'b1;
      if (b_valid_q && !b_polls && !b_raise) raising_q[fence_m[b_queue_q][9:6]] <= 1'b0;
      if (written) begin
        pending_q[written_queue] <= 1'b0;
        polls_q[written_queue]   <= 1'b1;
        raising_q[fence_m[written_queue][9:6]] <= 1'b0;
      end
      if (finish) active_q[finish_queue] <= 1'b0;
      if (enter) begin
        active_q[in_queue] <= 1'b1;
        waits_q[in_queue]  <= in_waits;
        single_q[in_queue] <= !in_raises;
        polls_q[in_queue]  <= !in_raises;
      end
    end
  end
  assign idle_o = active_q == '0 && done_count == '0 && in_state_q == TAKE;

  /* verilator lint_off UNUSEDSIGNAL */
  logic unused;
  assign unused = &{1'b0, grant_unused, coming, reads, raise_room_unused, done_room_unused,
                    to_write_count, writes, m_axi_bid, m_axi_rid, m_axi_rlast,
                    m_axi_rdata[511:64]};
  /* verilator lint_on UNUSEDSIGNAL */

endmodule

`default_nettype wire
