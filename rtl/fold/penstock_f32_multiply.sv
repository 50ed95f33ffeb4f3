// LANES products of f32 in every cycle, four cycles after their factors were there.
`default_nettype none

module penstock_f32_multiply #(
    parameter int unsigned LANES = 16
) (
    input  wire logic                clk_i,
    // Steps 1 to 4 move; nothing else changes.
    input  wire logic [4:1]          step_i,
    // One factor is one of these two,
    input  wire logic                other_i,
    input  wire logic [LANES*32-1:0] a_i,
    input  wire logic [LANES*32-1:0] a_other_i,
    // and the second is b, or the same for all.
    input  wire logic                each_i,
    input  wire logic [LANES*32-1:0] b_i,
    input  wire logic [31:0]         factor_i,
    output      logic [LANES*32-1:0] product_o
);

  logic [LANES*64-1:0] factors_q;
  logic [LANES*64-1:0] integers_q;
  logic [LANES*64-1:0] normal_q;
  logic [LANES*32-1:0] product_q;

  assign product_o = product_q;

  always_ff @(posedge clk_i) begin
    if (step_i[1]) begin
      for (int i = 0; i < LANES; i = i + 1) begin
        factors_q[i*64+:64] <= 64'(penstock_f32_pkg::multiply_unpack(
            other_i ? a_other_i[i*32+:32] : a_i[i*32+:32], each_i ? b_i[i*32+:32] : factor_i));
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (step_i[2]) begin
      for (int i = 0; i < LANES; i = i + 1) begin
        integers_q[i*64+:64] <= 64'(penstock_f32_pkg::multiply_integers(factors_q[i*64+:60]));
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (step_i[3]) begin
      for (int i = 0; i < LANES; i = i + 1) begin
        normal_q[i*64+:64] <= 64'(penstock_f32_pkg::multiply_normalise(integers_q[i*64+:60]));
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (step_i[4]) begin
      for (int i = 0; i < LANES; i = i + 1) begin
        product_q[i*32+:32] <= penstock_f32_pkg::round(normal_q[i*64+:38]);
      end
    end
  end

endmodule

`default_nettype wire
