// The best keys seen so far, best first: takes a key every cycle. A key is larger the better its
// row, never the same for two rows, and never 0, which is an empty entry.
`default_nettype none

module penstock_scan_list #(
    parameter int unsigned KEY = 85,  // bits
    parameter int unsigned BEST = 8  // entries
) (
    input wire logic clk_i,
    input wire logic clear_i,
    input wire logic insert_i,
    input wire logic [KEY-1:0] key_i,
    input wire logic shift_i,  // drops the first entry; not with insert_i
    output logic [BEST*KEY-1:0] list_o
);
  /* verilator no_inline_module */  // built once, not for each instance
  for (genvar i = 0; i < BEST; i++) begin : g_entry
    logic [KEY-1:0] key_q;
    logic better;
    assign better = key_i > key_q;
    if (i == 0) begin : g_first
      always_ff @(posedge clk_i) begin
        if (clear_i) key_q <= '0;
        else if (insert_i && g_entry[BEST-1].better) begin
          if (better) key_q <= key_i;
        end else if (shift_i) key_q <= g_entry[1].key_q;
      end
    end else begin : g_other
      always_ff @(posedge clk_i) begin
        if (clear_i) key_q <= '0;
        else if (insert_i && g_entry[BEST-1].better) begin
          if (better) key_q <= g_entry[i-1].better ? g_entry[i-1].key_q : key_i;
        end else if (shift_i) begin
          if (i == BEST - 1) key_q <= '0;
          else key_q <= g_entry[(i+1)%BEST].key_q;
        end
      end
    end
    assign list_o[i*KEY+:KEY] = key_q;
  end
endmodule

`default_nettype wire
