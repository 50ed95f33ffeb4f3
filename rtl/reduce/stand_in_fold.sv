// Stands in for the fold in the unit test of penstock_reduce, which is about where bytes go and
// when: it has the fold's ports and its geometry of beats, and the plainest arithmetic. Elements
// are integers of the type's size, which are added; on the way out they lose their upper bytes or
// gain zeros. It takes a beat in each cycle in which its output is not held up.
`default_nettype none

// Its name is that of what it stands in for.
/* verilator lint_off DECLFILENAME */
module penstock_fold (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,
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
    output      logic         out_valid_o,
    input  wire logic         out_ready_i,
    output      logic [511:0] out_data_o,
    output      logic         out_last_o
);

  function automatic logic [1:0] size_of(input logic [3:0] kind);
    case (kind)
      4'd6, 4'd9: size_of = 2'd1;
      4'd2, 4'd3, 4'd7: size_of = 2'd2;
      4'd4, 4'd5, 4'd8: size_of = 2'd3;
      default: size_of = 2'd0;
    endcase
  endfunction

  function automatic logic [511:0] add(input logic [511:0] a, input logic [511:0] b,
                                       input logic [1:0] size);
    for (int i = 0; i < 64; i++) begin
      if (size == 2'd0) add[i*8+:8] = a[i*8+:8] + b[i*8+:8];
      if (size == 2'd1 && i % 2 == 0) add[i*8+:16] = a[i*8+:16] + b[i*8+:16];
      if (size == 2'd2 && i % 4 == 0) add[i*8+:32] = a[i*8+:32] + b[i*8+:32];
      if (size == 2'd3 && i % 8 == 0) add[i*8+:64] = a[i*8+:64] + b[i*8+:64];
    end
  endfunction

  // Part `part` of the beat when its elements grow from 1 << size bytes to 1 << out_size.
  function automatic logic [511:0] widen(input logic [511:0] a, input logic [2:0] part,
                                         input logic [1:0] size, input logic [1:0] out_size);
    widen = '0;
    for (int i = 0; i < 64; i++) begin
      if ((i & ((1 << out_size) - 1)) < (1 << size)) begin
        widen[i*8+:8] = a[(((32'(part) * 64 + i) >> out_size << size)
                           + (i & ((1 << out_size) - 1)))*8+:8];
      end
    end
  endfunction

  // Puts the beat's elements, cut to 1 << out_size bytes, at part `part` of `old`.
  function automatic logic [511:0] narrow(input logic [511:0] old, input logic [511:0] a,
                                          input logic [2:0] part, input logic [1:0] size,
                                          input logic [1:0] out_size);
    narrow = old;
    for (int i = 0; i < 64; i++) begin
      if ((i & ((1 << size) - 1)) < (1 << out_size)) begin
        narrow[((((32'(part) * 64 + i) >> size) << out_size) + (i & ((1 << size) - 1)))*8+:8] =
            a[i*8+:8];
      end
    end
  endfunction

  logic [511:0] accumulators_q[0:63];
  logic [511:0] sum;
  logic [1:0]   size;
  logic [1:0]   out_size;
  logic [2:0]   parts;  // less one: of the beat that grows, or of the one that is gathered
  logic [2:0]   part_q;
  logic [511:0] gathered_q;
  logic [511:0] gathered;
  logic         grows;
  logic         give;
  logic         take;

  assign size     = in_copy_i ? 2'd0 : size_of(in_type_i);
  assign out_size = in_copy_i ? 2'd0 : size_of(in_out_type_i);
  assign grows    = out_size > size;
  assign parts    = grows ? 3'((1 << (out_size - size)) - 1) : 3'((1 << (size - out_size)) - 1);
  assign sum      = in_first_source_i ? in_data_i
                                      : add(accumulators_q[in_index_i], in_data_i, size);
  assign gathered = narrow(gathered_q, sum, part_q, size, out_size);

  assign give        = in_last_source_i && (grows || part_q == parts || in_last_i);
  assign take        = !give || out_ready_i;
  assign in_ready_o  = in_valid_i && take && !(in_last_source_i && grows && part_q != parts);
  assign out_valid_o = in_valid_i && give;
  assign out_data_o  = grows ? widen(sum, part_q, size, out_size) : gathered;
  assign out_last_o  = in_last_i && (!grows || part_q == parts);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      part_q <= '0;
    end else if (in_valid_i && take && in_last_source_i) begin
      part_q     <= part_q == parts || out_last_o ? 3'd0 : part_q + 3'd1;
      gathered_q <= gathered;
    end
    if (in_valid_i && in_ready_o) accumulators_q[in_index_i] <= sum;
  end

  /* verilator lint_off UNUSEDSIGNAL */
  logic unused;
  assign unused = &{in_redop_i, in_sources_i, in_scale_i};
  /* verilator lint_on UNUSEDSIGNAL */

endmodule
/* verilator lint_on DECLFILENAME */

`default_nettype wire
