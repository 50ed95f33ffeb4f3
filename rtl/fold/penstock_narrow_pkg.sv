// The narrow floating-point formats: exact widening to f32, and rounding from f32 to nearest even
// in two steps (narrow_shift, narrow_round). Formats and rules are those of host/engine/numeric.h.
`default_nettype none

package penstock_narrow_pkg;

  // ---- Widening ---------------------------------------------------------------------------------

  function automatic [31:0] widen_f16(input [15:0] code);
    logic [9:0] fraction;
    logic [7:0] exponent;
    fraction = code[9:0];
    exponent = {3'b0, code[14:10]} + 8'd112;
    if (code[14:10] == 5'b0) begin
      // The leading one of a subnormal number moves to the implicit place.
      exponent = 8'd113;
      if (fraction[9:2] == 8'b0) begin
        fraction = fraction << 8;
        exponent = exponent - 8'd8;
      end
      if (fraction[9:6] == 4'b0) begin
        fraction = fraction << 4;
        exponent = exponent - 8'd4;
      end
      if (fraction[9:8] == 2'b0) begin
        fraction = fraction << 2;
        exponent = exponent - 8'd2;
      end
      if (!fraction[9]) begin
        fraction = fraction << 1;
        exponent = exponent - 8'd1;
      end
      fraction = fraction << 1;
      exponent = exponent - 8'd1;
    end
    if (code[14:0] == 15'b0) widen_f16 = {code[15], 31'b0};
    else if (code[14:0] == 15'h7c00) widen_f16 = {code[15], 31'h7f800000};
    else if (code[14:0] > 15'h7c00) widen_f16 = penstock_f32_pkg::NAN;
    else widen_f16 = {code[15], exponent, fraction, 13'b0};
  endfunction

  function automatic [31:0] widen_bf16(input [15:0] code);
    widen_bf16 = code[14:0] > 15'h7f80 ? penstock_f32_pkg::NAN : {code, 16'b0};
  endfunction

  // f8e5m2 is the upper half of f16; f8e4m3 has no infinities.
  function automatic [31:0] widen_f8(input [7:0] code, input e5m2);
    logic [2:0] fraction;
    logic [7:0] exponent;
    fraction = code[2:0];
    exponent = {4'b0, code[6:3]} + 8'd120;
    if (e5m2) begin
      fraction = {code[1:0], 1'b0};
      exponent = {3'b0, code[6:2]} + 8'd112;
    end
    if (e5m2 ? code[6:2] == 5'b0 : code[6:3] == 4'b0) begin
      if (fraction[2]) begin
        fraction = {fraction[1:0], 1'b0};
      end else if (fraction[1]) begin
        fraction = {fraction[0], 2'b0};
        exponent = exponent - 8'd1;
      end else begin
        fraction = 3'b0;
        exponent = exponent - 8'd2;
      end
    end
    if (code[6:0] == 7'b0) widen_f8 = {code[7], 31'b0};
    else if (e5m2 ? code[6:0] > 7'h7c : code[6:0] == 7'h7f) widen_f8 = penstock_f32_pkg::NAN;
    else if (e5m2 && code[6:0] == 7'h7c) widen_f8 = {code[7], 31'h7f800000};
    else widen_f8 = {code[7], exponent, fraction, 20'b0};
  endfunction

  // ---- Narrowing --------------------------------------------------------------------------------

  // {least[7:0], fraction_bits[3:0], largest[14:0], overflow[14:0], nan[14:0]} of a format: the
  // exponent's field, in f32, of its smallest normal number; bits of its fraction; codes, without
  // the sign, of its largest finite number, of what lies beyond, and of the canonical NaN.
  function automatic [56:0] format_of(input [3:0] element);
    if (element == 4'(penstock_pkg::F16)) begin
      format_of = {8'd113, 4'd10, 15'h7bff, 15'h7c00, 15'h7e00};
    end else if (element == 4'(penstock_pkg::BF16)) begin
      format_of = {8'd1, 4'd7, 15'h7f7f, 15'h7f80, 15'h7fc0};
    end else if (element == 4'(penstock_pkg::F8E4M3)) begin
      format_of = {8'd121, 4'd3, 15'h7e, 15'h7e, 15'h7f};
    end else begin  // f8e5m2
      format_of = {8'd113, 4'd2, 15'h7b, 15'h7b, 15'h7e};
    end
  endfunction

  // {sign, nan, infinite, steps[7:0], kept[10:0], half, rest}: `steps` is how far the exponent lies
  // above that of the smallest normal number, `kept` the significand with its implicit bit, `half`
  // and `rest` what the format has no room for.
  function automatic [23:0] narrow_shift(input [31:0] value, input [7:0] least,
                                         input [3:0] fraction_bits);
    logic [4:0]  drop;
    logic [7:0]  exponent;
    logic [7:0]  below;
    logic [4:0]  shift;
    logic [24:0] significand;  // with a bit for `half`
    logic [11:0] kept;
    logic        rest;
    drop        = 5'd23 - {1'b0, fraction_bits};
    exponent    = {value[30:24], value[23] | (value[30:23] == 8'b0)};
    significand = {value[30:23] != 8'b0, value[22:0], 1'b0};
    below       = exponent < least ? least - exponent : 8'b0;
    // Past 25 nothing is left to round up.
    shift       = below > 8'd25 || {3'b0, drop} + below > 8'd25 ? 5'd25 : drop + below[4:0];
    kept        = 12'(significand >> shift);
    rest        = (significand & ~(25'h1ffffff << shift)) != 25'b0;
    narrow_shift = {value[31] && value[30:0] <= 31'h7f800000, value[30:0] > 31'h7f800000,
                    value[30:0] == 31'h7f800000,
                    below == 8'b0 ? exponent - least : 8'b0, kept, rest};
  endfunction

  // The code: of two bytes, or in the low one of two.
  function automatic [15:0] narrow_code(input [23:0] number, input [3:0] fraction_bits,
                                        input [14:0] largest, input [14:0] overflow,
                                        input [14:0] nan);
    logic [19:0] sum;
    logic [14:0] magnitude;
    sum = ({12'b0, number[20:13]} << fraction_bits) + {9'b0, number[12:2]}
        + {19'b0, number[1] & (number[0] | number[2])};
    if (number[22]) magnitude = nan;
    else if (number[21] || sum > {5'b0, largest}) magnitude = overflow;
    else magnitude = sum[14:0];
    // The formats of one byte have 2 or 3 bits of fraction.
    if (fraction_bits[3:2] == 2'b0) narrow_code = {8'b0, number[23], magnitude[6:0]};
    else narrow_code = {number[23], magnitude};
  endfunction

endpackage

`default_nettype wire
