// Reports errors to the error registers, one at a time, with the descriptor at fault where it is
// known, and stops the queue where the error is the card's and not a descriptor's. Whoever reports
// holds its request until it is ready, and goes on only then, so that the record is still there.
`default_nettype none

module penstock_errors #(
    // Of a record's place.
    parameter int unsigned PLACE_BITS = 11,
    // Of them, the record of a queue.
    parameter int unsigned SLOT_BITS = 5
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    // Requests: a record that could not be read, a completion that could not be written, a doorbell
    // out of range, a bus error of an operand (codes 1 to 4, in this order). Each of `in`: queue 6,
    // sequence 32, address 64.
    input  wire logic [3:0]            in_valid_i,
    output      logic [3:0]            in_ready_o,
    input  wire logic [407:0]          in_i,
    // Half a record: the data is there in the cycle after read_o.
    output      logic                  read_o,
    output      logic [PLACE_BITS-1:0] place_o,
    output      logic                  read_half_o,
    input  wire logic [511:0]          read_data_i,
    output      logic                  stop_o,
    output      logic [5:0]            stop_queue_o,
    output      logic [7:0]            stop_code_o,
    // A pulse.
    output      logic                  error_valid_o,
    output      logic [7:0]            error_code_o,
    output      logic [5:0]            error_queue_o,
    output      logic [31:0]           error_sequence_o,
    output      logic [63:0]           error_address_o,
    output      logic [1023:0]         error_descriptor_o,
    output      logic                  idle_o
);

  localparam int unsigned WIDTH = 102;
  localparam logic [2:0] IDLE = 3'd0;
  localparam logic [2:0] FIRST = 3'd1;  // reads the first half
  localparam logic [2:0] REST = 3'd2;
  localparam logic [2:0] KEEP = 3'd3;   // has the second half
  localparam logic [2:0] SAY = 3'd4;
  logic [2:0] state_q;

  logic       any;
  logic [1:0] which;
  logic [3:0] grant;
  logic [3:0] grant_q;
  penstock_arbiter #(
      .N(4)
  ) u_arbiter (
      .clk_i,
      .rst_ni,
      .request_i(state_q == IDLE ? in_valid_i : '0),
      .valid_o  (any),
      .ready_i  (1'b1),
      .grant_o  (grant),
      .index_o  (which)
  );

  logic [7:0]    code_q;
  logic [5:0]    queue_q;
  logic [31:0]   sequence_q;
  logic [63:0]   address_q;
  logic [1023:0] descriptor_q;
  logic [31:0]   ahead_of_it;  // how many there were before it

  // Only the bits of a sequence in which the record's place stands.
  assign ahead_of_it = sequence_q - 32'd1;
  assign read_o      = state_q == FIRST || state_q == REST;
  assign read_half_o = state_q == REST;
  assign place_o     = {queue_q[PLACE_BITS-SLOT_BITS-1:0], ahead_of_it[SLOT_BITS-1:0]};

  always_ff @(posedge clk_i) begin
    if (any) begin
      grant_q    <= grant;
      code_q     <= {6'd0, which} + 8'd1;
      queue_q    <= in_i[WIDTH*which+:6];
      sequence_q <= in_i[WIDTH*which+6+:32];
      address_q  <= in_i[WIDTH*which+38+:64];
      if (!(which[0])) descriptor_q <= '0;
    end
    if (state_q == REST) descriptor_q[511:0] <= read_data_i;
    if (state_q == KEEP) descriptor_q[1023:512] <= read_data_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= IDLE;
    else begin
      case (state_q)
        IDLE: if (any) state_q <= which[0] ? FIRST : SAY;
        FIRST: state_q <= REST;
        REST: state_q <= KEEP;
        KEEP: state_q <= SAY;
        default: state_q <= IDLE;
      endcase
    end
  end

  assign in_ready_o         = state_q == SAY ? grant_q : '0;
  assign stop_o             = state_q == SAY && code_q != 8'd4;
  assign stop_queue_o       = queue_q;
  assign stop_code_o        = code_q;
  assign error_valid_o      = state_q == SAY;
  assign error_code_o       = code_q;
  assign error_queue_o      = queue_q;
  assign error_sequence_o   = sequence_q;
  assign error_address_o    = address_q;
  assign error_descriptor_o = descriptor_q;
  assign idle_o             = state_q == IDLE;

  /* verilator lint_off UNUSEDSIGNAL */
  logic unused;
  assign unused = &{1'b0, ahead_of_it};
  /* verilator lint_on UNUSEDSIGNAL */

endmodule

`default_nettype wire
