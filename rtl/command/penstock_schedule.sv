// Chooses the queue that the walker looks at next, in turns, and remembers what a queue waits for
// that was looked at and could not go on:
//
//   done          its jobs under way, all of them
//   acknowledged  also that memory has confirmed their completions
//   reduce        a slot of the reduction engine and a place among its jobs
//   score         a place at the scoring engine
//
// and of which kind the last of its jobs was. Jobs of one kind follow one another, and end in their
// order; a job of another kind waits until all before it are acknowledged. An answer without a job
// (a NOP, a refusal) keeps its place: it waits until the jobs before it are done.
`default_nettype none

module penstock_schedule #(
    // Queues: 1 to 64.
    parameter int unsigned QUEUES = 64
) (
    input  wire logic              clk_i,
    input  wire logic              rst_ni,
    // A queue starts anew.
    input  wire logic              clear_i,
    input  wire logic [5:0]        clear_queue_i,
    // Queues that may be looked at, apart from what they wait for.
    input  wire logic [QUEUES-1:0] takeable_i,
    input  wire logic              pick_i,  // takes the one that is shown
    output      logic              picked_o,
    output      logic [5:0]        pick_o,
    // What the queue at the walker waits for; or what was taken of it.
    input  wire logic [5:0]        queue_i,
    input  wire logic              wait_done_i,
    input  wire logic              wait_acknowledged_i,
    input  wire logic              wait_reduce_i,
    input  wire logic              wait_score_i,
    input  wire logic              took_reduce_i,
    input  wire logic              took_score_i,
    input  wire logic              took_sync_i,
    input  wire logic              took_answer_i,
    output      logic              kind_reduce_o,
    output      logic              kind_score_o,
    output      logic              kind_answer_o,
    // What they wait for comes.
    input  wire logic              done_i,
    input  wire logic [5:0]        done_queue_i,
    input  wire logic              acknowledged_i,
    input  wire logic [5:0]        acknowledged_queue_i,
    input  wire logic              reduce_free_i,
    input  wire logic              score_free_i
);

  localparam int unsigned QUEUE_BITS = QUEUES > 1 ? $clog2(QUEUES) : 1;

  logic [QUEUES-1:0] wait_done_q;
  logic [QUEUES-1:0] wait_acknowledged_q;
  logic [QUEUES-1:0] wait_reduce_q;
  logic [QUEUES-1:0] wait_score_q;
  logic [QUEUES-1:0] kind_reduce_q;
  logic [QUEUES-1:0] kind_score_q;
  logic [QUEUES-1:0] kind_answer_q;

  logic [QUEUE_BITS-1:0] queue;
  logic [QUEUE_BITS-1:0] pick;
  logic [QUEUES-1:0]     ready;
  logic [QUEUES-1:0]     grant_unused;
  assign queue  = queue_i[QUEUE_BITS-1:0];
  assign pick_o = 6'(pick);
  assign ready  = takeable_i & ~wait_done_q & ~wait_acknowledged_q &
                  ~(reduce_free_i ? '0 : wait_reduce_q) & ~(score_free_i ? '0 : wait_score_q);

  penstock_arbiter #(
      .N(QUEUES)
  ) u_arbiter (
      .clk_i,
      .rst_ni,
      .request_i(pick_i ? ready : '0),
      .valid_o  (picked_o),
      .ready_i  (1'b1),
      .grant_o  (grant_unused),
      .index_o  (pick)
  );

  assign kind_reduce_o = kind_reduce_q[queue];
  assign kind_score_o  = kind_score_q[queue];
  assign kind_answer_o = kind_answer_q[queue];

  // What comes in the cycle in which a queue begins to wait wins: the walker has not seen it.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wait_done_q         <= '0;
      wait_acknowledged_q <= '0;
      wait_reduce_q       <= '0;
      wait_score_q        <= '0;
      kind_reduce_q       <= '0;
      kind_score_q        <= '0;
      kind_answer_q       <= '0;
    end else begin
      if (picked_o) begin
        wait_reduce_q[pick] <= 1'b0;
        wait_score_q[pick]  <= 1'b0;
      end
      if (wait_done_i) wait_done_q[queue] <= 1'b1;
      if (wait_acknowledged_i) wait_acknowledged_q[queue] <= 1'b1;
      if (wait_reduce_i) wait_reduce_q[queue] <= 1'b1;
      if (wait_score_i) wait_score_q[queue] <= 1'b1;
      if (done_i) wait_done_q[done_queue_i[QUEUE_BITS-1:0]] <= 1'b0;
      if (acknowledged_i) wait_acknowledged_q[acknowledged_queue_i[QUEUE_BITS-1:0]] <= 1'b0;
      if (took_reduce_i || took_score_i || took_sync_i || took_answer_i) begin
        kind_reduce_q[queue] <= took_reduce_i;
        kind_score_q[queue]  <= took_score_i;
        kind_answer_q[queue] <= took_answer_i;
      end
      if (clear_i) begin
        wait_done_q[clear_queue_i[QUEUE_BITS-1:0]]         <= 1'b0;
        wait_acknowledged_q[clear_queue_i[QUEUE_BITS-1:0]] <= 1'b0;
        wait_reduce_q[clear_queue_i[QUEUE_BITS-1:0]]       <= 1'b0;
        wait_score_q[clear_queue_i[QUEUE_BITS-1:0]]        <= 1'b0;
        kind_reduce_q[clear_queue_i[QUEUE_BITS-1:0]]       <= 1'b0;
        kind_score_q[clear_queue_i[QUEUE_BITS-1:0]]        <= 1'b0;
        kind_answer_q[clear_queue_i[QUEUE_BITS-1:0]]       <= 1'b0;
      end
    end
  end

  /* verilator lint_off UNUSEDSIGNAL */
  logic unused;
  assign unused = &{1'b0, grant_unused};
  /* verilator lint_on UNUSEDSIGNAL */

endmodule

`default_nettype wire
