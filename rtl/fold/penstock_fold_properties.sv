// What must hold in penstock_fold, and what its tests have to reach. For Verilator alone.
`default_nettype none

module penstock_fold_properties (
    input wire logic         clk_i,
    input wire logic         rst_ni,
    input wire logic         in_valid_i,
    input wire logic         in_ready_o,
    input wire logic [31:0]  in_data_i,   // the first bytes stand for all
    input wire logic [5:0]   in_index_i,
    input wire logic         in_last_i,
    input wire logic         in_first_source_i,
    input wire logic         in_last_source_i,
    input wire logic [3:0]   in_type_i,
    input wire logic [2:0]   in_redop_i,
    input wire logic [3:0]   in_out_type_i,
    input wire logic [6:0]   in_sources_i,
    input wire logic         in_copy_i,
    input wire logic         out_valid_o,
    input wire logic         out_ready_i,
    input wire logic [31:0]  out_data_o,
    input wire logic         out_last_o,
    // Fill. A place: {valid, bank, index[5:0]}
    input wire logic         entry_valid,
    input wire logic         sort_clear,
    input wire logic         bank_clear,
    input wire logic         order_clear,
    input wire logic         multiplier_clear,
    input wire logic [3:0]   way,
    input wire logic [1:0]   owned,
    input wire logic [7:0]   operand,
    input wire logic [7:0]   multiply_1,
    input wire logic [7:0]   multiply_2,
    input wire logic [7:0]   multiply_3,
    input wire logic [7:0]   multiply_4,
    input wire logic [7:0]   add_1,
    input wire logic [7:0]   add_2,
    input wire logic [7:0]   add_3,
    input wire logic [7:0]   add_4,
    input wire logic [7:0]   integer_place,
    input wire logic         write_operand,
    input wire logic         write_product,
    input wire logic [1:0]   written,
    input wire logic         fetch_early,
    input wire logic         fetch_late,
    input wire logic         fetch_bank,
    input wire logic [5:0]   fetch_index,
    input wire logic [4:1]   fill_multiply,
    // Drain
    input wire logic         leave,
    input wire logic         leave_last,
    input wire logic         drain_bank,
    input wire logic [5:0]   drain_index,
    input wire logic [1:0]   ready,
    input wire logic [1:0]   closed,
    input wire logic [1:0]   release_bank,
    input wire logic [4:1]   drain_multiply,
    input wire logic         averaging,
    input wire logic         available,
    input wire logic [6:0]   reserved,
    // Pack
    input wire logic         step,
    input wire logic         pass,
    input wire logic [1:0]   part,
    input wire logic         quotients,
    input wire logic [2:1]   narrow_valid,
    input wire logic         narrow_last,
    input wire logic [1:0]   place,
    input wire logic         whole,
    input wire logic         beat_valid,
    input wire logic         queue_ready,
    input wire logic [6:0]   queued
);

  // ---- Streams ----------------------------------------------------------------------------------

  logic       begun_q;   // a chunk has
  logic       inside_q;  // a source has
  logic       first_q;   // and it is the first
  logic [5:0] index_q;   // next of this source
  logic [5:0] end_q;     // last index of the chunk
  logic       taken;

  assign taken = in_valid_i && in_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      begun_q  <= 1'b0;
      inside_q <= 1'b0;
      index_q  <= 6'd0;
    end else if (taken) begin
      begun_q  <= !(in_last_i && in_last_source_i);
      inside_q <= !in_last_i;
      index_q  <= in_last_i ? 6'd0 : index_q + 6'd1;
      first_q  <= in_first_source_i;
      if (in_first_source_i && in_last_i) end_q <= in_index_i;
    end
  end

  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   in_valid_i && !in_ready_o
                   |=> in_valid_i && $stable(in_data_i) && $stable(in_index_i));
  assert property (@(posedge clk_i) disable iff (!rst_ni) taken |-> in_index_i == index_q);
  assert property (@(posedge clk_i) disable iff (!rst_ni) taken && !begun_q |-> in_first_source_i);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   taken && inside_q |-> in_first_source_i == first_q);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   taken && !in_first_source_i |-> in_last_i == (in_index_i == end_q));
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   taken && in_copy_i |-> in_first_source_i && in_last_source_i);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   taken && !in_copy_i
                   |-> in_type_i != 4'(penstock_pkg::F64)
                       && in_type_i < 4'(penstock_pkg::TYPE_COUNT)
                       && in_redop_i < 3'(penstock_pkg::REDOP_COUNT)
                       && in_sources_i != 7'd0 && in_sources_i <= 7'd64);
  // Integers are not converted.
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   taken && !in_copy_i
                       && (in_type_i <= 4'(penstock_pkg::UINT64)
                           || in_out_type_i <= 4'(penstock_pkg::UINT64))
                   |-> in_out_type_i == in_type_i);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   out_valid_o && !out_ready_i
                   |=> out_valid_o && $stable(out_data_o) && $stable(out_last_o));

  // ---- Fill -------------------------------------------------------------------------------------

  // Every beat on its way stands in one place.
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   32'(way) == $countones({operand[7], multiply_1[7], multiply_2[7],
                                           multiply_3[7], multiply_4[7], add_1[7], add_2[7],
                                           add_3[7], add_4[7], integer_place[7]}));
  // Each bank takes one result at most, and belongs to a chunk.
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   $countones({write_operand && !operand[6], write_product && !multiply_4[6],
                               add_4[7] && !add_4[6], integer_place[7] && !integer_place[6]}) <= 1);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   $countones({write_operand && operand[6], write_product && multiply_4[6],
                               add_4[7] && add_4[6], integer_place[7] && integer_place[6]}) <= 1);
  assert property (@(posedge clk_i) disable iff (!rst_ni) write_operand |-> owned[operand[6]]);
  assert property (@(posedge clk_i) disable iff (!rst_ni) write_product |-> owned[multiply_4[6]]);
  assert property (@(posedge clk_i) disable iff (!rst_ni) add_4[7] |-> owned[add_4[6]]);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   integer_place[7] |-> owned[integer_place[6]]);
  // No accumulator is fetched whose last value is still on its way.
  logic [6:0] fetched;
  assign fetched = {fetch_bank, fetch_index};
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   fetch_early
                   |-> !(operand[7] && operand[6:0] == fetched)
                       && !(multiply_1[7] && multiply_1[6:0] == fetched)
                       && !(multiply_2[7] && multiply_2[6:0] == fetched)
                       && !(multiply_3[7] && multiply_3[6:0] == fetched));
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   fetch_early || fetch_late
                   |-> !(multiply_4[7] && multiply_4[6:0] == fetched)
                       && !(add_1[7] && add_1[6:0] == fetched)
                       && !(add_2[7] && add_2[6:0] == fetched)
                       && !(add_3[7] && add_3[6:0] == fetched)
                       && !(add_4[7] && add_4[6:0] == fetched)
                       && !(integer_place[7] && integer_place[6:0] == fetched));
  assert property (@(posedge clk_i) disable iff (!rst_ni) !(fetch_early && fetch_late));
  // Who drains reads a bank of which nothing more is fetched.
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   fetch_early || fetch_late |-> !ready[fetch_bank]);

  // ---- Drain and pack ---------------------------------------------------------------------------

  assert property (@(posedge clk_i) disable iff (!rst_ni) leave |-> owned[drain_bank]);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   release_bank != 2'b00 |-> (release_bank & ~(owned & closed)) == 2'b00);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   fill_multiply == 4'd0 || drain_multiply == 4'd0);
  assert property (@(posedge clk_i) disable iff (!rst_ni) drain_multiply != 4'd0 |-> averaging);
  assert property (@(posedge clk_i) disable iff (!rst_ni) reserved + queued <= 7'd32);
  assert property (@(posedge clk_i) disable iff (!rst_ni) beat_valid |-> queue_ready);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   step && pass |-> narrow_valid == 2'b00);

  // ---- What the tests reach ---------------------------------------------------------------------

  cover property (@(posedge clk_i) rst_ni && entry_valid && !sort_clear);
  cover property (@(posedge clk_i) rst_ni && entry_valid && !bank_clear);
  cover property (@(posedge clk_i) rst_ni && entry_valid && !order_clear);
  cover property (@(posedge clk_i) rst_ni && entry_valid && !multiplier_clear);
  cover property (@(posedge clk_i) rst_ni && written == 2'd2);
  cover property (@(posedge clk_i) rst_ni && way == 4'd9);
  cover property (@(posedge clk_i) rst_ni && fetch_late);
  cover property (@(posedge clk_i) rst_ni && owned == 2'b11 && release_bank != 2'b00);
  // A chunk of one source leaves while it fills.
  cover property (@(posedge clk_i) rst_ni && leave && !closed[drain_bank]);
  cover property (@(posedge clk_i) rst_ni && available && !leave && reserved + queued == 7'd32);
  cover property (@(posedge clk_i) rst_ni && leave && leave_last && drain_index == 6'd63);
  cover property (@(posedge clk_i) rst_ni && leave && leave_last && drain_index == 6'd0);
  cover property (@(posedge clk_i) rst_ni && step && quotients);
  cover property (@(posedge clk_i) rst_ni && step && averaging);
  for (genvar i = 0; i < 4; i++) begin : g_part
    cover property (@(posedge clk_i) rst_ni && step && pass && part == 2'(i));
    // The last part of a beat (a whole one, a half, a quarter), and of a chunk that ends before.
    if (i != 1) begin : g_whole
      cover property (@(posedge clk_i) rst_ni && narrow_valid[2] && place == 2'(i) && whole);
    end
    cover property (@(posedge clk_i) rst_ni && narrow_valid[2] && narrow_last
                    && place == 2'(i));
  end

endmodule

bind penstock_fold penstock_fold_properties i_properties (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o,
    .in_data_i       (in_data_i[31:0]),
    .in_index_i,
    .in_last_i,
    .in_first_source_i,
    .in_last_source_i,
    .in_type_i,
    .in_redop_i,
    .in_out_type_i,
    .in_sources_i,
    .in_copy_i,
    .out_valid_o,
    .out_ready_i,
    .out_data_o      (out_data_o[31:0]),
    .out_last_o,
    .entry_valid     (i_fill.entry_valid_q),
    .sort_clear      (i_fill.sort_clear),
    .bank_clear      (i_fill.bank_clear),
    .order_clear     (i_fill.order_clear),
    .multiplier_clear(i_fill.multiplier_clear),
    .way             (i_fill.way_q),
    .owned           (i_fill.owned_q),
    .operand         ({i_fill.operand_q[9], i_fill.operand_q[6:0]}),
    .multiply_1      ({i_fill.multiply_1_q[9], i_fill.multiply_1_q[6:0]}),
    .multiply_2      ({i_fill.multiply_2_q[9], i_fill.multiply_2_q[6:0]}),
    .multiply_3      ({i_fill.multiply_3_q[9], i_fill.multiply_3_q[6:0]}),
    .multiply_4      ({i_fill.multiply_4_q[9], i_fill.multiply_4_q[6:0]}),
    .add_1           ({i_fill.add_1_q[8], i_fill.add_1_q[6:0]}),
    .add_2           ({i_fill.add_2_q[8], i_fill.add_2_q[6:0]}),
    .add_3           ({i_fill.add_3_q[8], i_fill.add_3_q[6:0]}),
    .add_4           ({i_fill.add_4_q[8], i_fill.add_4_q[6:0]}),
    .integer_place   ({i_fill.integer_q[8], i_fill.integer_q[6:0]}),
    .write_operand   (i_fill.write_operand),
    .write_product   (i_fill.write_product),
    .written         (i_fill.written),
    .fetch_early     (i_fill.fetch_early),
    .fetch_late      (i_fill.fetch_late),
    .fetch_bank,
    .fetch_index,
    .fill_multiply   (fill_multiply),
    .leave           (i_drain.leave),
    .leave_last      (i_drain.last),
    .drain_bank,
    .drain_index,
    .ready,
    .closed,
    .release_bank,
    .drain_multiply,
    .averaging,
    .available       (i_drain.available),
    .reserved        (i_drain.reserved_q),
    .step,
    .pass,
    .part,
    .quotients,
    .narrow_valid    (i_pack.narrow_valid_q),
    .narrow_last     (i_pack.narrow_last_q[2]),
    .place           (i_pack.place_q),
    .whole           (i_pack.whole),
    .beat_valid      (i_pack.beat_valid_q),
    .queue_ready     (i_pack.queue_ready),
    .queued
);

`default_nettype wire
