// Reads descriptors from the rings, before they are needed, and keeps them until their completion
// stands in memory.
//
// Queues take turns, a record each. A record is two beats: one burst, or two of one beat where it
// lies across 4 KiB. Up to OUTSTANDING records are on their way; each has its place among the
// records before it is asked for, so that data is always taken. A record whose read failed arrives,
// too, marked as bad and with a cookie of 0.
`default_nettype none

module penstock_fetch #(
    // Queues: 1 to 64.
    parameter int unsigned QUEUES = 64,
    // Records that the card holds for a queue: a power of two.
    parameter int unsigned SLOTS = 32,
    // Records on their way: 1 or more.
    parameter int unsigned OUTSTANDING = 16,
    // Of a record's place. Not to be set.
    parameter int unsigned PLACE_BITS = $clog2(QUEUES) + $clog2(SLOTS)
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    // The rings' counters (penstock_ring) stand still in this cycle.
    input  wire logic                  hold_i,
    // Queues that may have something to fetch.
    input  wire logic [QUEUES-1:0]     fetchable_i,
    output      logic [5:0]            issue_queue_o,
    input  wire logic [31:0]           issue_count_i,
    input  wire logic                  issue_more_i,
    output      logic                  issue_o,
    output      logic                  issue_none_o,
    output      logic                  arrive_o,
    output      logic [5:0]            arrive_queue_o,
    // The context of issue_queue_o.
    input  wire logic [63:0]           ring_i,
    input  wire logic [4:0]            depth_i,
    // Requests for reads of 1 or 2 beats.
    output      logic                  ar_valid_o,
    input  wire logic                  ar_ready_i,
    output      logic [63:0]           ar_address_o,
    output      logic                  ar_two_o,
    // Their data, in the order of the requests.
    input  wire logic                  r_valid_i,
    output      logic                  r_ready_o,
    input  wire logic [511:0]          r_data_i,
    input  wire logic                  r_error_i,
    // Half a record: the data is there in the cycle after read_i.
    input  wire logic                  read_i,
    input  wire logic [PLACE_BITS-1:0] read_place_i,
    input  wire logic                  read_half_i,
    output      logic [511:0]          read_data_o,
    // Whether a record is bad.
    input  wire logic [PLACE_BITS-1:0] bad_place_i,
    output      logic                  bad_o,
    // A record's cookie, in the next cycle.
    input  wire logic [PLACE_BITS-1:0] cookie_place_i,
    output      logic [63:0]           cookie_o,
    output      logic                  idle_o
);

  localparam int unsigned QUEUE_BITS = $clog2(QUEUES);
  localparam int unsigned SLOT_BITS = $clog2(SLOTS);
  localparam int unsigned FLIGHT_BITS = $clog2(OUTSTANDING + 1);

  localparam logic [1:0] PICK = 2'd0;
  localparam logic [1:0] LOOK = 2'd1;
  localparam logic [1:0] SEND = 2'd2;
  localparam logic [1:0] SEND_REST = 2'd3;  // the second beat, behind 4 KiB
  logic [1:0] state_q;

  // ---- which queue ----
  logic                  picked;
  logic [QUEUE_BITS-1:0] pick;
  logic [QUEUES-1:0]     grant_unused;
  penstock_arbiter #(
      .N(QUEUES)
  ) u_arbiter (
      .clk_i,
      .rst_ni,
      .request_i(state_q == PICK ? fetchable_i : '0),
      .valid_o  (picked),
      .ready_i  (1'b1),
      .grant_o  (grant_unused),
      .index_o  (pick)
  );

  // ---- requests ----
  logic [QUEUE_BITS-1:0]  queue_q;
  logic [63:0]            address_q;
  logic                   across;
  logic [63:0]            offset;
  logic                   room;
  logic [FLIGHT_BITS-1:0] in_flight;
  logic [PLACE_BITS-1:0]  arriving;
  logic                   arriving_valid;
  logic                   landed;

  assign issue_queue_o = 6'(queue_q);
  assign issue_o       = state_q == LOOK && issue_more_i && fetchable_i[queue_q] && room &&
                         !hold_i;
  assign issue_none_o  = state_q == LOOK && !issue_more_i && !hold_i;
  assign offset        = {32'd0, issue_count_i} & ((64'd1 << depth_i) - 64'd1);
  assign across        = address_q[11:6] == 6'h3f;
  assign ar_valid_o    = state_q == SEND || state_q == SEND_REST;
  assign ar_address_o  = address_q;
  assign ar_two_o      = state_q == SEND && !across;

  always_ff @(posedge clk_i) begin
    if (picked) queue_q <= pick;
    if (issue_o) address_q <= ring_i + (offset << 7);
    else if (state_q == SEND && ar_ready_i) address_q <= address_q + 64'd64;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= PICK;
    else begin
      case (state_q)
        PICK: if (picked) state_q <= LOOK;
        // A queue that was stopped meanwhile is left.
        LOOK: begin
          if (issue_o) state_q <= SEND;
          else if (issue_none_o || !fetchable_i[queue_q]) state_q <= PICK;
        end
        SEND: if (ar_ready_i) state_q <= across ? SEND_REST : PICK;
        default: if (ar_ready_i) state_q <= PICK;
      endcase
    end
  end

  // ---- records on their way ----
  penstock_fifo #(
      .WIDTH(PLACE_BITS),
      .DEPTH(OUTSTANDING)
  ) u_flight (
      .clk_i,
      .rst_ni,
      .in_valid_i (issue_o),
      .in_ready_o (room),
      .in_data_i  ({queue_q, issue_count_i[SLOT_BITS-1:0]}),
      .out_valid_o(arriving_valid),
      .out_ready_i(landed),
      .out_data_o (arriving),
      .count_o    (in_flight)
  );

  logic        second_q;
  logic        failed_q;
  logic [63:0] cookie_q;
  logic        beat;
  logic        failed;
  assign r_ready_o      = !hold_i;
  assign beat           = r_valid_i && r_ready_o;
  assign landed         = beat && second_q;
  assign failed         = r_error_i || (second_q && failed_q);
  assign arrive_o       = landed;
  assign arrive_queue_o = 6'(arriving[PLACE_BITS-1:SLOT_BITS]);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) second_q <= 1'b0;
    else if (beat) second_q <= !second_q;
  end
  always_ff @(posedge clk_i) begin
    if (beat && !second_q) begin
      failed_q <= r_error_i;
      cookie_q <= r_data_i[penstock_pkg::AT_DESCRIPTOR_COOKIE*8+:64];
    end
  end

  // ---- records ----
  (* ram_style = "ultra" *) logic [511:0] records_m[0:QUEUES*SLOTS*2-1];
  logic [63:0] cookies_m[0:QUEUES*SLOTS-1];
  logic        bad_m[0:QUEUES*SLOTS-1];

  always_ff @(posedge clk_i) begin
    if (beat) records_m[{arriving, second_q}] <= r_data_i;
    if (read_i) read_data_o <= records_m[{read_place_i, read_half_i}];
  end
  always_ff @(posedge clk_i) begin
    if (landed) begin
      cookies_m[arriving] <= failed ? '0 : cookie_q;
      bad_m[arriving]     <= failed;
    end
  end
  assign bad_o    = bad_m[bad_place_i];
  always_ff @(posedge clk_i) cookie_o <= cookies_m[cookie_place_i];

  assign idle_o = state_q == PICK && fetchable_i == '0 && in_flight == '0;

  /* verilator lint_off UNUSEDSIGNAL */
  logic unused;
  assign unused = &{1'b0, grant_unused, arriving_valid};
  /* verilator lint_on UNUSEDSIGNAL */

endmodule

`default_nettype wire
