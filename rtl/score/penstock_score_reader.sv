// Reads of the scoring engine: what was asked for, in order, as 64-byte beats that begin at the
// address asked for. Addresses and lengths are multiples of 8 bytes; the last beat of a request may
// hold less than 64 bytes, what follows in it is garbage.
//
// Bursts are up to 64 beats, do not cross 4 KiB, and go out only when their data has room. After a
// bus error data goes on as garbage, and error_o stays with the address of the burst until
// clear_i. stop_i drops the requests that were taken: no more bursts go out, what is under way is
// swallowed; idle_o then says when it is over.
`default_nettype none

module penstock_score_reader #(
    parameter int unsigned DEPTH = 128,  // beats of room, a power of two from 64 on
    parameter int unsigned DATA = 512  // bits of a beat; smaller only in proofs
) (
    input wire logic clk_i,
    input wire logic rst_ni,
    input wire logic request_valid_i,
    output logic request_ready_o,
    input wire logic [63:0] request_address_i,
    input wire logic [31:0] request_bytes_i,  // at least 8
    input wire logic stop_i,
    output logic idle_o,
    output logic data_valid_o,
    input wire logic data_ready_i,
    output logic [DATA-1:0] data_o,
    input wire logic clear_i,
    output logic error_o,
    output logic [63:0] error_address_o,

    output logic m_axi_arvalid,
    input wire logic m_axi_arready,
    output logic [63:0] m_axi_araddr,
    output logic [3:0] m_axi_arid,
    output logic [7:0] m_axi_arlen,
    input wire logic m_axi_rvalid,
    output logic m_axi_rready,
    input wire logic [DATA-1:0] m_axi_rdata,
    input wire logic [3:0] m_axi_rid,
    input wire logic [1:0] m_axi_rresp,
    input wire logic m_axi_rlast
);
  localparam int unsigned COUNT = $clog2(DEPTH) + 1;
  localparam int unsigned INDEX = $clog2(DEPTH);

  // ---- bursts of the request in work ----

  logic stopping_q, asking_q;
  logic [57:0] line_q;  // the next line's address, in lines
  logic [26:0] lines_q;  // lines that no burst has asked for yet
  logic [6:0] to_page, burst;
  logic burst_fits, offer_q;
  logic [63:0] offer_address_q;
  logic [7:0] offer_length_q;
  logic [COUNT-1:0] room_q;  // beats that neither wait nor are under way
  assign to_page = 7'd64 - {1'b0, line_q[5:0]};
  assign burst = lines_q < {20'b0, to_page} ? lines_q[6:0] : to_page;
  assign m_axi_arvalid = offer_q;
  assign m_axi_araddr = offer_address_q;
  assign m_axi_arid = '0;
  assign m_axi_arlen = offer_length_q;

  // Requests whose beats are still to come: offset and lines, in a ring of four.
  logic [2+27+27:0] parts[0:3];
  logic [2:0] parts_put_q, parts_get_q;
  logic parts_full, parts_empty, take, part_done;
  logic [31:0] end_bytes;
  logic [26:0] lines, beats;
  assign end_bytes = request_bytes_i + {26'b0, request_address_i[5:0]} + 32'd63;
  assign lines = {1'b0, end_bytes[31:6]};
  assign beats = 27'((33'(request_bytes_i) + 33'd63) >> 6);
  assign parts_full = parts_put_q == {~parts_get_q[2], parts_get_q[1:0]};
  assign parts_empty = parts_put_q == parts_get_q;
  assign request_ready_o = !asking_q && !parts_full && !stopping_q;
  assign take = request_valid_i && request_ready_o;

  // Addresses of the bursts under way, oldest first; 16 of them at most.
  logic [63:0] bursts[0:15];
  logic [4:0] bursts_put_q, bursts_get_q;
  logic bursts_full, bursts_empty;
  assign bursts_full = bursts_put_q == {~bursts_get_q[4], bursts_get_q[3:0]};
  assign bursts_empty = bursts_put_q == bursts_get_q;
  assign burst_fits = asking_q && !stopping_q && !stop_i && !bursts_full &&
      room_q >= COUNT'(burst) && (!offer_q || m_axi_arready);

  logic pop, push;
  logic [2*DATA-1:0] both;  // the line before and the next one, from the beat's begin on
  /* verilator lint_off UNUSEDSIGNAL */
  logic unused;
  /* verilator lint_on UNUSEDSIGNAL */
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      asking_q <= 1'b0;
      offer_q <= 1'b0;
      stopping_q <= 1'b0;
      parts_put_q <= '0;
      bursts_put_q <= '0;
      room_q <= COUNT'(DEPTH);
    end else begin
      if (take) begin
        asking_q <= 1'b1;
        parts_put_q <= parts_put_q + 3'd1;
      end
      if (m_axi_arready) offer_q <= 1'b0;
      if (burst_fits) begin
        offer_q <= 1'b1;
        bursts_put_q <= bursts_put_q + 5'd1;
        if (lines_q == {20'b0, burst}) asking_q <= 1'b0;
      end
      room_q <= room_q + COUNT'(pop) - (burst_fits ? COUNT'(burst) : '0);
      if (stop_i) begin
        stopping_q <= 1'b1;
        asking_q <= 1'b0;
      end else if (stopping_q && !offer_q && bursts_empty && !pop && room_q == COUNT'(DEPTH)) begin
        stopping_q <= 1'b0;
        parts_put_q <= '0;
      end
    end
    if (take) begin
      parts[parts_put_q[1:0]] <= {request_address_i[5:3], lines, beats};
      line_q <= request_address_i[63:6];
      lines_q <= lines;
    end
    if (burst_fits) begin
      offer_address_q <= {line_q, 6'b0};
      offer_length_q <= {1'b0, burst} - 8'd1;
      bursts[bursts_put_q[3:0]] <= {line_q, 6'b0};
      line_q <= line_q + 58'(burst);
      lines_q <= lines_q - 27'(burst);
    end
  end

  // ---- lines that came ----

  logic [DATA-1:0] memory[0:DEPTH-1];
  logic [INDEX-1:0] put_q, get_q;
  logic [COUNT-1:0] held_q;  // in the memory
  logic head_valid_q, fetch;
  logic [DATA-1:0] head_q;
  assign unused = ^{m_axi_rid, m_axi_rresp[0], end_bytes[5:0], both[2*DATA-1:DATA]};
  assign m_axi_rready = !bursts_empty;
  assign push = m_axi_rvalid && m_axi_rready;
  assign fetch = held_q != '0 && (!head_valid_q || pop);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      put_q <= '0;
      get_q <= '0;
      held_q <= '0;
      head_valid_q <= 1'b0;
      bursts_get_q <= '0;
      error_o <= 1'b0;
    end else begin
      if (push) put_q <= put_q + INDEX'(1);
      if (push && m_axi_rlast) bursts_get_q <= bursts_get_q + 5'd1;
      if (fetch) get_q <= get_q + INDEX'(1);
      held_q <= held_q + COUNT'(push) - COUNT'(fetch);
      if (fetch) head_valid_q <= 1'b1;
      else if (pop) head_valid_q <= 1'b0;
      if (clear_i) error_o <= 1'b0;
      else if (push && m_axi_rresp[1]) error_o <= 1'b1;
    end
    if (push) memory[put_q] <= m_axi_rdata;
    if (fetch) head_q <= memory[get_q];
    if (push && m_axi_rresp[1] && !error_o) error_address_o <= bursts[bursts_get_q[3:0]];
  end

  // ---- beats ----

  // A beat is made of the line before and the next one, which it may not need at the end.
  logic [2:0] offset;
  logic [26:0] part_lines, part_beats, lines_done_q, beats_done_q;
  logic primed_q, primes, needs_line, makes, out_free, out_valid_q;
  logic [DATA-1:0] before_q, out_q;
  assign {offset, part_lines, part_beats} = parts[parts_get_q[1:0]];
  assign primes = offset != '0 && !primed_q;
  assign needs_line = lines_done_q != part_lines;
  assign out_free = !out_valid_q || data_ready_i;
  assign makes = !parts_empty && !stopping_q && !primes && out_free &&
      (head_valid_q || !needs_line);
  assign part_done = makes && beats_done_q + 27'd1 == part_beats;
  assign pop = stopping_q ? head_valid_q :
      head_valid_q && !parts_empty && (primes || (makes && needs_line));
  assign both = {head_q, before_q} >> {offset, 6'b0};
  always_ff @(posedge clk_i) begin
    if (!rst_ni || stopping_q || stop_i) begin
      parts_get_q <= '0;
      lines_done_q <= '0;
      beats_done_q <= '0;
      primed_q <= 1'b0;
      out_valid_q <= 1'b0;
      if (rst_ni && stop_i && !stopping_q) parts_get_q <= parts_put_q;
      if (rst_ni && stopping_q) parts_get_q <= '0;
    end else begin
      if (data_ready_i) out_valid_q <= 1'b0;
      if (makes) out_valid_q <= 1'b1;
      if (pop) lines_done_q <= lines_done_q + 27'd1;
      if (primes && pop) primed_q <= 1'b1;
      if (makes) beats_done_q <= beats_done_q + 27'd1;
      if (part_done) begin
        parts_get_q <= parts_get_q + 3'd1;
        lines_done_q <= '0;
        beats_done_q <= '0;
        primed_q <= 1'b0;
      end
    end
    if (pop) before_q <= head_q;
    if (makes) out_q <= offset == '0 ? head_q : both[DATA-1:0];
  end
  assign data_valid_o = out_valid_q;
  assign data_o = out_q;
  assign idle_o = !asking_q && !offer_q && bursts_empty && parts_empty && !out_valid_q &&
      !stopping_q && room_q == COUNT'(DEPTH);

`ifdef FORMAL
  // Lines are asked for, come, and stand in the memory or at its head; with the free places they
  // are always DEPTH. Memory gives what was asked for and no more.
  logic f_reset_q = 1'b0;
  logic [COUNT-1:0] f_due_q;  // of bursts that were taken
  logic [COUNT-1:0] f_offered;
  assign f_offered = offer_q ? COUNT'(offer_length_q) + COUNT'(1) : '0;
  always_ff @(posedge clk_i) begin
    f_reset_q <= 1'b1;
    if (!f_reset_q) assume (!rst_ni);
    assume (!m_axi_rvalid || f_due_q != '0);
    assume (request_bytes_i >= 32'd8 && request_bytes_i < 32'h8000_0000);
    if (!rst_ni) f_due_q <= '0;
    else f_due_q <= f_due_q + (m_axi_arvalid && m_axi_arready ? f_offered : '0) - COUNT'(push);
    if (f_reset_q && rst_ni) begin
      assert (offer_length_q < 8'd64 || !offer_q);
      assert (room_q <= COUNT'(DEPTH) && f_due_q <= COUNT'(DEPTH) && held_q <= COUNT'(DEPTH));
      assert ((COUNT + 2)'(room_q) + (COUNT + 2)'(f_offered) + (COUNT + 2)'(f_due_q) +
              (COUNT + 2)'(held_q) + (COUNT + 2)'(head_valid_q) == (COUNT + 2)'(DEPTH));
      assert (!push || held_q != COUNT'(DEPTH));
      assert (!asking_q || lines_q != '0);
      if ($past(rst_ni) && $past(m_axi_arvalid) && !$past(m_axi_arready))
        assert (m_axi_arvalid && $stable(m_axi_araddr) && $stable(m_axi_arlen));
      if (m_axi_arvalid)
        assert ({1'b0, m_axi_araddr[11:6]} + {1'b0, m_axi_arlen[5:0]} <= 7'd63);
      cover (m_axi_arvalid && m_axi_arlen == 8'd63);
    end
  end
`endif
endmodule

`default_nettype wire
