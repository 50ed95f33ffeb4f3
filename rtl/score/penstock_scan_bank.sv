// Cells of one lane: a memory whose words hold a cell of each of CELLS columns, with one write of a
// cell and one read of a word in a cycle. What is read at an edge stands at data_o after it and
// stays until the next read; a cell that is written at the same edge is read as it was.
//
// 8 cells of 54 bits make a word of 432, which are six UltraRAMs of 72 bits beside one another.
`default_nettype none

module penstock_scan_bank #(
    parameter int unsigned WIDTH = 54,  // bits of a cell
    parameter int unsigned CELLS = 8,  // of a word, at most 8
    parameter int unsigned DEPTH = 512,  // words
    localparam int unsigned ADDRESS = DEPTH > 1 ? $clog2(DEPTH) : 1
) (
    input wire logic clk_i,
    input wire logic write_i,
    input wire logic [2:0] write_column_i,
    input wire logic [ADDRESS-1:0] write_address_i,
    input wire logic [WIDTH-1:0] write_data_i,
    input wire logic read_i,
    input wire logic [ADDRESS-1:0] read_address_i,
    output logic [CELLS*WIDTH-1:0] data_o
);
  logic [CELLS*WIDTH-1:0] memory[0:DEPTH-1];

  always_ff @(posedge clk_i) begin
    if (read_i) data_o <= memory[read_address_i];
    for (int unsigned c = 0; c < CELLS; c++)
      if (write_i && write_column_i == 3'(c))
        memory[write_address_i][c*WIDTH+:WIDTH] <= write_data_i;
  end
endmodule

`default_nettype wire
