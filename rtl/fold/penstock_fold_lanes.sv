// Sixteen f32 lanes: two banks of accumulators, a multiplier and an adder for each lane. All
// control comes from penstock_fold; what moves in a cycle is named by the enables, and nothing else
// changes.
//
//   beat -> operand_q ---------------------------> add (4 steps) -> sum -> bank
//              |        accumulator_q -^   ^
//              +-> multiply (4 steps) -> product -> bank
//   bank -> drained_q -^                   +-------> out (average)
//
// In the place of their accumulators the first lanes also hold 512 bits of integers, or of what is
// merely copied.
`default_nettype none

module penstock_fold_lanes #(
    // 0 to 3: elements 16 * GROUP and up of a beat. Of f32 there are 16, of two-byte floats 32.
    parameter int unsigned GROUP = 0
) (
    input  wire logic         clk_i,

    // A beat becomes operands.
    input  wire logic         load_i,
    input  wire logic         load_raw_i,
    input  wire logic [3:0]   load_type_i,
    input  wire logic [511:0] load_data_i,
    // Accumulators become operands.
    input  wire logic         fetch_i,
    input  wire logic         fetch_bank_i,
    // Accumulators leave.
    input  wire logic         drain_i,
    input  wire logic         drain_bank_i,
    // Where each bank is read, for both.
    input  wire logic [5:0]   read_0_i,
    input  wire logic [5:0]   read_1_i,

    // Steps 1 to 4 of a product move. The first takes what was drained, or an operand, and
    // multiplies it with the factor, or with the accumulator.
    input  wire logic [4:1]   multiply_i,
    input  wire logic         multiply_drained_i,
    input  wire logic         multiply_accumulator_i,
    input  wire logic [31:0]  factor_i,
    // Steps 1 to 4 of a sum move. The first takes a product or an operand beside the accumulator.
    input  wire logic [4:1]   add_i,
    input  wire logic         add_product_i,
    input  wire logic         add_compare_i,   // a minimum instead
    input  wire logic         add_greatest_i,  // a maximum
    // What is written into each bank: 0 the operands, 1 products, 2 sums, 3 this.
    input  wire logic [511:0] integers_i,
    input  wire logic         write_0_i,
    input  wire logic [1:0]   write_0_source_i,
    input  wire logic [5:0]   write_0_index_i,
    input  wire logic         write_1_i,
    input  wire logic [1:0]   write_1_source_i,
    input  wire logic [5:0]   write_1_index_i,

    output      logic [511:0] operand_o,
    output      logic [511:0] accumulator_o,
    output      logic [511:0] drained_o,
    output      logic [511:0] product_o
);

  localparam bit WORDS = GROUP == 0;
  localparam bit HALVES = GROUP < 2;
  localparam logic [3:0] F32 = 4'(penstock_pkg::F32);
  localparam logic [3:0] F16 = 4'(penstock_pkg::F16);
  localparam logic [3:0] BF16 = 4'(penstock_pkg::BF16);
  localparam logic [3:0] F8E5M2 = 4'(penstock_pkg::F8E5M2);

  (* ram_style = "distributed" *) logic [511:0] bank_0_q[0:63];
  (* ram_style = "distributed" *) logic [511:0] bank_1_q[0:63];
  logic [511:0] operand_q;
  logic [511:0] accumulator_q;
  logic [511:0] drained_q;
  logic [511:0] product;
  logic [511:0] sum;

  assign operand_o     = operand_q;
  assign accumulator_o = accumulator_q;
  assign drained_o     = drained_q;
  assign product_o     = product;

  // ---- Operands ---------------------------------------------------------------------------------

  always_ff @(posedge clk_i) begin
    if (load_i) begin
      if (WORDS && (load_raw_i || load_type_i == F32)) begin
        operand_q <= load_data_i;
      end else if (HALVES && load_type_i == F16) begin
        for (int i = 0; i < 16; i = i + 1) begin
          operand_q[i*32+:32] <= penstock_narrow_pkg::widen_f16(
              load_data_i[((GROUP%2)*16+i)*16+:16]);
        end
      end else if (HALVES && load_type_i == BF16) begin
        for (int i = 0; i < 16; i = i + 1) begin
          operand_q[i*32+:32] <= penstock_narrow_pkg::widen_bf16(
              load_data_i[((GROUP%2)*16+i)*16+:16]);
        end
      end else begin
        for (int i = 0; i < 16; i = i + 1) begin
          operand_q[i*32+:32] <= penstock_narrow_pkg::widen_f8(
              load_data_i[(GROUP*16+i)*8+:8], load_type_i == F8E5M2);
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (fetch_i) begin
      if (fetch_bank_i) accumulator_q <= bank_1_q[read_1_i];
      else accumulator_q <= bank_0_q[read_0_i];
    end
    if (drain_i) begin
      if (drain_bank_i) drained_q <= bank_1_q[read_1_i];
      else drained_q <= bank_0_q[read_0_i];
    end
  end

  // ---- Products and sums ------------------------------------------------------------------------

  penstock_f32_multiply i_multiply (
      .clk_i,
      .step_i(multiply_i),
      .other_i(multiply_drained_i),
      .a_i(operand_q),
      .a_other_i(drained_q),
      .each_i(multiply_accumulator_i),
      .b_i(accumulator_q),
      .factor_i,
      .product_o(product)
  );

  penstock_f32_add i_add (
      .clk_i,
      .step_i(add_i),
      .compare_i(add_compare_i),
      .greatest_i(add_greatest_i),
      .a_i(accumulator_q),
      .other_i(add_product_i),
      .b_i(operand_q),
      .b_other_i(product),
      .sum_o(sum)
  );

  // ---- Accumulators -----------------------------------------------------------------------------

  always_ff @(posedge clk_i) begin
    if (write_0_i) begin
      case (write_0_source_i)
        2'd0: bank_0_q[write_0_index_i] <= operand_q;
        2'd1: bank_0_q[write_0_index_i] <= product;
        2'd2: bank_0_q[write_0_index_i] <= sum;
        default: bank_0_q[write_0_index_i] <= integers_i;
      endcase
    end
    if (write_1_i) begin
      case (write_1_source_i)
        2'd0: bank_1_q[write_1_index_i] <= operand_q;
        2'd1: bank_1_q[write_1_index_i] <= product;
        2'd2: bank_1_q[write_1_index_i] <= sum;
        default: bank_1_q[write_1_index_i] <= integers_i;
      endcase
    end
  end

endmodule

`default_nettype wire
