// Compares the byte ranges of a descriptor's operands: with its own destinations, which may overlap
// nothing except a source exactly where that is in place; and its sources with the destinations of
// the queue's jobs that are under way, which have to be written first (read after write). Writes
// after reads and writes after writes need no look: the data path takes jobs in order.
//
// Ranges are bus addresses. A range is compared in three steps of a cycle each: its end, the
// comparisons, the sum of their findings.
`default_nettype none

module penstock_overlap #(
    // Jobs that may be under way: a power of two, 2 or more.
    parameter int unsigned JOBS = 16
) (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,
    // A new descriptor: forgets destinations and findings.
    input  wire logic         begin_i,
    input  wire logic [5:0]   queue_i,
    // A range: of destination place_index_i, or of a source (or of a list of sources).
    input  wire logic         place_i,
    input  wire logic         place_dst_i,
    input  wire logic [1:0]   place_index_i,
    input  wire logic [63:0]  place_start_i,
    input  wire logic [38:0]  place_bytes_i,  // above 0
    input  wire logic         in_place_i,
    // Three cycles after the last range: destinations that overlap what they may not, in the
    // order of destinations; and whether a source waits for a job of this queue.
    output      logic [2:0]   clash_o,
    output      logic         hazard_o,
    output      logic [191:0] dst_o,
    // The descriptor becomes a job with its destinations; jobs end in order.
    input  wire logic         push_i,
    input  wire logic         pop_i,
    output      logic         full_o
);

  localparam int unsigned JOB_BITS = $clog2(JOBS);

  // ---- steps 1 and 2 of a range ----
  logic         a_valid_q;
  logic         a_dst_q;
  logic [1:0]   a_index_q;
  logic [63:0]  a_start_q;
  logic [38:0]  a_bytes_q;
  logic         b_valid_q;
  logic         b_dst_q;
  logic [1:0]   b_index_q;
  logic [63:0]  b_start_q;
  logic [64:0]  b_end_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      a_valid_q <= 1'b0;
      b_valid_q <= 1'b0;
    end else begin
      a_valid_q <= place_i;
      b_valid_q <= a_valid_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (place_i) begin
      a_dst_q   <= place_dst_i;
      a_index_q <= place_index_i;
      a_start_q <= place_start_i;
      a_bytes_q <= place_bytes_i;
    end
    if (a_valid_q) begin
      b_dst_q   <= a_dst_q;
      b_index_q <= a_index_q;
      b_start_q <= a_start_q;
      b_end_q   <= {1'b0, a_start_q} + 65'(a_bytes_q);
    end
  end

  // ---- own destinations ----
  logic [2:0]   dst_valid_q;
  logic [191:0] dst_start_q;
  logic [194:0] dst_end_q;
  logic [2:0]   meets;
  logic [2:0]   clash_q;
  assign dst_o   = dst_start_q;
  assign clash_o = clash_q;

  always_comb begin
    for (int unsigned i = 0; i < 3; i++) begin
      meets[i] = dst_valid_q[i] && {1'b0, b_start_q} < dst_end_q[65*i+:65] &&
                 {1'b0, dst_start_q[64*i+:64]} < b_end_q &&
                 !(!b_dst_q && in_place_i && b_start_q == dst_start_q[64*i+:64]);
    end
  end
  always_ff @(posedge clk_i) begin
    if (begin_i) begin
      dst_valid_q <= '0;
      clash_q     <= '0;
    end else if (b_valid_q) begin
      if (!b_dst_q) clash_q <= clash_q | meets;
      else begin
        if (meets != '0) clash_q[b_index_q] <= 1'b1;
        dst_valid_q[b_index_q]         <= 1'b1;
        dst_start_q[64*b_index_q+:64]  <= b_start_q;
        dst_end_q[65*b_index_q+:65]    <= b_end_q;
      end
    end
  end

  // ---- jobs under way ----
  logic [JOBS-1:0]     valid_q;
  logic [JOB_BITS-1:0] head_q;
  logic [JOB_BITS-1:0] tail_q;
  logic [JOBS-1:0]     hits;
  logic                hazard_q;
  assign full_o   = valid_q[tail_q];
  assign hazard_o = hazard_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= '0;
      head_q  <= '0;
      tail_q  <= '0;
    end else begin
      if (pop_i) begin
        valid_q[head_q] <= 1'b0;
        head_q          <= head_q + 1'b1;
      end
      if (push_i) begin
        valid_q[tail_q] <= 1'b1;
        tail_q          <= tail_q + 1'b1;
      end
    end
  end

  for (genvar job = 0; job < JOBS; job++) begin : g_job
    logic [5:0]   queue_q;
    logic [2:0]   dst_q;  // which there are
    logic [191:0] start_q;
    logic [194:0] end_q;
    logic [2:0]   hit;
    always_ff @(posedge clk_i) begin
      if (push_i && tail_q == JOB_BITS'(job)) begin
        queue_q <= queue_i;
        dst_q   <= dst_valid_q;
        start_q <= dst_start_q;
        end_q   <= dst_end_q;
      end
    end
    always_comb begin
      hit = '0;
      if (valid_q[job] && b_valid_q && !b_dst_q && queue_q == queue_i) begin
        for (int unsigned i = 0; i < 3; i++) begin
          hit[i] = dst_q[i] && {1'b0, b_start_q} < end_q[65*i+:65] &&
                   {1'b0, start_q[64*i+:64]} < b_end_q;
        end
      end
    end
    assign hits[job] = hit != '0;
  end
  always_ff @(posedge clk_i) begin
    if (begin_i) hazard_q <= 1'b0;
    else if (hits != '0) hazard_q <= 1'b1;
  end

endmodule

`default_nettype wire
