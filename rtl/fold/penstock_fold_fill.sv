// The way of a beat from the entry to its accumulators: when it may enter, which step of which unit
// moves, and what stands in the two banks.
//
// A chunk owns a bank from its first beat until its last accumulator has left; the next chunk takes
// the other bank. A beat enters unless
//   - it begins a chunk and the bank is not free;
//   - beats of another type or operation are still on their way;
//   - it is folded onto an accumulator that may be on its way: a chunk of b beats has at most b on
//     their way, whichever they are, which means that the beat at the same place has arrived;
//   - it needs the multiplier while an average needs it.
`default_nettype none

module penstock_fold_fill (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,

    // As those of penstock_fold.
    input  wire logic         in_valid_i,
    output      logic         in_ready_o,
    input  wire logic [511:0] in_data_i,
    input  wire logic [5:0]   in_index_i,
    input  wire logic         in_last_i,
    input  wire logic         in_first_source_i,
    input  wire logic         in_last_source_i,
    input  wire logic [3:0]   in_type_i,
    input  wire logic [2:0]   in_redop_i,
    input  wire logic [3:0]   in_out_type_i,
    input  wire logic [6:0]   in_sources_i,
    input  wire logic [63:0]  in_scale_i,
    input  wire logic         in_copy_i,

    // Enables of the lanes, a bit for each group of 16.
    output      logic [3:0]   load_o,
    output      logic         load_raw_o,
    output      logic [3:0]   load_type_o,
    output      logic [511:0] load_data_o,
    output      logic [3:0]   fetch_o,
    output      logic         fetch_bank_o,
    output      logic [5:0]   fetch_index_o,
    output      logic [4:1]   multiply_o,          // of lanes that groups_o names
    output      logic         multiply_accumulator_o,
    output      logic [31:0]  factor_o,
    output      logic [4:1]   add_o,               // of lanes that groups_o names
    output      logic         add_product_o,
    output      logic         compare_o,
    output      logic         greatest_o,
    output      logic [3:0]   groups_o,
    output      logic [3:0]   write_0_o,
    output      logic [1:0]   write_0_source_o,
    output      logic [5:0]   write_0_index_o,
    output      logic [3:0]   write_1_o,
    output      logic [1:0]   write_1_source_o,
    output      logic [5:0]   write_1_index_o,
    // Integers.
    output      logic [4:1]   integer_multiply_o,
    output      logic         integer_o,
    output      logic         integer_product_o,
    output      logic         integer_alone_o,
    output      logic [1:0]   integer_size_o,
    output      logic         integer_signed_o,
    output      logic         integer_scaled_o,    // times the scale, not the accumulator
    output      logic [63:0]  integer_scale_o,     // repeated for 8- and 32-bit numbers

    // Bank b holds results written_b of them; no more is read by who fills it.
    output      logic [1:0]   ready_o,
    output      logic [6:0]   written_0_o,
    output      logic [6:0]   written_1_o,
    output      logic [1:0]   closed_o,            // it is known that there will be beats_b
    output      logic [6:0]   beats_0_o,
    output      logic [6:0]   beats_1_o,
    // How they leave: {sources[6:0], average, divide, raw, type[3:0], out_type[3:0]}
    output      logic [17:0]  kind_0_o,
    output      logic [17:0]  kind_1_o,
    input  wire logic [1:0]   release_i,           // its last accumulator leaves now
    input  wire logic         averaging_i          // who drains uses the multiplier
);

  localparam logic [3:0] UINT8 = 4'(penstock_pkg::UINT8);
  localparam logic [3:0] INT8 = 4'(penstock_pkg::INT8);
  localparam logic [3:0] INT32 = 4'(penstock_pkg::INT32);
  localparam logic [3:0] UINT32 = 4'(penstock_pkg::UINT32);
  localparam logic [3:0] INT64 = 4'(penstock_pkg::INT64);
  localparam logic [3:0] UINT64 = 4'(penstock_pkg::UINT64);
  localparam logic [2:0] SUM = 3'(penstock_pkg::SUM);
  localparam logic [2:0] PROD = 3'(penstock_pkg::PROD);
  localparam logic [2:0] MIN = 3'(penstock_pkg::MIN);
  localparam logic [2:0] MAX = 3'(penstock_pkg::MAX);
  localparam logic [2:0] AVG = 3'(penstock_pkg::AVG);
  localparam logic [2:0] PREMUL_SUM = 3'(penstock_pkg::PREMUL_SUM);

  // ---- Entry: the beat that waits ---------------------------------------------------------------

  logic         entry_valid_q;
  logic [511:0] entry_data_q;
  logic [5:0]   entry_index_q;
  logic         entry_last_q;
  logic         entry_first_source_q;
  logic         entry_last_source_q;
  logic [63:0]  entry_scale_q;
  logic         entry_raw_q;    // 512 bits of integers, or a copy
  logic [3:0]   entry_type_q;
  logic [2:0]   entry_redop_q;  // what is done on the way in: AVG is SUM
  logic [17:0]  entry_kind_q;
  logic         go;             // the beat enters

  logic         in_single;
  logic         in_copy;
  logic         in_integer;
  logic         in_average;

  assign in_single  = in_first_source_i && in_last_source_i;
  assign in_copy    = in_copy_i
      || (in_single && in_redop_i != PREMUL_SUM && in_out_type_i == in_type_i);
  assign in_integer = in_type_i <= UINT64;
  // The average of one source is that source.
  assign in_average = in_redop_i == AVG && !in_single && !in_copy;
  assign in_ready_o = !entry_valid_q || go;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) entry_valid_q <= 1'b0;
    else if (in_ready_o) entry_valid_q <= in_valid_i;
  end

  always_ff @(posedge clk_i) begin
    if (in_valid_i && in_ready_o) begin
      entry_data_q         <= in_data_i;
      entry_index_q        <= in_index_i;
      entry_last_q         <= in_last_i;
      entry_first_source_q <= in_first_source_i;
      entry_last_source_q  <= in_last_source_i;
      entry_scale_q        <= in_scale_i;
      entry_raw_q          <= in_copy || in_integer;
      entry_type_q         <= in_copy ? UINT8 : in_type_i;
      entry_redop_q        <= in_redop_i == AVG || in_copy ? SUM : in_redop_i;
      entry_kind_q         <= {in_average ? in_sources_i : 7'd0, in_average && !in_integer,
                               in_average && in_integer, in_copy || in_integer,
                               in_copy ? UINT8 : in_type_i, in_copy ? UINT8 : in_out_type_i};
    end
  end

  // ---- The sort of beats on their way -----------------------------------------------------------

  logic       raw_q;
  logic [3:0] type_q;
  logic [2:0] redop_q;
  logic [3:0] way_q;  // how many beats they are
  logic       premul;
  logic       prod;
  logic [1:0] written;  // how many arrive

  always_ff @(posedge clk_i) begin
    if (go) begin
      raw_q   <= entry_raw_q;
      type_q  <= entry_type_q;
      redop_q <= entry_redop_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) way_q <= 4'd0;
    else way_q <= way_q + {3'b0, go} - {2'b0, written};
  end

  function automatic [3:0] groups_of(input raw, input [3:0] element);
    if (raw || element == 4'(penstock_pkg::F32)) groups_of = 4'b0001;
    else if (element == 4'(penstock_pkg::F16) || element == 4'(penstock_pkg::BF16)) begin
      groups_of = 4'b0011;
    end else groups_of = 4'b1111;
  endfunction

  assign premul     = redop_q == PREMUL_SUM;
  assign prod       = redop_q == PROD;
  assign compare_o  = redop_q == MIN || redop_q == MAX;
  assign greatest_o = redop_q == MAX;
  assign groups_o   = groups_of(raw_q, type_q);

  // ---- Banks ------------------------------------------------------------------------------------

  logic       bank_q;         // of the chunk that enters, or of the next one
  logic       open_q;         // some of it has entered
  logic [6:0] chunk_beats_q;  // of this chunk, once its first source has entered
  logic [1:0] owned_q;
  logic [1:0] single_q;       // one source: who fills the bank reads nothing
  logic [1:0] closed_q;
  logic [6:0] written_0_q;
  logic [6:0] written_1_q;
  logic [6:0] beats_0_q;
  logic [6:0] beats_1_q;
  logic [17:0] kind_0_q;
  logic [17:0] kind_1_q;
  logic       opens;          // the beat is the first of its chunk
  logic       closes;         // and the last
  logic       result_0;       // a result is written
  logic       result_1;

  assign opens  = go && !open_q;
  assign closes = go && entry_last_q && entry_last_source_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      bank_q  <= 1'b0;
      open_q  <= 1'b0;
      owned_q <= 2'b00;
    end else begin
      if (opens) open_q <= 1'b1;
      if (opens) owned_q[bank_q] <= 1'b1;
      if (closes) open_q <= 1'b0;
      if (closes) bank_q <= !bank_q;
      if (release_i[0]) owned_q[0] <= 1'b0;
      if (release_i[1]) owned_q[1] <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (go && entry_first_source_q) chunk_beats_q <= {1'b0, entry_index_q} + 7'd1;
    if (result_0) written_0_q <= written_0_q + 7'd1;
    if (result_1) written_1_q <= written_1_q + 7'd1;
    if (opens && !bank_q) begin
      single_q[0] <= entry_last_source_q;
      closed_q[0] <= 1'b0;
      written_0_q <= 7'd0;
      kind_0_q    <= entry_kind_q;
    end
    if (opens && bank_q) begin
      single_q[1] <= entry_last_source_q;
      closed_q[1] <= 1'b0;
      written_1_q <= 7'd0;
      kind_1_q    <= entry_kind_q;
    end
    if (closes && !bank_q) begin
      closed_q[0] <= 1'b1;
      beats_0_q   <= {1'b0, entry_index_q} + 7'd1;
    end
    if (closes && bank_q) begin
      closed_q[1] <= 1'b1;
      beats_1_q   <= {1'b0, entry_index_q} + 7'd1;
    end
  end

  assign ready_o[0]  = owned_q[0] && (single_q[0] || (closed_q[0] && written_0_q == beats_0_q));
  assign ready_o[1]  = owned_q[1] && (single_q[1] || (closed_q[1] && written_1_q == beats_1_q));
  assign written_0_o = written_0_q;
  assign written_1_o = written_1_q;
  assign closed_o    = closed_q;
  assign beats_0_o   = beats_0_q;
  assign beats_1_o   = beats_1_q;
  assign kind_0_o    = kind_0_q;
  assign kind_1_o    = kind_1_q;

  // ---- Whether the beat may enter ---------------------------------------------------------------

  logic sort_clear;
  logic bank_clear;
  logic order_clear;
  logic multiplier_clear;

  assign sort_clear = way_q == 4'd0
      || (entry_raw_q == raw_q && entry_type_q == type_q && entry_redop_q == redop_q);
  assign bank_clear = open_q || !owned_q[bank_q];
  assign order_clear = entry_first_source_q || {3'b0, way_q} < chunk_beats_q;
  assign multiplier_clear = entry_raw_q
      || (entry_redop_q != PROD && entry_redop_q != PREMUL_SUM)
      || !(averaging_i || (owned_q[0] && kind_0_q[10]) || (owned_q[1] && kind_1_q[10]));
  assign go = entry_valid_q && sort_clear && bank_clear && order_clear && multiplier_clear;

  // ---- Places -----------------------------------------------------------------------------------

  // Where a beat stands: among the operands, after a step of a product or of a sum, or in the
  // integers' register. {valid, first source, last source, bank, index[5:0]}; what was added to
  // another source is not of the first.
  logic [9:0]  operand_q;
  logic [9:0]  multiply_1_q;
  logic [9:0]  multiply_2_q;
  logic [9:0]  multiply_3_q;
  logic [9:0]  multiply_4_q;
  logic [8:0]  add_1_q;
  logic [8:0]  add_2_q;
  logic [8:0]  add_3_q;
  logic [8:0]  add_4_q;
  logic [8:0]  integer_q;
  logic [63:0] scale_q;
  logic        to_multiply;  // the operands are multiplied
  logic        to_add;
  logic        to_integer;

  assign to_multiply = operand_q[9] && (premul || (prod && !operand_q[8]));
  assign to_add      = !raw_q && (premul ? multiply_4_q[9] && !multiply_4_q[8]
                                         : operand_q[9] && !operand_q[8] && !prod);
  assign to_integer  = raw_q && (premul || prod ? multiply_4_q[9]
                                                : operand_q[9] && !operand_q[8]);

  always_ff @(posedge clk_i) begin
    operand_q    <= {go, entry_first_source_q, entry_last_source_q, bank_q, entry_index_q};
    multiply_1_q <= {to_multiply, operand_q[8:0]};
    multiply_2_q <= multiply_1_q;
    multiply_3_q <= multiply_2_q;
    multiply_4_q <= multiply_3_q;
    add_1_q      <= {to_add, premul ? multiply_4_q[7:0] : operand_q[7:0]};
    add_2_q      <= add_1_q;
    add_3_q      <= add_2_q;
    add_4_q      <= add_3_q;
    integer_q    <= {to_integer, premul || prod ? multiply_4_q[7:0] : operand_q[7:0]};
    if (!rst_ni) begin
      operand_q[9]    <= 1'b0;
      multiply_1_q[9] <= 1'b0;
      multiply_2_q[9] <= 1'b0;
      multiply_3_q[9] <= 1'b0;
      multiply_4_q[9] <= 1'b0;
      add_1_q[8]      <= 1'b0;
      add_2_q[8]      <= 1'b0;
      add_3_q[8]      <= 1'b0;
      add_4_q[8]      <= 1'b0;
      integer_q[8]    <= 1'b0;
    end
    if (go) scale_q <= entry_scale_q;
  end

  assign load_o      = go ? groups_of(entry_raw_q, entry_type_q) : 4'b0000;
  assign load_raw_o  = entry_raw_q;
  assign load_type_o = entry_type_q;
  assign load_data_o = entry_data_q;

  // Accumulators are fetched when the operands are, or, to meet products, when those are ready.
  logic fetch_early;
  logic fetch_late;
  assign fetch_early   = go && !entry_first_source_q && entry_redop_q != PREMUL_SUM;
  assign fetch_late    = multiply_3_q[9] && premul && !multiply_3_q[8];
  assign fetch_o       = fetch_early ? groups_of(entry_raw_q, entry_type_q)
                                     : fetch_late ? groups_o : 4'b0000;
  assign fetch_bank_o  = fetch_early ? bank_q : multiply_3_q[6];
  assign fetch_index_o = fetch_early ? entry_index_q : multiply_3_q[5:0];

  assign multiply_o = raw_q ? 4'b0000
                            : {multiply_3_q[9], multiply_2_q[9], multiply_1_q[9], to_multiply};
  assign multiply_accumulator_o = prod;
  assign factor_o               = scale_q[31:0];
  assign add_o         = {add_3_q[8], add_2_q[8], add_1_q[8], to_add};
  assign add_product_o = premul;

  assign integer_multiply_o = raw_q ? {multiply_3_q[9], multiply_2_q[9], multiply_1_q[9],
                                       to_multiply} : 4'b0000;
  assign integer_o          = to_integer;
  assign integer_product_o  = premul;
  assign integer_alone_o    = prod || (premul && multiply_4_q[8]);
  assign integer_signed_o   = type_q == INT8 || type_q == INT32 || type_q == INT64;
  assign integer_scaled_o   = premul;

  always_comb begin
    if (type_q == INT64 || type_q == UINT64) begin
      integer_size_o  = penstock_integer_pkg::BITS_64;
      integer_scale_o = scale_q;
    end else if (type_q == INT32 || type_q == UINT32) begin
      integer_size_o  = penstock_integer_pkg::BITS_32;
      integer_scale_o = {2{scale_q[31:0]}};
    end else begin
      integer_size_o  = penstock_integer_pkg::BITS_8;
      integer_scale_o = {8{scale_q[7:0]}};
    end
  end

  // ---- Results into the banks -------------------------------------------------------------------

  // At most one of the four goes into each bank: the two that may come at once are the first source
  // of one chunk and a later source of the chunk before.
  logic write_operand;
  logic write_product;

  assign write_operand = operand_q[9] && operand_q[8] && !premul;
  assign write_product = multiply_4_q[9] && !raw_q && (prod || multiply_4_q[8]);
  assign written       = {1'b0, write_operand} + {1'b0, write_product} + {1'b0, add_4_q[8]}
      + {1'b0, integer_q[8]};

  // {last source, index}
  logic [6:0] place_0;
  logic [6:0] place_1;

  always_comb begin
    write_0_o = groups_o;
    if (write_operand && !operand_q[6]) begin
      write_0_source_o = 2'd0;
      place_0          = {operand_q[7], operand_q[5:0]};
    end else if (write_product && !multiply_4_q[6]) begin
      write_0_source_o = 2'd1;
      place_0          = {multiply_4_q[7], multiply_4_q[5:0]};
    end else if (add_4_q[8] && !add_4_q[6]) begin
      write_0_source_o = 2'd2;
      place_0          = {add_4_q[7], add_4_q[5:0]};
    end else begin
      write_0_source_o = 2'd3;
      place_0          = {integer_q[7], integer_q[5:0]};
      if (!integer_q[8] || integer_q[6]) write_0_o = 4'b0000;
    end
    write_1_o = groups_o;
    if (write_operand && operand_q[6]) begin
      write_1_source_o = 2'd0;
      place_1          = {operand_q[7], operand_q[5:0]};
    end else if (write_product && multiply_4_q[6]) begin
      write_1_source_o = 2'd1;
      place_1          = {multiply_4_q[7], multiply_4_q[5:0]};
    end else if (add_4_q[8] && add_4_q[6]) begin
      write_1_source_o = 2'd2;
      place_1          = {add_4_q[7], add_4_q[5:0]};
    end else begin
      write_1_source_o = 2'd3;
      place_1          = {integer_q[7], integer_q[5:0]};
      if (!integer_q[8] || !integer_q[6]) write_1_o = 4'b0000;
    end
  end

  assign write_0_index_o = place_0[5:0];
  assign write_1_index_o = place_1[5:0];
  assign result_0        = write_0_o[0] && place_0[6];
  assign result_1        = write_1_o[0] && place_1[6];

endmodule

`default_nettype wire
