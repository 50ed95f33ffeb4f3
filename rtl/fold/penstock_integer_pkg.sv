// Integers of 8, 32 or 64 bits side by side in 64-bit words: one adder, one subtracter and one
// chain of division for all sizes, cut where two numbers meet.
`default_nettype none

package penstock_integer_pkg;

  // Sizes of the numbers in a word.
  localparam logic [1:0] BITS_8 = 2'd0;
  localparam logic [1:0] BITS_32 = 2'd1;
  localparam logic [1:0] BITS_64 = 2'd2;

  // The top bit of each number.
  function automatic [63:0] tops(input [1:0] size);
    if (size == 2'd0) tops = 64'h8080808080808080;
    else if (size == 2'd1) tops = 64'h8000000080000000;
    else tops = 64'h8000000000000000;
  endfunction

  // All bits of the numbers whose top bit is set in `flags`, a word that has no other bits.
  function automatic [63:0] spread(input [63:0] flags, input [1:0] size);
    if (size == 2'd0) spread = (flags << 1) - (flags >> 7);
    else if (size == 2'd1) spread = (flags << 1) - (flags >> 31);
    else spread = (flags << 1) - (flags >> 63);
  endfunction

  // Modulo the size.
  function automatic [63:0] add(input [63:0] a, input [63:0] b, input [1:0] size);
    logic [63:0] top;
    top = penstock_integer_pkg::tops(size);
    add = ((a & ~top) + (b & ~top)) ^ ((a ^ b) & top);
  endfunction

  // The lesser of each two numbers, or the greater.
  function automatic [63:0] choose(input [63:0] a, input [63:0] b, input [1:0] size,
                                   input is_signed, input greatest);
    logic [63:0] top;
    logic [63:0] low;   // a - b without the top bits, which here stand for "no borrow"
    logic [63:0] less;  // a < b
    top  = penstock_integer_pkg::tops(size);
    low  = (a | top) - (b & ~top);
    less = is_signed ? (a & ~b) | (~(a ^ b) & ~low) : (~a & b) | (~(a ^ b) & ~low);
    less = penstock_integer_pkg::spread(less & top, size);
    choose = greatest ? (a & ~less) | (b & less) : (a & less) | (b & ~less);
  endfunction

  // Negates the numbers that are named by the top bits in `flags`.
  function automatic [63:0] negate(input [63:0] value, input [63:0] flags, input [1:0] size);
    logic [63:0] ones;
    ones = size == 2'd0 ? flags >> 7 : size == 2'd1 ? flags >> 31 : flags >> 63;
    negate = penstock_integer_pkg::add(value ^ penstock_integer_pkg::spread(flags, size), ones,
                                       size);
  endfunction

  // One step of the division of `word` by `divisor`, 2 to 64, for the four top bits of the word.
  // {remainder[5:0], word[63:0]}: the word moves up by four bits, and the quotient comes in below.
  // A remainder of 0 begins a new number.
  function automatic [69:0] divide_step(input [5:0] remainder, input [63:0] word,
                                        input [6:0] divisor);
    logic [6:0]  rest;
    logic [63:0] moved;
    logic [7:0]  difference;
    integer      i;
    rest  = {1'b0, remainder};
    moved = word;
    for (i = 0; i < 4; i = i + 1) begin
      rest       = {rest[5:0], moved[63]};
      difference = {1'b0, rest} - {1'b0, divisor};
      moved      = {moved[62:0], !difference[7]};
      if (!difference[7]) rest = difference[6:0];
    end
    divide_step = {rest[5:0], moved};
  endfunction

endpackage

`default_nettype wire
