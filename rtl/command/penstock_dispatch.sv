// Holds one job for each engine until the engine takes it. What a job is made of comes from the
// record, and is kept here, so that the walker goes on meanwhile.
`default_nettype none

module penstock_dispatch (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    /* verilator lint_off UNUSEDSIGNAL */  // what no engine needs
    input  wire logic [1023:0]         record_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input  wire logic [5:0]            queue_i,
    // Of COPY and REDUCE: where their sources' addresses stand.
    input  wire logic                  slot_i,
    // Bus addresses of the destinations, of the fences that are waited for.
    input  wire logic [191:0]          dst_i,
    input  wire logic [63:0]           lines_i,
    // Of a wait that names no deadline.
    input  wire logic [31:0]           timeout_ms_i,
    // Takes the record as a job; only while there is none for that engine.
    input  wire logic                  take_job_i,
    input  wire logic                  take_sel_i,
    input  wire logic                  take_sync_i,
    // To the reduction engine.
    output      logic                  job_valid_o,
    input  wire logic                  job_ready_i,
    output      logic                  job_slot_o,
    output      logic [5:0]            job_queue_o,
    output      logic                  job_copy_o,
    output      logic [3:0]            job_type_o,
    output      logic [2:0]            job_redop_o,
    output      logic [3:0]            job_out_type_o,
    output      logic [6:0]            job_sources_o,
    output      logic [1:0]            job_destinations_o,
    output      logic [32:0]           job_count_o,
    output      logic [63:0]           job_scale_o,
    output      logic [191:0]          job_dst_o,
    // To the scoring engine.
    output      logic                  sel_valid_o,
    input  wire logic                  sel_ready_i,
    output      logic [5:0]            sel_queue_o,
    output      logic                  sel_commit_o,
    output      logic [20:0]           sel_count_o,
    output      logic [63:0]           sel_table_o,
    output      logic [63:0]           sel_program_o,
    output      logic [63:0]           sel_tasks_o,
    output      logic [63:0]           sel_results_o,
    // To the synchronisation unit.
    output      logic                  sync_valid_o,
    input  wire logic                  sync_ready_i,
    output      logic [5:0]            sync_queue_o,
    output      logic [3:0]            sync_opcode_o,
    output      logic [63:0]           sync_fence_o,
    output      logic [63:0]           sync_lines_o,
    output      logic [6:0]            sync_count_o,
    output      logic [63:0]           sync_value_o,
    output      logic [31:0]           sync_timeout_ms_o
);

  localparam logic [3:0] COPY = 4'(penstock_pkg::OP_COPY);
  localparam logic [3:0] SIGNAL = 4'(penstock_pkg::OP_SIGNAL);
  localparam logic [3:0] WAIT = 4'(penstock_pkg::OP_WAIT);

  logic [3:0]  opcode;
  logic [32:0] count;
  logic [31:0] timeout_ms;
  assign opcode     = record_i[8*penstock_pkg::AT_DESCRIPTOR_OPCODE+:4];
  assign count      = record_i[8*penstock_pkg::AT_DESCRIPTOR_COUNT+:33];
  assign timeout_ms = record_i[8*penstock_pkg::AT_DESCRIPTOR_TIMEOUT_MS+:32];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      job_valid_o  <= 1'b0;
      sel_valid_o  <= 1'b0;
      sync_valid_o <= 1'b0;
    end else begin
      if (take_job_i) job_valid_o <= 1'b1;
      else if (job_ready_i) job_valid_o <= 1'b0;
      if (take_sel_i) sel_valid_o <= 1'b1;
      else if (sel_ready_i) sel_valid_o <= 1'b0;
      if (take_sync_i) sync_valid_o <= 1'b1;
      else if (sync_ready_i) sync_valid_o <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (take_job_i) begin
      job_slot_o         <= slot_i;
      job_queue_o        <= queue_i;
      job_copy_o         <= opcode == COPY;
      job_type_o         <= record_i[8*penstock_pkg::AT_DESCRIPTOR_TYPE+:4];
      job_redop_o        <= record_i[8*penstock_pkg::AT_DESCRIPTOR_REDOP+:3];
      job_out_type_o     <= record_i[8*penstock_pkg::AT_DESCRIPTOR_OUT_TYPE+:4];
      job_sources_o      <= record_i[8*penstock_pkg::AT_DESCRIPTOR_N_SRC+:7];
      job_destinations_o <= record_i[8*penstock_pkg::AT_DESCRIPTOR_N_DST+:2];
      job_count_o        <= count;
      job_scale_o        <= record_i[8*penstock_pkg::AT_DESCRIPTOR_SCALE+:64];
      job_dst_o          <= dst_i;
    end
    if (take_sel_i) begin
      sel_queue_o   <= queue_i;
      sel_commit_o  <= (record_i[8*penstock_pkg::AT_DESCRIPTOR_FLAGS+:32] &
                        32'(penstock_pkg::FLAG_COMMIT)) != '0;
      sel_count_o   <= count[20:0];
      sel_table_o   <= record_i[512+:64];
      sel_program_o <= record_i[576+:64];
      sel_tasks_o   <= record_i[640+:64];
      sel_results_o <= record_i[320+:64];
    end
    if (take_sync_i) begin
      sync_queue_o      <= queue_i;
      sync_opcode_o     <= opcode;
      sync_fence_o      <= dst_i[63:0];
      sync_lines_o      <= lines_i;
      sync_count_o      <= opcode == WAIT ? 7'd1 : count[6:0];
      sync_value_o      <= opcode == SIGNAL ? record_i[512+:64] : record_i[576+:64];
      sync_timeout_ms_o <= timeout_ms != '0 ? timeout_ms : timeout_ms_i;
    end
  end

endmodule

`default_nettype wire
