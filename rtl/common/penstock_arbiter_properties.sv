// Bound to every penstock_arbiter: a grant that is shown stays until it is taken, and so does its
// request.
`default_nettype none

module penstock_arbiter_properties #(
    parameter int unsigned N = 4
) (
    input wire logic         clk_i,
    input wire logic         rst_ni,
    input wire logic [N-1:0] request_i,
    input wire logic         ready_i,
    input wire logic [N-1:0] grant_o
);

  logic [N-1:0] shown_q;  // the grant of the last cycle, if it was not taken

  always_ff @(posedge clk_i) begin
    shown_q <= !rst_ni || ready_i ? '0 : grant_o;
  end

  a_held: assert property (@(posedge clk_i) disable iff (!rst_ni) (shown_q & ~request_i) == '0)
  else $error("arbiter: the request of a grant that is shown was taken back: %b", shown_q);
  a_one: assert property (@(posedge clk_i) disable iff (!rst_ni) $onehot0(grant_o))
  else $error("arbiter: more than one grant: %b", grant_o);
  a_shown: assert property (@(posedge clk_i) disable iff (!rst_ni)
      shown_q != '0 |-> grant_o == shown_q)
  else $error("arbiter: a grant changed before it was taken: %b to %b", shown_q, grant_o);

endmodule

bind penstock_arbiter penstock_arbiter_properties #(
    .N(N)
) i_properties (
    .clk_i,
    .rst_ni,
    .request_i,
    .ready_i,
    .grant_o
);

`default_nettype wire
