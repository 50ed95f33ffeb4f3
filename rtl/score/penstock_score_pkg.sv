// What the scoring engine's blocks share: how cells are kept in the banks, and the layout of the
// step tables to which a program is compiled.
//
// A bank keeps 54 bits of a quantity and 42 of a free value, which is enough for every value in
// bounds and for two marks of a cell that was found outside of them: it is read as the nearest
// bound, and a commit that would change it is refused.
`default_nettype none

/* verilator lint_off UNUSEDPARAM */  // no block uses all of them
package penstock_score_pkg;
  localparam int unsigned QUANTITY = 54;  // bits of a quantity: 0..2^53, or a mark
  localparam int unsigned FREE_VALUE = 42;  // bits of a free value: within +-2^40, or a mark
  localparam int unsigned LANES = 8;  // rows of a group: what one beat brings of a column
  localparam int unsigned STEPS = 8;  // steps of a program at most
  localparam int unsigned TERMS = 16;
  localparam int unsigned BEST = 8;

  localparam logic [QUANTITY-1:0] MAX_QUANTITY = 54'h20_0000_0000_0000;
  localparam logic [QUANTITY-1:0] ABOVE = 54'h20_0000_0000_0001;  // read as MAX_QUANTITY
  localparam logic [QUANTITY-1:0] BELOW = 54'h20_0000_0000_0002;  // read as 0
  localparam logic signed [63:0] MAX_FREE_VALUE = 64'sh100_0000_0000;
  localparam logic signed [FREE_VALUE-1:0] MAX_FREE = 42'sh100_0000_0000;

  // Kinds of columns in the banks.
  localparam logic [2:0] KIND_ALLOCATABLE = 3'd0;
  localparam logic [2:0] KIND_REQUESTED = 3'd1;
  localparam logic [2:0] KIND_SCORED = 3'd2;
  localparam logic [2:0] KIND_FREE = 3'd3;
  localparam logic [2:0] KIND_BITS = 3'd4;

  // Every step of every unit begins with this: whether the unit works in the step, and what becomes
  // of the score that the step completes.
  //   [0] works  [3:1] enum penstock_normalise  [4] range slot  [25:5] weight
  localparam int unsigned STEP_HEAD = 26;
  // Allocation: head, [26] most, [27] first and [28] last step of its operation, then two entries
  // of [0] there  [3:1] column  [10:4] weight  [11] only for tasks that ask for it.
  localparam int unsigned ALLOCATION_ENTRY = 12;
  localparam int unsigned ALLOCATION_STEP = STEP_HEAD + 3 + 2 * ALLOCATION_ENTRY;
  // Bits: head, [33:26] group.
  localparam int unsigned BITS_STEP = STEP_HEAD + 8;
  // Features: head, [29:26] entries, [53:30] columns, three bits each.
  localparam int unsigned FEATURES_STEP = STEP_HEAD + 4 + 24;
  localparam int unsigned FEATURES_STEPS = 4;
  localparam int unsigned COEFFICIENT = 13;  // bits: of up to 8 features of one column
  // Balanced, an operation of four steps: head, then two entries of [0] there  [3:1] column
  // [4] only for tasks that ask for it.
  localparam int unsigned BALANCED_ENTRY = 5;
  localparam int unsigned BALANCED_OP = STEP_HEAD + 2 * BALANCED_ENTRY;
  localparam int unsigned BALANCED_OPS = 2;
  localparam int unsigned SLOTS = 2;  // ranges that a unit keeps: its normalised operations

  // ---- cells ----

  function automatic logic [QUANTITY-1:0] encode_quantity(input logic [63:0] cell_i);
    if (cell_i[63]) encode_quantity = BELOW;
    else if (cell_i > {10'b0, MAX_QUANTITY}) encode_quantity = ABOVE;
    else encode_quantity = cell_i[QUANTITY-1:0];
  endfunction

  function automatic logic [QUANTITY-1:0] decode_quantity(input logic [QUANTITY-1:0] kept_i);
    decode_quantity =
        kept_i[QUANTITY-1] ? {~kept_i[1], {(QUANTITY - 1) {1'b0}}} : kept_i;
  endfunction

  function automatic logic quantity_is_sound(input logic [QUANTITY-1:0] kept_i);
    quantity_is_sound = ~(kept_i[QUANTITY-1] & (|kept_i[1:0]));
  endfunction

  function automatic logic [FREE_VALUE-1:0] encode_free(input logic [63:0] cell_i);
    if ($signed(cell_i) > MAX_FREE_VALUE) encode_free = MAX_FREE + 42'sd1;
    else if ($signed(cell_i) < -MAX_FREE_VALUE) encode_free = -MAX_FREE - 42'sd1;
    else encode_free = cell_i[FREE_VALUE-1:0];
  endfunction

  function automatic logic free_is_sound(input logic [FREE_VALUE-1:0] kept_i);
    free_is_sound = $signed(kept_i) <= MAX_FREE && $signed(kept_i) >= -MAX_FREE;
  endfunction

  function automatic logic [FREE_VALUE-1:0] decode_free(input logic [FREE_VALUE-1:0] kept_i);
    if ($signed(kept_i) > MAX_FREE) decode_free = MAX_FREE;
    else if ($signed(kept_i) < -MAX_FREE) decode_free = -MAX_FREE;
    else decode_free = kept_i;
  endfunction

  // ---- results of MIN_MAX_F64 ----

  // (s - min) / (max - min) is k / 100 exactly: whether 100 * (that rounded to float64), rounded,
  // stays below k. Wherever the quotient is no whole number of hundredths the rounding is too small
  // to reach the next one, as long as max - min is below 2^45.
  function automatic logic rounds_below(input logic [6:0] k_i);
    case (k_i)
      7'd29, 7'd57, 7'd58: rounds_below = 1'b1;
      default: rounds_below = 1'b0;
    endcase
  endfunction
endpackage
/* verilator lint_on UNUSEDPARAM */

`default_nettype wire
