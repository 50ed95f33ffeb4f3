// How descriptors end: answers from the walker and from the engines become completions, errors are
// reported, and the counters of both go on. Puts penstock_complete and penstock_errors together.
`default_nettype none

module penstock_finish #(
    // Queues: 2 to 64.
    parameter int unsigned QUEUES = 64,
    // Records that the card holds for a queue.
    parameter int unsigned SLOTS = 32,
    // The rings' first count.
    parameter logic [31:0] START = 32'd0,
    // Of a record's place. Not to be set.
    parameter int unsigned PLACE_BITS = $clog2(QUEUES) + $clog2(SLOTS)
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    // The rings' counters stand still in this cycle; it is clear_queue_i that starts anew.
    input  wire logic                  hold_i,
    input  wire logic [5:0]            clear_queue_i,
    // The walker's answers.
    input  wire logic                  answer_valid_i,
    output      logic                  answer_ready_o,
    input  wire logic [5:0]            answer_queue_i,
    input  wire logic [4:0]            answer_status_i,
    input  wire logic [4:0]            answer_field_i,
    input  wire logic [63:0]           answer_detail_i,
    input  wire logic                  answer_reported_i,
    // Those of reduce, score and sync.
    input  wire logic                  done_valid_i,
    output      logic                  done_ready_o,
    input  wire logic [5:0]            done_queue_i,
    input  wire logic                  done_error_i,
    input  wire logic                  done_write_i,
    input  wire logic [63:0]           done_bus_i,
    input  wire logic                  sel_done_valid_i,
    output      logic                  sel_done_ready_o,
    input  wire logic [5:0]            sel_done_queue_i,
    input  wire logic [4:0]            sel_done_status_i,
    input  wire logic [4:0]            sel_done_field_i,
    input  wire logic [63:0]           sel_done_detail_i,
    input  wire logic                  sync_done_valid_i,
    output      logic                  sync_done_ready_o,
    input  wire logic [5:0]            sync_done_queue_i,
    input  wire logic [4:0]            sync_done_status_i,
    input  wire logic [4:0]            sync_done_field_i,
    input  wire logic [63:0]           sync_done_detail_i,
    // The queue whose completion is at hand, and its counter, cookie and context.
    output      logic [5:0]            queue_o,
    input  wire logic [63:0]           count_i,
    input  wire logic [63:0]           cookie_i,
    input  wire logic [63:0]           base_i,
    input  wire logic [4:0]            depth_i,
    output      logic                  done_o,
    output      logic                  acknowledge_o,
    output      logic [5:0]            acknowledge_queue_o,
    output      logic                  event_o,
    input  wire logic [5:0]            completed_queue_i,
    output      logic [31:0]           completed_o,
    // Errors of others, held until they were reported: a record that could not be read, a doorbell
    // out of range.
    input  wire logic                  fetch_error_valid_i,
    output      logic                  fetch_error_ready_o,
    input  wire logic [5:0]            fetch_error_queue_i,
    input  wire logic [31:0]           fetch_error_sequence_i,
    input  wire logic [63:0]           fetch_error_address_i,
    input  wire logic                  doorbell_error_valid_i,
    output      logic                  doorbell_error_ready_o,
    input  wire logic [5:0]            doorbell_error_queue_i,
    input  wire logic [31:0]           doorbell_error_count_i,
    // Half a record: the data is there in the cycle after read_o.
    output      logic                  read_o,
    output      logic [PLACE_BITS-1:0] read_place_o,
    output      logic                  read_half_o,
    input  wire logic [511:0]          read_data_i,
    output      logic                  stop_o,
    output      logic [5:0]            stop_queue_o,
    output      logic [7:0]            stop_code_o,
    output      logic                  error_valid_o,
    output      logic [7:0]            error_code_o,
    output      logic [5:0]            error_queue_o,
    output      logic [31:0]           error_sequence_o,
    output      logic [63:0]           error_address_o,
    output      logic [1023:0]         error_descriptor_o,
    // Writes (penstock_complete).
    output      logic                  aw_valid_o,
    input  wire logic                  aw_ready_i,
    output      logic [63:0]           aw_address_o,
    output      logic                  w_valid_o,
    input  wire logic                  w_ready_i,
    output      logic [511:0]          w_data_o,
    output      logic [63:0]           w_strobe_o,
    input  wire logic                  b_valid_i,
    output      logic                  b_ready_o,
    input  wire logic                  b_error_i,
    output      logic                  idle_o
);

  logic [3:0]  in_ready;
  logic [80:0] walk_in;
  logic        walk_in_valid;
  logic [1:0]  walk_in_count;
  logic [4:0]  reduce_status;
  logic [4:0]  reduce_field;
  logic        operand_error_valid;
  logic        operand_error_ready;
  logic [31:0] operand_error_sequence;
  logic [63:0] operand_error_address;
  logic        write_error_valid;
  logic        write_error_ready;
  logic [31:0] write_error_sequence;
  logic [63:0] write_error_address;
  logic        complete_idle;
  logic        errors_idle;

  // So that the walker goes on while a completion is written.
  penstock_fifo #(
      .WIDTH(81),
      .DEPTH(2)
  ) u_answers (
      .clk_i,
      .rst_ni,
      .in_valid_i (answer_valid_i),
      .in_ready_o (answer_ready_o),
      .in_data_i  ({answer_reported_i, answer_detail_i, answer_field_i, answer_status_i,
                    answer_queue_i}),
      .out_valid_o(walk_in_valid),
      .out_ready_i(in_ready[0]),
      .out_data_o (walk_in),
      .count_o    (walk_in_count)
  );

  assign reduce_status     = done_error_i ? 5'(penstock_pkg::IO_ERROR) : 5'(penstock_pkg::OK);
  assign reduce_field      = !done_error_i ? 5'(penstock_pkg::FIELD_NONE) :
                             done_write_i ? 5'(penstock_pkg::FIELD_DST) :
                                            5'(penstock_pkg::FIELD_SRC);
  assign done_ready_o      = in_ready[1];
  assign sel_done_ready_o  = in_ready[2];
  assign sync_done_ready_o = in_ready[3];

  penstock_complete #(
      .QUEUES(QUEUES),
      .START (START)
  ) u_complete (
      .clk_i,
      .rst_ni,
      .hold_i,
      .clear_queue_i,
      .in_valid_i              ({sync_done_valid_i, sel_done_valid_i, done_valid_i, walk_in_valid}),
      .in_ready_o              (in_ready),
      .in_i                    ({1'b0, sync_done_detail_i, sync_done_field_i, sync_done_status_i,
                                 sync_done_queue_i,
                                 1'b0, sel_done_detail_i, sel_done_field_i, sel_done_status_i,
                                 sel_done_queue_i,
                                 1'b0, done_error_i ? done_bus_i : 64'd0, reduce_field,
                                 reduce_status, done_queue_i,
                                 walk_in}),
      .queue_o,
      .count_i,
      .cookie_i,
      .base_i,
      .depth_i,
      .done_o,
      .acknowledge_o,
      .acknowledge_queue_o,
      .event_o,
      .completed_queue_i,
      .completed_o,
      .operand_error_valid_o   (operand_error_valid),
      .operand_error_ready_i   (operand_error_ready),
      .operand_error_sequence_o(operand_error_sequence),
      .operand_error_address_o (operand_error_address),
      .write_error_valid_o     (write_error_valid),
      .write_error_ready_i     (write_error_ready),
      .write_error_sequence_o  (write_error_sequence),
      .write_error_address_o   (write_error_address),
      .aw_valid_o,
      .aw_ready_i,
      .aw_address_o,
      .w_valid_o,
      .w_ready_i,
      .w_data_o,
      .w_strobe_o,
      .b_valid_i,
      .b_ready_o,
      .b_error_i,
      .idle_o                  (complete_idle)
  );

  penstock_errors #(
      .PLACE_BITS(PLACE_BITS),
      .SLOT_BITS ($clog2(SLOTS))
  ) u_errors (
      .clk_i,
      .rst_ni,
      .in_valid_i  ({operand_error_valid, doorbell_error_valid_i, write_error_valid,
                     fetch_error_valid_i}),
      .in_ready_o  ({operand_error_ready, doorbell_error_ready_o, write_error_ready,
                     fetch_error_ready_o}),
      .in_i        ({operand_error_address, operand_error_sequence, queue_o,
                     {32'd0, doorbell_error_count_i}, 32'd0, doorbell_error_queue_i,
                     write_error_address, write_error_sequence, acknowledge_queue_o,
                     fetch_error_address_i, fetch_error_sequence_i, fetch_error_queue_i}),
      .read_o,
      .place_o     (read_place_o),
      .read_half_o,
      .read_data_i,
      .stop_o,
      .stop_queue_o,
      .stop_code_o,
      .error_valid_o,
      .error_code_o,
      .error_queue_o,
      .error_sequence_o,
      .error_address_o,
      .error_descriptor_o,
      .idle_o      (errors_idle)
  );

  assign idle_o = complete_idle && errors_idle;

  /* verilator lint_off UNUSEDSIGNAL */
  logic unused;
  assign unused = &{1'b0, walk_in_count};
  /* verilator lint_on UNUSEDSIGNAL */

endmodule

`default_nettype wire
