// Decides whether a record is well formed and asks no more than the card can do: the same status,
// field and detail as penstock_descriptor_check, and then those of an engine with the card's
// capabilities that does not reach host memory. Two cycles; a record can enter in each.
//
// The first step looks at all fields at once, the second takes the first finding in the order of
// the definition.
`default_nettype none

module penstock_check #(
    // What the card can do; see penstock_card. A bit per opcode.
    parameter logic [15:0]  CAP_OPCODES = 16'h013f,
    // Six bits for each type, type 0 lowest: a bit per redop.
    parameter logic [71:0]  CAP_REDOPS = {18'h3ffff, 6'h00, 48'hffffffffffff},
    // Twelve bits for each type: a bit per out_type.
    parameter logic [143:0] CAP_OUT_TYPES = {{3{12'hec0}}, 12'h000, {2{12'hec0}}, 72'd0},
    parameter logic [7:0]   CAP_MAX_SOURCES = 8'd64,
    parameter logic [7:0]   CAP_MAX_DESTINATIONS = 8'd3,
    // Bytes of an operand: a power of two, of which this is the logarithm (up to 50).
    parameter int unsigned  CAP_MAX_BYTES_LOG2 = 32
) (
    input  wire logic          clk_i,
    input  wire logic          valid_i,
    // The record; it stays for two cycles.
    input  wire logic [1023:0] record_i,
    // Two cycles after valid_i: OK, or what was wrong.
    output      logic [4:0]    status_o,
    output      logic [4:0]    field_o,
    output      logic [63:0]   detail_o
);

  localparam logic [7:0] NOP = 8'(penstock_pkg::OP_NOP);
  localparam logic [7:0] COPY = 8'(penstock_pkg::OP_COPY);
  localparam logic [7:0] REDUCE = 8'(penstock_pkg::OP_REDUCE);
  localparam logic [7:0] SIGNAL = 8'(penstock_pkg::OP_SIGNAL);
  localparam logic [7:0] WAIT = 8'(penstock_pkg::OP_WAIT);
  localparam logic [7:0] SELECT = 8'(penstock_pkg::OP_SELECT);
  localparam logic [7:0] UPDATE = 8'(penstock_pkg::OP_UPDATE);
  localparam logic [7:0] OUTER_STEP = 8'(penstock_pkg::OP_OUTER_STEP);
  localparam logic [7:0] BARRIER = 8'(penstock_pkg::OP_BARRIER);
  localparam logic [7:0] TYPES = 8'(penstock_pkg::TYPE_COUNT);
  localparam logic [7:0] REDOPS = 8'(penstock_pkg::REDOP_COUNT);
  localparam logic [7:0] INT8 = 8'(penstock_pkg::INT8);
  localparam logic [7:0] F16 = 8'(penstock_pkg::F16);
  localparam logic [7:0] F32 = 8'(penstock_pkg::F32);
  localparam logic [7:0] F64 = 8'(penstock_pkg::F64);
  localparam logic [7:0] AVG = 8'(penstock_pkg::AVG);
  localparam logic [7:0] PREMUL_SUM = 8'(penstock_pkg::PREMUL_SUM);
  localparam logic [31:0] LIST = 32'(penstock_pkg::FLAG_SRC_LIST);
  localparam logic [31:0] COMMIT = 32'(penstock_pkg::FLAG_COMMIT);
  localparam logic [31:0] STREAM = 32'(penstock_pkg::FLAG_STREAM);
  localparam logic [31:0] WEIGHTS = 32'(penstock_pkg::FLAG_WEIGHTS);

  // ---- the record ----
  logic [7:0]  opcode;
  logic [7:0]  version;
  logic [7:0]  element;  // its type
  logic [7:0]  redop;
  logic [7:0]  out_type;
  logic [7:0]  n_src;
  logic [7:0]  n_dst;
  logic [7:0]  block;
  logic [31:0] flags;
  logic [31:0] timeout_ms;
  logic [63:0] count;
  logic [63:0] scale;
  assign opcode     = record_i[8*penstock_pkg::AT_DESCRIPTOR_OPCODE+:8];
  assign version    = record_i[8*penstock_pkg::AT_DESCRIPTOR_VERSION+:8];
  assign element    = record_i[8*penstock_pkg::AT_DESCRIPTOR_TYPE+:8];
  assign redop      = record_i[8*penstock_pkg::AT_DESCRIPTOR_REDOP+:8];
  assign out_type   = record_i[8*penstock_pkg::AT_DESCRIPTOR_OUT_TYPE+:8];
  assign n_src      = record_i[8*penstock_pkg::AT_DESCRIPTOR_N_SRC+:8];
  assign n_dst      = record_i[8*penstock_pkg::AT_DESCRIPTOR_N_DST+:8];
  assign block      = record_i[8*penstock_pkg::AT_DESCRIPTOR_BLOCK+:8];
  assign flags      = record_i[8*penstock_pkg::AT_DESCRIPTOR_FLAGS+:32];
  assign timeout_ms = record_i[8*penstock_pkg::AT_DESCRIPTOR_TIMEOUT_MS+:32];
  assign count      = record_i[8*penstock_pkg::AT_DESCRIPTOR_COUNT+:64];
  assign scale      = record_i[8*penstock_pkg::AT_DESCRIPTOR_SCALE+:64];

  // ---- what its opcode uses ----
  logic [7:0]  min_src;
  logic [7:0]  max_src;
  logic [7:0]  min_dst;
  logic [7:0]  max_dst;
  logic        typed;
  logic        timed;
  logic        pool_dst;  // dst[0] is a fence
  logic        pool_src;  // src[0] is one
  logic [31:0] may_flags;
  logic [63:0] min_count;
  logic [63:0] max_count;
  logic [5:0]  dst_mask;  // bits of a destination that are 0: its alignment - 1
  logic [5:0]  src_mask_0;
  logic [5:0]  src_mask_1;  // of all that follow
  logic        values;      // src[1] and what follows are values; src[0], too, if it is SIGNAL
  always_comb begin
    min_src    = 8'd0;
    max_src    = 8'd0;
    min_dst    = 8'd0;
    max_dst    = 8'd0;
    typed      = 1'b0;
    timed      = 1'b0;
    pool_dst   = 1'b0;
    pool_src   = 1'b0;
    may_flags  = '0;
    min_count  = '0;
    max_count  = '0;
    dst_mask   = '0;
    src_mask_0 = '0;
    src_mask_1 = '0;
    values     = 1'b0;
    case (opcode)
      COPY: begin
        min_src   = 8'd1;
        max_src   = 8'd1;
        min_dst   = 8'd1;
        max_dst   = 8'(penstock_pkg::MAX_DESTINATIONS);
        may_flags = STREAM;
        max_count = penstock_pkg::MAX_COUNT;
      end
      REDUCE: begin
        min_src   = 8'd1;
        max_src   = 8'(penstock_pkg::MAX_SOURCES);
        min_dst   = 8'd1;
        max_dst   = 8'(penstock_pkg::MAX_DESTINATIONS);
        typed     = 1'b1;
        may_flags = LIST | STREAM | WEIGHTS;
        max_count = penstock_pkg::MAX_COUNT;
      end
      OUTER_STEP: begin
        min_src   = 8'd1;
        max_src   = 8'(penstock_pkg::MAX_SOURCES);
        min_dst   = 8'd2;
        max_dst   = 8'd2;
        typed     = 1'b1;
        may_flags = LIST;
        max_count = penstock_pkg::MAX_COUNT;
      end
      SIGNAL: begin
        min_src  = 8'd1;
        max_src  = 8'd1;
        min_dst  = 8'd1;
        max_dst  = 8'd1;
        pool_dst = 1'b1;
        dst_mask = 6'h3f;
        values   = 1'b1;
      end
      WAIT: begin
        min_src    = 8'd2;
        max_src    = 8'd2;
        timed      = 1'b1;
        pool_src   = 1'b1;
        src_mask_0 = 6'h3f;
        values     = 1'b1;
      end
      BARRIER: begin
        min_src    = 8'd2;
        max_src    = 8'd2;
        min_dst    = 8'd1;
        max_dst    = 8'd1;
        timed      = 1'b1;
        pool_dst   = 1'b1;
        pool_src   = 1'b1;
        min_count  = 64'd1;
        max_count  = 64'(penstock_pkg::MAX_BARRIER);
        dst_mask   = 6'h3f;
        src_mask_0 = 6'h3f;
        values     = 1'b1;
      end
      SELECT: begin
        min_src    = 8'd3;
        max_src    = 8'd3;
        min_dst    = 8'd1;
        max_dst    = 8'd1;
        may_flags  = COMMIT;
        max_count  = 64'(penstock_pkg::MAX_TASKS);
        dst_mask   = 6'h07;
        src_mask_0 = 6'h3f;
        src_mask_1 = 6'h07;
      end
      UPDATE: begin
        min_src    = 8'd2;
        max_src    = 8'd2;
        max_count  = 64'(penstock_pkg::MAX_UPDATES);
        src_mask_0 = 6'h3f;
        src_mask_1 = 6'h07;
      end
      default: ;
    endcase
  end

  // ---- findings, in the order of the definition; _u is unsupported, the others invalid ----
  localparam int unsigned FINDINGS = 40;
  localparam int unsigned F_OPCODE = 0;
  localparam int unsigned F_VERSION_U = 1;
  localparam int unsigned F_TYPE = 2;
  localparam int unsigned F_REDOP = 3;
  localparam int unsigned F_OUT_TYPE = 4;
  localparam int unsigned F_TYPE_U = 5;
  localparam int unsigned F_REDOP_U = 6;
  localparam int unsigned F_OUT_TYPE_U = 7;
  localparam int unsigned F_N_SRC = 8;
  localparam int unsigned F_N_DST = 9;
  localparam int unsigned F_BLOCK = 10;
  localparam int unsigned F_FLAGS = 11;
  localparam int unsigned F_FLAGS_U = 12;
  localparam int unsigned F_TIMEOUT = 13;
  localparam int unsigned F_COUNT = 14;
  localparam int unsigned F_SCALE = 15;
  localparam int unsigned F_DST = 16;      // 3
  localparam int unsigned F_SRC = 19;      // 8
  localparam int unsigned C_OPCODE = 27;   // from here on: beyond the card, all unsupported
  localparam int unsigned C_TYPE = 28;
  localparam int unsigned C_REDOP = 29;
  localparam int unsigned C_OUT_TYPE = 30;
  localparam int unsigned C_N_SRC = 31;
  localparam int unsigned C_N_DST = 32;
  localparam int unsigned C_FLAGS = 33;
  localparam int unsigned C_COUNT = 34;
  localparam int unsigned C_DST = 35;  // 3
  localparam int unsigned C_SRC = 38;  // and 39: the first listed source, and any other

  // Whether elements are folded in f32.
  logic in_f32;
  logic out_f32;
  logic integers;
  assign in_f32   = element == INT8 ? block != '0 : element >= F16 && element != F64;
  assign out_f32  = out_type == INT8 ? block != '0 : out_type >= F16 && out_type != F64;
  assign integers = element == INT8 ? block == '0 : element < F16;

  logic list;
  logic weighted;
  assign list     = (flags & LIST) != '0;
  assign weighted = (flags & WEIGHTS) != '0;

  /* verilator lint_off UNUSEDSIGNAL */  // the bits between
  // An address in the pool or, where it may be, in host memory; aligned.
  function automatic logic unsound(input logic [63:0] address, input logic [5:0] mask,
                                   input logic pool_only);
    unsound = (address[63:60] != '0 &&
               (pool_only || address[63:56] != 8'(penstock_pkg::SPACE_HOST))) ||
              (address[5:0] & mask) != '0;
  endfunction
  function automatic logic in_host(input logic [63:0] address);
    in_host = address[63:56] == 8'(penstock_pkg::SPACE_HOST);
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */
  // The logarithm of an element's size.
  function automatic logic [1:0] size_log2(input logic [7:0] value);
    case (value)
      8'(penstock_pkg::INT64), 8'(penstock_pkg::UINT64), F64: size_log2 = 2'd3;
      8'(penstock_pkg::INT32), 8'(penstock_pkg::UINT32), F32: size_log2 = 2'd2;
      F16, 8'(penstock_pkg::BF16): size_log2 = 2'd1;
      default: size_log2 = 2'd0;
    endcase
  endfunction

  logic [FINDINGS-1:0] found;
  logic [3:0]          listed;  // sources in the record
  logic [2:0]          bad_dst;
  logic [7:0]          bad_src;
  logic [7:0]          host_src;
  logic [63:0]         source;
  logic                scaled;
  logic [1:0]          widest;
  assign listed = list ? 4'd1 : n_src > 8'd8 ? 4'd8 : n_src[3:0];
  assign scaled = typed && redop == PREMUL_SUM;
  assign widest = size_log2(element) > size_log2(out_type) ? size_log2(element) :
                                                             size_log2(out_type);

  always_comb begin
    for (int unsigned i = 0; i < 3; i++) begin
      bad_dst[i] = n_dst <= 8'(i)
                       ? record_i[320+64*i+:64] != '0
                       : unsound(record_i[320+64*i+:64], dst_mask, pool_dst);
    end
    if (n_dst > 8'd1 && record_i[320+:64] == record_i[384+:64]) bad_dst[1] = 1'b1;
    if (n_dst > 8'd2 && (record_i[320+:64] == record_i[448+:64] ||
                         record_i[384+:64] == record_i[448+:64])) begin
      bad_dst[2] = 1'b1;
    end
  end
  always_comb begin
    for (int unsigned i = 0; i < 8; i++) begin
      source      = record_i[512+64*i+:64];
      host_src[i] = listed > 4'(i) && in_host(source);
      if (listed <= 4'(i)) bad_src[i] = source != '0;
      else if (list) bad_src[i] = unsound(source, 6'h07, 1'b0);
      else if (i == 0) bad_src[i] = opcode != SIGNAL && unsound(source, src_mask_0, pool_src);
      else bad_src[i] = !values && unsound(source, src_mask_1, 1'b0);
    end
  end

  logic [5:0]  redops;
  logic [11:0] out_types;
  logic        of_blocks;
  logic        moves;
  assign of_blocks = element == INT8 && block != '0;
  assign redops    = of_blocks ? CAP_REDOPS[6*penstock_pkg::F32+:6] :
                     element < TYPES ? CAP_REDOPS[6*element[3:0]+:6] : '0;
  assign out_types = element < TYPES ? CAP_OUT_TYPES[12*element[3:0]+:12] : '0;
  assign moves     = typed || opcode == COPY;

  always_comb begin
    found                 = '0;
    found[F_OPCODE]       = opcode >= 8'(penstock_pkg::OP_COUNT);
    found[F_VERSION_U]    = version != 8'(penstock_pkg::DESCRIPTOR_VERSION);
    found[F_TYPE]         = typed ? element >= TYPES : element != '0;
    found[F_REDOP]        = typed ? redop >= REDOPS : redop != '0;
    found[F_OUT_TYPE]     = typed ? out_type >= TYPES : out_type != '0;
    found[F_TYPE_U]       = opcode == OUTER_STEP && !in_f32;
    found[F_REDOP_U]      = opcode == OUTER_STEP && redop != AVG;
    found[F_OUT_TYPE_U]   = opcode == OUTER_STEP ? out_type != F32 :
                            typed && out_type != element && !(in_f32 && out_f32);
    found[F_N_SRC]        = n_src < min_src || n_src > max_src;
    found[F_N_DST]        = n_dst < min_dst || n_dst > max_dst;
    found[F_BLOCK]        = block != '0 && (!(typed && (element == INT8 || out_type == INT8)) ||
                                            (block != 8'd32 && block != 8'd64));
    found[F_FLAGS]        = (flags & ~may_flags) != '0 ||
                            list != (n_src > 8'(penstock_pkg::INLINE_SOURCES)) ||
                            (weighted && redop != PREMUL_SUM && redop != AVG);
    found[F_FLAGS_U]      = weighted && integers;
    found[F_TIMEOUT]      = timeout_ms != '0 && !timed;
    found[F_COUNT]        = count < min_count || count > max_count;
    if (opcode == OUTER_STEP) found[F_SCALE] = 1'b0;
    else if (weighted) found[F_SCALE] = unsound(scale, 6'h07, 1'b0);
    else if (scaled) found[F_SCALE] = in_f32 && scale[63:32] != '0;
    else found[F_SCALE] = scale != '0;
    found[F_DST+:3]       = bad_dst;
    found[F_SRC+:8]       = bad_src;
    found[C_OPCODE]       = opcode > 8'd15 || !CAP_OPCODES[opcode[3:0]];
    found[C_TYPE]         = typed && redops == '0;
    found[C_REDOP]        = typed && (redop >= REDOPS || !redops[redop[2:0]]);
    found[C_OUT_TYPE]     = typed && ((opcode == REDUCE && out_type != element) || of_blocks) &&
                            (out_type >= TYPES || !out_types[out_type[3:0]]);
    found[C_N_SRC]        = typed && n_src > CAP_MAX_SOURCES;
    found[C_N_DST]        = moves && n_dst > CAP_MAX_DESTINATIONS;
    found[C_FLAGS]        = moves && weighted;
    // Blocks do not come this far.
    found[C_COUNT]        = moves && {3'd0, count} << (typed ? widest : 2'd0) >
                                     67'd1 << CAP_MAX_BYTES_LOG2;
    for (int unsigned i = 0; i < 3; i++) begin
      found[C_DST+i] = n_dst > 8'(i) && in_host(record_i[320+64*i+:64]);
    end
    found[C_SRC]   = !values && host_src[0];
    found[C_SRC+1] = !values && host_src[7:1] != '0;
  end

  // ---- the first of them ----
  logic [FINDINGS-1:0] found_q;
  logic [7:0]          host_src_q;
  logic                valid_q;
  logic [5:0]          first;
  logic [2:0]          first_host;

  always_ff @(posedge clk_i) begin
    valid_q <= valid_i;
    if (valid_i) begin
      found_q    <= found;
      host_src_q <= host_src;
    end
  end

  always_comb begin
    first = 6'(FINDINGS);
    for (int i = FINDINGS - 1; i >= 0; i--) begin
      if (found_q[i]) first = 6'(i);
    end
    first_host = '0;
    for (int i = 7; i >= 1; i--) begin
      if (host_src_q[i]) first_host = 3'(i);
    end
  end

  logic [4:0]  status;
  logic [4:0]  field;
  logic [63:0] detail;
  always_comb begin
    status = 5'(penstock_pkg::INVALID_ARGUMENT);
    if (first == 6'(F_VERSION_U) || first == 6'(F_TYPE_U) || first == 6'(F_REDOP_U) ||
        first == 6'(F_OUT_TYPE_U) || first == 6'(F_FLAGS_U) || first >= 6'(C_OPCODE)) begin
      status = 5'(penstock_pkg::UNSUPPORTED);
    end
    field  = 5'(penstock_pkg::FIELD_SRC);
    detail = '0;
    case (first)
      6'(F_OPCODE), 6'(C_OPCODE): begin
        field  = 5'(penstock_pkg::FIELD_OPCODE);
        detail = {56'd0, opcode};
      end
      6'(F_VERSION_U): begin
        field  = 5'(penstock_pkg::FIELD_VERSION);
        detail = {56'd0, version};
      end
      6'(F_TYPE), 6'(F_TYPE_U), 6'(C_TYPE): begin
        field  = 5'(penstock_pkg::FIELD_TYPE);
        detail = {56'd0, element};
      end
      6'(F_REDOP), 6'(F_REDOP_U), 6'(C_REDOP): begin
        field  = 5'(penstock_pkg::FIELD_REDOP);
        detail = {56'd0, redop};
      end
      6'(F_OUT_TYPE), 6'(F_OUT_TYPE_U), 6'(C_OUT_TYPE): begin
        field  = 5'(penstock_pkg::FIELD_OUT_TYPE);
        detail = {56'd0, out_type};
      end
      6'(F_N_SRC), 6'(C_N_SRC): begin
        field  = 5'(penstock_pkg::FIELD_N_SRC);
        detail = {56'd0, n_src};
      end
      6'(F_N_DST), 6'(C_N_DST): begin
        field  = 5'(penstock_pkg::FIELD_N_DST);
        detail = {56'd0, n_dst};
      end
      6'(F_BLOCK): begin
        field  = 5'(penstock_pkg::FIELD_BLOCK);
        detail = {56'd0, block};
      end
      6'(F_FLAGS), 6'(F_FLAGS_U), 6'(C_FLAGS): begin
        field  = 5'(penstock_pkg::FIELD_FLAGS);
        detail = {32'd0, flags};
      end
      6'(F_TIMEOUT): begin
        field  = 5'(penstock_pkg::FIELD_TIMEOUT);
        detail = {32'd0, timeout_ms};
      end
      6'(F_COUNT), 6'(C_COUNT): begin
        field  = 5'(penstock_pkg::FIELD_COUNT);
        detail = count;
      end
      6'(F_SCALE): begin
        field  = 5'(penstock_pkg::FIELD_SCALE);
        detail = scale;
      end
      6'(F_DST), 6'(F_DST + 1), 6'(F_DST + 2): begin
        field  = 5'(penstock_pkg::FIELD_DST);
        detail = record_i[320+64*(32'(first)-F_DST)+:64];
      end
      6'(C_DST), 6'(C_DST + 1), 6'(C_DST + 2): begin
        field  = 5'(penstock_pkg::FIELD_DST);
        detail = record_i[320+64*(32'(first)-C_DST)+:64];
      end
      6'(C_SRC): detail = record_i[512+:64];
      6'(C_SRC + 1): detail = record_i[512+64*first_host+:64];
      6'(FINDINGS): begin
        status = 5'(penstock_pkg::OK);
        field  = 5'(penstock_pkg::FIELD_NONE);
      end
      default: detail = record_i[512+64*(32'(first)-F_SRC)+:64];
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (valid_q) begin
      status_o <= status;
      field_o  <= field;
      detail_o <= detail;
    end
  end

  /* verilator lint_off UNUSEDSIGNAL */
  logic unused;  // NOP uses nothing; the cookie is nobody's business here
  assign unused = &{1'b0, NOP, record_i[191:128]};
  /* verilator lint_on UNUSEDSIGNAL */

endmodule

`default_nettype wire
