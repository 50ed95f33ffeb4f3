// For the unit test: the steps of the float units and converters one after another, without the
// registers between them.
`default_nettype none

module fold_harness (
    // 0 sum, 1 product, 2 minimum, 3 maximum of a and b; 4 narrow code, 5 wide value of a.
    input  wire logic [2:0]  select_i,
    input  wire logic [3:0]  type_i,
    input  wire logic [31:0] a_i,
    input  wire logic [31:0] b_i,
    output      logic [31:0] result_o
);

  logic [7:0]  least;
  logic [3:0]  fraction_bits;
  logic [14:0] largest;
  logic [14:0] overflow;
  logic [14:0] nan;
  logic [23:0] shifted;

  always_comb begin
    {least, fraction_bits, largest, overflow, nan} = penstock_narrow_pkg::format_of(type_i);
    shifted  = '0;
    result_o = '0;
    case (select_i)
      3'd0, 3'd2, 3'd3: begin
        result_o = penstock_f32_pkg::round(penstock_f32_pkg::add_normalise(
            penstock_f32_pkg::add_integers(penstock_f32_pkg::add_order(a_i, b_i, select_i != 3'd0,
                                                                       select_i == 3'd3))));
      end
      3'd1: begin
        result_o = penstock_f32_pkg::round(penstock_f32_pkg::multiply_normalise(
            penstock_f32_pkg::multiply_integers(penstock_f32_pkg::multiply_unpack(a_i, b_i))));
      end
      3'd4: begin
        shifted  = penstock_narrow_pkg::narrow_shift(a_i, least, fraction_bits);
        result_o = {16'b0, penstock_narrow_pkg::narrow_code(shifted, fraction_bits, largest,
                                                            overflow, nan)};
      end
      default: begin
        if (type_i == 4'(penstock_pkg::F16)) begin
          result_o = penstock_narrow_pkg::widen_f16(a_i[15:0]);
        end else if (type_i == 4'(penstock_pkg::BF16)) begin
          result_o = penstock_narrow_pkg::widen_bf16(a_i[15:0]);
        end else begin
          result_o = penstock_narrow_pkg::widen_f8(a_i[7:0],
                                                   type_i == 4'(penstock_pkg::F8E5M2));
        end
      end
    endcase
  end

endmodule

`default_nettype wire
