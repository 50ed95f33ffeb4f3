// Cuts a segment, up to 4 KiB anywhere in memory, into the bursts that AXI wants: whole beats of 64
// bytes, none across a 4 KiB boundary, so at most 64 beats. A segment gives one burst or two.
//
// A segment that enters is seen as its first burst in the next cycle; bursts follow one another
// without a gap, also those of different segments.
`default_nettype none

module penstock_burst_split #(
    // Bits that travel with the segment.
    parameter int unsigned USER_WIDTH = 1
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    input  wire logic                  in_valid_i,
    output      logic                  in_ready_o,
    input  wire logic [63:0]           in_address_i,  // of its first byte
    input  wire logic [12:0]           in_bytes_i,    // 1..4096
    input  wire logic [USER_WIDTH-1:0] in_user_i,
    output      logic                  out_valid_o,
    input  wire logic                  out_ready_i,
    // Of the segment's first byte in this burst; the burst begins with the beat that holds it.
    output      logic [63:0]           out_address_o,
    output      logic [6:0]            out_beats_o,   // 1..64
    output      logic                  out_first_o,   // of its segment
    output      logic                  out_last_o,
    output      logic [USER_WIDTH-1:0] out_user_o
);

  logic                  valid_q;
  logic                  first_q;
  logic [63:0]           address_q;
  logic [6:0]            left_q;  // beats that the segment still has, 1..65
  logic [USER_WIDTH-1:0] user_q;
  logic [6:0]            to_boundary;
  logic                  load;

  // From the first beat's first byte to the segment's last byte: whole beats are what counts.
  /* verilator lint_off UNUSEDSIGNAL */
  logic [12:0]           span;
  /* verilator lint_on UNUSEDSIGNAL */

  assign span          = 13'({7'd0, in_address_i[5:0]}) + in_bytes_i - 13'd1;
  assign to_boundary   = 7'd64 - {1'b0, address_q[11:6]};
  assign out_valid_o   = valid_q;
  assign out_address_o = address_q;
  assign out_last_o    = left_q <= to_boundary;
  assign out_beats_o   = out_last_o ? left_q : to_boundary;
  assign out_first_o   = first_q;
  assign out_user_o    = user_q;
  assign in_ready_o    = !valid_q || (out_ready_i && out_last_o);
  assign load          = in_valid_i && in_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (in_ready_o) valid_q <= in_valid_i;
  end

  always_ff @(posedge clk_i) begin
    if (load) begin
      first_q   <= 1'b1;
      address_q <= in_address_i;
      left_q    <= span[12:6] + 7'd1;
      user_q    <= in_user_i;
    end else if (valid_q && out_ready_i) begin
      first_q   <= 1'b0;
      address_q <= {address_q[63:12] + 52'd1, 12'd0};
      left_q    <= left_q - to_boundary;
    end
  end

`ifdef FORMAL
  // The bursts of a segment hold its bytes, all of them and none twice: f_done_q counts the bytes
  // of those that have left.
  logic        f_reset_q = 1'b0;
  logic [12:0] f_bytes_q;
  logic [63:0] f_address_q;
  logic [12:0] f_done_q;
  logic [13:0] f_burst_bytes;  // in this burst, if the segment went on to its end
  logic [12:0] f_next;

  assign f_burst_bytes = {1'b0, out_beats_o, 6'd0} - {8'd0, address_q[5:0]};
  assign f_next = f_burst_bytes < {1'b0, f_bytes_q - f_done_q} ? f_done_q + f_burst_bytes[12:0]
                                                                : f_bytes_q;

  always_ff @(posedge clk_i) begin
    f_reset_q <= 1'b1;
    if (!f_reset_q) assume (!rst_ni);
    assume (!in_valid_i || (in_bytes_i >= 13'd1 && in_bytes_i <= 13'd4096));
    // No segment reaches past the end of the address space.
    assume (in_address_i < 64'hffff_ffff_ffff_0000);
    if (load) begin
      f_bytes_q   <= in_bytes_i;
      f_address_q <= in_address_i;
      f_done_q    <= 13'd0;
    end else if (valid_q && out_ready_i) begin
      f_done_q <= f_next;
    end
    if (f_reset_q && rst_ni && valid_q) begin
      assert (f_bytes_q >= 13'd1 && f_bytes_q <= 13'd4096);
      assert (f_done_q < f_bytes_q);
      assert (address_q == f_address_q + 64'(f_done_q));
      assert (first_q == (f_done_q == 13'd0));
      assert (first_q || address_q[11:0] == 12'd0);
      // What is left, in beats.
      assert (13'(left_q) == (13'(address_q[5:0]) + f_bytes_q - f_done_q + 13'd63) >> 6);
      assert (out_beats_o >= 7'd1 && out_beats_o <= 7'd64);
      assert (7'(address_q[11:6]) + out_beats_o <= 7'd64);
      assert (out_last_o == (f_next == f_bytes_q));
      cover (out_last_o && !first_q && out_beats_o == 7'd64);
      cover (out_last_o && !first_q && out_beats_o == 7'd1);
      cover (out_last_o && first_q && out_beats_o == 7'd64 && f_bytes_q == 13'd4096);
    end
  end
`endif

endmodule

`default_nettype wire
