// The small blocks of common side by side, for their unit test.
`default_nettype none

module common_harness (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    // fifo: three words of 40 bits
    input  wire logic        fifo_in_valid_i,
    output      logic        fifo_in_ready_o,
    input  wire logic [39:0] fifo_in_data_i,
    output      logic        fifo_out_valid_o,
    input  wire logic        fifo_out_ready_i,
    output      logic [39:0] fifo_out_data_o,
    output      logic [1:0]  fifo_count_o,
    // stream register
    input  wire logic        stream_in_valid_i,
    output      logic        stream_in_ready_o,
    input  wire logic [39:0] stream_in_data_i,
    output      logic        stream_out_valid_o,
    input  wire logic        stream_out_ready_i,
    output      logic [39:0] stream_out_data_o,
    // arbiter over five
    input  wire logic [4:0]  arbiter_request_i,
    output      logic        arbiter_valid_o,
    input  wire logic        arbiter_ready_i,
    output      logic [4:0]  arbiter_grant_o,
    output      logic [2:0]  arbiter_index_o,
    // credit: 20
    input  wire logic [4:0]  credit_amount_i,
    output      logic        credit_enough_o,
    input  wire logic        credit_take_i,
    input  wire logic [4:0]  credit_give_i,
    output      logic [4:0]  credit_free_o
);

  penstock_fifo #(
      .WIDTH(40),
      .DEPTH(3)
  ) i_fifo (
      .clk_i,
      .rst_ni,
      .in_valid_i (fifo_in_valid_i),
      .in_ready_o (fifo_in_ready_o),
      .in_data_i  (fifo_in_data_i),
      .out_valid_o(fifo_out_valid_o),
      .out_ready_i(fifo_out_ready_i),
      .out_data_o (fifo_out_data_o),
      .count_o    (fifo_count_o)
  );

  penstock_stream_register #(
      .WIDTH(40)
  ) i_stream_register (
      .clk_i,
      .rst_ni,
      .in_valid_i (stream_in_valid_i),
      .in_ready_o (stream_in_ready_o),
      .in_data_i  (stream_in_data_i),
      .out_valid_o(stream_out_valid_o),
      .out_ready_i(stream_out_ready_i),
      .out_data_o (stream_out_data_o)
  );

  penstock_arbiter #(
      .N(5)
  ) i_arbiter (
      .clk_i,
      .rst_ni,
      .request_i(arbiter_request_i),
      .valid_o  (arbiter_valid_o),
      .ready_i  (arbiter_ready_i),
      .grant_o  (arbiter_grant_o),
      .index_o  (arbiter_index_o)
  );

  penstock_credit #(
      .CREDITS(20)
  ) i_credit (
      .clk_i,
      .rst_ni,
      .amount_i(credit_amount_i),
      .enough_o(credit_enough_o),
      .take_i  (credit_take_i),
      .give_i  (credit_give_i),
      .free_o  (credit_free_o)
  );

endmodule

`default_nettype wire
