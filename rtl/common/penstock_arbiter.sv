// Gives one of N requests the turn, in circles: after request i the search begins at i + 1, so that
// a request waits for at most N - 1 others.
//
// The grant is there in the cycle of the request, and once it is shown it stays until ready_i takes
// it, whoever else asks meanwhile; its request is held until then.
`default_nettype none

module penstock_arbiter #(
    // Requests: 1 or more.
    parameter int unsigned N = 4,
    // Not to be set.
    parameter int unsigned INDEX_BITS = N > 1 ? $clog2(N) : 1
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    input  wire logic [N-1:0]          request_i,
    output      logic                  valid_o,
    input  wire logic                  ready_i,
    // One bit, where valid_o is; otherwise none.
    output      logic [N-1:0]          grant_o,
    output      logic [INDEX_BITS-1:0] index_o
);

  logic [N-1:0] later_q;  // the requests behind the one that had the turn last
  logic [N-1:0] shown_q;  // the grant that was shown and not taken; otherwise 0
  logic [N-1:0] later;
  logic [N-1:0] grant;

  assign later = request_i & later_q;
  // x & -x is the lowest bit of x.
  assign grant = shown_q != '0 ? shown_q : later != '0 ? later & (~later + 1'b1)
                                                       : request_i & (~request_i + 1'b1);
  assign grant_o = grant;
  assign valid_o = grant != '0;

  always_comb begin
    index_o = '0;
    for (int unsigned i = 0; i < N; i++) begin
      if (grant[i]) index_o = INDEX_BITS'(i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      later_q <= '0;
      shown_q <= '0;
    end else if (valid_o) begin
      shown_q <= ready_i ? '0 : grant;
      if (ready_i) later_q <= ~(grant | (grant - 1'b1));
    end
  end

`ifdef FORMAL
  // One request, whichever the solver chooses, waits for at most N - 1 others: those that had their
  // turn while it waited, and those from the next turn to its own, are no more.
  logic                                 f_reset_q = 1'b0;
  (* anyconst *) logic [INDEX_BITS-1:0] f_chosen;
  logic [INDEX_BITS:0]                  f_waited_q;
  logic [INDEX_BITS:0]                  f_distance;  // from the next turn to the chosen one's
  logic [INDEX_BITS:0]                  f_to_shown;  // from the next turn to the shown grant's

  always_comb begin
    f_distance = '0;
    f_to_shown = '0;
    for (int unsigned i = 0; i < N; i++) begin
      if (later_q[f_chosen] ? (later_q[i] && i < f_chosen) : (later_q[i] || i < f_chosen)) begin
        f_distance = f_distance + 1'b1;
      end
      if (later_q[index_o] ? (later_q[i] && i < index_o) : (later_q[i] || i < index_o)) begin
        f_to_shown = f_to_shown + 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    f_reset_q <= 1'b1;
    if (!f_reset_q) assume (!rst_ni);
    assume (f_chosen < N);
    if (rst_ni) assume ((shown_q & ~request_i) == '0);
    if (!rst_ni) f_waited_q <= '0;
    else if (!request_i[f_chosen] || (grant_o[f_chosen] && ready_i)) f_waited_q <= '0;
    else if (valid_o && ready_i) f_waited_q <= f_waited_q + 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (f_reset_q && rst_ni) begin
      assert ((grant_o & (grant_o - 1'b1)) == '0);
      assert ((grant_o & ~request_i) == '0);
      assert (valid_o == (request_i != '0));
      assert (!valid_o || grant_o == (N'(1) << index_o));
      // later_q is 0 or the bits from some place upwards.
      assert ((later_q & ~(later_q >> 1) & ~(N'(1) << (N - 1))) == '0);
      assert ((shown_q & (shown_q - 1'b1)) == '0);
      if ($past(rst_ni) && $past(valid_o) && !$past(ready_i)) assert (grant_o == $past(grant_o));
      if (request_i[f_chosen]) begin
        assert ({1'b0, f_waited_q} + {1'b0, f_distance} < (INDEX_BITS + 2)'(N));
        // It asked after the grant was shown, if it stands before it.
        if (shown_q != '0 && f_distance < f_to_shown) assert (f_waited_q == '0);
      end
      cover (f_waited_q == (INDEX_BITS + 1)'(N - 1));
      cover (shown_q != '0 && ready_i && request_i != grant_o);
    end
  end
`endif

endmodule

`default_nettype wire
