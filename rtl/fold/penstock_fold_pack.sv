// Makes beats of the out type from what the lanes give: picks the lanes of a step, rounds to the
// narrow formats, puts parts of a beat together, and queues beats until the reader takes them.
//
// The source of a step stays as it is for the steps that belong to it. A step without rounding is
// at the output two cycles later, one with rounding four, where nothing is queued.
`default_nettype none

module penstock_fold_pack #(
    // Beats that are queued. Whoever sends steps sees to it that they fit.
    parameter int unsigned DEPTH = 32
) (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,

    input  wire logic         step_i,
    // Which lanes come now: a quarter of them for f32, a half for two bytes (only 0 and 1).
    input  wire logic [1:0]   part_i,
    // The last step of a chunk.
    input  wire logic         last_i,
    // The source: products, quotients, or else what was drained.
    input  wire logic         products_i,
    input  wire logic         quotients_i,
    // These hold while steps of their kind are inside (busy_o).
    input  wire logic         pass_i,       // bits as they are: f32, integers, copies
    input  wire logic         halves_i,     // else: two-byte elements, or else one-byte ones
    input  wire logic [3:0]   out_type_i,
    input  wire logic [2:1]   groups_i,     // lanes from 16 and from 32 on are in use
    input  wire logic [511:0] drained_0_i,
    input  wire logic [511:0] drained_1_i,
    input  wire logic [511:0] drained_2_i,
    input  wire logic [511:0] drained_3_i,
    input  wire logic [511:0] product_0_i,
    input  wire logic [511:0] product_1_i,
    input  wire logic [511:0] product_2_i,
    input  wire logic [511:0] product_3_i,
    input  wire logic [511:0] quotients_data_i,

    // A step has arrived in a beat. From the next cycle on the beat, once it is whole, counts.
    output      logic         packed_o,
    output      logic [6:0]   beats_o,
    output      logic         busy_o,

    output      logic         out_valid_o,
    input  wire logic         out_ready_i,
    output      logic [511:0] out_data_o,
    output      logic         out_last_o
);

  // ---- Rounding ---------------------------------------------------------------------------------

  // Lanes 0 to 31 serve both halves of the lanes for two-byte elements; 32 and up come only where a
  // beat of one-byte elements is made of them all.
  logic [56:0]  format;
  logic [255:0] code_0;
  logic [255:0] code_1;
  logic [255:0] code_2;
  logic [255:0] code_3;
  logic         narrow;
  logic [2:1]   narrow_valid_q;
  logic [2:1]   narrow_last_q;

  assign format = penstock_narrow_pkg::format_of(out_type_i);
  assign narrow = step_i && !pass_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) narrow_valid_q <= 2'b00;
    else narrow_valid_q <= {narrow_valid_q[1], narrow};
    narrow_last_q <= {narrow_last_q[1], last_i};
  end

  assign busy_o = narrow_valid_q != 2'b00;

  penstock_narrow i_narrow_0 (
      .clk_i,
      .step_i({narrow_valid_q[1], narrow}),
      .format_i(format),
      .select_i({part_i[0], products_i}),
      .value_0_i(drained_0_i),
      .value_1_i(product_0_i),
      .value_2_i(drained_2_i),
      .value_3_i(product_2_i),
      .code_o(code_0)
  );

  penstock_narrow i_narrow_1 (
      .clk_i,
      .step_i(groups_i[1] ? {narrow_valid_q[1], narrow} : 2'b00),
      .format_i(format),
      .select_i({part_i[0], products_i}),
      .value_0_i(drained_1_i),
      .value_1_i(product_1_i),
      .value_2_i(drained_3_i),
      .value_3_i(product_3_i),
      .code_o(code_1)
  );

  penstock_narrow i_narrow_2 (
      .clk_i,
      .step_i(groups_i[2] && !halves_i ? {narrow_valid_q[1], narrow} : 2'b00),
      .format_i(format),
      .select_i({1'b0, products_i}),
      .value_0_i(drained_2_i),
      .value_1_i(product_2_i),
      .value_2_i(drained_2_i),
      .value_3_i(product_2_i),
      .code_o(code_2)
  );

  penstock_narrow i_narrow_3 (
      .clk_i,
      .step_i(groups_i[2] && !halves_i ? {narrow_valid_q[1], narrow} : 2'b00),
      .format_i(format),
      .select_i({1'b0, products_i}),
      .value_0_i(drained_3_i),
      .value_1_i(product_3_i),
      .value_2_i(drained_3_i),
      .value_3_i(product_3_i),
      .code_o(code_3)
  );

  // ---- Beats ------------------------------------------------------------------------------------

  logic [511:0] beat_q;
  logic         beat_valid_q;
  logic         beat_last_q;
  logic [1:0]   place_q;  // of the next part, in sixteens of bytes
  logic [1:0]   stride;   // of a part; 0 is a whole beat
  logic         whole;

  always_comb begin
    if (halves_i) stride = groups_i[1] ? 2'd0 : 2'd2;
    else stride = groups_i[2] ? 2'd0 : groups_i[1] ? 2'd2 : 2'd1;
    whole = place_q + stride == 2'd0;
  end

  always_ff @(posedge clk_i) begin
    if (step_i && pass_i) begin
      if (quotients_i) beat_q <= quotients_data_i;
      else begin
        case (part_i)
          2'd0: if (products_i) beat_q <= product_0_i; else beat_q <= drained_0_i;
          2'd1: if (products_i) beat_q <= product_1_i; else beat_q <= drained_1_i;
          2'd2: if (products_i) beat_q <= product_2_i; else beat_q <= drained_2_i;
          default: if (products_i) beat_q <= product_3_i; else beat_q <= drained_3_i;
        endcase
      end
    end else if (narrow_valid_q[2]) begin
      if (halves_i) begin
        if (groups_i[1]) beat_q <= {code_1, code_0};
        else if (place_q[1]) beat_q[511:256] <= code_0;
        else beat_q[255:0] <= code_0;
      end else if (groups_i[2]) begin
        beat_q <= {bytes(code_3), bytes(code_2), bytes(code_1), bytes(code_0)};
      end else if (groups_i[1]) begin
        if (place_q[1]) beat_q[511:256] <= {bytes(code_1), bytes(code_0)};
        else beat_q[255:0] <= {bytes(code_1), bytes(code_0)};
      end else begin
        case (place_q)
          2'd0: beat_q[127:0] <= bytes(code_0);
          2'd1: beat_q[255:128] <= bytes(code_0);
          2'd2: beat_q[383:256] <= bytes(code_0);
          default: beat_q[511:384] <= bytes(code_0);
        endcase
      end
    end
  end

  // The low one of each two bytes.
  function automatic [127:0] bytes(input [255:0] codes);
    integer i;
    for (i = 0; i < 16; i = i + 1) bytes[i*8+:8] = codes[i*16+:8];
  endfunction

  assign packed_o = (step_i && pass_i) || narrow_valid_q[2];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beat_valid_q <= 1'b0;
      place_q      <= 2'd0;
    end else begin
      beat_valid_q <= (step_i && pass_i) || (narrow_valid_q[2] && (whole || narrow_last_q[2]));
      if (narrow_valid_q[2]) place_q <= narrow_last_q[2] ? 2'd0 : place_q + stride;
    end
    beat_last_q <= step_i && pass_i ? last_i : narrow_last_q[2];
  end

  // ---- Queue ------------------------------------------------------------------------------------

  localparam int unsigned COUNT_BITS = $clog2(DEPTH + 1);
  logic                  queue_ready;
  logic [COUNT_BITS-1:0] queued;
  logic [512:0]          out_word;

  penstock_fifo #(.WIDTH(513), .DEPTH(DEPTH)) i_queue (
      .clk_i,
      .rst_ni,
      .in_valid_i(beat_valid_q),
      .in_ready_o(queue_ready),
      .in_data_i({beat_last_q, beat_q}),
      .out_valid_o,
      .out_ready_i,
      .out_data_o(out_word),
      .count_o(queued)
  );

  assign out_data_o = out_word[511:0];
  assign out_last_o = out_word[512];
  assign beats_o    = 7'(queued) + {6'b0, beat_valid_q};

endmodule

`default_nettype wire
