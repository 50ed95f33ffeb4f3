// The best rows of a decision: makes a key of every feasible row's total, keeps the best eight of
// each lane, and merges them in the end. A group comes every cycle; where a part of its total comes
// later, it waits for it.
//
// merge_i, up to merged_o, takes 7 to 7 * best cycles.
`default_nettype none

module penstock_scan_best #(
    parameter int unsigned GROUP = 9,  // bits of a group's number
    parameter int unsigned KEY = 85
) (
    input wire logic clk_i,
    input wire logic rst_ni,
    input wire logic start_i,  // of a decision
    input wire logic [GROUP:0] groups_i,
    /* verilator lint_off UNUSEDSIGNAL */  // distances are below 2^20
    input wire logic [20:0] rows_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input wire logic [19:0] start_row_i,
    input wire logic [3:0] best_i,
    // A group.
    input wire logic put_i,
    input wire logic [7:0] put_feasible_i,
    input wire logic [8*64-1:0] put_totals_i,
    // What is added to the oldest group, if waits_i.
    input wire logic waits_i,
    input wire logic late_valid_i,
    input wire logic [8*30-1:0] late_i,
    output logic inserted_o,  // all groups are in the lists
    input wire logic merge_i,
    output logic merged_o,
    output logic [20:0] feasible_o,
    output logic [8*KEY-1:0] best_o  // {there, score with its sign turned, ~distance}, best first
);
  logic [GROUP:0] groups_out_q;
  logic key_valid_q, merge_next;
  logic [2:0] merge_lane_q, merge_count_q;
  assign inserted_o = groups_out_q == groups_i && !key_valid_q;
  assign merged_o = merge_i && merge_next && merge_lane_q == 3'd7;

  // Groups whose total lacks the balanced scores wait in order.
  logic [8+512-1:0] waiting[0:15];
  logic [3:0] put_q, get_q;
  logic [8+512-1:0] head;
  logic get;
  assign get = waits_i ? late_valid_i : put_q != get_q;
  assign head = waiting[get_q];
  logic [7:0] key_feasible_q;
  logic [8*64-1:0] key_score_q;
  logic [8*20-1:0] key_distance_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      put_q <= '0;
      get_q <= '0;
      key_valid_q <= 1'b0;
    end else begin
      if (put_i) put_q <= put_q + 4'd1;
      if (get) get_q <= get_q + 4'd1;
      key_valid_q <= get;
    end
    if (start_i) groups_out_q <= '0;
    else if (get) groups_out_q <= groups_out_q + (GROUP + 1)'(1);
    if (put_i) waiting[put_q] <= {put_feasible_i, put_totals_i};
    if (get) key_feasible_q <= head[512+:8];
  end
  for (genvar l = 0; l < 8; l++) begin : g_key
    logic [19:0] row;
    assign row = 20'({groups_out_q[GROUP-1:0], 3'(l)});
    always_ff @(posedge clk_i) begin
      if (get) begin
        key_score_q[l*64+:64] <= head[l*64+:64] +
            (waits_i ? 64'($signed(late_i[l*30+:30])) : '0);
        key_distance_q[l*20+:20] <=
            row >= start_row_i ? row - start_row_i : row + (rows_i[19:0] - start_row_i);
      end
    end
  end

  logic [8*8*KEY-1:0] lists;
  assign merge_next = lists[merge_lane_q*8*KEY+KEY-1] == 1'b0 ||
      4'(merge_count_q) + 4'd1 == best_i;
  always_ff @(posedge clk_i) begin
    if (!merge_i) begin
      merge_lane_q <= 3'd1;
      merge_count_q <= '0;
    end else begin
      merge_count_q <= merge_next ? '0 : merge_count_q + 3'd1;
      if (merge_next) merge_lane_q <= merge_lane_q + 3'd1;
    end
  end
  for (genvar l = 0; l < 8; l++) begin : g_list
    logic [KEY-1:0] key;
    logic insert;
    always_comb begin
      key = {1'b1, ~key_score_q[l*64+63], key_score_q[l*64+:63], ~key_distance_q[l*20+:20]};
      insert = key_valid_q && key_feasible_q[l];
      if (l == 0 && merge_i) begin
        key = lists[merge_lane_q*8*KEY+:KEY];
        insert = 1'b1;
      end
    end
    penstock_scan_list #(
        .KEY(KEY),
        .BEST(8)
    ) i_list (
        .clk_i,
        .clear_i(start_i),
        .insert_i(insert),
        .key_i(key),
        .shift_i(l != 0 && merge_i && merge_lane_q == 3'(l)),
        .list_o(lists[l*8*KEY+:8*KEY])
    );
  end
  assign best_o = lists[8*KEY-1:0];

  logic [3:0] feasible_now;
  always_comb begin
    feasible_now = '0;
    for (int unsigned i = 0; i < 8; i++)
      feasible_now = feasible_now + 4'(put_feasible_i[i]);
  end
  always_ff @(posedge clk_i) begin
    if (start_i) feasible_o <= '0;
    else if (put_i) feasible_o <= feasible_o + 21'(feasible_now);
  end
endmodule

`default_nettype wire
