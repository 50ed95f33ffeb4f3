// The header of a node table: takes its three lines, says whether penstock_node_table_check would
// accept it for a mapping of the size it claims, and holds its geometry. 60 cycles after the third
// line at most.
`default_nettype none

module penstock_score_table (
    input wire logic clk_i,
    input wire logic rst_ni,
    input wire logic start_i,  // before the first line
    input wire logic valid_i,
    input wire logic [511:0] data_i,
    output logic done_o,  // until the next start; what follows means something then
    output logic [4:0] status_o,  // OK, CORRUPT or OUT_OF_RANGE
    output logic [63:0] bytes_o,
    output logic [20:0] capacity_o,
    output logic [20:0] rows_o,
    output logic [4:0] n_resources_o,
    output logic [12:0] n_bits_o,
    output logic [8:0] n_free_o,
    output logic [6:0] n_domains_o,
    output logic [12:0] n_counts_o,
    // Offsets of columns. The others follow from the geometry.
    output logic [63:0] allocatable_o,
    output logic [63:0] requested_o,
    output logic [63:0] scored_o,
    output logic [63:0] bits_o,
    output logic [63:0] free_o,
    output logic [63:0] generation_o
);
  logic [1:0] line_q;
  logic counting_q;
  logic [511:0] first_q, second_q;
  logic [127:0] third_q;  // generation and checksum
  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      line_q <= '0;
    end else if (valid_i && line_q != 2'd3) begin
      line_q <= line_q + 2'd1;
      if (line_q == 2'd0) first_q <= data_i;
      if (line_q == 2'd1) second_q <= data_i;
      if (line_q == 2'd2) third_q <= data_i[127:0];
    end
  end

  // ---- fields ----

  logic [31:0] capacity, rows, n_resources, n_gpus, n_bits, n_free, n_domains, n_counts;
  assign bytes_o = first_q[penstock_pkg::AT_NODE_TABLE_BYTES*8+:64];
  assign capacity = first_q[penstock_pkg::AT_NODE_TABLE_CAPACITY*8+:32];
  assign rows = first_q[penstock_pkg::AT_NODE_TABLE_ROWS*8+:32];
  assign n_resources = first_q[penstock_pkg::AT_NODE_TABLE_N_RESOURCES*8+:32];
  assign n_gpus = first_q[penstock_pkg::AT_NODE_TABLE_N_GPUS*8+:32];
  assign n_bits = first_q[penstock_pkg::AT_NODE_TABLE_N_BITS*8+:32];
  assign n_free = first_q[penstock_pkg::AT_NODE_TABLE_N_FREE*8+:32];
  assign n_domains = first_q[penstock_pkg::AT_NODE_TABLE_N_DOMAINS*8+:32];
  assign n_counts = first_q[penstock_pkg::AT_NODE_TABLE_N_COUNTS*8+:32];
  assign capacity_o = capacity[20:0];
  assign rows_o = rows[20:0];
  assign n_resources_o = n_resources[4:0];
  assign n_bits_o = n_bits[12:0];
  assign n_free_o = n_free[8:0];
  assign n_domains_o = n_domains[6:0];
  assign n_counts_o = n_counts[12:0];
  // The column offsets, in the order of the header.
  logic [9*64-1:0] offsets;
  assign offsets = {second_q, first_q[511:448]};
  assign allocatable_o = offsets[0*64+:64];
  assign requested_o = offsets[1*64+:64];
  assign scored_o = offsets[2*64+:64];
  assign bits_o = offsets[4*64+:64];
  assign free_o = offsets[5*64+:64];
  assign generation_o = third_q[63:0];

  logic geometry_sound;
  assign geometry_sound =
      first_q[63:0] == penstock_pkg::TABLE_MAGIC &&
      first_q[95:64] == 32'(penstock_pkg::TABLE_VERSION) &&
      first_q[127:96] == 32'(penstock_pkg::TABLE_HEADER_BYTES) &&
      capacity != '0 && capacity <= 32'(penstock_pkg::MAX_ROWS) && capacity[5:0] == '0 &&
      rows <= capacity &&
      n_resources != '0 && n_resources <= 32'(penstock_pkg::MAX_RESOURCES) &&
      n_gpus <= 32'(penstock_pkg::MAX_GPUS) &&
      n_bits >= 32'(penstock_pkg::BIT_FIRST_FREE) &&
      n_bits <= 32'(penstock_pkg::MAX_BIT_COLUMNS) &&
      n_free <= 32'(penstock_pkg::MAX_FREE_COLUMNS) &&
      n_domains <= 32'(penstock_pkg::MAX_DOMAIN_COLUMNS) &&
      n_counts <= 32'(penstock_pkg::MAX_COUNT_COLUMNS);

  // ---- offsets and checksum, a step of each in a cycle ----

  // FNV-1a over the 48 bytes from `version` on, with `rows` taken as 0.
  logic [5:0] step_q;
  logic [383:0] hashed;
  logic [63:0] hash_q, mixed, expected_q;
  logic sound_q;
  assign hashed = {first_q[447:256], 32'b0, first_q[223:64]};
  assign mixed = hash_q ^ {56'b0, hashed[step_q*8+:8]};
  // 0x100000001b3 * mixed
  logic [63:0] scattered;
  assign scattered = (mixed << 40) + (mixed << 8) + (mixed << 7) + (mixed << 5) + (mixed << 4) +
      (mixed << 1) + mixed;

  // Columns follow one another: allocatable, requested, scored, gpu, bits, free, domain, count,
  // logs, the end.
  logic [12:0] columns;
  logic [24:0] stride;
  logic [37:0] extent;
  logic [63:0] found, expected_next;
  always_comb begin
    columns = {8'b0, n_resources[4:0]};
    stride = {capacity[20:0], 3'b0} + 25'b0;
    found = bytes_o;
    case (step_q)
      6'd0, 6'd1, 6'd2: ;
      6'd3: columns = {8'b0, n_gpus[4:0]};
      6'd4: begin
        columns = n_bits[12:0];
        stride = {7'b0, capacity[20:3]};
      end
      6'd5: columns = {4'b0, n_free[8:0]};
      6'd6: begin
        columns = {6'b0, n_domains[6:0]};
        stride = {2'b0, capacity[20:0], 2'b0};
      end
      6'd7: begin
        columns = n_counts[12:0];
        stride = {2'b0, capacity[20:0], 2'b0};
      end
      default: begin
        columns = {12'b0, n_domains != '0};
        stride = {1'b0, capacity[20:0], 3'b0} + 25'd64;
      end
    endcase
    for (int unsigned i = 0; i < 9; i++) if (step_q == 6'(i)) found = offsets[i*64+:64];
  end
  assign extent = 38'(columns) * 38'(stride);
  always_comb begin
    expected_next = expected_q + 64'(extent);
    if (step_q == 6'd4) expected_next = (expected_next + 64'd63) & ~64'd63;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      counting_q <= 1'b0;
      done_o <= 1'b0;
    end else if (line_q == 2'd3 && !done_o) begin
      counting_q <= 1'b1;
      if (counting_q) begin
        hash_q <= scattered;
        step_q <= step_q + 6'd1;
        if (step_q <= 6'd9) begin
          if (found != expected_q) sound_q <= 1'b0;
          expected_q <= expected_next;
        end
        if (step_q == 6'd47) begin
          done_o <= 1'b1;
          status_o <= 5'(penstock_pkg::OK);
          if (!sound_q || !geometry_sound || scattered != third_q[127:64])
            status_o <= 5'(penstock_pkg::CORRUPT);
          if (bytes_o < 64'(penstock_pkg::TABLE_HEADER_BYTES))
            status_o <= 5'(penstock_pkg::OUT_OF_RANGE);
        end
      end
    end
    if (!counting_q) begin
      hash_q <= 64'hcbf29ce484222325;
      expected_q <= 64'(penstock_pkg::TABLE_HEADER_BYTES);
      sound_q <= 1'b1;
      step_q <= '0;
    end
  end
endmodule

`default_nettype wire
