// The card: registers in front, the command processor, and three engines behind it, on two AXI4
// masters and one AXI4-Lite slave.
//
//   s_axil - penstock_registers - penstock_command - penstock_sync, penstock_reduce, penstock_score
//   m_axi_ctl  - isolator - mux - penstock_command, penstock_sync
//   m_axi_data - isolator - mux - penstock_reduce, penstock_score
//
// m_axi_ctl carries what is small and waited for: descriptors, completions, lists, fences.
// m_axi_data carries operands, node tables, tasks and results. The order between the two is made by
// the command processor alone: a completion is written after its job's last write was confirmed,
// and a fence after the completions before it.
//
// Soft reset (CONTROL.soft_reset): the isolators let nothing new out, end what the bus was
// promised, and swallow what comes back; then everything inside is reset, and the bus is clean.
`default_nettype none

module penstock_card #(
    // Queues: a power of two, 2 to 64.
    parameter int unsigned QUEUES = 64,
    // Records that the card holds for a queue, and of them those not begun: powers of two.
    parameter int unsigned SLOTS = 32,
    parameter int unsigned PREFETCH = 8,
    // log2 of the jobs of REDUCE and COPY that may be under way.
    parameter int unsigned JOB_WIDTH = 4,
    // Of the reduction engine: beats of its read buffer, bursts on their way.
    parameter int unsigned READ_BUFFER_BEATS = 512,
    parameter int unsigned READ_BURSTS = 32,
    parameter int unsigned WRITE_BURSTS = 32,
    // The node table that the scoring engine holds.
    parameter int unsigned ROWS = 131072,
    parameter int unsigned RESOURCES = 8,
    parameter int unsigned BITS = 64,
    parameter int unsigned FREE = 8,
    // Clock cycles of a millisecond after power-up.
    parameter logic [31:0] CLOCK_KHZ = 32'd250000
) (
    input  wire logic          clk_i,
    // Power-up; a soft reset comes over the registers.
    input  wire logic          rst_ni,
    input  wire logic          s_axil_awvalid,
    output      logic          s_axil_awready,
    input  wire logic [15:0]   s_axil_awaddr,
    input  wire logic          s_axil_wvalid,
    output      logic          s_axil_wready,
    input  wire logic [31:0]   s_axil_wdata,
    input  wire logic [3:0]    s_axil_wstrb,
    output      logic          s_axil_bvalid,
    input  wire logic          s_axil_bready,
    output      logic [1:0]    s_axil_bresp,
    input  wire logic          s_axil_arvalid,
    output      logic          s_axil_arready,
    input  wire logic [15:0]   s_axil_araddr,
    output      logic          s_axil_rvalid,
    input  wire logic          s_axil_rready,
    output      logic [31:0]   s_axil_rdata,
    output      logic [1:0]    s_axil_rresp,
    output      logic          irq_o,
    // Masters. Bursts are INCR of whole beats; the constants say so to an interconnect.
    output      logic          m_axi_ctl_awvalid,
    input  wire logic          m_axi_ctl_awready,
    output      logic [63:0]   m_axi_ctl_awaddr,
    output      logic [5:0]    m_axi_ctl_awid,
    output      logic [7:0]    m_axi_ctl_awlen,
    output      logic          m_axi_ctl_wvalid,
    input  wire logic          m_axi_ctl_wready,
    output      logic [511:0]  m_axi_ctl_wdata,
    output      logic [63:0]   m_axi_ctl_wstrb,
    output      logic          m_axi_ctl_wlast,
    input  wire logic          m_axi_ctl_bvalid,
    output      logic          m_axi_ctl_bready,
    input  wire logic [5:0]    m_axi_ctl_bid,
    input  wire logic [1:0]    m_axi_ctl_bresp,
    output      logic          m_axi_ctl_arvalid,
    input  wire logic          m_axi_ctl_arready,
    output      logic [63:0]   m_axi_ctl_araddr,
    output      logic [5:0]    m_axi_ctl_arid,
    output      logic [7:0]    m_axi_ctl_arlen,
    input  wire logic          m_axi_ctl_rvalid,
    output      logic          m_axi_ctl_rready,
    input  wire logic [511:0]  m_axi_ctl_rdata,
    input  wire logic [5:0]    m_axi_ctl_rid,
    input  wire logic [1:0]    m_axi_ctl_rresp,
    input  wire logic          m_axi_ctl_rlast,
    output      logic          m_axi_data_awvalid,
    input  wire logic          m_axi_data_awready,
    output      logic [63:0]   m_axi_data_awaddr,
    output      logic [5:0]    m_axi_data_awid,
    output      logic [7:0]    m_axi_data_awlen,
    output      logic          m_axi_data_wvalid,
    input  wire logic          m_axi_data_wready,
    output      logic [511:0]  m_axi_data_wdata,
    output      logic [63:0]   m_axi_data_wstrb,
    output      logic          m_axi_data_wlast,
    input  wire logic          m_axi_data_bvalid,
    output      logic          m_axi_data_bready,
    input  wire logic [5:0]    m_axi_data_bid,
    input  wire logic [1:0]    m_axi_data_bresp,
    output      logic          m_axi_data_arvalid,
    input  wire logic          m_axi_data_arready,
    output      logic [63:0]   m_axi_data_araddr,
    output      logic [5:0]    m_axi_data_arid,
    output      logic [7:0]    m_axi_data_arlen,
    input  wire logic          m_axi_data_rvalid,
    output      logic          m_axi_data_rready,
    input  wire logic [511:0]  m_axi_data_rdata,
    input  wire logic [5:0]    m_axi_data_rid,
    input  wire logic [1:0]    m_axi_data_rresp,
    input  wire logic          m_axi_data_rlast,
    output      logic [2:0]    m_axi_ctl_awsize,
    output      logic [1:0]    m_axi_ctl_awburst,
    output      logic [3:0]    m_axi_ctl_awcache,
    output      logic [2:0]    m_axi_ctl_awprot,
    output      logic [2:0]    m_axi_ctl_arsize,
    output      logic [1:0]    m_axi_ctl_arburst,
    output      logic [3:0]    m_axi_ctl_arcache,
    output      logic [2:0]    m_axi_ctl_arprot,
    output      logic [2:0]    m_axi_data_awsize,
    output      logic [1:0]    m_axi_data_awburst,
    output      logic [3:0]    m_axi_data_awcache,
    output      logic [2:0]    m_axi_data_awprot,
    output      logic [2:0]    m_axi_data_arsize,
    output      logic [1:0]    m_axi_data_arburst,
    output      logic [3:0]    m_axi_data_arcache,
    output      logic [2:0]    m_axi_data_arprot
);

  // ---- soft reset ----
  localparam logic [1:0] RUN = 2'd0;
  localparam logic [1:0] ISOLATE = 2'd1;  // until the bus is clean
  localparam logic [1:0] RESET = 2'd2;
  localparam logic [1:0] FINISH = 2'd3;   // until the registers have seen it
  logic [1:0] reset_state_q;
  logic [2:0] reset_count_q;
  logic       inner_reset_q;
  logic       inner_rst_n;                // of all that stands behind the isolators
  logic       isolate;
  logic       clean_ctl;
  logic       clean_data;
  logic       soft_reset;
  logic       soft_reset_done;
  assign inner_rst_n     = rst_ni && !inner_reset_q;
  assign isolate         = reset_state_q != RUN;
  assign soft_reset_done = reset_state_q == RESET && reset_count_q == 3'd7;
  always_ff @(posedge clk_i) begin
    inner_reset_q <= reset_state_q == RESET;
    if (!rst_ni) begin
      reset_state_q <= RUN;
      reset_count_q <= '0;
    end else begin
      reset_count_q <= reset_state_q == RESET ? reset_count_q + 3'd1 : '0;
      case (reset_state_q)
        RUN: if (soft_reset) reset_state_q <= ISOLATE;
        ISOLATE: if (clean_ctl && clean_data) reset_state_q <= RESET;
        RESET: if (reset_count_q == 3'd7) reset_state_q <= FINISH;
        default: if (!soft_reset) reset_state_q <= RUN;
      endcase
    end
  end

  // ---- registers ----
  logic          cfg_valid, cfg_write, cfg_ready, cfg_error;
  logic [15:0]   cfg_addr;
  logic [31:0]   cfg_wdata, cfg_rdata;
  logic          enable;
  logic [31:0]   clock_khz;
  logic          command_idle, sync_idle, score_idle;
  logic          event_valid;
  logic [5:0]    event_queue;
  logic          error_valid;
  logic [7:0]    error_code;
  logic [5:0]    error_queue;
  logic [31:0]   error_sequence;
  logic [63:0]   error_address;
  logic [1023:0] error_descriptor;
  logic [12:0]   counter;
  logic [15:0]   rows;
  logic          descriptor, poll, decision;

  penstock_registers #(
      .QUEUES   (QUEUES),
      .ROWS     (ROWS),
      .RESOURCES(RESOURCES),
      .BITS     (penstock_pkg::MAX_BIT_COLUMNS),  // BITS of them are resident at once
      .FREE     (FREE),
      .CLOCK_KHZ(CLOCK_KHZ)
  ) u_registers (
      .clk_i, .rst_ni,
      .s_axil_awvalid, .s_axil_awready, .s_axil_awaddr, .s_axil_wvalid, .s_axil_wready,
      .s_axil_wdata, .s_axil_wstrb, .s_axil_bvalid, .s_axil_bready, .s_axil_bresp,
      .s_axil_arvalid, .s_axil_arready, .s_axil_araddr, .s_axil_rvalid, .s_axil_rready,
      .s_axil_rdata, .s_axil_rresp,
      .cfg_valid_o        (cfg_valid),
      .cfg_write_o        (cfg_write),
      .cfg_addr_o         (cfg_addr),
      .cfg_wdata_o        (cfg_wdata),
      .cfg_ready_i        (cfg_ready),
      .cfg_rdata_i        (cfg_rdata),
      .cfg_error_i        (cfg_error),
      .enable_o           (enable),
      .clock_khz_o        (clock_khz),
      .soft_reset_o       (soft_reset),
      .soft_reset_done_i  (soft_reset_done),
      .idle_i             (command_idle && sync_idle && score_idle),
      .queue_event_valid_i(event_valid),
      .queue_event_queue_i(event_queue),
      .error_valid_i      (error_valid),
      .error_code_i       (error_code),
      .error_queue_i      (error_queue),
      .error_sequence_i   (error_sequence),
      .error_address_i    (error_address),
      .error_descriptor_i (error_descriptor),
      .counter_i          (counter),
      .rows_i             (rows),
      .irq_o
  );

  // In the order of the counters; the first two count by themselves.
  always_comb begin
    counter     = '0;
    counter[2]  = descriptor;
    counter[3]  = event_valid;
    counter[4]  = m_axi_ctl_rvalid && m_axi_ctl_rready;
    counter[5]  = m_axi_ctl_wvalid && m_axi_ctl_wready;
    counter[6]  = m_axi_data_rvalid && m_axi_data_rready;
    counter[7]  = m_axi_data_wvalid && m_axi_data_wready;
    counter[8]  = m_axi_data_arvalid && !m_axi_data_arready;
    counter[9]  = m_axi_data_wvalid && !m_axi_data_wready;
    counter[10] = poll;
    counter[11] = decision;
  end

  // ---- the command processor ----
  logic          command_awvalid, command_awready, command_wvalid, command_wready, command_wlast,
                 command_bvalid, command_bready, command_arvalid, command_arready, command_rvalid,
                 command_rready, command_rlast;
  logic [63:0]   command_awaddr, command_wstrb, command_araddr;
  logic [3:0]    command_awid, command_bid, command_arid, command_rid;
  logic [7:0]    command_awlen, command_arlen;
  logic [511:0]  command_wdata, command_rdata;
  logic [1:0]    command_bresp, command_rresp;
  logic         op_we, op_slot;
  logic [5:0]   op_index;
  logic [63:0]  op_bus;
  logic [1:0]   slot_free;
  logic         job_valid, job_ready, job_slot, job_copy;
  logic [5:0]   job_queue;
  logic [3:0]   job_type, job_out_type;
  logic [2:0]   job_redop;
  logic [6:0]   job_sources;
  logic [1:0]   job_destinations;
  logic [32:0]  job_count;
  logic [63:0]  job_scale;
  logic [191:0] job_dst;
  logic         done_valid, done_ready, done_error, done_write;
  logic [5:0]   done_queue;
  logic [63:0]  done_bus;
  logic         forget;
  logic         sel_valid, sel_ready, sel_commit;
  logic [5:0]   sel_queue;
  logic [20:0]  sel_count;
  logic [63:0]  sel_table, sel_program, sel_tasks, sel_results;
  logic         sel_done_valid, sel_done_ready;
  logic [5:0]   sel_done_queue;
  logic [4:0]   sel_done_status, sel_done_field;
  logic [63:0]  sel_done_detail;
  logic         win_valid, win_ready, win_write, win_rsp_valid, win_rsp_ok;
  logic [5:0]   win_queue;
  logic [63:0]  win_address, win_bytes, win_rsp_bus;
  logic         sync_valid, sync_ready;
  logic [5:0]   sync_queue;
  logic [3:0]   sync_opcode;
  logic [63:0]  sync_fence, sync_lines, sync_value;
  logic [6:0]   sync_count;
  logic [31:0]  sync_timeout_ms;
  logic [QUEUES-1:0] sync_cancel, sync_waiting;
  logic         sync_done_valid, sync_done_ready;
  logic [5:0]   sync_done_queue;
  logic [4:0]   sync_done_status, sync_done_field;
  logic [63:0]  sync_done_detail;

  penstock_command #(
      .QUEUES  (QUEUES),
      .SLOTS   (SLOTS),
      .PREFETCH(PREFETCH),
      .JOBS    (1 << JOB_WIDTH)
  ) u_command (
      .clk_i, .rst_ni(inner_rst_n), .enable_i(enable), .cfg_valid_i(cfg_valid),
      .cfg_write_i(cfg_write), .cfg_addr_i(cfg_addr), .cfg_wdata_i(cfg_wdata),
      .cfg_ready_o(cfg_ready), .cfg_rdata_o(cfg_rdata), .cfg_error_o(cfg_error),
      .m_axi_awvalid(command_awvalid), .m_axi_awready(command_awready),
      .m_axi_awaddr(command_awaddr), .m_axi_awid(command_awid), .m_axi_awlen(command_awlen),
      .m_axi_wvalid(command_wvalid), .m_axi_wready(command_wready), .m_axi_wdata(command_wdata),
      .m_axi_wstrb(command_wstrb), .m_axi_wlast(command_wlast), .m_axi_bvalid(command_bvalid),
      .m_axi_bready(command_bready), .m_axi_bid(command_bid), .m_axi_bresp(command_bresp),
      .m_axi_arvalid(command_arvalid), .m_axi_arready(command_arready),
      .m_axi_araddr(command_araddr), .m_axi_arid(command_arid), .m_axi_arlen(command_arlen),
      .m_axi_rvalid(command_rvalid), .m_axi_rready(command_rready), .m_axi_rdata(command_rdata),
      .m_axi_rid(command_rid), .m_axi_rresp(command_rresp), .m_axi_rlast(command_rlast),
      .op_we_o(op_we), .op_slot_o(op_slot), .op_index_o(op_index), .op_bus_o(op_bus),
      .job_valid_o(job_valid), .job_slot_o(job_slot), .job_queue_o(job_queue),
      .job_copy_o(job_copy), .job_type_o(job_type), .job_redop_o(job_redop),
      .job_out_type_o(job_out_type), .job_sources_o(job_sources),
      .job_destinations_o(job_destinations), .job_count_o(job_count), .job_scale_o(job_scale),
      .job_dst_o(job_dst), .done_ready_o(done_ready), .sel_valid_o(sel_valid),
      .sel_queue_o(sel_queue), .sel_commit_o(sel_commit), .sel_count_o(sel_count),
      .sel_table_o(sel_table), .sel_program_o(sel_program), .sel_tasks_o(sel_tasks),
      .sel_results_o(sel_results), .sel_done_ready_o(sel_done_ready), .sync_valid_o(sync_valid),
      .sync_queue_o(sync_queue), .sync_opcode_o(sync_opcode), .sync_fence_o(sync_fence),
      .sync_lines_o(sync_lines), .sync_count_o(sync_count), .sync_value_o(sync_value),
      .sync_timeout_ms_o(sync_timeout_ms), .sync_cancel_o(sync_cancel),
      .sync_done_ready_o(sync_done_ready), .job_ready_i(job_ready), .slot_free_i(slot_free),
      .done_valid_i(done_valid), .done_queue_i(done_queue), .done_error_i(done_error),
      .done_write_i(done_write), .done_bus_i(done_bus), .sel_ready_i(sel_ready),
      .sel_done_valid_i(sel_done_valid), .sel_done_queue_i(sel_done_queue),
      .sel_done_status_i(sel_done_status), .sel_done_field_i(sel_done_field),
      .sel_done_detail_i(sel_done_detail), .sync_ready_i(sync_ready),
      .sync_waiting_i(sync_waiting), .sync_done_valid_i(sync_done_valid),
      .sync_done_queue_i(sync_done_queue), .sync_done_status_i(sync_done_status),
      .sync_done_field_i(sync_done_field), .sync_done_detail_i(sync_done_detail),
      .sel_forget_o(forget), .score_win_valid_i(win_valid), .score_win_queue_i(win_queue),
      .score_win_address_i(win_address), .score_win_bytes_i(win_bytes),
      .score_win_write_i(win_write), .score_win_ready_o(win_ready),
      .score_win_rsp_valid_o(win_rsp_valid), .score_win_rsp_ok_o(win_rsp_ok),
      .score_win_rsp_bus_o(win_rsp_bus), .queue_event_valid_o(event_valid),
      .queue_event_queue_o(event_queue), .error_valid_o(error_valid), .error_code_o(error_code),
      .error_queue_o(error_queue), .error_sequence_o(error_sequence),
      .error_address_o(error_address), .error_descriptor_o(error_descriptor),
      .descriptor_o(descriptor), .idle_o(command_idle)
  );

  // ---- engines ----
  logic          sync_m_awvalid, sync_m_awready, sync_m_wvalid, sync_m_wready, sync_m_wlast,
                 sync_m_bvalid, sync_m_bready, sync_m_arvalid, sync_m_arready, sync_m_rvalid,
                 sync_m_rready, sync_m_rlast;
  logic [63:0]   sync_m_awaddr, sync_m_wstrb, sync_m_araddr;
  logic [3:0]    sync_m_awid, sync_m_bid, sync_m_arid, sync_m_rid;
  logic [7:0]    sync_m_awlen, sync_m_arlen;
  logic [511:0]  sync_m_wdata, sync_m_rdata;
  logic [1:0]    sync_m_bresp, sync_m_rresp;
  penstock_sync #(
      .QUEUES(QUEUES)
  ) u_sync (
      .clk_i, .rst_ni(inner_rst_n), .clock_khz_i(clock_khz), .sync_valid_i(sync_valid),
      .sync_queue_i(sync_queue), .sync_opcode_i(sync_opcode), .sync_fence_i(sync_fence),
      .sync_lines_i(sync_lines), .sync_count_i(sync_count), .sync_value_i(sync_value),
      .sync_timeout_ms_i(sync_timeout_ms), .sync_cancel_i(sync_cancel),
      .sync_done_ready_i(sync_done_ready), .sync_ready_o(sync_ready),
      .sync_waiting_o(sync_waiting), .sync_done_valid_o(sync_done_valid),
      .sync_done_queue_o(sync_done_queue), .sync_done_status_o(sync_done_status),
      .sync_done_field_o(sync_done_field), .sync_done_detail_o(sync_done_detail), .poll_o(poll),
      .idle_o(sync_idle), .m_axi_awvalid(sync_m_awvalid), .m_axi_awready(sync_m_awready),
      .m_axi_awaddr(sync_m_awaddr), .m_axi_awid(sync_m_awid), .m_axi_awlen(sync_m_awlen),
      .m_axi_wvalid(sync_m_wvalid), .m_axi_wready(sync_m_wready), .m_axi_wdata(sync_m_wdata),
      .m_axi_wstrb(sync_m_wstrb), .m_axi_wlast(sync_m_wlast), .m_axi_bvalid(sync_m_bvalid),
      .m_axi_bready(sync_m_bready), .m_axi_bid(sync_m_bid), .m_axi_bresp(sync_m_bresp),
      .m_axi_arvalid(sync_m_arvalid), .m_axi_arready(sync_m_arready), .m_axi_araddr(sync_m_araddr),
      .m_axi_arid(sync_m_arid), .m_axi_arlen(sync_m_arlen), .m_axi_rvalid(sync_m_rvalid),
      .m_axi_rready(sync_m_rready), .m_axi_rdata(sync_m_rdata), .m_axi_rid(sync_m_rid),
      .m_axi_rresp(sync_m_rresp), .m_axi_rlast(sync_m_rlast)
  );

  logic          reduce_awvalid, reduce_awready, reduce_wvalid, reduce_wready, reduce_wlast,
                 reduce_bvalid, reduce_bready, reduce_arvalid, reduce_arready, reduce_rvalid,
                 reduce_rready, reduce_rlast;
  logic [63:0]   reduce_awaddr, reduce_wstrb, reduce_araddr;
  logic [3:0]    reduce_awid, reduce_bid, reduce_arid, reduce_rid;
  logic [7:0]    reduce_awlen, reduce_arlen;
  logic [511:0]  reduce_wdata, reduce_rdata;
  logic [1:0]    reduce_bresp, reduce_rresp;
  penstock_reduce #(
      .READ_BUFFER_BEATS(READ_BUFFER_BEATS),
      .READ_BURSTS      (READ_BURSTS),
      .WRITE_BURSTS     (WRITE_BURSTS),
      .JOB_WIDTH        (JOB_WIDTH)
  ) u_reduce (
      .clk_i, .rst_ni(inner_rst_n), .op_we_i(op_we), .op_slot_i(op_slot), .op_index_i(op_index),
      .op_bus_i(op_bus), .job_valid_i(job_valid), .job_slot_i(job_slot), .job_queue_i(job_queue),
      .job_copy_i(job_copy), .job_type_i(job_type), .job_redop_i(job_redop),
      .job_out_type_i(job_out_type), .job_sources_i(job_sources),
      .job_destinations_i(job_destinations), .job_count_i(job_count), .job_scale_i(job_scale),
      .job_dst_i(job_dst), .done_ready_i(done_ready), .job_ready_o(job_ready),
      .slot_free_o(slot_free), .done_valid_o(done_valid), .done_queue_o(done_queue),
      .done_error_o(done_error), .done_write_o(done_write), .done_bus_o(done_bus),
      .m_axi_awvalid(reduce_awvalid), .m_axi_awready(reduce_awready), .m_axi_awaddr(reduce_awaddr),
      .m_axi_awid(reduce_awid), .m_axi_awlen(reduce_awlen), .m_axi_wvalid(reduce_wvalid),
      .m_axi_wready(reduce_wready), .m_axi_wdata(reduce_wdata), .m_axi_wstrb(reduce_wstrb),
      .m_axi_wlast(reduce_wlast), .m_axi_bvalid(reduce_bvalid), .m_axi_bready(reduce_bready),
      .m_axi_bid(reduce_bid), .m_axi_bresp(reduce_bresp), .m_axi_arvalid(reduce_arvalid),
      .m_axi_arready(reduce_arready), .m_axi_araddr(reduce_araddr), .m_axi_arid(reduce_arid),
      .m_axi_arlen(reduce_arlen), .m_axi_rvalid(reduce_rvalid), .m_axi_rready(reduce_rready),
      .m_axi_rdata(reduce_rdata), .m_axi_rid(reduce_rid), .m_axi_rresp(reduce_rresp),
      .m_axi_rlast(reduce_rlast)
  );

  logic          score_awvalid, score_awready, score_wvalid, score_wready, score_wlast,
                 score_bvalid, score_bready, score_arvalid, score_arready, score_rvalid,
                 score_rready, score_rlast;
  logic [63:0]   score_awaddr, score_wstrb, score_araddr;
  logic [3:0]    score_awid, score_bid, score_arid, score_rid;
  logic [7:0]    score_awlen, score_arlen;
  logic [511:0]  score_wdata, score_rdata;
  logic [1:0]    score_bresp, score_rresp;
  penstock_score #(
      .ROWS     (ROWS),
      .RESOURCES(RESOURCES),
      .BITS     (BITS),
      .FREE     (FREE)
  ) u_score (
      .clk_i, .rst_ni(inner_rst_n), .sel_valid_i(sel_valid), .sel_queue_i(sel_queue),
      .sel_commit_i(sel_commit), .sel_count_i(sel_count), .sel_table_i(sel_table),
      .sel_program_i(sel_program), .sel_tasks_i(sel_tasks), .sel_results_i(sel_results),
      .sel_done_ready_i(sel_done_ready), .win_ready_i(win_ready), .win_rsp_valid_i(win_rsp_valid),
      .win_rsp_ok_i(win_rsp_ok), .win_rsp_bus_i(win_rsp_bus), .sel_forget_i(forget),
      .sel_ready_o(sel_ready), .sel_done_valid_o(sel_done_valid),
      .sel_done_queue_o(sel_done_queue), .sel_done_status_o(sel_done_status),
      .sel_done_field_o(sel_done_field), .sel_done_detail_o(sel_done_detail),
      .win_valid_o(win_valid), .win_queue_o(win_queue), .win_address_o(win_address),
      .win_bytes_o(win_bytes), .win_write_o(win_write), .idle_o(score_idle), .decision_o(decision),
      .rows_scanned_o(rows), .m_axi_awvalid(score_awvalid), .m_axi_awready(score_awready),
      .m_axi_awaddr(score_awaddr), .m_axi_awid(score_awid), .m_axi_awlen(score_awlen),
      .m_axi_wvalid(score_wvalid), .m_axi_wready(score_wready), .m_axi_wdata(score_wdata),
      .m_axi_wstrb(score_wstrb), .m_axi_wlast(score_wlast), .m_axi_bvalid(score_bvalid),
      .m_axi_bready(score_bready), .m_axi_bid(score_bid), .m_axi_bresp(score_bresp),
      .m_axi_arvalid(score_arvalid), .m_axi_arready(score_arready), .m_axi_araddr(score_araddr),
      .m_axi_arid(score_arid), .m_axi_arlen(score_arlen), .m_axi_rvalid(score_rvalid),
      .m_axi_rready(score_rready), .m_axi_rdata(score_rdata), .m_axi_rid(score_rid),
      .m_axi_rresp(score_rresp), .m_axi_rlast(score_rlast)
  );

  // ---- the two masters ----
  logic          ctl_awvalid, ctl_awready, ctl_wvalid, ctl_wready, ctl_wlast, ctl_bvalid,
                 ctl_bready, ctl_arvalid, ctl_arready, ctl_rvalid, ctl_rready, ctl_rlast,
                 data_awvalid, data_awready, data_wvalid, data_wready, data_wlast, data_bvalid,
                 data_bready, data_arvalid, data_arready, data_rvalid, data_rready, data_rlast;
  logic [63:0]   ctl_awaddr, ctl_wstrb, ctl_araddr, data_awaddr, data_wstrb, data_araddr;
  logic [5:0]    ctl_awid, ctl_bid, ctl_arid, ctl_rid, data_awid, data_bid, data_arid, data_rid;
  logic [7:0]    ctl_awlen, ctl_arlen, data_awlen, data_arlen;
  logic [511:0]  ctl_wdata, ctl_rdata, data_wdata, data_rdata;
  logic [1:0]    ctl_bresp, ctl_rresp, data_bresp, data_rresp;

  penstock_axi_mux #(
      .N(2)
  ) u_ctl_mux (
      .clk_i, .rst_ni(inner_rst_n), .s_axi_awvalid({sync_m_awvalid, command_awvalid}),
      .s_axi_awready({sync_m_awready, command_awready}),
      .s_axi_awaddr({sync_m_awaddr, command_awaddr}), .s_axi_awid({sync_m_awid, command_awid}),
      .s_axi_awlen({sync_m_awlen, command_awlen}), .s_axi_wvalid({sync_m_wvalid, command_wvalid}),
      .s_axi_wready({sync_m_wready, command_wready}), .s_axi_wdata({sync_m_wdata, command_wdata}),
      .s_axi_wstrb({sync_m_wstrb, command_wstrb}), .s_axi_wlast({sync_m_wlast, command_wlast}),
      .s_axi_bvalid({sync_m_bvalid, command_bvalid}),
      .s_axi_bready({sync_m_bready, command_bready}), .s_axi_bid({sync_m_bid, command_bid}),
      .s_axi_bresp({sync_m_bresp, command_bresp}),
      .s_axi_arvalid({sync_m_arvalid, command_arvalid}),
      .s_axi_arready({sync_m_arready, command_arready}),
      .s_axi_araddr({sync_m_araddr, command_araddr}), .s_axi_arid({sync_m_arid, command_arid}),
      .s_axi_arlen({sync_m_arlen, command_arlen}), .s_axi_rvalid({sync_m_rvalid, command_rvalid}),
      .s_axi_rready({sync_m_rready, command_rready}), .s_axi_rdata({sync_m_rdata, command_rdata}),
      .s_axi_rid({sync_m_rid, command_rid}), .s_axi_rresp({sync_m_rresp, command_rresp}),
      .s_axi_rlast({sync_m_rlast, command_rlast}), .m_axi_awvalid(ctl_awvalid),
      .m_axi_awready(ctl_awready), .m_axi_awaddr(ctl_awaddr), .m_axi_awid(ctl_awid),
      .m_axi_awlen(ctl_awlen), .m_axi_wvalid(ctl_wvalid), .m_axi_wready(ctl_wready),
      .m_axi_wdata(ctl_wdata), .m_axi_wstrb(ctl_wstrb), .m_axi_wlast(ctl_wlast),
      .m_axi_bvalid(ctl_bvalid), .m_axi_bready(ctl_bready), .m_axi_bid(ctl_bid),
      .m_axi_bresp(ctl_bresp), .m_axi_arvalid(ctl_arvalid), .m_axi_arready(ctl_arready),
      .m_axi_araddr(ctl_araddr), .m_axi_arid(ctl_arid), .m_axi_arlen(ctl_arlen),
      .m_axi_rvalid(ctl_rvalid), .m_axi_rready(ctl_rready), .m_axi_rdata(ctl_rdata),
      .m_axi_rid(ctl_rid), .m_axi_rresp(ctl_rresp), .m_axi_rlast(ctl_rlast)
  );

  penstock_axi_mux #(
      .N(2)
  ) u_data_mux (
      .clk_i, .rst_ni(inner_rst_n), .s_axi_awvalid({score_awvalid, reduce_awvalid}),
      .s_axi_awready({score_awready, reduce_awready}),
      .s_axi_awaddr({score_awaddr, reduce_awaddr}), .s_axi_awid({score_awid, reduce_awid}),
      .s_axi_awlen({score_awlen, reduce_awlen}), .s_axi_wvalid({score_wvalid, reduce_wvalid}),
      .s_axi_wready({score_wready, reduce_wready}), .s_axi_wdata({score_wdata, reduce_wdata}),
      .s_axi_wstrb({score_wstrb, reduce_wstrb}), .s_axi_wlast({score_wlast, reduce_wlast}),
      .s_axi_bvalid({score_bvalid, reduce_bvalid}), .s_axi_bready({score_bready, reduce_bready}),
      .s_axi_bid({score_bid, reduce_bid}), .s_axi_bresp({score_bresp, reduce_bresp}),
      .s_axi_arvalid({score_arvalid, reduce_arvalid}),
      .s_axi_arready({score_arready, reduce_arready}),
      .s_axi_araddr({score_araddr, reduce_araddr}), .s_axi_arid({score_arid, reduce_arid}),
      .s_axi_arlen({score_arlen, reduce_arlen}), .s_axi_rvalid({score_rvalid, reduce_rvalid}),
      .s_axi_rready({score_rready, reduce_rready}), .s_axi_rdata({score_rdata, reduce_rdata}),
      .s_axi_rid({score_rid, reduce_rid}), .s_axi_rresp({score_rresp, reduce_rresp}),
      .s_axi_rlast({score_rlast, reduce_rlast}), .m_axi_awvalid(data_awvalid),
      .m_axi_awready(data_awready), .m_axi_awaddr(data_awaddr), .m_axi_awid(data_awid),
      .m_axi_awlen(data_awlen), .m_axi_wvalid(data_wvalid), .m_axi_wready(data_wready),
      .m_axi_wdata(data_wdata), .m_axi_wstrb(data_wstrb), .m_axi_wlast(data_wlast),
      .m_axi_bvalid(data_bvalid), .m_axi_bready(data_bready), .m_axi_bid(data_bid),
      .m_axi_bresp(data_bresp), .m_axi_arvalid(data_arvalid), .m_axi_arready(data_arready),
      .m_axi_araddr(data_araddr), .m_axi_arid(data_arid), .m_axi_arlen(data_arlen),
      .m_axi_rvalid(data_rvalid), .m_axi_rready(data_rready), .m_axi_rdata(data_rdata),
      .m_axi_rid(data_rid), .m_axi_rresp(data_rresp), .m_axi_rlast(data_rlast)
  );

  penstock_axi_isolator u_ctl_isolator (
      .clk_i, .rst_ni, .isolate_i(isolate), .clean_o(clean_ctl), .s_axi_awvalid(ctl_awvalid),
      .s_axi_awready(ctl_awready), .s_axi_awaddr(ctl_awaddr), .s_axi_awid(ctl_awid),
      .s_axi_awlen(ctl_awlen), .s_axi_wvalid(ctl_wvalid), .s_axi_wready(ctl_wready),
      .s_axi_wdata(ctl_wdata), .s_axi_wstrb(ctl_wstrb), .s_axi_wlast(ctl_wlast),
      .s_axi_bvalid(ctl_bvalid), .s_axi_bready(ctl_bready), .s_axi_bid(ctl_bid),
      .s_axi_bresp(ctl_bresp), .s_axi_arvalid(ctl_arvalid), .s_axi_arready(ctl_arready),
      .s_axi_araddr(ctl_araddr), .s_axi_arid(ctl_arid), .s_axi_arlen(ctl_arlen),
      .s_axi_rvalid(ctl_rvalid), .s_axi_rready(ctl_rready), .s_axi_rdata(ctl_rdata),
      .s_axi_rid(ctl_rid), .s_axi_rresp(ctl_rresp), .s_axi_rlast(ctl_rlast),
      .m_axi_awvalid(m_axi_ctl_awvalid), .m_axi_awready(m_axi_ctl_awready),
      .m_axi_awaddr(m_axi_ctl_awaddr), .m_axi_awid(m_axi_ctl_awid), .m_axi_awlen(m_axi_ctl_awlen),
      .m_axi_wvalid(m_axi_ctl_wvalid), .m_axi_wready(m_axi_ctl_wready),
      .m_axi_wdata(m_axi_ctl_wdata), .m_axi_wstrb(m_axi_ctl_wstrb), .m_axi_wlast(m_axi_ctl_wlast),
      .m_axi_bvalid(m_axi_ctl_bvalid), .m_axi_bready(m_axi_ctl_bready), .m_axi_bid(m_axi_ctl_bid),
      .m_axi_bresp(m_axi_ctl_bresp), .m_axi_arvalid(m_axi_ctl_arvalid),
      .m_axi_arready(m_axi_ctl_arready), .m_axi_araddr(m_axi_ctl_araddr),
      .m_axi_arid(m_axi_ctl_arid), .m_axi_arlen(m_axi_ctl_arlen), .m_axi_rvalid(m_axi_ctl_rvalid),
      .m_axi_rready(m_axi_ctl_rready), .m_axi_rdata(m_axi_ctl_rdata), .m_axi_rid(m_axi_ctl_rid),
      .m_axi_rresp(m_axi_ctl_rresp), .m_axi_rlast(m_axi_ctl_rlast)
  );

  penstock_axi_isolator u_data_isolator (
      .clk_i, .rst_ni, .isolate_i(isolate), .clean_o(clean_data), .s_axi_awvalid(data_awvalid),
      .s_axi_awready(data_awready), .s_axi_awaddr(data_awaddr), .s_axi_awid(data_awid),
      .s_axi_awlen(data_awlen), .s_axi_wvalid(data_wvalid), .s_axi_wready(data_wready),
      .s_axi_wdata(data_wdata), .s_axi_wstrb(data_wstrb), .s_axi_wlast(data_wlast),
      .s_axi_bvalid(data_bvalid), .s_axi_bready(data_bready), .s_axi_bid(data_bid),
      .s_axi_bresp(data_bresp), .s_axi_arvalid(data_arvalid), .s_axi_arready(data_arready),
      .s_axi_araddr(data_araddr), .s_axi_arid(data_arid), .s_axi_arlen(data_arlen),
      .s_axi_rvalid(data_rvalid), .s_axi_rready(data_rready), .s_axi_rdata(data_rdata),
      .s_axi_rid(data_rid), .s_axi_rresp(data_rresp), .s_axi_rlast(data_rlast),
      .m_axi_awvalid(m_axi_data_awvalid), .m_axi_awready(m_axi_data_awready),
      .m_axi_awaddr(m_axi_data_awaddr), .m_axi_awid(m_axi_data_awid),
      .m_axi_awlen(m_axi_data_awlen), .m_axi_wvalid(m_axi_data_wvalid),
      .m_axi_wready(m_axi_data_wready), .m_axi_wdata(m_axi_data_wdata),
      .m_axi_wstrb(m_axi_data_wstrb), .m_axi_wlast(m_axi_data_wlast),
      .m_axi_bvalid(m_axi_data_bvalid), .m_axi_bready(m_axi_data_bready),
      .m_axi_bid(m_axi_data_bid), .m_axi_bresp(m_axi_data_bresp),
      .m_axi_arvalid(m_axi_data_arvalid), .m_axi_arready(m_axi_data_arready),
      .m_axi_araddr(m_axi_data_araddr), .m_axi_arid(m_axi_data_arid),
      .m_axi_arlen(m_axi_data_arlen), .m_axi_rvalid(m_axi_data_rvalid),
      .m_axi_rready(m_axi_data_rready), .m_axi_rdata(m_axi_data_rdata), .m_axi_rid(m_axi_data_rid),
      .m_axi_rresp(m_axi_data_rresp), .m_axi_rlast(m_axi_data_rlast)
  );

  assign m_axi_ctl_awsize   = 3'd6;
  assign m_axi_ctl_awburst  = 2'd1;
  assign m_axi_ctl_awcache  = 4'd3;
  assign m_axi_ctl_awprot   = 3'd0;
  assign m_axi_ctl_arsize   = 3'd6;
  assign m_axi_ctl_arburst  = 2'd1;
  assign m_axi_ctl_arcache  = 4'd3;
  assign m_axi_ctl_arprot   = 3'd0;
  assign m_axi_data_awsize   = 3'd6;
  assign m_axi_data_awburst  = 2'd1;
  assign m_axi_data_awcache  = 4'd3;
  assign m_axi_data_awprot   = 3'd0;
  assign m_axi_data_arsize   = 3'd6;
  assign m_axi_data_arburst  = 2'd1;
  assign m_axi_data_arcache  = 4'd3;
  assign m_axi_data_arprot   = 3'd0;

endmodule

`default_nettype wire
