// The card's registers behind one AXI4-Lite port: identity and capabilities, switch, interrupts,
// the first error, counters. Offsets from 0x1000 on, the queues' and windows', go on to whoever
// holds them, over cfg_*.
//
// One access at a time, reads and writes in turns. registers.md says what each register means.
`default_nettype none

module penstock_registers #(
    // What the capabilities say.
    parameter int unsigned QUEUES = 64,
    parameter int unsigned WINDOWS = 16,
    parameter int unsigned SOURCES = 64,
    parameter int unsigned DESTINATIONS = 3,
    parameter int unsigned MAX_BYTES_LOG2 = 32,
    parameter int unsigned ROWS = 131072,
    parameter int unsigned RESOURCES = 8,
    parameter int unsigned FREE = 8,
    parameter int unsigned BITS = 64,
    parameter int unsigned LANES = 8,
    parameter logic [31:0] CAP_OPCODES = penstock_registers_pkg::CAP_OPCODES_RESET,
    parameter logic [31:0] CAP_FILTERS = penstock_registers_pkg::CAP_FILTERS_RESET,
    parameter logic [31:0] CAP_SCORES = penstock_registers_pkg::CAP_SCORES_RESET,
    parameter logic [31:0] CAP_NORMALISE = penstock_registers_pkg::CAP_NORMALISE_RESET,
    // CLOCK_KHZ after power-up.
    parameter logic [31:0] CLOCK_KHZ = penstock_registers_pkg::CLOCK_KHZ_RESET
) (
    input  wire logic          clk_i,
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

    // Queues and windows: held until cfg_ready_i, which is high for one cycle. During a soft reset
    // nothing is asked; such an access is answered SLVERR.
    output      logic          cfg_valid_o,
    output      logic          cfg_write_o,
    output      logic [15:0]   cfg_addr_o,
    output      logic [31:0]   cfg_wdata_o,
    input  wire logic          cfg_ready_i,
    input  wire logic [31:0]   cfg_rdata_i,
    input  wire logic          cfg_error_i,

    output      logic          enable_o,
    output      logic [31:0]   clock_khz_o,
    // High from the write of CONTROL.soft_reset until soft_reset_done_i, a pulse.
    output      logic          soft_reset_o,
    input  wire logic          soft_reset_done_i,
    // Nothing is under way in any queue.
    input  wire logic          idle_i,

    // Memory has acknowledged a completion of this queue.
    input  wire logic          queue_event_valid_i,
    input  wire logic [5:0]    queue_event_queue_i,

    // An error; kept unless one is kept already.
    input  wire logic          error_valid_i,
    input  wire logic [7:0]    error_code_i,
    input  wire logic [5:0]    error_queue_i,
    input  wire logic [31:0]   error_sequence_i,
    input  wire logic [63:0]   error_address_i,
    input  wire logic [1023:0] error_descriptor_i,

    // One more of each counter whose bit is set, in the order of their registers; the first two
    // count by themselves. The last, ROWS_SCANNED, rises by rows_i.
    /* verilator lint_off UNUSEDSIGNAL */
    input  wire logic [12:0]   counter_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input  wire logic [15:0]   rows_i,

    output      logic          irq_o
);

  localparam int unsigned COUNTERS = 13;
  localparam logic [1:0] OKAY = 2'd0;
  localparam logic [1:0] SLVERR = 2'd2;
  localparam logic [11:0] CAP_TYPE_AT = penstock_registers_pkg::CAP_TYPE_INT8_AT[11:0];

  // ---- the port: an access is gathered, made, answered ----

  typedef enum logic [2:0] {
    IDLE,
    WRITE,
    READ,
    FORWARD,
    WRITTEN,
    ANSWERED
  } state_e;

  state_e      state_q;
  logic        aw_held_q;
  logic        w_held_q;
  logic        ar_held_q;
  logic        read_next_q;  // whose turn it is where both wait
  logic [15:0] awaddr_q;
  logic [31:0] wdata_q;
  logic        whole_q;      // all strobes of the word are set
  logic [15:0] araddr_q;
  logic [31:0] rdata_q;
  logic [1:0]  resp_q;
  logic        write_q;      // the access that is forwarded

  logic        can_write;
  logic        can_read;
  logic        write_now;    // of a register here
  logic        write_known;
  logic [31:0] read_value;
  logic        read_known;
  logic        soft_reset_q;

  assign s_axil_awready = !aw_held_q;
  assign s_axil_wready  = !w_held_q;
  assign s_axil_arready = !ar_held_q;
  assign s_axil_bvalid  = state_q == WRITTEN;
  assign s_axil_bresp   = resp_q;
  assign s_axil_rvalid  = state_q == ANSWERED;
  assign s_axil_rdata   = rdata_q;
  assign s_axil_rresp   = resp_q;

  assign can_write = aw_held_q && w_held_q;
  assign can_read  = ar_held_q;
  assign write_now = state_q == WRITE && awaddr_q[15:12] == '0 && whole_q && write_known;

  assign cfg_valid_o = state_q == FORWARD && !soft_reset_q;
  assign cfg_write_o = write_q;
  assign cfg_addr_o  = write_q ? awaddr_q : araddr_q;
  assign cfg_wdata_o = wdata_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= IDLE;
      aw_held_q   <= 1'b0;
      w_held_q    <= 1'b0;
      ar_held_q   <= 1'b0;
      read_next_q <= 1'b0;
    end else begin
      if (s_axil_awvalid) aw_held_q <= 1'b1;
      if (s_axil_wvalid) w_held_q <= 1'b1;
      if (s_axil_arvalid) ar_held_q <= 1'b1;
      case (state_q)
        IDLE: begin
          if (can_read && (!can_write || read_next_q)) state_q <= READ;
          else if (can_write) state_q <= WRITE;
        end
        WRITE: begin
          read_next_q <= 1'b1;
          state_q     <= awaddr_q[15:12] != '0 && whole_q && awaddr_q[1:0] == '0 ? FORWARD
                                                                                 : WRITTEN;
        end
        READ: begin
          read_next_q <= 1'b0;
          state_q     <= araddr_q[15:12] != '0 && araddr_q[1:0] == '0 ? FORWARD : ANSWERED;
        end
        FORWARD: if (cfg_ready_i || soft_reset_q) state_q <= write_q ? WRITTEN : ANSWERED;
        WRITTEN: if (s_axil_bready) begin
          state_q   <= IDLE;
          aw_held_q <= 1'b0;
          w_held_q  <= 1'b0;
        end
        ANSWERED: if (s_axil_rready) begin
          state_q   <= IDLE;
          ar_held_q <= 1'b0;
        end
        default: state_q <= IDLE;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (s_axil_awvalid && s_axil_awready) awaddr_q <= s_axil_awaddr;
    if (s_axil_wvalid && s_axil_wready) begin
      wdata_q <= s_axil_wdata;
      whole_q <= s_axil_wstrb == 4'hf;
    end
    if (s_axil_arvalid && s_axil_arready) araddr_q <= s_axil_araddr;
    case (state_q)
      WRITE: begin
        write_q <= 1'b1;
        resp_q  <= write_now ? OKAY : SLVERR;
      end
      READ: begin
        write_q <= 1'b0;
        resp_q  <= read_known ? OKAY : SLVERR;
        rdata_q <= read_value;
      end
      FORWARD: begin
        resp_q  <= soft_reset_q || cfg_error_i ? SLVERR : OKAY;
        rdata_q <= soft_reset_q || cfg_error_i ? '0 : cfg_rdata_i;
      end
      default: ;
    endcase
  end

  // ---- registers ----

  logic        enable_q;
  logic [31:0] clock_khz_q;
  logic [63:0] cause_q;
  logic [63:0] mask_q;
  logic        error_q;
  logic        error_mask_q;
  logic        irq_q;
  logic        clear;       // as after power-up, CLOCK_KHZ excepted
  logic [63:0] cause_clear;

  assign clear        = !rst_ni || (soft_reset_q && soft_reset_done_i);
  assign enable_o     = enable_q;
  assign clock_khz_o  = clock_khz_q;
  assign soft_reset_o = soft_reset_q;
  assign irq_o        = irq_q;

  always_comb begin
    write_known = awaddr_q[1:0] == '0;
    cause_clear = '0;
    case (awaddr_q)
      penstock_registers_pkg::CONTROL_AT,
      penstock_registers_pkg::CLOCK_KHZ_AT,
      penstock_registers_pkg::IRQ_ERROR_AT,
      penstock_registers_pkg::IRQ_MASK_LO_AT,
      penstock_registers_pkg::IRQ_MASK_HI_AT,
      penstock_registers_pkg::IRQ_ERROR_MASK_AT: ;
      penstock_registers_pkg::IRQ_CAUSE_LO_AT: cause_clear[31:0] = write_now ? wdata_q : '0;
      penstock_registers_pkg::IRQ_CAUSE_HI_AT: cause_clear[63:32] = write_now ? wdata_q : '0;
      default: write_known = 1'b0;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) clock_khz_q <= CLOCK_KHZ;
    else if (write_now && awaddr_q == penstock_registers_pkg::CLOCK_KHZ_AT) clock_khz_q <= wdata_q;

    if (!rst_ni) soft_reset_q <= 1'b0;
    else if (soft_reset_done_i) soft_reset_q <= 1'b0;
    else if (write_now && awaddr_q == penstock_registers_pkg::CONTROL_AT && wdata_q[1]) begin
      soft_reset_q <= 1'b1;
    end

    if (clear) begin
      enable_q     <= 1'b0;
      cause_q      <= '0;
      mask_q       <= '0;
      error_mask_q <= 1'b0;
      irq_q        <= 1'b0;
    end else begin
      if (write_now) begin
        case (awaddr_q)
          penstock_registers_pkg::CONTROL_AT: enable_q <= wdata_q[0];
          penstock_registers_pkg::IRQ_MASK_LO_AT: mask_q[31:0] <= wdata_q;
          penstock_registers_pkg::IRQ_MASK_HI_AT: mask_q[63:32] <= wdata_q;
          penstock_registers_pkg::IRQ_ERROR_MASK_AT: error_mask_q <= wdata_q[0];
          default: ;
        endcase
      end
      // What happens in the cycle of its clearing is not lost.
      cause_q <= (cause_q & ~cause_clear) |
                 (queue_event_valid_i ? 64'd1 << queue_event_queue_i : 64'd0);
      irq_q   <= (cause_q & mask_q) != '0 || (error_q && error_mask_q);
    end
  end

  // ---- the first error ----

  logic [7:0]    error_code_q;
  logic [5:0]    error_queue_q;
  logic [31:0]   error_sequence_q;
  logic [63:0]   error_address_q;
  logic [1023:0] error_descriptor_q;
  logic          error_clear;
  logic          error_take;

  assign error_clear = write_now && awaddr_q == penstock_registers_pkg::IRQ_ERROR_AT && wdata_q[0];
  assign error_take  = error_valid_i && (!error_q || error_clear);

  always_ff @(posedge clk_i) begin
    if (clear) begin
      error_q            <= 1'b0;
      error_code_q       <= '0;
      error_queue_q      <= '0;
      error_sequence_q   <= '0;
      error_address_q    <= '0;
      error_descriptor_q <= '0;
    end else if (error_take) begin
      error_q            <= 1'b1;
      error_code_q       <= error_code_i;
      error_queue_q      <= error_queue_i;
      error_sequence_q   <= error_sequence_i;
      error_address_q    <= error_address_i;
      error_descriptor_q <= error_descriptor_i;
    end else if (error_clear) begin
      error_q <= 1'b0;
    end
  end

  // ---- counters ----

  logic [COUNTERS*64-1:0] counters_q;
  logic [31:0]            upper_q;  // of the counter whose lower half was read last
  logic [3:0]             counter_index;
  logic [63:0]            counter_value;

  logic [12:0]            counts;

  assign counts = {counter_i[12:2], !idle_i, 1'b1};

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < COUNTERS; i++) begin
      if (clear) counters_q[i*64+:64] <= '0;
      else if (counts[i]) begin
        counters_q[i*64+:64] <= counters_q[i*64+:64] +
                                (i == COUNTERS - 1 ? {48'd0, rows_i} : 64'd1);
      end
    end
    if (state_q == READ && araddr_q[15:8] == 8'h01 && !araddr_q[2]) upper_q <= counter_value[63:32];
  end

  assign counter_index = araddr_q[6:3];
  assign counter_value = counter_index < 4'(COUNTERS) ? counters_q[counter_index*64+:64] : '0;

  // ---- reading ----

  function automatic logic [31:0] type_capability(input logic [3:0] kind);
    case (kind)
      penstock_pkg::INT8: type_capability = penstock_registers_pkg::CAP_TYPE_INT8_RESET;
      penstock_pkg::UINT8: type_capability = penstock_registers_pkg::CAP_TYPE_UINT8_RESET;
      penstock_pkg::INT32: type_capability = penstock_registers_pkg::CAP_TYPE_INT32_RESET;
      penstock_pkg::UINT32: type_capability = penstock_registers_pkg::CAP_TYPE_UINT32_RESET;
      penstock_pkg::INT64: type_capability = penstock_registers_pkg::CAP_TYPE_INT64_RESET;
      penstock_pkg::UINT64: type_capability = penstock_registers_pkg::CAP_TYPE_UINT64_RESET;
      penstock_pkg::F16: type_capability = penstock_registers_pkg::CAP_TYPE_F16_RESET;
      penstock_pkg::F32: type_capability = penstock_registers_pkg::CAP_TYPE_F32_RESET;
      penstock_pkg::BF16: type_capability = penstock_registers_pkg::CAP_TYPE_BF16_RESET;
      penstock_pkg::F8E4M3: type_capability = penstock_registers_pkg::CAP_TYPE_F8E4M3_RESET;
      penstock_pkg::F8E5M2: type_capability = penstock_registers_pkg::CAP_TYPE_F8E5M2_RESET;
      default: type_capability = '0;
    endcase
  endfunction

  always_comb begin
    read_known = araddr_q[1:0] == '0;
    read_value = '0;
    case (araddr_q)
      penstock_registers_pkg::ID_AT: read_value = penstock_registers_pkg::ID_RESET;
      penstock_registers_pkg::VERSION_AT: read_value = penstock_registers_pkg::VERSION_RESET;
      penstock_registers_pkg::CAP_OPCODES_AT: read_value = CAP_OPCODES;
      penstock_registers_pkg::CAP_LIMITS_AT:
      read_value = {8'(DESTINATIONS), 8'(SOURCES), 8'(WINDOWS), 8'(QUEUES)};
      penstock_registers_pkg::CAP_MAX_BYTES_AT: read_value = MAX_BYTES_LOG2;
      penstock_registers_pkg::CAP_ROWS_AT: read_value = ROWS;
      penstock_registers_pkg::CAP_TABLE_AT: read_value = {16'(BITS), 8'(FREE), 8'(RESOURCES)};
      penstock_registers_pkg::CAP_LANES_AT: read_value = LANES;
      penstock_registers_pkg::CAP_FILTERS_AT: read_value = CAP_FILTERS;
      penstock_registers_pkg::CAP_SCORES_AT: read_value = CAP_SCORES;
      penstock_registers_pkg::CAP_NORMALISE_AT: read_value = CAP_NORMALISE;
      penstock_registers_pkg::CONTROL_AT: read_value[0] = enable_q;
      penstock_registers_pkg::STATUS_AT: read_value[2:0] = {error_q, idle_i, soft_reset_q};
      penstock_registers_pkg::CLOCK_KHZ_AT: read_value = clock_khz_q;
      penstock_registers_pkg::IRQ_CAUSE_LO_AT: read_value = cause_q[31:0];
      penstock_registers_pkg::IRQ_CAUSE_HI_AT: read_value = cause_q[63:32];
      penstock_registers_pkg::IRQ_ERROR_AT: read_value[0] = error_q;
      penstock_registers_pkg::IRQ_MASK_LO_AT: read_value = mask_q[31:0];
      penstock_registers_pkg::IRQ_MASK_HI_AT: read_value = mask_q[63:32];
      penstock_registers_pkg::IRQ_ERROR_MASK_AT: read_value[0] = error_mask_q;
      penstock_registers_pkg::ERROR_CODE_AT: read_value[13:0] = {error_queue_q, error_code_q};
      penstock_registers_pkg::ERROR_SEQUENCE_AT: read_value = error_sequence_q;
      penstock_registers_pkg::ERROR_ADDRESS_LO_AT: read_value = error_address_q[31:0];
      penstock_registers_pkg::ERROR_ADDRESS_HI_AT: read_value = error_address_q[63:32];
      default: begin
        if (araddr_q[15:7] == penstock_registers_pkg::ERROR_DESCRIPTOR_AT[15:7]) begin
          read_value = error_descriptor_q[araddr_q[6:2]*32+:32];
        end else if (araddr_q[15:7] == penstock_registers_pkg::CYCLES_LO_AT[15:7] &&
                     counter_index < 4'(COUNTERS)) begin
          read_value = araddr_q[2] ? upper_q : counter_value[31:0];
        end else if (araddr_q[15:6] == {4'd0, CAP_TYPE_AT[11:6]} && araddr_q[5:2] < 4'd12) begin
          read_value = type_capability(araddr_q[5:2]);
        end else begin
          read_known = 1'b0;
        end
      end
    endcase
    if (!read_known) read_value = '0;
  end

endmodule

`default_nettype wire
