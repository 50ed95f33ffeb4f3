// What follows the choice of a row: the commit, in the banks and in memory, and the result record.
//
// start_i takes the best rows of the scan. applied_o pulses when the next task may be scanned
// (every cell stands in the banks); the record and the cells may then still be on their way to
// memory. Another start has to wait for ready_o.
//
// From start to applied: 3 cycles without a commit; else n_resources + 12, and for every cell that
// changes one (two for a bit), as long as writes are taken.
`default_nettype none

module penstock_score_commit #(
    parameter int unsigned RESOURCES = 8,
    parameter int unsigned BITS = 64,
    localparam int unsigned SLOT = $clog2(BITS),
    localparam int unsigned Q = penstock_score_pkg::QUANTITY,
    localparam int unsigned F = penstock_score_pkg::FREE_VALUE,
    localparam int unsigned KEY = 85
) (
    input wire logic clk_i,
    input wire logic rst_ni,
    input wire logic start_i,
    output logic ready_o,
    output logic applied_o,
    output logic committed_o,  // with applied_o: cells were changed
    input wire logic commit_i,
    /* verilator lint_off UNUSEDSIGNAL */  // a multiple of 8
    input wire logic [63:0] result_address_i,  // of the record
    /* verilator lint_on UNUSEDSIGNAL */
    // Of the scan.
    input wire logic [20:0] feasible_i,
    input wire logic [8*KEY-1:0] best_i,
    input wire logic [3:0] best_count_i,
    input wire logic [20:0] rows_i,
    input wire logic [19:0] start_row_i,
    // Of the task in work.
    input wire logic [RESOURCES*Q-1:0] request_i,
    input wire logic [RESOURCES*Q-1:0] scored_request_i,
    input wire logic [8*12-1:0] set_bits_i,
    input wire logic [8*SLOT-1:0] set_bits_slot_i,
    input wire logic [4*4-1:0] count_i,
    // Of the table.
    input wire logic [63:0] address_i,
    input wire logic [20:0] capacity_i,
    input wire logic [4:0] n_resources_i,  // at most RESOURCES
    input wire logic [63:0] requested_i,
    input wire logic [63:0] scored_i,
    input wire logic [63:0] bits_i,
    input wire logic [63:0] free_i,
    // The banks, see penstock_scan.
    output logic peek_o,
    output logic [19:0] row_o,
    output logic [2:0] peek_column_o,
    output logic [SLOT-1:0] peek_slot_o,
    input wire logic [Q-1:0] peek_requested_i,
    input wire logic [Q-1:0] peek_scored_i,
    input wire logic [F-1:0] peek_free_i,
    input wire logic [7:0] peek_byte_i,
    output logic write_o,
    output logic [2:0] write_kind_o,
    output logic [SLOT-1:0] write_column_o,
    output logic [63:0] write_cell_o,
    // To penstock_score_writer: the tag is 1 for results.
    output logic put_valid_o,
    input wire logic put_ready_i,
    output logic [57:0] put_line_o,
    output logic [63:0] put_strobe_o,
    output logic [511:0] put_data_o,
    output logic put_tag_o
);
  typedef enum logic [2:0] {
    IDLE,
    PEEK,
    CHECK,
    BITS_READ,
    BITS_WRITE,
    CELLS,
    RECORD,
    EMIT
  } state_e;
  state_e state_q;

  // ---- the rows that the scan found ----

  logic [3:0] n_best;
  logic [8*128-1:0] best;  // records of struct penstock_best
  logic [7:0] there;
  logic [8*20-1:0] rows;
  always_comb begin
    n_best = '0;
    for (int unsigned i = 0; i < 8; i++) n_best = n_best + 4'(there[i]);
  end
  for (genvar i = 0; i < 8; i++) begin : g_best
    logic [KEY-1:0] key;
    logic [20:0] row;
    assign key = best_i[i*KEY+:KEY];
    assign there[i] = key[KEY-1] && 4'(i) < best_count_i;
    assign row = {1'b0, start_row_i} + {1'b0, ~key[19:0]};
    assign rows[i*20+:20] = row >= rows_i ? 20'(row - rows_i) : row[19:0];
    assign best[i*128+:128] =
        there[i] ? {~key[83], key[82:20], 32'b0, 12'b0, rows[i*20+:20]} : '0;
  end

  // ---- what the task adds to the row ----

  logic [4:0] step_q;
  logic fails_q, committed_q, refused_q;
  logic [RESOURCES*Q-1:0] new_requested_q, new_scored_q;
  logic [4*64-1:0] new_free_q;
  logic [RESOURCES-1:0] asks, asks_scored;
  for (genvar r = 0; r < RESOURCES; r++) begin : g_asks
    assign asks[r] = request_i[r*Q+:Q] != '0;
    assign asks_scored[r] = scored_request_i[r*Q+:Q] != '0;
  end
  // A free column that is named several times rises that often, at its first mention.
  logic [3:0] counted;
  logic [4*3-1:0] mentions;
  always_comb begin
    for (int unsigned i = 0; i < 4; i++) begin
      counted[i] = count_i[i*4+:4] != '0;
      mentions[i*3+:3] = '0;
      for (int unsigned j = 0; j < 4; j++) begin
        if (count_i[j*4+:4] == count_i[i*4+:4]) begin
          mentions[i*3+:3] = mentions[i*3+:3] + 3'd1;
          if (j < i) counted[i] = 1'b0;
        end
      end
    end
  end

  // Checking: the column is named in one cycle, and looked at in the next.
  logic [4:0] looks, resource_last;
  logic [Q:0] sum_requested, sum_scored;
  logic signed [F:0] sum_free;
  logic sound;
  logic [1:0] mention;
  assign looks = step_q - 5'd1;
  assign mention = 2'(looks - resource_last);
  assign resource_last = n_resources_i;
  assign sum_requested = {1'b0, peek_requested_i} + {1'b0, request_i[looks[2:0]*Q+:Q]};
  assign sum_scored = {1'b0, peek_scored_i} + {1'b0, scored_request_i[looks[2:0]*Q+:Q]};
  assign sum_free = (F + 1)'($signed(peek_free_i)) + $signed((F + 1)'(mentions[mention*3+:3]));
  always_comb begin
    if (looks < resource_last)
      sound = penstock_score_pkg::quantity_is_sound(peek_requested_i) &&
          penstock_score_pkg::quantity_is_sound(peek_scored_i) &&
          sum_requested <= {1'b0, penstock_score_pkg::MAX_QUANTITY} &&
          sum_scored <= {1'b0, penstock_score_pkg::MAX_QUANTITY};
    else
      sound = !counted[mention] || (penstock_score_pkg::free_is_sound(peek_free_i) &&
          sum_free <= (F + 1)'(penstock_score_pkg::MAX_FREE));
  end
  /* verilator lint_off UNUSEDSIGNAL */  // at most eight columns
  logic [3:0] next_count;
  /* verilator lint_on UNUSEDSIGNAL */
  assign next_count = count_i[2'(step_q-resource_last)*4+:4] - 4'd1;
  assign peek_column_o = step_q < resource_last ? step_q[2:0] : next_count[2:0];
  assign peek_slot_o = set_bits_slot_i[step_q[2:0]*SLOT+:SLOT];

  // ---- cells that change, one in a cycle ----

  // Pending: requested, scored, free.
  localparam int unsigned CELLS_N = 2 * RESOURCES + 4;
  logic [CELLS_N-1:0] pending_q, first;
  logic [4:0] item;
  logic [11:0] item_column, bit_column;
  logic [63:0] item_cell, item_base;
  logic [2:0] item_kind;
  logic moves, stalls;
  logic [1:0] item_free;
  logic [4:0] item_scored;
  assign item_free = 2'(item - 5'(2 * RESOURCES));
  assign item_scored = item - 5'(RESOURCES);
  assign first = pending_q & (~pending_q + CELLS_N'(1));
  assign bit_column = set_bits_i[step_q[2:0]*12+:12];
  always_comb begin
    item = '0;
    for (int unsigned i = 0; i < CELLS_N; i++) if (first[i]) item = item | 5'(i);
  end
  always_comb begin
    item_kind = penstock_score_pkg::KIND_REQUESTED;
    item_column = 12'(item);
    item_base = requested_i;
    item_cell = '0;
    if (item >= 5'(2 * RESOURCES)) begin
      item_kind = penstock_score_pkg::KIND_FREE;
      item_column = 12'(count_i[item_free*4+:4]) - 12'd1;
      item_base = free_i;
      item_cell = new_free_q[item_free*64+:64];
    end else if (item >= 5'(RESOURCES)) begin
      item_kind = penstock_score_pkg::KIND_SCORED;
      item_column = 12'(item_scored);
      item_base = scored_i;
      item_cell = {10'b0, new_scored_q[item_scored*Q+:Q]};
    end else begin
      item_cell = {10'b0, new_requested_q[item*Q+:Q]};
    end
    if (state_q == BITS_WRITE) begin
      item_kind = penstock_score_pkg::KIND_BITS;
      item_column = bit_column;
      item_base = bits_i;
      item_cell = {56'b0, peek_byte_i | (8'd1 << row_o[2:0])};
    end
  end
  assign moves = (state_q == CELLS && pending_q != '0) || state_q == BITS_WRITE;

  // One stage to the writer, in which the address is made.
  logic cell_q;
  logic [63:0] cell_base_q, cell_data_q, cell_address;
  logic [37:0] cell_offset_q;
  logic [19:0] cell_row_q;
  logic cell_is_bits_q;
  assign stalls = cell_q && !put_ready_i;
  assign write_o = moves && !stalls;
  assign write_kind_o = item_kind;
  assign write_column_o = state_q == BITS_WRITE ? peek_slot_o : SLOT'(item_column);
  assign write_cell_o = item_cell;
  assign cell_address = address_i + cell_base_q + 64'(cell_offset_q) +
      (cell_is_bits_q ? {47'b0, cell_row_q[19:3]} : {41'b0, cell_row_q, 3'b0});

  // ---- the record ----

  logic [1279:0] record_q;
  logic [4:0] words_q;  // still to be written
  logic [2:0] offset_q;  // of the first word in the line
  logic [57:0] line_q;
  logic [3:0] words_now, words_room;
  logic [7:0] words_strobe;
  assign words_room = 4'd8 - {1'b0, offset_q};
  assign words_now = words_q < {1'b0, words_room} ? words_q[3:0] : words_room;
  assign words_strobe = ~(8'hff << words_now) << offset_q;
  always_comb begin
    put_valid_o = cell_q;
    put_tag_o = 1'b0;
    put_line_o = cell_address[63:6];
    put_data_o = {8{cell_data_q}};
    put_strobe_o = 64'hff << {cell_address[5:3], 3'b0};
    if (cell_is_bits_q) begin
      put_data_o = {64{cell_data_q[7:0]}};
      put_strobe_o = 64'h1 << cell_address[5:0];
    end
    if (state_q == EMIT && !cell_q) begin
      put_valid_o = 1'b1;
      put_tag_o = 1'b1;
      put_line_o = line_q;
      put_data_o = record_q[511:0] << {offset_q, 6'b0};
      for (int unsigned i = 0; i < 8; i++) put_strobe_o[i*8+:8] = {8{words_strobe[i]}};
    end
  end

  logic [31:0] status;
  always_comb begin
    status = 32'(penstock_pkg::OK);
    if (n_best == '0) status = 32'(penstock_pkg::NOT_FOUND);
    if (refused_q) status = 32'(penstock_pkg::OUT_OF_RANGE);
  end

  assign ready_o = state_q == IDLE && !cell_q;
  assign peek_o = state_q == PEEK;
  always_ff @(posedge clk_i) begin
    applied_o <= 1'b0;
    committed_o <= 1'b0;
    if (!rst_ni) begin
      state_q <= IDLE;
      cell_q <= 1'b0;
    end else begin
      if (put_ready_i) cell_q <= 1'b0;
      if (moves && !stalls) cell_q <= 1'b1;
      case (state_q)
        IDLE: if (start_i) state_q <= there[0] && commit_i ? PEEK : RECORD;
        PEEK: state_q <= CHECK;
        CHECK:
        if (step_q == resource_last + 5'd4)
          state_q <= fails_q || !sound ? RECORD : BITS_READ;
        BITS_READ: state_q <= BITS_WRITE;
        BITS_WRITE: if (!stalls) state_q <= step_q == 5'd7 ? CELLS : BITS_READ;
        CELLS: if (pending_q == '0) state_q <= RECORD;
        RECORD: begin
          state_q <= EMIT;
          applied_o <= 1'b1;
          committed_o <= committed_q;
        end
        default: if (!cell_q && put_ready_i && words_q == {1'b0, words_now}) state_q <= IDLE;
      endcase
      // A bit column that is not named costs nothing but its turn.
      if (state_q == BITS_READ && bit_column == '0)
        state_q <= step_q == 5'd7 ? CELLS : BITS_READ;
    end

    if (state_q == IDLE) begin
      row_o <= rows[19:0];
      step_q <= '0;
      fails_q <= 1'b0;
      refused_q <= 1'b0;
      committed_q <= 1'b0;
    end
    if (state_q == CHECK) begin
      step_q <= step_q + 5'd1;
      if (step_q >= 5'd1) begin
        if (!sound) fails_q <= 1'b1;
        if (looks < resource_last) begin
          new_requested_q[looks[2:0]*Q+:Q] <= sum_requested[Q-1:0];
          new_scored_q[looks[2:0]*Q+:Q] <= sum_scored[Q-1:0];
        end else begin
          new_free_q[mention*64+:64] <= 64'(sum_free);
        end
      end
      if (step_q == resource_last + 5'd4) begin
        step_q <= '0;
        refused_q <= fails_q || !sound;
        committed_q <= !fails_q && sound;
        pending_q <= {counted, asks_scored, asks};
      end
    end
    if (state_q == BITS_READ ? bit_column == '0 : state_q == BITS_WRITE && !stalls)
      step_q <= step_q + 5'd1;
    if (state_q == CELLS && !stalls) pending_q <= pending_q & ~first;
    if (moves && !stalls) begin
      cell_base_q <= item_base;
      cell_offset_q <= 38'(item_column) *
          (state_q == BITS_WRITE ? {20'b0, capacity_i[20:3]} : {14'b0, capacity_i, 3'b0});
      cell_data_q <= item_cell;
      cell_row_q <= row_o;
      cell_is_bits_q <= state_q == BITS_WRITE;
    end
    if (state_q == RECORD) begin
      record_q <= {best, 32'b0, 28'b0, n_best, 32'b0, 11'b0, feasible_i,
                   n_best == '0 ? 64'b0 : best[127:64],
                   n_best == '0 ? 32'hffff_ffff : best[31:0], status};
      words_q <= 5'd20;
      offset_q <= result_address_i[5:3];
      line_q <= result_address_i[63:6];
    end
    if (state_q == EMIT && !cell_q && put_ready_i) begin
      record_q <= record_q >> {words_now, 6'b0};
      words_q <= words_q - {1'b0, words_now};
      offset_q <= '0;
      line_q <= line_q + 58'd1;
    end
  end
endmodule

`default_nettype wire
