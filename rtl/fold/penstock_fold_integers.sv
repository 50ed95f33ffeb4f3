// Folds 512 bits of integers: the sum, minimum or maximum of accumulators and operands, or of
// accumulators and products. Wraps modulo the size.
//
// Latency: a sum, minimum or maximum is there one cycle after its operands; with a product before
// it five cycles after.
`default_nettype none

module penstock_fold_integers (
    input  wire logic         clk_i,
    // Steps 1 to 4 of a product move: of the operand with the scale, or with the accumulator.
    input  wire logic [4:1]   multiply_i,
    input  wire logic         scaled_i,
    input  wire logic [63:0]  scale_i,        // stands in each 64 bits
    // The result is made: of the accumulator and the operand or the product, or the product alone.
    input  wire logic         step_i,
    input  wire logic         product_i,
    input  wire logic         alone_i,
    input  wire logic         compare_i,      // a minimum instead of a sum
    input  wire logic         greatest_i,     // a maximum
    // These hold as long as numbers of their kind are inside.
    input  wire logic [1:0]   size_i,
    input  wire logic         signed_i,
    input  wire logic [511:0] operand_i,
    input  wire logic [511:0] accumulator_i,
    output      logic [511:0] integers_o
);

  logic [511:0] products;
  logic [511:0] integers_q;

  penstock_integer_multiply i_multiply (
      .clk_i,
      .step_i(multiply_i),
      .size_i,
      .scaled_i,
      .scale_i,
      .a_i(operand_i),
      .b_i(accumulator_i),
      .product_o(products)
  );

  always_ff @(posedge clk_i) begin
    if (step_i) begin
      if (alone_i) begin
        integers_q <= products;
      end else begin
        for (int i = 0; i < 8; i = i + 1) begin
          integers_q[i*64+:64] <= compare_i
              ? penstock_integer_pkg::choose(accumulator_i[i*64+:64], operand_i[i*64+:64], size_i,
                                             signed_i, greatest_i)
              : penstock_integer_pkg::add(accumulator_i[i*64+:64],
                    product_i ? products[i*64+:64] : operand_i[i*64+:64], size_i);
        end
      end
    end
  end

  assign integers_o = integers_q;

endmodule

`default_nettype wire
