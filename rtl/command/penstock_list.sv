// Reads the list of a descriptor's source addresses: up to 64 words of 8 bytes, in at most two
// bursts, because they may lie across 4 KiB. There is room for all of them, so that data is always
// taken.
`default_nettype none

module penstock_list (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,
    // Starts to read `words` (1 to 64) from a bus address on 8 bytes.
    input  wire logic         start_i,
    input  wire logic [63:3]  address_i,
    input  wire logic [6:0]   words_i,
    // All that was asked for is there; it stays until the next start.
    output      logic         done_o,
    // A burst failed: the first that did, by its bus address.
    output      logic         error_o,
    output      logic [63:0]  error_address_o,
    // The word of a number.
    input  wire logic [5:0]   index_i,
    output      logic [63:0]  word_o,
    output      logic         ar_valid_o,
    input  wire logic         ar_ready_i,
    output      logic [63:0]  ar_address_o,
    output      logic [3:0]   ar_beats_o,  // 1 to 9
    // Data of its bursts, in their order.
    input  wire logic         r_valid_i,
    input  wire logic [511:0] r_data_i,
    input  wire logic         r_error_i
);

  localparam logic [1:0] IDLE = 2'd0;
  localparam logic [1:0] SEND = 2'd1;
  localparam logic [1:0] SEND_REST = 2'd2;
  localparam logic [1:0] RECEIVE = 2'd3;
  logic [1:0] state_q;

  logic [511:0] beats_m[0:8];
  logic [63:0]  address_q;  // of the first beat
  logic [2:0]   offset_q;   // of the first word in it
  logic [3:0]   total_q;    // beats of both bursts
  logic [3:0]   first_q;    // of the first one
  logic [3:0]   beat_q;     // that comes next
  logic         error_q;
  logic         error_rest_q;
  /* verilator lint_off UNUSEDSIGNAL */  // its low bits
  logic [6:0]   last_word;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [6:0]   to_page;

  assign last_word = {4'd0, address_i[5:3]} + words_i - 7'd1;
  assign to_page   = 7'd64 - {1'b0, address_i[11:6]};

  assign done_o          = state_q == IDLE;
  assign error_o         = error_q;
  assign error_address_o = error_rest_q ? {address_q[63:12] + 52'd1, 12'd0} : address_q;
  assign ar_valid_o      = state_q == SEND || state_q == SEND_REST;
  assign ar_address_o    = state_q == SEND ? address_q : {address_q[63:12] + 52'd1, 12'd0};
  assign ar_beats_o      = state_q == SEND ? first_q : total_q - first_q;

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      address_q    <= {address_i[63:6], 6'd0};
      offset_q     <= address_i[5:3];
      total_q      <= last_word[6:3] + 4'd1;
      first_q      <= {3'd0, last_word[6:3]} < to_page ? last_word[6:3] + 4'd1 : to_page[3:0];
      beat_q       <= '0;
      error_q      <= 1'b0;
      error_rest_q <= 1'b0;
    end else if (r_valid_i) begin
      beats_m[beat_q] <= r_data_i;
      beat_q          <= beat_q + 4'd1;
      if (r_error_i) begin
        error_q <= 1'b1;
        if (!error_q) error_rest_q <= beat_q >= first_q;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= IDLE;
    else begin
      case (state_q)
        IDLE: if (start_i) state_q <= SEND;
        SEND: if (ar_ready_i) state_q <= first_q == total_q ? RECEIVE : SEND_REST;
        SEND_REST: if (ar_ready_i) state_q <= RECEIVE;
        default: if (r_valid_i && beat_q == total_q - 4'd1) state_q <= IDLE;
      endcase
    end
  end

  logic [6:0]   place;
  logic [511:0] beat;
  assign place  = {1'b0, index_i} + {4'd0, offset_q};
  assign beat   = beats_m[place[6:3]];
  assign word_o = beat[64*place[2:0]+:64];

endmodule

`default_nettype wire
