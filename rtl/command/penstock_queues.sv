// What the driver says about the queues and sees of them: the configuration bus above 0x1000, the
// contexts that the other units read, and the doorbells.
//
// A request stays until the pulse of cfg_ready_o. cfg_error_o with it says that there is no such
// register, that it cannot be written, that the value is none (a misaligned address, a depth out of
// range, more windows than there are) or that this is not the time: RING, COMPLETIONS and CONFIG
// change only while their queue is disabled; a queue is enabled with a depth, and when nothing of
// it is under way; it is disabled when it is idle or stopped. Such a write has no effect.
//
// A doorbell that is not legal stops its queue: nothing of it begins any more, and what was begun
// completes. Doorbells of a stopped queue are ignored.
`default_nettype none

module penstock_queues #(
    // Queues: 1 to 64.
    parameter int unsigned QUEUES = 64
) (
    input  wire logic              clk_i,
    input  wire logic              rst_ni,
    input  wire logic              cfg_valid_i,
    input  wire logic              cfg_write_i,
    input  wire logic [15:0]       cfg_addr_i,
    input  wire logic [31:0]       cfg_wdata_i,
    output      logic              cfg_ready_o,
    output      logic [31:0]       cfg_rdata_o,
    output      logic              cfg_error_o,
    // Words of the windows (penstock_window).
    output      logic              window_valid_o,
    input  wire logic              window_ready_i,
    input  wire logic [31:0]       window_data_i,
    // The counters of the queue that the request names (penstock_ring).
    output      logic [5:0]        queue_o,
    output      logic              clear_o,
    output      logic              doorbell_o,
    output      logic [31:0]       doorbell_depth_o,
    input  wire logic              doorbell_legal_i,
    input  wire logic [31:0]       submitted_i,
    input  wire logic [31:0]       arrived_i,
    input  wire logic [31:0]       completed_i,
    input  wire logic              settled_i,
    input  wire logic              finished_i,
    // The walker is at this queue.
    input  wire logic              walking_i,
    input  wire logic [5:0]        walking_queue_i,
    // A bit per queue.
    output      logic [QUEUES-1:0] enabled_o,
    output      logic [QUEUES-1:0] cancel_o,
    output      logic [QUEUES-1:0] stopped_o,
    input  wire logic [QUEUES-1:0] waiting_i,
    // Stops a queue; the first code stays.
    input  wire logic              stop_i,
    input  wire logic [5:0]        stop_queue_i,
    input  wire logic [7:0]        stop_code_i,
    // A doorbell out of range; the error is held until it was reported.
    output      logic              error_valid_o,
    input  wire logic              error_ready_i,
    // Contexts: for fetch, the walker, completions, windows. Depths are logarithms.
    input  wire logic [5:0]        fetch_queue_i,
    output      logic [63:0]       fetch_ring_o,
    output      logic [4:0]        fetch_depth_o,
    input  wire logic [5:0]        walk_queue_i,
    output      logic [63:0]       walk_ring_o,
    output      logic [4:0]        walk_depth_o,
    output      logic [31:0]       walk_timeout_ms_o,
    input  wire logic [5:0]        complete_queue_i,
    output      logic [63:0]       complete_base_o,
    output      logic [4:0]        complete_depth_o,
    input  wire logic [5:0]        count_queue_i,
    output      logic [4:0]        count_o,
    // The memories are being emptied after a reset.
    output      logic              sweeping_o
);

  localparam int unsigned QUEUE_BITS = QUEUES > 1 ? $clog2(QUEUES) : 1;

  localparam logic [3:0] RING_LO = 4'd0;
  localparam logic [3:0] RING_HI = 4'd1;
  localparam logic [3:0] COMPLETIONS_LO = 4'd2;
  localparam logic [3:0] COMPLETIONS_HI = 4'd3;
  localparam logic [3:0] CONFIG = 4'd4;
  localparam logic [3:0] TIMEOUT_MS = 4'd5;
  localparam logic [3:0] CONTROL = 4'd6;
  localparam logic [3:0] TAIL = 4'd7;
  localparam logic [3:0] HEAD = 4'd8;
  localparam logic [3:0] COMPLETED = 4'd9;
  localparam logic [3:0] STATE = 4'd10;
  localparam logic [3:0] WINDOWS = 4'd11;

  localparam logic [2:0] IDLE = 3'd0;
  localparam logic [2:0] WINDOW = 3'd1;  // penstock_window has the request
  localparam logic [2:0] DONE = 3'd2;    // shows the answer
  localparam logic [2:0] ERROR = 3'd3;   // a doorbell's error is being reported
  localparam logic [2:0] CLEAR = 3'd4;   // a queue is being enabled
  logic [2:0] state_q;

  logic [31:0] ring_lo_m[0:QUEUES-1];
  logic [31:0] ring_hi_m[0:QUEUES-1];
  logic [31:0] completions_lo_m[0:QUEUES-1];
  logic [31:0] completions_hi_m[0:QUEUES-1];
  logic [4:0]  depth_m[0:QUEUES-1];
  logic [31:0] timeout_ms_m[0:QUEUES-1];
  logic [4:0]  windows_m[0:QUEUES-1];
  logic [7:0]  code_m[0:QUEUES-1];  // means something while its queue is stopped

  logic [QUEUES-1:0] enabled_q;
  logic [QUEUES-1:0] cancel_q;
  logic [QUEUES-1:0] stopped_q;
  logic [QUEUES-1:0] used_q;  // has been enabled, so that its counters mean something
  assign enabled_o = enabled_q;
  assign cancel_o  = cancel_q;
  assign stopped_o = stopped_q;

  // ---- what the request names ----
  logic                  is_queue;
  logic                  is_window;
  logic [5:0]            queue_number;
  logic [QUEUE_BITS-1:0] queue;
  logic [3:0]            register;
  logic                  start;
  assign is_queue     = cfg_addr_i[15:12] == 4'h1 && cfg_addr_i[1:0] == '0 &&
                        register <= WINDOWS && {1'b0, queue_number} < 7'(QUEUES);
  assign is_window    = cfg_addr_i[15] && cfg_addr_i[4:2] != 3'd7 && cfg_addr_i[1:0] == '0 &&
                        {1'b0, queue_number} < 7'(QUEUES);
  assign queue_number = cfg_addr_i[15] ? cfg_addr_i[14:9] : cfg_addr_i[11:6];
  assign queue        = queue_number[QUEUE_BITS-1:0];
  assign register     = cfg_addr_i[5:2];
  assign queue_o      = queue_number;
  assign start        = state_q == IDLE && cfg_valid_i && !sweeping_q;

  // ---- its queue ----
  logic        enabled;
  logic        stopped;
  logic        used;
  logic        idle;
  logic [4:0]  depth;
  logic [31:0] value;
  assign enabled = enabled_q[queue];
  assign stopped = stopped_q[queue];
  assign used    = used_q[queue];
  assign depth   = depth_m[queue];
  assign doorbell_depth_o = 32'd1 << depth;
  assign idle    = !used || (enabled && !stopped
                                 ? finished_i
                                 : settled_i && !(walking_i && walking_queue_i == queue_number));

  always_comb begin
    case (register)
      RING_LO: value = ring_lo_m[queue];
      RING_HI: value = ring_hi_m[queue];
      COMPLETIONS_LO: value = completions_lo_m[queue];
      COMPLETIONS_HI: value = completions_hi_m[queue];
      CONFIG: value = {27'd0, depth};
      TIMEOUT_MS: value = timeout_ms_m[queue];
      CONTROL: value = {30'd0, cancel_q[queue], enabled};
      TAIL: value = enabled ? submitted_i : '0;
      HEAD: value = enabled ? arrived_i : '0;
      COMPLETED: value = enabled ? completed_i : '0;
      STATE: value = {16'd0, stopped ? code_m[queue] : 8'd0, 4'd0, waiting_i[queue], stopped, idle,
                      enabled};
      default: value = {27'd0, windows_m[queue]};
    endcase
  end

  // ---- whether it may be written ----
  logic allowed;
  logic enables;
  logic disables;
  assign enables  = cfg_wdata_i[0] && !enabled;
  assign disables = !cfg_wdata_i[0] && enabled;
  always_comb begin
    case (register)
      RING_LO, COMPLETIONS_LO: allowed = !enabled && cfg_wdata_i[5:0] == '0;
      RING_HI, COMPLETIONS_HI: allowed = !enabled;
      CONFIG: allowed = !enabled && cfg_wdata_i >= 32'd1 && cfg_wdata_i <= 32'd16;
      TIMEOUT_MS: allowed = 1'b1;
      CONTROL: begin
        allowed = cfg_wdata_i[31:2] == '0 && !(enables && (!idle || depth == '0)) &&
                  !(disables && !idle && !stopped);
      end
      TAIL: allowed = enabled;
      WINDOWS: allowed = cfg_wdata_i <= 32'd16;
      default: allowed = 1'b0;
    endcase
  end

  logic write;
  logic rings;
  assign write      = start && is_queue && cfg_write_i && allowed;
  assign rings      = write && register == TAIL && !stopped;
  assign doorbell_o = rings && doorbell_legal_i;
  assign clear_o    = state_q == CLEAR;
  assign window_valid_o = state_q == WINDOW;
  assign error_valid_o  = state_q == ERROR;

  logic [31:0] rdata_q;
  logic        error_q;
  assign cfg_ready_o = state_q == DONE;
  assign cfg_rdata_o = rdata_q;
  assign cfg_error_o = error_q;

  always_ff @(posedge clk_i) begin
    if (start) begin
      rdata_q <= is_queue && !cfg_write_i ? value : '0;
      error_q <= !is_window && (!is_queue || (cfg_write_i && !allowed));
    end else if (state_q == WINDOW && window_ready_i) begin
      rdata_q <= cfg_write_i ? '0 : window_data_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q   <= IDLE;
      enabled_q <= '0;
      cancel_q  <= '0;
      stopped_q <= '0;
      used_q    <= '0;
    end else begin
      case (state_q)
        IDLE: begin
          if (start) begin
            state_q <= is_window ? WINDOW :
                       rings && !doorbell_legal_i ? ERROR :
                       write && register == CONTROL && enables ? CLEAR : DONE;
          end
        end
        CLEAR: begin
          state_q          <= DONE;
          enabled_q[queue] <= 1'b1;
          used_q[queue]    <= 1'b1;
          stopped_q[queue] <= 1'b0;
        end
        WINDOW: if (window_ready_i) state_q <= DONE;
        ERROR: if (error_ready_i) state_q <= DONE;
        default: state_q <= IDLE;
      endcase
      if (stop_i) stopped_q[stop_queue_i[QUEUE_BITS-1:0]] <= 1'b1;
      if (write && register == CONTROL) begin
        if (!enables) enabled_q[queue] <= cfg_wdata_i[0];
        cancel_q[queue] <= cfg_wdata_i[1];
      end
    end
  end

  // ---- the memories, which a reset empties one queue at a time ----
  logic                  sweeping_q;
  logic [QUEUE_BITS-1:0] sweep_q;
  logic [QUEUE_BITS-1:0] write_queue;
  logic [31:0]           write_data;
  assign sweeping_o  = sweeping_q;
  assign write_queue = sweeping_q ? sweep_q : queue;
  assign write_data  = sweeping_q ? '0 : cfg_wdata_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sweeping_q <= 1'b1;
      sweep_q    <= '0;
    end else if (sweeping_q) begin
      sweep_q    <= sweep_q + 1'b1;
      sweeping_q <= sweep_q != QUEUE_BITS'(QUEUES - 1);
    end
  end
  always_ff @(posedge clk_i) begin
    if (sweeping_q || (write && register == RING_LO)) ring_lo_m[write_queue] <= write_data;
    if (sweeping_q || (write && register == RING_HI)) ring_hi_m[write_queue] <= write_data;
    if (sweeping_q || (write && register == COMPLETIONS_LO)) begin
      completions_lo_m[write_queue] <= write_data;
    end
    if (sweeping_q || (write && register == COMPLETIONS_HI)) begin
      completions_hi_m[write_queue] <= write_data;
    end
    if (sweeping_q || (write && register == CONFIG)) depth_m[write_queue] <= write_data[4:0];
    if (sweeping_q || (write && register == TIMEOUT_MS)) timeout_ms_m[write_queue] <= write_data;
    if (sweeping_q || (write && register == WINDOWS)) windows_m[write_queue] <= write_data[4:0];
  end
  always_ff @(posedge clk_i) begin
    if (stop_i && !stopped_q[stop_queue_i[QUEUE_BITS-1:0]]) begin
      code_m[stop_queue_i[QUEUE_BITS-1:0]] <= stop_code_i;
    end
  end

  // ---- contexts ----
  assign fetch_ring_o      = {ring_hi_m[fetch_queue_i[QUEUE_BITS-1:0]],
                              ring_lo_m[fetch_queue_i[QUEUE_BITS-1:0]]};
  assign fetch_depth_o     = depth_m[fetch_queue_i[QUEUE_BITS-1:0]];
  assign walk_ring_o       = {ring_hi_m[walk_queue_i[QUEUE_BITS-1:0]],
                              ring_lo_m[walk_queue_i[QUEUE_BITS-1:0]]};
  assign walk_depth_o      = depth_m[walk_queue_i[QUEUE_BITS-1:0]];
  assign walk_timeout_ms_o = timeout_ms_m[walk_queue_i[QUEUE_BITS-1:0]];
  assign complete_base_o   = {completions_hi_m[complete_queue_i[QUEUE_BITS-1:0]],
                              completions_lo_m[complete_queue_i[QUEUE_BITS-1:0]]};
  assign complete_depth_o  = depth_m[complete_queue_i[QUEUE_BITS-1:0]];
  assign count_o           = windows_m[count_queue_i[QUEUE_BITS-1:0]];

endmodule

`default_nettype wire
