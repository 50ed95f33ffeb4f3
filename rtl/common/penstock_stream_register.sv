// Cuts every combinational path between two sides of a stream: valid, data and ready all come from
// registers. Two words fit, so that one moves in every cycle; a word takes one cycle.
`default_nettype none

module penstock_stream_register #(
    // Bits of a word.
    parameter int unsigned WIDTH = 32
) (
    input  wire logic             clk_i,
    input  wire logic             rst_ni,
    input  wire logic             in_valid_i,
    output      logic             in_ready_o,
    input  wire logic [WIDTH-1:0] in_data_i,
    output      logic             out_valid_o,
    input  wire logic             out_ready_i,
    output      logic [WIDTH-1:0] out_data_o
);

  logic             out_valid_q;
  logic [WIDTH-1:0] out_q;
  logic             spare_valid_q;  // then out_valid_q, too
  logic [WIDTH-1:0] spare_q;        // came while the output was held back

  logic             load;  // the output takes a word, if there is one

  assign in_ready_o  = !spare_valid_q;
  assign out_valid_o = out_valid_q;
  assign out_data_o  = out_q;
  assign load        = !out_valid_q || out_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_valid_q   <= 1'b0;
      spare_valid_q <= 1'b0;
    end else if (load) begin
      out_valid_q   <= spare_valid_q || in_valid_i;
      spare_valid_q <= 1'b0;
    end else begin
      spare_valid_q <= spare_valid_q || in_valid_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (load) begin
      if (spare_valid_q) out_q <= spare_q;
      else if (in_valid_i) out_q <= in_data_i;
    end
    if (in_valid_i && !spare_valid_q) spare_q <= in_data_i;
  end

`ifdef FORMAL
  logic             f_reset_q = 1'b0;
  (* anyseq *) logic f_choose;
  logic             f_follow_q;
  logic             f_before_q;  // a word leaves before the one that is followed
  logic [WIDTH-1:0] f_word_q;
  logic             f_push;
  logic             f_pop;

  assign f_push = in_valid_i && in_ready_o;
  assign f_pop  = out_valid_o && out_ready_i;

  always_ff @(posedge clk_i) begin
    f_reset_q <= 1'b1;
    if (!f_reset_q) assume (!rst_ni);
    if (!rst_ni) begin
      f_follow_q <= 1'b0;
    end else if (!f_follow_q) begin
      if (f_push && f_choose) begin
        f_follow_q <= 1'b1;
        f_word_q   <= in_data_i;
        f_before_q <= out_valid_q && !f_pop;
      end
    end else if (f_pop) begin
      if (f_before_q) f_before_q <= 1'b0;
      else f_follow_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (f_reset_q && rst_ni) begin
      assert (!spare_valid_q || out_valid_q);
      if (f_follow_q) begin
        assert (f_before_q ? spare_valid_q && spare_q == f_word_q
                           : out_valid_q && out_q == f_word_q);
      end
      if ($past(rst_ni) && $past(out_valid_o) && !$past(out_ready_i)) begin
        assert (out_valid_o && out_data_o == $past(out_data_o));
      end
      cover (spare_valid_q);
      cover (f_push && f_pop);
      cover (f_follow_q && f_pop && !f_before_q);
    end
  end
`endif

endmodule

`default_nettype wire
