// Arithmetic on f32, cut into steps with a register between each two: the steps are functions, the
// registers belong to whoever chains them. Subnormals are kept, every result is rounded to nearest
// even, and every NaN that comes out is the canonical one (host/engine/numeric.h).
//
//   a product            multiply_unpack -> multiply_integers -> multiply_normalise -> round
//   a sum, or min, max   add_order -> add_integers -> add_normalise -> round
//
// What lies between two steps is a word whose top bit says that the result is a NaN. Infinities and
// zeros take the way of all numbers, with an exponent from which they come out as they should.
`default_nettype none

package penstock_f32_pkg;

  localparam logic [31:0] NAN = 32'h7fc00000;

  // ---- Rounding --------------------------------------------------------------------------------

  // {nan, sign, base[9:0], significand[23:0], half, rest}: the number
  // (significand + half/2 + rest/4) * 2^(base - 149). `base` is the exponent's field less one; a
  // significand with its top bit counts as one in that field, one without it is subnormal and has
  // base 0. `rest` stands for all bits below.
  function automatic [31:0] round(input [37:0] number);
    logic [33:0] code;
    code = {1'b0, number[35:26], 23'b0} + {10'b0, number[25:2]}
        + {33'b0, number[1] & (number[0] | number[2])};
    if (number[37]) round = NAN;
    else if (code >= 34'h07f800000) round = {number[36], 31'h7f800000};
    else round = {number[36], code[30:0]};
  endfunction

  // ---- Multiplication --------------------------------------------------------------------------

  // {nan, sign, exponent[9:0], a[23:0], b[23:0]}: a * b * 2^(exponent - 127 - 46).
  function automatic [59:0] multiply_unpack(input [31:0] a, input [31:0] b);
    logic       nan;
    logic       infinite;
    logic       zero;
    logic [9:0] exponent;
    infinite = (&a[30:23]) || (&b[30:23]);
    zero     = a[30:0] == 31'b0 || b[30:0] == 31'b0;
    nan      = a[30:0] > 31'h7f800000 || b[30:0] > 31'h7f800000 || (infinite && zero);
    // The exponent of a subnormal number is that of the smallest normal one.
    exponent = {2'b0, a[30:24], a[23] | (a[30:23] == 8'b0)}
        + {2'b0, b[30:24], b[23] | (b[30:23] == 8'b0)} - 10'd127;
    // Far beyond what rounds to infinity, and below what is shifted at all.
    if (infinite) exponent = 10'h1ff;
    if (zero) exponent = 10'h200;
    multiply_unpack = {nan, a[31] ^ b[31], exponent, a[30:23] != 8'b0, a[22:0], b[30:23] != 8'b0,
                       b[22:0]};
  endfunction

  // {nan, sign, exponent[9:0], product[47:0]}
  function automatic [59:0] multiply_integers(input [59:0] factors);
    multiply_integers = {factors[59:48], {24'b0, factors[47:24]} * {24'b0, factors[23:0]}};
  endfunction

  // Of 27 bits; 27 where all are zero.
  function automatic [4:0] leading_zeros(input [26:0] value);
    logic [31:0] rest;
    rest = {value, 5'b11111};
    leading_zeros = 5'b0;
    if (rest[31:16] == 16'b0) begin
      leading_zeros[4] = 1'b1;
      rest = rest << 16;
    end
    if (rest[31:24] == 8'b0) begin
      leading_zeros[3] = 1'b1;
      rest = rest << 8;
    end
    if (rest[31:28] == 4'b0) begin
      leading_zeros[2] = 1'b1;
      rest = rest << 4;
    end
    if (rest[31:30] == 2'b0) begin
      leading_zeros[1] = 1'b1;
      rest = rest << 2;
    end
    if (!rest[31]) leading_zeros[0] = 1'b1;
  endfunction

  // Moves the product's leading one to the top bit, where the exponent permits it; a result below
  // the smallest normal number moves right instead.
  function automatic [37:0] multiply_normalise(input [59:0] number);
    logic [47:0] product;
    logic [24:0] kept;  // the significand and `half`
    logic [9:0]  exponent;
    logic [9:0]  right;
    logic [4:0]  left;
    logic        rest;
    product  = number[47:0];
    exponent = number[57:48];
    if (!exponent[9]) begin
      // One of the factors is a normal number, so that the leading one is among the upper 25 bits.
      left = 5'b0;
      if (!product[47]) begin
        left = product[46] ? 5'd1
                           : penstock_f32_pkg::leading_zeros(product[47:21]);
      end
      if (exponent < {5'b0, left}) left = exponent[4:0];
      product = product << left;
      kept    = product[47:23];
      rest    = product[22:0] != 23'b0;
      // Without a leading one it is subnormal.
      exponent = product[47] ? exponent - {5'b0, left} : 10'b0;
    end else begin
      right    = -exponent;
      if (right > 10'd25) right = 10'd25;
      kept     = product[47:23] >> right[4:0];
      rest     = product[22:0] != 23'b0
          || (product[47:23] & ~(25'h1ffffff << right[4:0])) != 25'b0;
      exponent = 10'b0;
    end
    multiply_normalise = {number[59:58], exponent, kept, rest};
  endfunction

  // ---- Addition and comparison -----------------------------------------------------------------

  // {nan, subtract, sign, exponent[7:0], shift[4:0], greater[23:0], lesser[23:0]}: the operand of
  // greater magnitude, and how far the other one lies to its right.
  //
  // With compare_only the result is the minimum, or with `greatest` the maximum, of IEEE 754-2019:
  // the operand that it is takes the greater's place, and nothing is added to it. So does an
  // infinity.
  function automatic [63:0] add_order(input [31:0] a, input [31:0] b, input compare_only,
                                      input greatest);
    logic        a_first;  // by magnitude
    logic        a_least;
    logic        take_a;
    logic        alone;
    logic        nan;
    logic [31:0] high;
    logic [30:0] low;
    logic [7:0]  high_exponent;
    logic [7:0]  distance;
    a_first = a[30:0] >= b[30:0];
    a_least = a[31] != b[31] ? a[31] : a[31] == a_first;
    take_a  = compare_only ? a_least != greatest : a_first;
    high    = take_a ? a : b;
    low     = take_a ? b[30:0] : a[30:0];
    alone   = compare_only || (&high[30:23]);
    nan     = a[30:0] > 31'h7f800000 || b[30:0] > 31'h7f800000
        || (!compare_only && (&a[30:23]) && (&b[30:23]) && a[31] != b[31]);
    // The exponent of a subnormal number is that of the smallest normal one.
    high_exponent = {high[30:24], high[23] | (high[30:23] == 8'b0)};
    distance      = high_exponent - {low[30:24], low[23] | (low[30:23] == 8'b0)};
    add_order     = {nan, !alone && a[31] != b[31], high[31], high_exponent,
                     distance > 8'd31 ? 5'd31 : distance[4:0],
                     high[30:23] != 8'b0, high[22:0],
                     alone ? 24'b0 : {low[30:23] != 8'b0, low[22:0]}};
  endfunction

  // {nan, sign, exponent[7:0], sum[27:0]}: sum * 2^(exponent - 127 - 26). The lowest bit stands for
  // all that was shifted out, too.
  function automatic [37:0] add_integers(input [63:0] order);
    logic [26:0] lesser;
    logic [27:0] sum;
    lesser    = {order[23:0], 3'b0} >> order[52:48];
    lesser[0] = lesser[0] | (({order[23:0], 3'b0} & ~(27'h7ffffff << order[52:48])) != 27'b0);
    sum = order[62] ? {1'b0, order[47:24], 3'b0} - {1'b0, lesser}
                    : {1'b0, order[47:24], 3'b0} + {1'b0, lesser};
    // What cancels out is a positive zero.
    add_integers = {order[63], order[61] && !(order[62] && sum == 28'b0), order[60:53], sum};
  endfunction

  function automatic [37:0] add_normalise(input [37:0] number);
    logic [4:0]  left;
    logic [26:0] sum;
    logic [7:0]  base;
    base = number[35:28] - 8'd1;
    sum  = number[26:0];
    if (number[27]) begin
      // One bit longer.
      add_normalise = {number[37:36], 2'b0, number[35:28], number[27:3], number[2:0] != 3'b0};
    end else begin
      if (!sum[26]) begin
        left = penstock_f32_pkg::leading_zeros(sum);
        // Down to the exponent of subnormal numbers, or of zero.
        if ({3'b0, left} > base) left = base[4:0];
        sum  = sum << left;
        base = sum[26] ? base - {3'b0, left} : 8'b0;
      end
      add_normalise = {number[37:36], 2'b0, base, sum[26:2], sum[1:0] != 2'b0};
    end
  endfunction

endpackage

`default_nettype wire
