// LANES sums of f32 in every cycle, or minima, or maxima, four cycles after their operands were
// there.
`default_nettype none

module penstock_f32_add #(
    parameter int unsigned LANES = 16
) (
    input  wire logic                clk_i,
    // Steps 1 to 4 move; nothing else changes.
    input  wire logic [4:1]          step_i,
    input  wire logic                compare_i,   // with step 1: a minimum instead
    input  wire logic                greatest_i,  // a maximum
    input  wire logic [LANES*32-1:0] a_i,
    // The other operand is one of these two.
    input  wire logic                other_i,
    input  wire logic [LANES*32-1:0] b_i,
    input  wire logic [LANES*32-1:0] b_other_i,
    output      logic [LANES*32-1:0] sum_o
);

  logic [LANES*64-1:0] order_q;
  logic [LANES*64-1:0] integers_q;
  logic [LANES*64-1:0] normal_q;
  logic [LANES*32-1:0] sum_q;

  assign sum_o = sum_q;

  always_ff @(posedge clk_i) begin
    if (step_i[1]) begin
      for (int i = 0; i < LANES; i = i + 1) begin
        order_q[i*64+:64] <= penstock_f32_pkg::add_order(a_i[i*32+:32],
            other_i ? b_other_i[i*32+:32] : b_i[i*32+:32], compare_i, greatest_i);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (step_i[2]) begin
      for (int i = 0; i < LANES; i = i + 1) begin
        integers_q[i*64+:64] <= 64'(penstock_f32_pkg::add_integers(order_q[i*64+:64]));
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (step_i[3]) begin
      for (int i = 0; i < LANES; i = i + 1) begin
        normal_q[i*64+:64] <= 64'(penstock_f32_pkg::add_normalise(integers_q[i*64+:38]));
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (step_i[4]) begin
      for (int i = 0; i < LANES; i = i + 1) begin
        sum_q[i*32+:32] <= penstock_f32_pkg::round(normal_q[i*64+:38]);
      end
    end
  end

endmodule

`default_nettype wire
