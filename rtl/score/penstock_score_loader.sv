// Brings columns from memory into the banks: all columns of cells and bit column 0 of a table, or
// one bit column into a slot. Cells take a cycle for eight rows, a bit column one for 64.
`default_nettype none

module penstock_score_loader #(
    parameter int unsigned ROWS = 4096,
    parameter int unsigned BITS = 64,
    localparam int unsigned GROUP = $clog2(ROWS / 8),
    localparam int unsigned SLOT = $clog2(BITS)
) (
    input wire logic clk_i,
    input wire logic rst_ni,
    input wire logic table_i,  // pulse: the whole table
    input wire logic column_i,  // pulse: one bit column
    input wire logic [11:0] column_column_i,
    input wire logic [SLOT-1:0] column_slot_i,
    output logic done_o,  // pulse
    // Of the table.
    input wire logic [63:0] address_i,
    input wire logic [20:0] rows_i,
    input wire logic [20:0] capacity_i,
    input wire logic [3:0] n_resources_i,
    input wire logic [3:0] n_free_i,
    input wire logic [63:0] allocatable_i,
    input wire logic [63:0] bits_i,
    input wire logic [63:0] free_i,
    // To penstock_score_reader.
    output logic request_valid_o,
    input wire logic request_ready_i,
    output logic [63:0] request_address_o,
    output logic [31:0] request_bytes_o,
    input wire logic data_valid_i,
    output logic data_ready_o,
    // To penstock_scan.
    output logic load_valid_o,
    input wire logic load_ready_i,
    output logic [2:0] load_kind_o,
    output logic [SLOT-1:0] load_column_o,
    output logic [GROUP-1:0] load_index_o
);
  // Columns of cells follow one another: 3 * n_resources of the first three kinds, then, elsewhere,
  // the free ones. Asked for and filled in the same order, by two walkers.
  logic asks_q, fills_q, single_q;
  logic [2:0] ask_kind_q, fill_kind_q;
  logic [3:0] ask_column_q, fill_column_q;
  logic [63:0] ask_address_q;
  logic [GROUP:0] index_q, beats;
  logic [SLOT-1:0] slot_q;
  logic [11:0] column_q;
  logic [24:0] cells_bytes;  // of a column
  logic [20:0] words;  // of 64 rows
  /* verilator lint_off UNUSEDSIGNAL */  // rows are at most ROWS
  logic [20:0] groups, lines;
  /* verilator lint_on UNUSEDSIGNAL */
  assign cells_bytes = {1'b0, capacity_i, 3'b0};
  assign groups = (rows_i + 21'd7) >> 3;
  assign words = (rows_i + 21'd63) >> 6;
  assign lines = (rows_i + 21'd511) >> 9;

  logic ask_last, fill_last, filled, next_free_ask, next_free_fill;
  assign ask_last = ask_column_q + 4'd1 == (ask_kind_q == penstock_score_pkg::KIND_FREE ?
      n_free_i : n_resources_i);
  assign fill_last = fill_column_q + 4'd1 == (fill_kind_q == penstock_score_pkg::KIND_FREE ?
      n_free_i : n_resources_i);
  assign next_free_ask = ask_kind_q == penstock_score_pkg::KIND_SCORED && n_free_i != '0;
  assign next_free_fill = fill_kind_q == penstock_score_pkg::KIND_SCORED && n_free_i != '0;
  assign beats = fill_kind_q == penstock_score_pkg::KIND_BITS ? lines[GROUP:0] : groups[GROUP:0];
  assign filled = load_valid_o && load_ready_i && index_q + (GROUP + 1)'(1) == beats;

  assign request_valid_o = asks_q;
  assign request_address_o = ask_kind_q == penstock_score_pkg::KIND_BITS ?
      address_i + bits_i + 64'(column_q) * 64'(capacity_i[20:3]) : ask_address_q;
  assign request_bytes_o = ask_kind_q == penstock_score_pkg::KIND_BITS ?
      {8'b0, words, 3'b0} : {8'b0, rows_i, 3'b0};
  assign load_valid_o = fills_q && data_valid_i;
  assign data_ready_o = fills_q && load_ready_i;
  assign load_kind_o = fill_kind_q;
  assign load_column_o = fill_kind_q == penstock_score_pkg::KIND_BITS ? slot_q :
      SLOT'(fill_column_q);
  assign load_index_o = index_q[GROUP-1:0];

  always_ff @(posedge clk_i) begin
    done_o <= 1'b0;
    if (!rst_ni) begin
      asks_q <= 1'b0;
      fills_q <= 1'b0;
    end else if (table_i || column_i) begin
      asks_q <= rows_i != '0;
      fills_q <= rows_i != '0;
      done_o <= rows_i == '0;
    end else begin
      if (asks_q && request_ready_i && (single_q || ask_kind_q == penstock_score_pkg::KIND_BITS))
        asks_q <= 1'b0;
      if (filled && fill_kind_q == penstock_score_pkg::KIND_BITS) begin
        fills_q <= 1'b0;
        done_o <= 1'b1;
      end
    end
    if (table_i || column_i) begin
      single_q <= column_i;
      ask_kind_q <= column_i ? penstock_score_pkg::KIND_BITS : penstock_score_pkg::KIND_ALLOCATABLE;
      fill_kind_q <= column_i ? penstock_score_pkg::KIND_BITS :
          penstock_score_pkg::KIND_ALLOCATABLE;
      ask_column_q <= '0;
      fill_column_q <= '0;
      ask_address_q <= address_i + allocatable_i;
      index_q <= '0;
      slot_q <= column_i ? column_slot_i : '0;
      column_q <= column_i ? column_column_i : '0;
    end else begin
      if (asks_q && request_ready_i) begin
        ask_address_q <= ask_address_q + 64'(cells_bytes);
        ask_column_q <= ask_column_q + 4'd1;
        if (ask_last) begin
          ask_column_q <= '0;
          ask_kind_q <= ask_kind_q + 3'd1;
          if (ask_kind_q == penstock_score_pkg::KIND_SCORED) begin
            ask_kind_q <= next_free_ask ? penstock_score_pkg::KIND_FREE :
                penstock_score_pkg::KIND_BITS;
            ask_address_q <= address_i + free_i;
          end
        end
      end
      if (load_valid_o && load_ready_i) index_q <= index_q + (GROUP + 1)'(1);
      if (filled) begin
        index_q <= '0;
        fill_column_q <= fill_column_q + 4'd1;
        if (fill_last) begin
          fill_column_q <= '0;
          fill_kind_q <= fill_kind_q + 3'd1;
          if (fill_kind_q == penstock_score_pkg::KIND_SCORED && !next_free_fill)
            fill_kind_q <= penstock_score_pkg::KIND_BITS;
        end
      end
    end
  end
endmodule

`default_nettype wire
