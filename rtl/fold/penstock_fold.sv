// Folds the sources of a reduction: takes beats of 64 bytes, one in every cycle, chunk by chunk,
// and gives the beats of the result. README.md tells how, and what it costs.
//
// Nothing inside ever stops: a beat waits at the entry until its way is free, and an accumulator
// leaves its bank only when the output has room for all that comes of it.
`default_nettype none

module penstock_fold (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,

    // Beats of the sources: all of a chunk's first source, then all of its second, ... Everything
    // but data, index and last is constant in a chunk, the sources' flags in a source.
    input  wire logic         in_valid_i,
    output      logic         in_ready_o,
    input  wire logic [511:0] in_data_i,          // element 0 at byte 0
    input  wire logic [5:0]   in_index_i,         // of the beat in its chunk, from 0
    input  wire logic         in_last_i,          // last beat of the chunk for this source
    input  wire logic         in_first_source_i,
    input  wire logic         in_last_source_i,
    input  wire logic [3:0]   in_type_i,
    input  wire logic [2:0]   in_redop_i,
    input  wire logic [3:0]   in_out_type_i,
    input  wire logic [6:0]   in_sources_i,       // 1 to 64
    input  wire logic [63:0]  in_scale_i,         // of PREMUL_SUM
    input  wire logic         in_copy_i,          // one source of bytes; of whatever type

    // Beats of the result: dense elements of the out type, each chunk from a new beat on.
    output      logic         out_valid_o,
    input  wire logic         out_ready_i,
    output      logic [511:0] out_data_o,
    output      logic         out_last_o          // last beat of a chunk
);

  localparam int unsigned QUEUE_BEATS = 32;

  logic [3:0]   load;
  logic         load_raw;
  logic [3:0]   load_type;
  logic [511:0] load_data;
  logic [3:0]   fetch;
  logic         fetch_bank;
  logic [5:0]   fetch_index;
  logic [4:1]   fill_multiply;
  logic         multiply_accumulator;
  logic [31:0]  fill_factor;
  logic [4:1]   add;
  logic         add_product;
  logic         compare;
  logic         greatest;
  logic [3:0]   fill_groups;
  logic [3:0]   write_0;
  logic [1:0]   write_0_source;
  logic [5:0]   write_0_index;
  logic [3:0]   write_1;
  logic [1:0]   write_1_source;
  logic [5:0]   write_1_index;
  logic [4:1]   integer_multiply;
  logic         integer_step;
  logic         integer_product;
  logic         integer_alone;
  logic [1:0]   integer_size;
  logic         integer_signed;
  logic         integer_scaled;
  logic [63:0]  integer_scale;
  logic [1:0]   ready;
  logic [6:0]   written_0;
  logic [6:0]   written_1;
  logic [1:0]   closed;
  logic [6:0]   beats_0;
  logic [6:0]   beats_1;
  logic [17:0]  kind_0;
  logic [17:0]  kind_1;
  logic [1:0]   release_bank;
  logic         averaging;

  penstock_fold_fill i_fill (
      .clk_i,
      .rst_ni,
      .in_valid_i,
      .in_ready_o,
      .in_data_i,
      .in_index_i,
      .in_last_i,
      .in_first_source_i,
      .in_last_source_i,
      .in_type_i,
      .in_redop_i,
      .in_out_type_i,
      .in_sources_i,
      .in_scale_i,
      .in_copy_i,
      .load_o(load),
      .load_raw_o(load_raw),
      .load_type_o(load_type),
      .load_data_o(load_data),
      .fetch_o(fetch),
      .fetch_bank_o(fetch_bank),
      .fetch_index_o(fetch_index),
      .multiply_o(fill_multiply),
      .multiply_accumulator_o(multiply_accumulator),
      .factor_o(fill_factor),
      .add_o(add),
      .add_product_o(add_product),
      .compare_o(compare),
      .greatest_o(greatest),
      .groups_o(fill_groups),
      .write_0_o(write_0),
      .write_0_source_o(write_0_source),
      .write_0_index_o(write_0_index),
      .write_1_o(write_1),
      .write_1_source_o(write_1_source),
      .write_1_index_o(write_1_index),
      .integer_multiply_o(integer_multiply),
      .integer_o(integer_step),
      .integer_product_o(integer_product),
      .integer_alone_o(integer_alone),
      .integer_size_o(integer_size),
      .integer_signed_o(integer_signed),
      .integer_scaled_o(integer_scaled),
      .integer_scale_o(integer_scale),
      .ready_o(ready),
      .written_0_o(written_0),
      .written_1_o(written_1),
      .closed_o(closed),
      .beats_0_o(beats_0),
      .beats_1_o(beats_1),
      .kind_0_o(kind_0),
      .kind_1_o(kind_1),
      .release_i(release_bank),
      .averaging_i(averaging)
  );

  logic [3:0]   drain;
  logic         drain_bank;
  logic [5:0]   drain_index;
  logic [4:1]   drain_multiply;
  logic [3:0]   drain_groups;
  logic [31:0]  drain_factor;
  logic         divide_valid;
  logic         divide_last;
  logic [1:0]   divide_size;
  logic         divide_signed;
  logic [6:0]   divisor;
  logic         quotients_valid;
  logic         quotients_last;
  logic [511:0] quotients_data;
  logic         divide_busy;
  logic         step;
  logic [1:0]   part;
  logic         step_last;
  logic         products;
  logic         quotients;
  logic         pass;
  logic         halves;
  logic [3:0]   out_type;
  logic         packed_step;
  logic [6:0]   queued;
  logic         pack_busy;

  penstock_fold_drain #(.QUEUE_BEATS(QUEUE_BEATS)) i_drain (
      .clk_i,
      .rst_ni,
      .ready_i(ready),
      .written_0_i(written_0),
      .written_1_i(written_1),
      .closed_i(closed),
      .beats_0_i(beats_0),
      .beats_1_i(beats_1),
      .kind_0_i(kind_0),
      .kind_1_i(kind_1),
      .release_o(release_bank),
      .averaging_o(averaging),
      .drain_o(drain),
      .drain_bank_o(drain_bank),
      .drain_index_o(drain_index),
      .multiply_o(drain_multiply),
      .groups_o(drain_groups),
      .factor_o(drain_factor),
      .divide_valid_o(divide_valid),
      .divide_last_o(divide_last),
      .divide_size_o(divide_size),
      .divide_signed_o(divide_signed),
      .divisor_o(divisor),
      .divide_valid_i(quotients_valid),
      .divide_last_i(quotients_last),
      .divide_busy_i(divide_busy),
      .step_o(step),
      .part_o(part),
      .last_o(step_last),
      .products_o(products),
      .quotients_o(quotients),
      .pass_o(pass),
      .halves_o(halves),
      .out_type_o(out_type),
      .packed_i(packed_step),
      .beats_i(queued),
      .pack_busy_i(pack_busy)
  );

  // ---- Lanes ------------------------------------------------------------------------------------

  // A bank is read by who drains it once whoever fills it reads no more.
  logic [5:0]   read_0;
  logic [5:0]   read_1;
  logic [31:0]  factor;
  logic [511:0] integers;

  assign read_0 = ready[0] ? drain_index : fetch_index;
  assign read_1 = ready[1] ? drain_index : fetch_index;
  assign factor = averaging ? drain_factor : fill_factor;

  for (genvar g = 0; g < 4; g++) begin : g_lanes
    /* verilator lint_off UNUSEDSIGNAL */
    // Only the first lanes hold integers.
    logic [511:0] operand;
    logic [511:0] accumulator;
    /* verilator lint_on UNUSEDSIGNAL */
    logic [511:0] drained;
    logic [511:0] product;

    penstock_fold_lanes #(.GROUP(g)) i_lanes (
        .clk_i,
        .load_i(load[g]),
        .load_raw_i(load_raw),
        .load_type_i(load_type),
        .load_data_i(load_data),
        .fetch_i(fetch[g]),
        .fetch_bank_i(fetch_bank),
        .drain_i(drain[g]),
        .drain_bank_i(drain_bank),
        .read_0_i(read_0),
        .read_1_i(read_1),
        .multiply_i((fill_groups[g] ? fill_multiply : 4'b0)
                    | (drain_groups[g] ? drain_multiply : 4'b0)),
        .multiply_drained_i(averaging),
        .multiply_accumulator_i(multiply_accumulator && !averaging),
        .factor_i(factor),
        .add_i(fill_groups[g] ? add : 4'b0),
        .add_product_i(add_product),
        .add_compare_i(compare),
        .add_greatest_i(greatest),
        .integers_i(g == 0 ? integers : 512'b0),
        .write_0_i(write_0[g]),
        .write_0_source_i(write_0_source),
        .write_0_index_i(write_0_index),
        .write_1_i(write_1[g]),
        .write_1_source_i(write_1_source),
        .write_1_index_i(write_1_index),
        .operand_o(operand),
        .accumulator_o(accumulator),
        .drained_o(drained),
        .product_o(product)
    );
  end

  // ---- Integers ---------------------------------------------------------------------------------

  penstock_fold_integers i_integers (
      .clk_i,
      .multiply_i(integer_multiply),
      .step_i(integer_step),
      .product_i(integer_product),
      .alone_i(integer_alone),
      .compare_i(compare),
      .greatest_i(greatest),
      .size_i(integer_size),
      .signed_i(integer_signed),
      .scaled_i(integer_scaled),
      .scale_i(integer_scale),
      .operand_i(g_lanes[0].operand),
      .accumulator_i(g_lanes[0].accumulator),
      .integers_o(integers)
  );

  penstock_integer_divide i_divide (
      .clk_i,
      .rst_ni,
      .valid_i(divide_valid),
      .last_i(divide_last),
      .data_i(g_lanes[0].drained),
      .size_i(divide_size),
      .signed_i(divide_signed),
      .divisor_i(divisor),
      .valid_o(quotients_valid),
      .last_o(quotients_last),
      .data_o(quotients_data),
      .busy_o(divide_busy)
  );

  // ---- Output -----------------------------------------------------------------------------------

  penstock_fold_pack #(.DEPTH(QUEUE_BEATS)) i_pack (
      .clk_i,
      .rst_ni,
      .step_i(step),
      .part_i(part),
      .last_i(step_last),
      .products_i(products),
      .quotients_i(quotients),
      .pass_i(pass),
      .halves_i(halves),
      .out_type_i(out_type),
      .groups_i(drain_groups[2:1]),
      .drained_0_i(g_lanes[0].drained),
      .drained_1_i(g_lanes[1].drained),
      .drained_2_i(g_lanes[2].drained),
      .drained_3_i(g_lanes[3].drained),
      .product_0_i(g_lanes[0].product),
      .product_1_i(g_lanes[1].product),
      .product_2_i(g_lanes[2].product),
      .product_3_i(g_lanes[3].product),
      .quotients_data_i(quotients_data),
      .packed_o(packed_step),
      .beats_o(queued),
      .busy_o(pack_busy),
      .out_valid_o,
      .out_ready_i,
      .out_data_o,
      .out_last_o
  );

endmodule

`default_nettype wire
