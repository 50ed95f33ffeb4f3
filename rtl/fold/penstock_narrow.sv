// Rounds LANES numbers of f32 in every cycle to a narrow format, two cycles after they were there.
`default_nettype none

module penstock_narrow #(
    parameter int unsigned LANES = 16
) (
    input  wire logic                clk_i,
    // Steps 1 and 2 move; nothing else changes.
    input  wire logic [2:1]          step_i,
    // What penstock_narrow_pkg::format_of says; it holds as long as one of its numbers is inside.
    input  wire logic [56:0]         format_i,
    // The number is one of these four.
    input  wire logic [1:0]          select_i,
    input  wire logic [LANES*32-1:0] value_0_i,
    input  wire logic [LANES*32-1:0] value_1_i,
    input  wire logic [LANES*32-1:0] value_2_i,
    input  wire logic [LANES*32-1:0] value_3_i,
    // Codes, of two bytes or in the low one of two.
    output      logic [LANES*16-1:0] code_o
);

  logic [LANES*32-1:0] shifted_q;
  logic [LANES*16-1:0] code_q;
  logic [7:0]          least;
  logic [3:0]          fraction_bits;
  logic [14:0]         largest;
  logic [14:0]         overflow;
  logic [14:0]         nan;

  assign {least, fraction_bits, largest, overflow, nan} = format_i;
  assign code_o = code_q;

  always_ff @(posedge clk_i) begin
    if (step_i[1]) begin
      for (int i = 0; i < LANES; i = i + 1) begin
        shifted_q[i*32+:32] <= 32'(penstock_narrow_pkg::narrow_shift(
            select_i[1] ? (select_i[0] ? value_3_i[i*32+:32] : value_2_i[i*32+:32])
                        : (select_i[0] ? value_1_i[i*32+:32] : value_0_i[i*32+:32]),
            least, fraction_bits));
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (step_i[2]) begin
      for (int i = 0; i < LANES; i = i + 1) begin
        code_q[i*16+:16] <= penstock_narrow_pkg::narrow_code(shifted_q[i*32+:24], fraction_bits,
                                                             largest, overflow, nan);
      end
    end
  end

endmodule

`default_nettype wire
