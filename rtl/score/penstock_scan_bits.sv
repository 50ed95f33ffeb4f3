// The bit columns that are resident, a slot for each, and what a task asks of them: for a group of
// LANES rows at once, whether the terms of the filters hold and which terms hold. Slot 0 is the
// column that says which rows hold a node.
//
// A column comes as beats of 512 rows, which take eight cycles each to write (load_ready_o). A
// commit writes a byte, which is the group of rows; the group has to be the one that was read last.
`default_nettype none

module penstock_scan_bits #(
    parameter int unsigned BITS = 64,  // slots
    parameter int unsigned DEPTH = 512,  // groups of rows, a multiple of 64
    localparam int unsigned GROUP = $clog2(DEPTH),
    localparam int unsigned WORDS = DEPTH / 8,
    localparam int unsigned WORD = $clog2(WORDS),
    localparam int unsigned SLOT = $clog2(BITS)
) (
    input wire logic clk_i,
    input wire logic rst_ni,
    input wire logic load_valid_i,
    output logic load_ready_o,
    input wire logic [SLOT-1:0] load_slot_i,
    input wire logic [WORD-4:0] load_beat_i,
    input wire logic [511:0] load_data_i,
    input wire logic write_i,
    input wire logic [SLOT-1:0] write_slot_i,
    input wire logic [GROUP-1:0] write_group_i,
    input wire logic [7:0] write_byte_i,
    input wire logic read_i,
    input wire logic [GROUP-1:0] read_group_i,
    // The byte of a slot in the group that was read, a cycle after peek_i.
    input wire logic peek_i,
    input wire logic [SLOT-1:0] peek_slot_i,
    output logic [7:0] peek_byte_o,
    input wire logic [2:1] token_i,
    // Of the task.
    input wire logic [BITS-1:0] used_i,  // slots that are looked at
    input wire logic [BITS-1:0] set_i,
    input wire logic [BITS-1:0] clear_i,
    input wire logic [16*SLOT-1:0] term_slot_i,
    input wire logic [15:0] term_clear_i,
    output logic [7:0] passes_3o,  // a bit for each row
    output logic [16*8-1:0] holds_3o  // for each term a bit for each row
);
  // ---- memories ----

  logic [2:0] load_word_q;
  logic [63:0] load_word;
  assign load_ready_o = load_word_q == 3'd7 && !write_i;
  assign load_word = load_data_i[load_word_q*64+:64];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) load_word_q <= '0;
    else if (load_valid_i && !write_i) load_word_q <= load_word_q + 3'd1;
  end

  logic [2:0] byte_q;  // of the words that were read
  logic [BITS*64-1:0] words;
  always_ff @(posedge clk_i) if (read_i) byte_q <= read_group_i[2:0];
  // A word of 64 rows is written as a whole: from a beat, or as it was read with the group's byte
  // replaced.
  logic [63:0] kept_word, write_word;
  logic [BITS-1:0] write_slots;
  logic [WORD-1:0] write_address;
  assign kept_word = words[{write_slot_i, 6'b0}+:64];
  always_comb begin
    write_word = write_i ? kept_word : load_word;
    if (write_i) write_word[{write_group_i[2:0], 3'b0}+:8] = write_byte_i;
    write_slots = '0;
    if (write_i) write_slots[write_slot_i] = 1'b1;
    else if (load_valid_i) write_slots[load_slot_i] = 1'b1;
  end
  assign write_address = write_i ? write_group_i[GROUP-1:3] : {load_beat_i, load_word_q};
  for (genvar b = 0; b < BITS; b++) begin : g_slot
    logic [63:0] memory[0:WORDS-1];
    logic [63:0] word_q;
    always_ff @(posedge clk_i) begin
      if (read_i) word_q <= memory[read_group_i[GROUP-1:3]];
      if (write_slots[b]) memory[write_address] <= write_word;
    end
    assign words[b*64+:64] = word_q;
  end
  always_ff @(posedge clk_i)
    if (peek_i) peek_byte_o <= words[{peek_slot_i, byte_q, 3'b0}+:8];

  // ---- the group's bytes, then what holds ----

  logic [BITS*8-1:0] bytes_2q;
  always_ff @(posedge clk_i) begin
    if (token_i[1]) begin
      for (int unsigned b = 0; b < BITS; b++)
        if (used_i[b]) bytes_2q[b*8+:8] <= words[{SLOT'(b), byte_q, 3'b0}+:8];
    end
  end
  logic [7:0] passes;
  always_comb begin
    passes = bytes_2q[7:0];
    for (int unsigned b = 1; b < BITS; b++) begin
      if (set_i[b]) passes = passes & bytes_2q[b*8+:8];
      if (clear_i[b]) passes = passes & ~bytes_2q[b*8+:8];
    end
    if (set_i[0]) passes = passes & bytes_2q[7:0];
    if (clear_i[0]) passes = passes & ~bytes_2q[7:0];
  end
  always_ff @(posedge clk_i) begin
    if (token_i[2]) begin
      passes_3o <= passes;
      for (int unsigned t = 0; t < 16; t++)
        holds_3o[t*8+:8] <= bytes_2q[{term_slot_i[t*SLOT+:SLOT], 3'b0}+:8] ^ {8{term_clear_i[t]}};
    end
  end
endmodule

`default_nettype wire
