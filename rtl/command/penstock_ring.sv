// The rings' counters. A descriptor of a queue goes through six of them, always in this order:
//
//   submitted (TAIL)   a doorbell said that it stands in the ring
//   issued             its read was sent
//   arrived (HEAD)     it stands in the card's records, and its place in the ring is free
//   taken              the walker has begun it: it will complete exactly once
//   done               its completion is on its way to memory; that order is the queue's
//   acknowledged       memory has confirmed the completion; its record's place is free
//
// All are free-running and start at START. What holds for each queue, modulo 2^BITS:
//   acknowledged <= done <= taken <= arrived <= issued <= submitted
//   issued - acknowledged <= SLOTS: each has a place of its own among the records
//   submitted - arrived <= depth: no place of the ring is written before it was read
//
// The queues' counters stand in memories with one writer each. A queue is cleared before its first
// use and while nothing of it is under way; in that cycle nobody else may move a counter.
`default_nettype none

module penstock_ring #(
    // Queues: 1 to 64.
    parameter int unsigned QUEUES = 64,
    // Records that the card holds for a queue: a power of two, 2 or more.
    parameter int unsigned SLOTS = 32,
    // Of them, those that were not yet taken.
    parameter int unsigned PREFETCH = 8,
    // Of a counter.
    parameter int unsigned BITS = 32,
    // Their first value. Not 0 only in tests, to see them wrap.
    parameter logic [31:0] START = 32'd0
) (
    input  wire logic              clk_i,
    input  wire logic              rst_ni,
    // Puts all counters of a queue to START.
    input  wire logic              clear_i,
    input  wire logic [5:0]        clear_queue_i,
    // A doorbell: the new count of submitted descriptors. doorbell_legal_o says in the same cycle
    // whether it is neither behind the last one nor more than `depth` ahead of HEAD; only then may
    // doorbell_i be.
    input  wire logic              doorbell_i,
    input  wire logic [5:0]        doorbell_queue_i,
    input  wire logic [BITS-1:0]   doorbell_count_i,
    input  wire logic [BITS-1:0]   doorbell_depth_i,
    output      logic              doorbell_legal_o,
    output      logic [BITS-1:0]   doorbell_submitted_o,
    output      logic [BITS-1:0]   doorbell_arrived_o,
    output      logic              doorbell_settled_o,   // nothing of it is under way
    output      logic              doorbell_finished_o,  // and nothing is left
    // Queues that may have something to fetch: to be looked at, one at a time. issue_none_i says
    // that a look found nothing.
    output      logic [QUEUES-1:0] fetchable_o,
    input  wire logic [5:0]        issue_queue_i,
    output      logic [BITS-1:0]   issue_count_o,  // of those issued before
    output      logic              issue_more_o,
    input  wire logic              issue_i,        // only where issue_more_o is
    input  wire logic              issue_none_i,
    input  wire logic              arrive_i,
    input  wire logic [5:0]        arrive_queue_i,
    // Queues that may have something to take; as above.
    output      logic [QUEUES-1:0] takeable_o,
    input  wire logic [5:0]        take_queue_i,
    output      logic [BITS-1:0]   take_count_o,
    output      logic              take_more_o,
    output      logic              take_done_o,          // all that were taken are done
    output      logic              take_acknowledged_o,  // and acknowledged
    input  wire logic              take_i,
    input  wire logic              take_none_i,
    input  wire logic              done_i,
    input  wire logic [5:0]        done_queue_i,
    output      logic [63:0]       done_count_o,
    output      logic              done_last_o,  // with this one all that were taken are done
    input  wire logic              acknowledge_i,
    input  wire logic [5:0]        acknowledge_queue_i,
    output      logic              acknowledge_last_o
);

  localparam int unsigned QUEUE_BITS = QUEUES > 1 ? $clog2(QUEUES) : 1;
  localparam logic [BITS-1:0] FIRST = BITS'(START);

  logic [BITS-1:0] submitted_m[0:QUEUES-1];
  logic [BITS-1:0] issued_m[0:QUEUES-1];
  logic [BITS-1:0] arrived_m[0:QUEUES-1];
  logic [BITS-1:0] taken_m[0:QUEUES-1];
  logic [63:0]     done_m[0:QUEUES-1];  // a completion's sequence never wraps
  logic [BITS-1:0] acknowledged_m[0:QUEUES-1];

  logic [QUEUES-1:0] fetchable_q;
  logic [QUEUES-1:0] takeable_q;

  logic [QUEUE_BITS-1:0] clear_queue;
  logic [QUEUE_BITS-1:0] doorbell_queue;
  logic [QUEUE_BITS-1:0] issue_queue;
  logic [QUEUE_BITS-1:0] arrive_queue;
  logic [QUEUE_BITS-1:0] take_queue;
  logic [QUEUE_BITS-1:0] done_queue;
  logic [QUEUE_BITS-1:0] acknowledge_queue;
  assign clear_queue       = clear_queue_i[QUEUE_BITS-1:0];
  assign doorbell_queue    = doorbell_queue_i[QUEUE_BITS-1:0];
  assign issue_queue       = issue_queue_i[QUEUE_BITS-1:0];
  assign arrive_queue      = arrive_queue_i[QUEUE_BITS-1:0];
  assign take_queue        = take_queue_i[QUEUE_BITS-1:0];
  assign done_queue        = done_queue_i[QUEUE_BITS-1:0];
  assign acknowledge_queue = acknowledge_queue_i[QUEUE_BITS-1:0];

  // ---- doorbells ----
  logic [BITS-1:0] doorbell_taken;
  logic [BITS-1:0] ahead;
  logic [BITS-1:0] progress;
  assign doorbell_submitted_o = submitted_m[doorbell_queue];
  assign doorbell_arrived_o   = arrived_m[doorbell_queue];
  assign doorbell_taken       = taken_m[doorbell_queue];
  assign ahead                = doorbell_count_i - doorbell_arrived_o;
  assign progress             = doorbell_count_i - doorbell_submitted_o;
  assign doorbell_legal_o     = ahead <= doorbell_depth_i && progress <= doorbell_depth_i;
  assign doorbell_settled_o   = issued_m[doorbell_queue] == doorbell_arrived_o &&
                                acknowledged_m[doorbell_queue] == doorbell_taken;
  assign doorbell_finished_o  = doorbell_settled_o && doorbell_taken == doorbell_submitted_o;

  // ---- fetches ----
  logic [BITS-1:0] issue_held;
  logic [BITS-1:0] issue_waiting;
  assign issue_count_o = issued_m[issue_queue];
  assign issue_held    = issue_count_o - acknowledged_m[issue_queue];
  assign issue_waiting = issue_count_o - taken_m[issue_queue];
  assign issue_more_o  = issue_count_o != submitted_m[issue_queue] &&
                         issue_held < BITS'(SLOTS) && issue_waiting < BITS'(PREFETCH);

  // ---- walks ----
  assign take_count_o        = taken_m[take_queue];
  assign take_more_o         = take_count_o != arrived_m[take_queue];
  assign take_done_o         = take_count_o == BITS'(done_m[take_queue]);
  assign take_acknowledged_o = take_count_o == acknowledged_m[take_queue];

  // ---- completions ----
  assign done_count_o       = done_m[done_queue];
  assign done_last_o        = BITS'(done_count_o) + 1'b1 == taken_m[done_queue];
  assign acknowledge_last_o = acknowledged_m[acknowledge_queue] + 1'b1 ==
                              taken_m[acknowledge_queue];

  always_ff @(posedge clk_i) begin
    if (clear_i) submitted_m[clear_queue] <= FIRST;
    else if (doorbell_i) submitted_m[doorbell_queue] <= doorbell_count_i;
  end
  always_ff @(posedge clk_i) begin
    if (clear_i) issued_m[clear_queue] <= FIRST;
    else if (issue_i) issued_m[issue_queue] <= issue_count_o + 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (clear_i) arrived_m[clear_queue] <= FIRST;
    else if (arrive_i) arrived_m[arrive_queue] <= arrived_m[arrive_queue] + 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (clear_i) taken_m[clear_queue] <= FIRST;
    else if (take_i) taken_m[take_queue] <= take_count_o + 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (clear_i) done_m[clear_queue] <= {32'd0, START};
    else if (done_i) done_m[done_queue] <= done_count_o + 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (clear_i) acknowledged_m[clear_queue] <= FIRST;
    else if (acknowledge_i) begin
      acknowledged_m[acknowledge_queue] <= acknowledged_m[acknowledge_queue] + 1'b1;
    end
  end

  // A look that finds nothing takes its queue out of the search, unless something came in that very
  // cycle, which the look has not seen. A taken or acknowledged descriptor makes room for a fetch.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fetchable_q <= '0;
      takeable_q  <= '0;
    end else begin
      if (issue_none_i) fetchable_q[issue_queue] <= 1'b0;
      if (doorbell_i) fetchable_q[doorbell_queue] <= 1'b1;
      if (take_i) fetchable_q[take_queue] <= 1'b1;
      if (acknowledge_i) fetchable_q[acknowledge_queue] <= 1'b1;
      if (take_none_i) takeable_q[take_queue] <= 1'b0;
      if (arrive_i) takeable_q[arrive_queue] <= 1'b1;
      if (clear_i) begin
        fetchable_q[clear_queue] <= 1'b0;
        takeable_q[clear_queue]  <= 1'b0;
      end
    end
  end
  assign fetchable_o = fetchable_q;
  assign takeable_o  = takeable_q;

`ifdef FORMAL
  // One queue, whichever the solver chooses. The environment begins nothing before the queue was
  // cleared, and moves a counter only behind the one before it: that each unit does so is what its
  // own assertions say.
  logic                              f_reset_q = 1'b0;
  logic                              f_cleared_q;
  (* anyconst *) logic [QUEUE_BITS-1:0] f_queue;
  (* anyconst *) logic [BITS-1:0]       f_depth;
  logic [BITS-1:0] f_fresh;    // submitted, not yet issued
  logic [BITS-1:0] f_coming;   // issued, not yet arrived
  logic [BITS-1:0] f_waiting;  // arrived, not yet taken
  logic [BITS-1:0] f_working;  // taken, not yet done
  logic [BITS-1:0] f_writing;  // done, not yet acknowledged
  assign f_fresh   = submitted_m[f_queue] - issued_m[f_queue];
  assign f_coming  = issued_m[f_queue] - arrived_m[f_queue];
  assign f_waiting = arrived_m[f_queue] - taken_m[f_queue];
  assign f_working = taken_m[f_queue] - BITS'(done_m[f_queue]);
  assign f_writing = BITS'(done_m[f_queue]) - acknowledged_m[f_queue];

  always_ff @(posedge clk_i) begin
    f_reset_q <= 1'b1;
    if (!f_reset_q) assume (!rst_ni);
    assume (f_queue < QUEUES);
    assume (f_depth >= 2 && f_depth <= (1 << (BITS - 2)));
    assume (!clear_i || {doorbell_i, issue_i, arrive_i, take_i, done_i, acknowledge_i} == '0);
    assume (!issue_i || issue_more_o);
    assume (!issue_none_i || (!issue_more_o && !issue_i));
    assume (!take_i || take_more_o);
    assume (!take_none_i || (!take_more_o && !take_i));
    assume (!doorbell_i || doorbell_legal_o);
    if (doorbell_queue == f_queue) assume (doorbell_depth_i == f_depth);
    if (!f_cleared_q) begin
      assume (!doorbell_i || doorbell_queue != f_queue);
      assume (!issue_i || issue_queue != f_queue);
      assume (!take_i || take_queue != f_queue);
    end
    if (arrive_i && arrive_queue == f_queue) assume (f_cleared_q && f_coming != '0);
    if (done_i && done_queue == f_queue) assume (f_cleared_q && f_working != '0);
    if (acknowledge_i && acknowledge_queue == f_queue) assume (f_cleared_q && f_writing != '0);
    // Only a queue that is settled is cleared; what waits in a stopped one is dropped.
    if (clear_i && clear_queue == f_queue && f_cleared_q) begin
      assume (f_coming == '0 && f_working == '0 && f_writing == '0);
    end
    if (!rst_ni) f_cleared_q <= 1'b0;
    else if (clear_i && clear_queue == f_queue) f_cleared_q <= 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (f_reset_q && rst_ni && f_cleared_q) begin
      // Each distance is small, so that the counters stand in their order whatever wrapped.
      assert (f_fresh <= f_depth);
      assert (f_fresh + f_coming <= f_depth);
      assert (f_coming <= BITS'(PREFETCH) && f_waiting <= BITS'(PREFETCH));
      assert (f_coming + f_waiting <= BITS'(PREFETCH));
      assert (f_working <= BITS'(SLOTS) && f_writing <= BITS'(SLOTS));
      assert (f_coming + f_waiting + f_working + f_writing <= BITS'(SLOTS));
      // Nothing that can be done is forgotten.
      if (f_waiting != '0) assert (takeable_q[f_queue]);
      if (f_fresh != '0 && f_coming + f_waiting < BITS'(PREFETCH) &&
          f_coming + f_waiting + f_working + f_writing < BITS'(SLOTS)) begin
        assert (fetchable_q[f_queue]);
      end
      // Never a place read before its doorbell, never more taken than submitted.
      if (issue_i && issue_queue == f_queue) assert (f_fresh != '0);
      if (take_i && take_queue == f_queue) assert (f_waiting != '0);
      // A doorbell that goes back is not legal, unless by more than half of the numbers there are.
      if (doorbell_queue == f_queue && doorbell_legal_o) assert (progress <= f_depth);
      cover (f_working == BITS'(SLOTS));
      cover (f_fresh == f_depth && f_waiting != '0);
      cover (submitted_m[f_queue] < acknowledged_m[f_queue] && f_writing != '0);
    end
  end
`endif

endmodule

`default_nettype wire
