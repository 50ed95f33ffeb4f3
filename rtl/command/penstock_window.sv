// Answers whether one of a queue's windows allows an access, and where on the bus it goes. Nothing
// that a descriptor names leaves the card without this answer.
//
// A window is [base, base + bytes) of penstock addresses with rights, and the bus address of its
// base. An access is allowed where one window that has the right holds all of its bytes; where
// several do, the first one says where. The windows stand in four banks and are looked at four at a
// time: an answer takes 6 cycles for up to four windows, and one more for each further four.
//
// Two clients ask, one request of each at a time; they take turns. The configuration bus has the
// memories between two requests. A reset empties them, one entry of each bank in a cycle.
`default_nettype none

module penstock_window #(
    // Queues: 1 to 64.
    parameter int unsigned QUEUES = 64
) (
    input  wire logic          clk_i,
    input  wire logic          rst_ni,
    // How many windows of the queue are in use, 0 to 16, for the queue of count_queue_o.
    output      logic [5:0]    count_queue_o,
    input  wire logic [4:0]    count_i,
    // Client 0: the walker. A request is held until it is ready; the answer is a pulse.
    input  wire logic          win_valid_i,
    output      logic          win_ready_o,
    input  wire logic [5:0]    win_queue_i,
    input  wire logic [63:0]   win_address_i,
    input  wire logic [63:0]   win_bytes_i,
    input  wire logic          win_write_i,
    output      logic          win_rsp_valid_o,
    // Client 1: score.
    input  wire logic          score_win_valid_i,
    output      logic          score_win_ready_o,
    input  wire logic [5:0]    score_win_queue_i,
    input  wire logic [63:0]   score_win_address_i,
    input  wire logic [63:0]   score_win_bytes_i,
    input  wire logic          score_win_write_i,
    output      logic          score_win_rsp_valid_o,
    // Of both: whether it is allowed, and the bus address (where it is).
    output      logic          rsp_ok_o,
    output      logic [63:0]   rsp_bus_o,
    // Words of the windows. A request is held until the pulse of config_ready_o, with which a
    // read's data is there. Words 0 to 5 are base, bytes and bus, low half first; word 6 the rights
    // (bit 0 read, bit 1 write), of which no more is kept.
    input  wire logic          config_valid_i,
    input  wire logic          config_write_i,
    input  wire logic [5:0]    config_queue_i,
    input  wire logic [3:0]    config_window_i,
    input  wire logic [2:0]    config_word_i,
    input  wire logic [31:0]   config_data_i,
    output      logic          config_ready_o,
    output      logic [31:0]   config_data_o
);

  localparam int unsigned QUEUE_BITS = QUEUES > 1 ? $clog2(QUEUES) : 1;
  localparam int BANKS = 4;
  localparam int unsigned ENTRIES = QUEUES * 4;  // of a bank
  localparam int unsigned ENTRY_BITS = QUEUE_BITS + 2;
  localparam int unsigned WIDTH = 6 * 32 + 2;

  localparam logic [1:0] IDLE = 2'd0;
  localparam logic [1:0] LOOK = 2'd1;    // reads one group of four windows each cycle
  localparam logic [1:0] CONFIG = 2'd2;  // has the word
  localparam logic [1:0] SWEEP = 2'd3;   // after a reset
  logic [1:0] state_q;

  // ---- the request under way ----
  logic                  turn_q;  // the client that goes first next time
  logic                  client_q;
  logic [QUEUE_BITS-1:0] queue_q;
  logic [63:0]           address_q;
  logic [63:0]           bytes_q;
  logic                  write_q;
  logic [4:0]            count_q;
  logic [1:0]            group_q;
  logic                  accept;
  logic                  client;
  logic                  config_start;
  logic                  last_group;

  assign client       = turn_q ? score_win_valid_i : !win_valid_i;
  assign accept       = state_q == IDLE && !config_start && (win_valid_i || score_win_valid_i);
  assign config_start = state_q == IDLE && config_valid_i && !config_ready_o;
  assign win_ready_o       = accept && !client;
  assign score_win_ready_o = accept && client;
  assign count_queue_o     = client ? score_win_queue_i : win_queue_i;
  assign last_group        = {1'b0, group_q, 2'b11} >= count_q - 5'd1 || count_q == '0;

  // ---- the banks ----
  logic [ENTRY_BITS-1:0]  read_entry;
  logic [ENTRY_BITS-1:0]  config_entry;
  logic [ENTRY_BITS-1:0]  sweep_q;
  logic [ENTRY_BITS-1:0]  write_entry;
  logic [31:0]            write_data;
  logic [6:0]             config_we;  // by word
  logic                   read_en;
  logic [BANKS*WIDTH-1:0] words;
  logic                   group_valid_q;  // `words` is of the request, and of this group
  logic [1:0]             group_at_q;
  logic                   group_last_q;

  assign config_entry = {config_queue_i[QUEUE_BITS-1:0], config_window_i[3:2]};
  assign config_we    = config_start && config_write_i ? 7'd1 << config_word_i : '0;
  assign write_entry  = state_q == SWEEP ? sweep_q : config_entry;
  assign write_data   = state_q == SWEEP ? '0 : config_data_i;
  assign read_entry   = state_q == LOOK ? {queue_q, group_q} : config_entry;
  assign read_en      = state_q == LOOK || config_start;

  // ---- the three steps of a look, for each bank ----
  // Each begins with a register, so that none holds more than one carry chain of 66 bits.
  logic                a_valid_q;
  logic                a_last_q;
  logic                b_valid_q;
  logic                b_last_q;
  logic [BANKS-1:0]    hit_c;
  logic [BANKS*64-1:0] bus_c;
  logic                c_valid_q;
  logic                c_last_q;

  for (genvar bank = 0; bank < BANKS; bank++) begin : g_bank
    logic [WIDTH-1:0] bank_m[0:ENTRIES-1];
    logic [WIDTH-1:0] word_q;
    logic [63:0]      window_bytes_q;
    logic [63:0]      window_bus_q;
    logic [63:0]      into_q;   // the access begins so far behind the base; below it, very far
    logic [65:0]      end_q;    // and ends here
    logic             right_q;
    logic             right_b_q;
    logic [63:0]      bytes_b_q;
    logic [63:0]      bus_b_q;
    logic             hit_q;
    logic [63:0]      bus_q;

    always_ff @(posedge clk_i) begin
      for (int unsigned word = 0; word < 6; word++) begin
        if (state_q == SWEEP || (config_we[word] && config_window_i[1:0] == bank)) begin
          bank_m[write_entry][word*32+:32] <= write_data;
        end
      end
      if (state_q == SWEEP || (config_we[6] && config_window_i[1:0] == bank)) begin
        bank_m[write_entry][193:192] <= write_data[1:0];
      end
      if (read_en) word_q <= bank_m[read_entry];
    end
    assign words[bank*WIDTH+:WIDTH] = word_q;

    always_ff @(posedge clk_i) begin
      if (group_valid_q) begin
        into_q         <= address_q - word_q[63:0];
        window_bytes_q <= word_q[127:64];
        window_bus_q   <= word_q[191:128];
        right_q        <= {1'b0, group_at_q, 2'(bank)} < count_q &&
                          (write_q ? word_q[193] : word_q[192]);
      end
      if (a_valid_q) begin
        end_q     <= {2'b00, into_q} + {2'b00, bytes_q};
        bytes_b_q <= window_bytes_q;
        right_b_q <= right_q;
        bus_b_q   <= window_bus_q + into_q;
      end
      if (b_valid_q) begin
        hit_q <= right_b_q && end_q <= {2'b00, bytes_b_q};
        bus_q <= bus_b_q;
      end
    end
    assign hit_c[bank]        = hit_q;
    assign bus_c[bank*64+:64] = bus_q;
  end

  // ---- the answer ----
  logic        found_q;
  logic [63:0] bus_q;
  logic [63:0] bus_first;
  logic        answer_q;

  assign bus_first = hit_c[0] ? bus_c[63:0] : hit_c[1] ? bus_c[127:64] :
                     hit_c[2] ? bus_c[191:128] : bus_c[255:192];
  assign rsp_ok_o  = found_q;
  assign rsp_bus_o = bus_q;
  assign win_rsp_valid_o       = answer_q && !client_q;
  assign score_win_rsp_valid_o = answer_q && client_q;

  always_ff @(posedge clk_i) begin
    if (accept) begin
      client_q  <= client;
      queue_q   <= client ? score_win_queue_i[QUEUE_BITS-1:0] : win_queue_i[QUEUE_BITS-1:0];
      address_q <= client ? score_win_address_i : win_address_i;
      bytes_q   <= client ? score_win_bytes_i : win_bytes_i;
      write_q   <= client ? score_win_write_i : win_write_i;
      count_q   <= count_i;
    end
    group_at_q   <= group_q;
    group_last_q <= last_group;
    a_last_q     <= group_last_q;
    b_last_q     <= a_last_q;
    c_last_q     <= b_last_q;
    if (accept) found_q <= 1'b0;
    else if (c_valid_q && hit_c != '0 && !found_q) begin
      found_q <= 1'b1;
      bus_q   <= bus_first;
    end
  end

  // The state is LOOK until the answer is out, so that what stands in the steps is of one request.
  logic looking_q;  // groups are still to be read
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q       <= SWEEP;
      sweep_q       <= '0;
      turn_q        <= 1'b0;
      looking_q     <= 1'b0;
      group_q       <= '0;
      group_valid_q <= 1'b0;
      a_valid_q     <= 1'b0;
      b_valid_q     <= 1'b0;
      c_valid_q     <= 1'b0;
      answer_q      <= 1'b0;
    end else begin
      group_valid_q <= state_q == LOOK && looking_q;
      a_valid_q     <= group_valid_q;
      b_valid_q     <= a_valid_q;
      c_valid_q     <= b_valid_q;
      answer_q      <= c_valid_q && c_last_q;
      case (state_q)
        IDLE: begin
          group_q <= '0;
          if (config_start) state_q <= CONFIG;
          else if (accept) begin
            state_q   <= LOOK;
            looking_q <= 1'b1;
            turn_q    <= !client;
          end
        end
        LOOK: begin
          group_q <= group_q + 2'd1;
          if (last_group) looking_q <= 1'b0;
          if (answer_q) state_q <= IDLE;
        end
        SWEEP: begin
          sweep_q <= sweep_q + 1'b1;
          if (sweep_q == ENTRY_BITS'(ENTRIES - 1)) state_q <= IDLE;
        end
        default: state_q <= IDLE;
      endcase
    end
  end

  // ---- the configuration bus ----
  logic [WIDTH-1:0] config_entry_word;
  assign config_ready_o    = state_q == CONFIG;
  assign config_entry_word = words[config_window_i[1:0]*WIDTH+:WIDTH];
  always_comb begin
    case (config_word_i)
      3'd6: config_data_o = {30'd0, config_entry_word[193:192]};
      3'd7: config_data_o = '0;
      default: config_data_o = config_entry_word[config_word_i*32+:32];
    endcase
  end

endmodule

`default_nettype wire
