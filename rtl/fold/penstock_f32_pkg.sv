// Arithmetic on f32, cut into steps with a register between each two: the steps are functions, the
// registers belong to whoever chains them. Subnormals are kept, every result is rounded to nearest
// even, and every NaN that comes out is the canonical one (host/engine/numeric.h).
//
//   a product    multiply_unpack -> multiply_integers -> multiply_normalise -> round
//   a sum        add_order -> add_integers -> add_normalise -> round
//   min, max     compare; in place of a sum they pass through its other steps
//
// What lies between two steps is a word with a flag `settled`: its result is known already (an
// infinity, a NaN, a zero), stands in the low 32 bits, and the steps that follow only pass it on.
`default_nettype none

package penstock_f32_pkg;

  localparam logic [31:0] NAN = 32'h7fc00000;

  // ---- Rounding ---------------------------------------------------------------------------------

  // {settled, sign, base[9:0], significand[23:0], half, rest}: the number
  // (significand + half/2 + rest/4) * 2^(base - 149). `base` is the exponent's field less one; a
  // significand with its top bit counts as one in that field, one without it is subnormal and has
  // base 0. `rest` stands for all bits below.
  function automatic [31:0] round(input [37:0] number);
    logic [33:0] code;
    code = {1'b0, number[35:26], 23'b0} + {10'b0, number[25:2]}
        + {33'b0, number[1] & (number[0] | number[2])};
    if (number[37]) round = number[31:0];
    else if (code >= 34'h07f800000) round = {number[36], 31'h7f800000};
    else round = {number[36], code[30:0]};
  endfunction

  // ---- Multiplication ---------------------------------------------------------------------------

  // {settled, sign, exponent[9:0], a[23:0], b[23:0]}: a * b * 2^(exponent - 127 - 46).
  function automatic [59:0] multiply_unpack(input [31:0] a, input [31:0] b);
    logic       sign;
    logic       settled;
    logic [9:0] exponent;
    sign     = a[31] ^ b[31];
    settled  = (&a[30:23]) || (&b[30:23]) || a[30:0] == 31'b0 || b[30:0] == 31'b0;
    exponent = {2'b0, a[30:24], a[23] | (a[30:23] == 8'b0)}
        + {2'b0, b[30:24], b[23] | (b[30:23] == 8'b0)} - 10'd127;
    multiply_unpack = {settled, sign, exponent, a[30:23] != 8'b0, a[22:0], b[30:23] != 8'b0,
                       b[22:0]};
    if (settled) begin
      if (a[30:0] > 31'h7f800000 || b[30:0] > 31'h7f800000) multiply_unpack[31:0] = NAN;
      else if (a[30:0] == 31'b0 || b[30:0] == 31'b0) begin
        // Zero times infinity is no number.
        multiply_unpack[31:0] = (&a[30:23]) || (&b[30:23]) ? NAN : {sign, 31'b0};
      end else begin
        multiply_unpack[31:0] = {sign, 31'h7f800000};
      end
    end
  endfunction

  // {settled, sign, exponent[9:0], product[47:0]}
  function automatic [59:0] multiply_integers(input [59:0] factors);
    multiply_integers = factors;
    if (!factors[59]) begin
      multiply_integers[47:0] = {24'b0, factors[47:24]} * {24'b0, factors[23:0]};
    end
  endfunction

  // Of 48 bits that are not all zero.
  function automatic [5:0] leading_zeros_48(input [47:0] value);
    logic [63:0] rest;
    rest = {value, 16'b0};
    leading_zeros_48 = 6'b0;
    if (rest[63:32] == 32'b0) begin
      leading_zeros_48[5] = 1'b1;
      rest = rest << 32;
    end
    if (rest[63:48] == 16'b0) begin
      leading_zeros_48[4] = 1'b1;
      rest = rest << 16;
    end
    if (rest[63:56] == 8'b0) begin
      leading_zeros_48[3] = 1'b1;
      rest = rest << 8;
    end
    if (rest[63:60] == 4'b0) begin
      leading_zeros_48[2] = 1'b1;
      rest = rest << 4;
    end
    if (rest[63:62] == 2'b0) begin
      leading_zeros_48[1] = 1'b1;
      rest = rest << 2;
    end
    if (!rest[63]) leading_zeros_48[0] = 1'b1;
  endfunction

  // Moves the product's leading one to the top bit, where the exponent permits it; a result below
  // the smallest normal number moves right instead.
  function automatic [37:0] multiply_normalise(input [59:0] number);
    logic [47:0] product;
    logic [9:0]  exponent;
    logic [9:0]  right;
    logic [5:0]  zeros;
    logic        rest;
    product  = number[47:0];
    exponent = number[57:48];
    zeros    = 6'b0;
    rest     = 1'b0;
    if (!product[47]) zeros = product[46] ? 6'd1 : leading_zeros_48(product);
    if (!exponent[9] && exponent >= {4'b0, zeros}) begin
      product  = product << zeros;
      exponent = exponent - {4'b0, zeros};
    end else if (!exponent[9]) begin
      product  = product << exponent[5:0];
      exponent = 10'b0;
    end else begin
      right    = -exponent;
      rest     = (right > 10'd47 ? product : product & ~(48'hffffffffffff << right[5:0])) != 48'b0;
      product  = right > 10'd47 ? 48'b0 : product >> right[5:0];
      exponent = 10'b0;
    end
    multiply_normalise = {1'b0, number[58], exponent, product[47:23],
                          product[22:0] != 23'b0 || rest};
    if (number[59]) multiply_normalise = {1'b1, 5'b0, number[31:0]};
  endfunction

  // ---- Addition and comparison ------------------------------------------------------------------

  // {settled, subtract, sign, exponent[7:0], shift[4:0], greater[23:0], lesser[23:0]}: the operand
  // of greater magnitude, and how far the other one lies to its right.
  //
  // With compare_only the result is the minimum, or with `greatest` the maximum, of IEEE 754-2019.
  function automatic [63:0] add_order(input [31:0] a, input [31:0] b, input compare_only,
                                      input greatest);
    logic        a_first;  // by magnitude
    logic        a_least;
    logic [31:0] high;
    logic [31:0] low;
    logic [7:0]  high_exponent;
    logic [7:0]  distance;
    logic        settled;
    a_first = a[30:0] >= b[30:0];
    high    = a_first ? a : b;
    low     = a_first ? b : a;
    // The exponent of a subnormal number is that of the smallest normal one.
    high_exponent = {high[30:24], high[23] | (high[30:23] == 8'b0)};
    distance      = high_exponent - {low[30:24], low[23] | (low[30:23] == 8'b0)};
    settled       = compare_only || (&high[30:23]);
    add_order     = {settled, high[31] ^ low[31], high[31], high_exponent,
                     distance > 8'd31 ? 5'd31 : distance[4:0],
                     high[30:23] != 8'b0, high[22:0], low[30:23] != 8'b0, low[22:0]};
    if (settled) begin
      a_least = a[31] != b[31] ? a[31] : a[31] == a_first;
      if (high[30:0] > 31'h7f800000) add_order[31:0] = NAN;
      else if (compare_only) add_order[31:0] = a_least != greatest ? a : b;
      else if ((&low[30:23]) && high[31] != low[31]) add_order[31:0] = NAN;
      else add_order[31:0] = high;
    end
  endfunction

  // {settled, sign, exponent[7:0], sum[27:0]}: sum * 2^(exponent - 127 - 26). The lowest bit stands
  // for all that was shifted out, too.
  function automatic [37:0] add_integers(input [63:0] order);
    logic [26:0] lesser;
    logic [27:0] sum;
    lesser    = {order[23:0], 3'b0} >> order[52:48];
    lesser[0] = lesser[0] | (({order[23:0], 3'b0} & ~(27'h7ffffff << order[52:48])) != 27'b0);
    sum = order[62] ? {1'b0, order[47:24], 3'b0} - {1'b0, lesser}
                    : {1'b0, order[47:24], 3'b0} + {1'b0, lesser};
    // What cancels out is a positive zero.
    add_integers = {1'b0, order[61] && !(order[62] && sum == 28'b0), order[60:53], sum};
    if (order[63]) add_integers = {1'b1, 5'b0, order[31:0]};
  endfunction

  function automatic [37:0] add_normalise(input [37:0] number);
    logic [31:0] rest;
    logic [4:0]  zeros;
    logic [26:0] sum;
    logic [7:0]  base;
    base  = number[35:28] - 8'd1;
    sum   = number[26:0];
    zeros = 5'b0;
    if (number[37]) add_normalise = number;
    else if (number[27]) begin
      // {..., half, rest} of a sum that is one bit longer
      add_normalise = {1'b0, number[36], 2'b0, number[35:28], number[27:3],
                       number[2:0] != 3'b0};
    end else begin
      if (!sum[26]) begin
        rest = {sum, 5'b11111};
        if (rest[31:16] == 16'b0) begin
          zeros[4] = 1'b1;
          rest = rest << 16;
        end
        if (rest[31:24] == 8'b0) begin
          zeros[3] = 1'b1;
          rest = rest << 8;
        end
        if (rest[31:28] == 4'b0) begin
          zeros[2] = 1'b1;
          rest = rest << 4;
        end
        if (rest[31:30] == 2'b0) begin
          zeros[1] = 1'b1;
          rest = rest << 2;
        end
        if (!rest[31]) zeros[0] = 1'b1;
        // Down to the exponent of subnormal numbers, or of zero.
        if ({3'b0, zeros} > base) zeros = base[4:0];
        sum  = sum << zeros;
        base = sum[26] ? base - {3'b0, zeros} : 8'b0;
      end
      add_normalise = {1'b0, number[36], 2'b0, base, sum[26:2], sum[1:0] != 2'b0};
    end
  endfunction

endpackage

`default_nettype wire
