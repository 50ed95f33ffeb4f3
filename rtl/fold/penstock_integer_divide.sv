// Divides 8-, 32- or 64-bit integers by one small number, truncating toward zero: 512 bits of them
// in every cycle, LATENCY cycles after they were taken.
//
// A number is divided as on paper, four bits in a cycle. The remainder is below 64, so that one
// digit costs little, and the chain of 64 digits of a word serves all sizes: where a number begins
// the remainder is 0. Signed numbers are divided by magnitude.
`default_nettype none

module penstock_integer_divide #(
    // Cycles from valid_i to valid_o. Not to be set.
    parameter int unsigned LATENCY = 18
) (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,
    input  wire logic         valid_i,
    input  wire logic         last_i,
    input  wire logic [511:0] data_i,
    // These hold as long as one of their numbers is inside.
    input  wire logic [1:0]   size_i,
    input  wire logic         signed_i,
    input  wire logic [6:0]   divisor_i,  // 2 to 64
    output      logic         valid_o,
    output      logic         last_o,
    output      logic [511:0] data_o,
    output      logic         busy_o      // something is inside
);

  localparam int unsigned STEPS = 16;

  logic [LATENCY-1:0] valid_q;
  logic [LATENCY-1:0] last_q;
  logic [511:0]       data_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= {valid_q[LATENCY-2:0], valid_i};
    last_q <= {last_q[LATENCY-2:0], last_i};
  end

  // Before step s: what is left of the words, with the quotient below; the remainders; and which
  // numbers are negative (at their top bits).
  for (genvar s = 0; s <= STEPS; s++) begin : g_step
    logic [511:0] words_q;
    logic [511:0] signs_q;
    /* verilator lint_off UNUSEDSIGNAL */
    logic [47:0]  remainders_q;  // nobody needs the last ones
    /* verilator lint_on UNUSEDSIGNAL */
    if (s == 0) begin : g_first
      always_ff @(posedge clk_i) begin
        if (valid_i) begin
          for (int i = 0; i < 8; i = i + 1) begin
            words_q[i*64+:64] <= penstock_integer_pkg::negate(data_i[i*64+:64],
                signed_i ? data_i[i*64+:64] & penstock_integer_pkg::tops(size_i) : 64'b0, size_i);
            signs_q[i*64+:64] <= signed_i
                ? data_i[i*64+:64] & penstock_integer_pkg::tops(size_i) : 64'b0;
          end
          remainders_q <= 48'b0;
        end
      end
    end else begin : g_next
      always_ff @(posedge clk_i) begin
        if (valid_q[s-1]) begin
          for (int i = 0; i < 8; i = i + 1) begin
            {remainders_q[i*6+:6], words_q[i*64+:64]} <= penstock_integer_pkg::divide_step(
                (size_i == penstock_integer_pkg::BITS_8 && s % 2 == 1)
                    || (size_i == penstock_integer_pkg::BITS_32 && s % 8 == 1)
                    ? 6'b0 : g_step[s-1].remainders_q[i*6+:6],
                g_step[s-1].words_q[i*64+:64], divisor_i);
          end
          signs_q <= g_step[s-1].signs_q;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (valid_q[STEPS]) begin
      for (int i = 0; i < 8; i = i + 1) begin
        data_q[i*64+:64] <= penstock_integer_pkg::negate(g_step[STEPS].words_q[i*64+:64],
            g_step[STEPS].signs_q[i*64+:64], size_i);
      end
    end
  end

  assign valid_o = valid_q[LATENCY-1];
  assign last_o  = last_q[LATENCY-1];
  assign data_o  = data_q;
  assign busy_o  = valid_q != '0;

endmodule

`default_nettype wire
