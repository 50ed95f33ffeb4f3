// The way of an accumulator from its bank to the output: when it may leave, and what is done with
// it: nothing, times 1/n, or divided by n; then it is packed in one or more steps.
//
// An accumulator leaves when the queue at the output has room for all that comes of it, so that
// nothing stops on its way. Accumulators that leave in another manner than those before wait until
// those have arrived.
`default_nettype none

module penstock_fold_drain #(
    // Beats that the queue at the output holds.
    parameter int unsigned QUEUE_BEATS = 32
) (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,

    // The banks: see penstock_fold_fill.
    input  wire logic [1:0]  ready_i,
    input  wire logic [6:0]  written_0_i,
    input  wire logic [6:0]  written_1_i,
    input  wire logic [1:0]  closed_i,
    input  wire logic [6:0]  beats_0_i,
    input  wire logic [6:0]  beats_1_i,
    input  wire logic [17:0] kind_0_i,
    input  wire logic [17:0] kind_1_i,
    output      logic [1:0]  release_o,
    output      logic        averaging_o,

    // Enables of the lanes.
    output      logic [3:0]  drain_o,
    output      logic        drain_bank_o,
    output      logic [5:0]  drain_index_o,
    output      logic [4:1]  multiply_o,        // of lanes that groups_o names
    output      logic [3:0]  groups_o,
    output      logic [31:0] factor_o,

    // Integers go through the divider.
    output      logic        divide_valid_o,
    output      logic        divide_last_o,
    output      logic [1:0]  divide_size_o,
    output      logic        divide_signed_o,
    output      logic [6:0]  divisor_o,
    input  wire logic        divide_valid_i,
    input  wire logic        divide_last_i,
    input  wire logic        divide_busy_i,

    // Steps of packing.
    output      logic        step_o,
    output      logic [1:0]  part_o,
    output      logic        last_o,
    output      logic        products_o,
    output      logic        quotients_o,
    output      logic        pass_o,
    output      logic        halves_o,
    output      logic [3:0]  out_type_o,
    input  wire logic        packed_i,
    input  wire logic [6:0]  beats_i,
    input  wire logic        pack_busy_i
);

  localparam logic [3:0] INT8 = 4'(penstock_pkg::INT8);
  localparam logic [3:0] INT32 = 4'(penstock_pkg::INT32);
  localparam logic [3:0] UINT32 = 4'(penstock_pkg::UINT32);
  localparam logic [3:0] INT64 = 4'(penstock_pkg::INT64);
  localparam logic [3:0] UINT64 = 4'(penstock_pkg::UINT64);
  localparam logic [3:0] F16 = 4'(penstock_pkg::F16);
  localparam logic [3:0] F32 = 4'(penstock_pkg::F32);
  localparam logic [3:0] BF16 = 4'(penstock_pkg::BF16);

  function automatic [3:0] groups_of(input raw, input [3:0] element);
    if (raw || element == 4'(penstock_pkg::F32)) groups_of = 4'b0001;
    else if (element == 4'(penstock_pkg::F16) || element == 4'(penstock_pkg::BF16)) begin
      groups_of = 4'b0011;
    end else groups_of = 4'b1111;
  endfunction

  // ---- What would leave next --------------------------------------------------------------------

  logic        bank_q;
  logic [5:0]  index_q;
  logic [17:0] kind;
  logic        available;
  logic        last;  // of its chunk
  logic [2:0]  steps;
  logic [3:0]  groups;

  always_comb begin
    kind = bank_q ? kind_1_i : kind_0_i;
    available = ready_i[bank_q]
        && {1'b0, index_q} < (bank_q ? written_1_i : written_0_i);
    last = closed_i[bank_q]
        && {1'b0, index_q} + 7'd1 == (bank_q ? beats_1_i : beats_0_i);
    groups = groups_of(kind[8], kind[7:4]);
    // As many as the elements of its lanes fill beats; a part of a beat is one.
    steps = 3'd1;
    if (!kind[8] && kind[3:0] == F32) steps = groups[3] ? 3'd4 : groups[1] ? 3'd2 : 3'd1;
    else if (!kind[8] && (kind[3:0] == F16 || kind[3:0] == BF16)) steps = groups[3] ? 3'd2 : 3'd1;
  end

  // ---- Whether it may ---------------------------------------------------------------------------

  logic [17:0] kind_q;      // of all that is on its way
  logic [2:0]  steps_q;
  logic        busy;        // something is
  logic [1:0]  pause_q;     // cycles in which the last one still has steps
  logic [6:0]  reserved_q;  // steps on their way to the queue
  logic        leave;

  assign leave = available && pause_q == 2'd0 && (!busy || kind == kind_q)
      && reserved_q + beats_i + {4'b0, steps} <= 7'(QUEUE_BEATS);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      bank_q     <= 1'b0;
      index_q    <= 6'd0;
      pause_q    <= 2'd0;
      reserved_q <= 7'd0;
    end else begin
      if (leave) begin
        index_q <= last ? 6'd0 : index_q + 6'd1;
        if (last) bank_q <= !bank_q;
      end
      if (leave) pause_q <= 2'(steps - 3'd1);
      else if (pause_q != 2'd0) pause_q <= pause_q - 2'd1;
      reserved_q <= reserved_q + (leave ? {4'b0, steps} : 7'd0) - {6'b0, packed_i};
    end
  end

  always_ff @(posedge clk_i) begin
    if (leave) begin
      kind_q  <= kind;
      steps_q <= steps;
    end
  end

  assign release_o     = {leave && last && bank_q, leave && last && !bank_q};
  assign drain_o       = leave ? groups : 4'b0000;
  assign drain_bank_o  = bank_q;
  assign drain_index_o = index_q;

  // ---- On its way -------------------------------------------------------------------------------

  logic       average;
  logic       divide;
  logic [4:0] way_q;       // in drained_q, after each step of a product
  logic [4:0] way_last_q;
  logic       arrive;      // the source of a step is there
  logic       arrive_last;
  logic [1:0] part_q;      // next step of what has arrived, or 0
  logic       last_q;
  logic       final_step;

  assign average = kind_q[10];
  assign divide  = kind_q[9];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) way_q <= 5'b0;
    else way_q <= {average ? way_q[3:0] : 4'b0, leave};
    way_last_q <= {way_last_q[3:0], last};
  end

  assign groups_o        = groups_of(kind_q[8], kind_q[7:4]);
  assign multiply_o      = average ? way_q[3:0] : 4'b0;
  assign factor_o        = reciprocal(kind_q[17:11]);
  assign divide_valid_o  = divide && way_q[0];
  assign divide_last_o   = way_last_q[0];
  assign divide_signed_o = kind_q[7:4] == INT8 || kind_q[7:4] == INT32 || kind_q[7:4] == INT64;
  assign divisor_o       = kind_q[17:11];

  always_comb begin
    if (kind_q[7:4] == INT64 || kind_q[7:4] == UINT64) begin
      divide_size_o = penstock_integer_pkg::BITS_64;
    end else if (kind_q[7:4] == INT32 || kind_q[7:4] == UINT32) begin
      divide_size_o = penstock_integer_pkg::BITS_32;
    end else begin
      divide_size_o = penstock_integer_pkg::BITS_8;
    end
  end

  always_comb begin
    arrive      = average ? way_q[4] : divide ? divide_valid_i : way_q[0];
    arrive_last = average ? way_last_q[4] : divide ? divide_last_i : way_last_q[0];
    step_o      = arrive || part_q != 2'd0;
    final_step  = {1'b0, part_q} + 3'd1 == steps_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) part_q <= 2'd0;
    else if (step_o) part_q <= final_step ? 2'd0 : part_q + 2'd1;
    if (arrive) last_q <= arrive_last;
  end

  assign part_o      = part_q;
  assign last_o      = final_step && (arrive ? arrive_last : last_q);
  assign products_o  = average;
  assign quotients_o = divide;
  assign pass_o      = kind_q[8] || kind_q[3:0] == F32;
  assign halves_o    = kind_q[3:0] == F16 || kind_q[3:0] == BF16;
  assign out_type_o  = kind_q[3:0];
  assign busy        = way_q != 5'b0 || divide_busy_i || part_q != 2'd0 || pack_busy_i;
  assign averaging_o = busy && average;

  // ---- f32(1/n) ---------------------------------------------------------------------------------

  // Rounded to nearest even.
  function automatic [31:0] reciprocal(input [6:0] n);
    case (n)
      7'd2: reciprocal = 32'h3f000000;
      7'd3: reciprocal = 32'h3eaaaaab;
      7'd4: reciprocal = 32'h3e800000;
      7'd5: reciprocal = 32'h3e4ccccd;
      7'd6: reciprocal = 32'h3e2aaaab;
      7'd7: reciprocal = 32'h3e124925;
      7'd8: reciprocal = 32'h3e000000;
      7'd9: reciprocal = 32'h3de38e39;
      7'd10: reciprocal = 32'h3dcccccd;
      7'd11: reciprocal = 32'h3dba2e8c;
      7'd12: reciprocal = 32'h3daaaaab;
      7'd13: reciprocal = 32'h3d9d89d9;
      7'd14: reciprocal = 32'h3d924925;
      7'd15: reciprocal = 32'h3d888889;
      7'd16: reciprocal = 32'h3d800000;
      7'd17: reciprocal = 32'h3d70f0f1;
      7'd18: reciprocal = 32'h3d638e39;
      7'd19: reciprocal = 32'h3d579436;
      7'd20: reciprocal = 32'h3d4ccccd;
      7'd21: reciprocal = 32'h3d430c31;
      7'd22: reciprocal = 32'h3d3a2e8c;
      7'd23: reciprocal = 32'h3d321643;
      7'd24: reciprocal = 32'h3d2aaaab;
      7'd25: reciprocal = 32'h3d23d70a;
      7'd26: reciprocal = 32'h3d1d89d9;
      7'd27: reciprocal = 32'h3d17b426;
      7'd28: reciprocal = 32'h3d124925;
      7'd29: reciprocal = 32'h3d0d3dcb;
      7'd30: reciprocal = 32'h3d088889;
      7'd31: reciprocal = 32'h3d042108;
      7'd32: reciprocal = 32'h3d000000;
      7'd33: reciprocal = 32'h3cf83e10;
      7'd34: reciprocal = 32'h3cf0f0f1;
      7'd35: reciprocal = 32'h3cea0ea1;
      7'd36: reciprocal = 32'h3ce38e39;
      7'd37: reciprocal = 32'h3cdd67c9;
      7'd38: reciprocal = 32'h3cd79436;
      7'd39: reciprocal = 32'h3cd20d21;
      7'd40: reciprocal = 32'h3ccccccd;
      7'd41: reciprocal = 32'h3cc7ce0c;
      7'd42: reciprocal = 32'h3cc30c31;
      7'd43: reciprocal = 32'h3cbe82fa;
      7'd44: reciprocal = 32'h3cba2e8c;
      7'd45: reciprocal = 32'h3cb60b61;
      7'd46: reciprocal = 32'h3cb21643;
      7'd47: reciprocal = 32'h3cae4c41;
      7'd48: reciprocal = 32'h3caaaaab;
      7'd49: reciprocal = 32'h3ca72f05;
      7'd50: reciprocal = 32'h3ca3d70a;
      7'd51: reciprocal = 32'h3ca0a0a1;
      7'd52: reciprocal = 32'h3c9d89d9;
      7'd53: reciprocal = 32'h3c9a90e8;
      7'd54: reciprocal = 32'h3c97b426;
      7'd55: reciprocal = 32'h3c94f209;
      7'd56: reciprocal = 32'h3c924925;
      7'd57: reciprocal = 32'h3c8fb824;
      7'd58: reciprocal = 32'h3c8d3dcb;
      7'd59: reciprocal = 32'h3c8ad8f3;
      7'd60: reciprocal = 32'h3c888889;
      7'd61: reciprocal = 32'h3c864b8a;
      7'd62: reciprocal = 32'h3c842108;
      7'd63: reciprocal = 32'h3c820821;
      7'd64: reciprocal = 32'h3c800000;
      default: reciprocal = 32'h3f800000;
    endcase
  endfunction

endmodule

`default_nettype wire
