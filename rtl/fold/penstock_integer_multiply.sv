// Products of 8-, 32- or 64-bit integers modulo their size: 512 bits of them in every cycle, four
// cycles after their factors were taken.
//
// A 64-bit product is put together of three products of 32-bit halves, of which two are those of
// 32-bit numbers; 8-bit numbers have multipliers of their own. The factors and the products have
// registers of their own, which a multiplier of the fabric takes into itself.
`default_nettype none

module penstock_integer_multiply (
    input  wire logic         clk_i,
    // Steps 1 to 4 move. The size holds as long as one of its numbers is inside.
    input  wire logic [4:1]   step_i,
    input  wire logic [1:0]   size_i,
    // a times the scale, which stands in each 64 bits, or times b.
    input  wire logic         scaled_i,
    input  wire logic [63:0]  scale_i,
    input  wire logic [511:0] a_i,
    input  wire logic [511:0] b_i,
    output      logic [511:0] product_o
);

  logic [511:0] a_q;
  logic [511:0] b_q;
  logic [511:0] low_q;    // low halves, all 64 bits
  logic [255:0] cross_q;  // upper half of a, with the lower (64 bits) or the upper (32) of b
  logic [255:0] other_q;  // lower half of a with the upper of b
  logic [511:0] bytes_q;
  logic [511:0] low_2_q;
  logic [255:0] cross_2_q;
  logic [511:0] product_q;

  always_ff @(posedge clk_i) begin
    if (step_i[1]) begin
      a_q <= a_i;
      if (scaled_i) b_q <= {8{scale_i}};
      else b_q <= b_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (step_i[2]) begin
      if (size_i == penstock_integer_pkg::BITS_8) begin
        for (int i = 0; i < 64; i = i + 1) begin
          bytes_q[i*8+:8] <= a_q[i*8+:8] * b_q[i*8+:8];
        end
      end else begin
        for (int i = 0; i < 8; i = i + 1) begin
          low_q[i*64+:64] <= {32'b0, a_q[i*64+:32]} * {32'b0, b_q[i*64+:32]};
          cross_q[i*32+:32] <= a_q[i*64+32+:32]
              * (size_i == penstock_integer_pkg::BITS_64 ? b_q[i*64+:32] : b_q[i*64+32+:32]);
          other_q[i*32+:32] <= a_q[i*64+:32] * b_q[i*64+32+:32];
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (step_i[3]) begin
      if (size_i == penstock_integer_pkg::BITS_8) begin
        low_2_q <= bytes_q;
      end else begin
        low_2_q <= low_q;
        for (int i = 0; i < 8; i = i + 1) begin
          cross_2_q[i*32+:32] <= size_i == penstock_integer_pkg::BITS_64
              ? cross_q[i*32+:32] + other_q[i*32+:32] : cross_q[i*32+:32];
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (step_i[4]) begin
      product_q <= low_2_q;
      if (size_i != penstock_integer_pkg::BITS_8) begin
        for (int i = 0; i < 8; i = i + 1) begin
          product_q[i*64+32+:32] <= size_i == penstock_integer_pkg::BITS_64
              ? low_2_q[i*64+32+:32] + cross_2_q[i*32+:32] : cross_2_q[i*32+:32];
        end
      end
    end
  end

  assign product_o = product_q;

endmodule

`default_nettype wire
