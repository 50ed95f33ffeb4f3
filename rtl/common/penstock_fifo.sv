// A queue of DEPTH words whose oldest stands at the output as soon as it is there (first-word
// fall-through): a word that enters an empty queue is seen in the next cycle.
//
// A word moves where valid and ready meet. One may enter and one leave in the same cycle, except
// that a full queue takes nothing until a word has left.
`default_nettype none

module penstock_fifo #(
    // Bits of a word.
    parameter int unsigned WIDTH = 32,
    // Words that fit: 1 or more.
    parameter int unsigned DEPTH = 4,
    // Not to be set.
    parameter int unsigned COUNT_BITS = $clog2(DEPTH + 1)
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    input  wire logic                  in_valid_i,
    output      logic                  in_ready_o,
    input  wire logic [WIDTH-1:0]      in_data_i,
    output      logic                  out_valid_o,
    input  wire logic                  out_ready_i,
    output      logic [WIDTH-1:0]      out_data_o,
    // Words inside.
    output      logic [COUNT_BITS-1:0] count_o
);

  localparam int unsigned INDEX_BITS = DEPTH > 1 ? $clog2(DEPTH) : 1;
  localparam logic [INDEX_BITS-1:0] LAST = INDEX_BITS'(DEPTH - 1);

  logic [WIDTH-1:0]      words_q[0:DEPTH-1];
  logic [INDEX_BITS-1:0] head_q;  // the oldest word
  logic [INDEX_BITS-1:0] tail_q;  // the next free place
  logic [COUNT_BITS-1:0] count_q;
  logic                  push;
  logic                  pop;

  assign in_ready_o  = count_q != COUNT_BITS'(DEPTH);
  assign out_valid_o = count_q != '0;
  assign out_data_o  = words_q[head_q];
  assign count_o     = count_q;
  assign push        = in_valid_i && in_ready_o;
  assign pop         = out_valid_o && out_ready_i;

  always_ff @(posedge clk_i) begin
    if (push) words_q[tail_q] <= in_data_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      head_q  <= '0;
      tail_q  <= '0;
      count_q <= '0;
    end else begin
      if (push) tail_q <= tail_q == LAST ? '0 : tail_q + 1'b1;
      if (pop) head_q <= head_q == LAST ? '0 : head_q + 1'b1;
      if (push && !pop) count_q <= count_q + 1'b1;
      if (pop && !push) count_q <= count_q - 1'b1;
    end
  end

`ifdef FORMAL
  // One word, whichever the solver chooses, is followed from its entry to its exit: it leaves as it
  // came, after exactly those that were before it.
  logic                  f_reset_q = 1'b0;
  (* anyseq *) logic     f_choose;
  logic                  f_follow_q;
  logic [WIDTH-1:0]      f_word_q;
  logic [COUNT_BITS-1:0] f_before_q;  // words that leave before it
  logic [INDEX_BITS:0]   f_place;

  always_ff @(posedge clk_i) begin
    f_reset_q <= 1'b1;
    if (!f_reset_q) assume (!rst_ni);
    if (!rst_ni) begin
      f_follow_q <= 1'b0;
    end else if (!f_follow_q) begin
      if (push && f_choose) begin
        f_follow_q <= 1'b1;
        f_word_q   <= in_data_i;
        f_before_q <= count_q - (pop ? 1'b1 : 1'b0);
      end
    end else if (pop) begin
      if (f_before_q == '0) f_follow_q <= 1'b0;
      else f_before_q <= f_before_q - 1'b1;
    end
  end

  assign f_place = {1'b0, head_q} + (INDEX_BITS + 1)'(f_before_q);

  always_ff @(posedge clk_i) begin
    if (f_reset_q && rst_ni) begin
      assert (count_q <= COUNT_BITS'(DEPTH));
      assert (head_q <= LAST && tail_q <= LAST);
      assert ((COUNT_BITS + 1)'(tail_q) ==
              ((COUNT_BITS + 1)'(head_q) + {1'b0, count_q} >= (COUNT_BITS + 1)'(DEPTH)
                   ? (COUNT_BITS + 1)'(head_q) + {1'b0, count_q} - (COUNT_BITS + 1)'(DEPTH)
                   : (COUNT_BITS + 1)'(head_q) + {1'b0, count_q}));
      if (f_follow_q) begin
        assert (f_before_q < count_q);
        assert (words_q[f_place > {1'b0, LAST} ? INDEX_BITS'(f_place - (INDEX_BITS + 1)'(DEPTH))
                                               : INDEX_BITS'(f_place)] == f_word_q);
        if (pop && f_before_q == '0) assert (out_data_o == f_word_q);
      end
      cover (count_q == COUNT_BITS'(DEPTH));
      cover (f_follow_q && pop && f_before_q == '0);
      cover (push && pop && head_q == LAST);
    end
  end
`endif

endmodule

`default_nettype wire
