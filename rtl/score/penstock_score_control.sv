// The scoring engine's control: a job from its acceptance to its completion. Which of the other
// blocks may read when, what is refused and how, and the pipe of tasks: while one is scanned and
// committed the next is fetched, checked and prepared.
`default_nettype none

module penstock_score_control #(
    parameter int unsigned ROWS = 131072,
    parameter int unsigned RESOURCES = 8,
    parameter int unsigned FREE = 8
) (
    input wire logic clk_i,
    input wire logic rst_ni,

    // Jobs.
    input wire logic sel_valid_i,
    output logic sel_ready_o,
    input wire logic [5:0] sel_queue_i,
    input wire logic sel_commit_i,
    input wire logic [20:0] sel_count_i,
    input wire logic [63:0] sel_table_i,
    input wire logic [63:0] sel_program_i,
    input wire logic [63:0] sel_tasks_i,
    input wire logic [63:0] sel_results_i,
    output logic sel_done_valid_o,
    input wire logic sel_done_ready_i,
    output logic [5:0] sel_done_queue_o,
    output logic [4:0] sel_done_status_o,
    output logic [4:0] sel_done_field_o,
    output logic [63:0] sel_done_detail_o,

    // Windows of the job's queue: one request at a time.
    output logic win_valid_o,
    input wire logic win_ready_i,
    output logic [5:0] win_queue_o,
    output logic [63:0] win_address_o,
    output logic [63:0] win_bytes_o,
    output logic win_write_o,
    input wire logic win_rsp_valid_i,
    input wire logic win_rsp_ok_i,
    input wire logic [63:0] win_rsp_bus_i,

    input wire logic sel_forget_i,
    output logic idle_o,
    output logic decision_o,  // pulse: a task was decided

    // Of the other blocks, by the names that they give.
    input wire logic request_ready_i,
    input wire logic reader_idle_i,
    input wire logic read_error_i,
    input wire logic [63:0] read_error_address_i,
    input wire logic data_valid_i,
    input wire logic put_ready_i,
    input wire logic writer_idle_i,
    input wire logic write_error_i,
    input wire logic write_error_tag_i,
    input wire logic [63:0] write_error_address_i,
    input wire logic header_done_i,
    input wire logic [4:0] header_status_i,
    input wire logic [63:0] table_bytes_i,
    input wire logic [20:0] capacity_i,
    input wire logic [20:0] rows_i,
    input wire logic [4:0] n_resources_i,
    input wire logic [12:0] n_bits_i,
    input wire logic [8:0] n_free_i,
    input wire logic [63:0] generation_i,
    input wire logic program_done_i,
    input wire logic [4:0] program_status_i,
    input wire logic [6:0] program_detail_i,
    input wire logic program_request_i,
    input wire logic [63:0] program_request_address_i,
    input wire logic [31:0] program_request_bytes_i,
    input wire logic program_data_ready_i,
    input wire logic task_checked_i,
    input wire logic task_invalid_i,
    input wire logic task_unsupported_i,
    input wire logic task_prepared_i,
    input wire logic miss_i,
    input wire logic loaded_i,
    input wire logic load_request_i,
    input wire logic [63:0] load_request_address_i,
    input wire logic [31:0] load_request_bytes_i,
    input wire logic load_data_ready_i,
    input wire logic scan_done_i,
    input wire logic commit_ready_i,
    input wire logic applied_i,
    input wire logic committed_i,
    input wire logic commit_put_valid_i,
    input wire logic [57:0] commit_put_line_i,
    input wire logic [63:0] commit_put_strobe_i,
    input wire logic [511:0] commit_put_data_i,
    input wire logic commit_put_tag_i,
    // To them.
    output logic request_valid_o,
    output logic [63:0] request_address_o,
    output logic [31:0] request_bytes_o,
    output logic data_ready_o,
    output logic read_stop_o,
    output logic errors_clear_o,
    output logic put_valid_o,
    output logic [57:0] put_line_o,
    output logic [63:0] put_strobe_o,
    output logic [511:0] put_data_o,
    output logic put_tag_o,
    output logic header_start_o,
    output logic header_turn_o,
    output logic program_start_o,
    output logic program_turn_o,
    output logic [63:0] program_bus_o,
    output logic task_begin_o,
    output logic task_valid_o,
    output logic task_prepare_o,
    output logic task_take_o,
    output logic run_turn_o,
    output logic load_table_o,
    output logic load_column_o,
    output logic scan_start_o,
    output logic commit_start_o,
    output logic commit_o,
    output logic [63:0] table_bus_o,
    output logic [63:0] result_address_o
);
  typedef enum logic [4:0] {
    IDLE,
    HEADER_WINDOW,
    HEADER,
    TABLE_READ_WINDOW,
    TABLE_WRITE_WINDOW,
    PROGRAM_WINDOW,
    PROGRAM,
    TASKS_WINDOW,
    RESULTS_WINDOW,
    OVERLAP,
    LOOK,  // at all tasks
    LOAD,
    RUN,
    STOP,  // reads under way are swallowed
    GENERATION,
    FLUSH,
    DONE
  } state_e;
  state_e state_q;

  // ---- the job ----

  logic [5:0] queue_q;
  logic [20:0] count_q;
  logic [63:0] table_q, program_q, tasks_q, results_q;
  logic [63:0] tasks_bus_q, results_bus_q;
  assign sel_ready_o = state_q == IDLE;
  assign idle_o = state_q == IDLE;
  assign sel_done_valid_o = state_q == DONE;
  assign sel_done_queue_o = queue_q;

  // ---- windows: a state that wants one offers it and waits ----

  logic window_asked_q, window_done, in_window;
  assign in_window = state_q == HEADER_WINDOW || state_q == TABLE_READ_WINDOW ||
      state_q == TABLE_WRITE_WINDOW || state_q == PROGRAM_WINDOW || state_q == TASKS_WINDOW ||
      state_q == RESULTS_WINDOW;
  assign win_valid_o = in_window && !window_asked_q;
  assign win_queue_o = queue_q;
  assign window_done = in_window && window_asked_q && win_rsp_valid_i;
  always_comb begin
    win_address_o = table_q;
    win_bytes_o = table_bytes_i;
    win_write_o = 1'b0;
    case (state_q)
      HEADER_WINDOW: win_bytes_o = 64'(penstock_pkg::SIZE_NODE_TABLE);
      TABLE_WRITE_WINDOW: win_write_o = 1'b1;
      PROGRAM_WINDOW: begin
        win_address_o = program_q;
        win_bytes_o = 64'(penstock_pkg::SIZE_PROGRAM);
      end
      TASKS_WINDOW: begin
        win_address_o = tasks_q;
        win_bytes_o = task_bytes;
      end
      RESULTS_WINDOW: begin
        win_address_o = results_q;
        win_bytes_o = result_bytes;
        win_write_o = 1'b1;
      end
      default: ;
    endcase
  end
  logic [63:0] task_bytes, result_bytes;
  assign task_bytes = {33'b0, count_q, 10'b0};
  assign result_bytes = {36'b0, count_q, 7'b0} + {38'b0, count_q, 5'b0};

  // Results overlap the table, the program or the tasks.
  logic overlaps;
  assign overlaps =
      (results_bus_q < table_bus_o + table_bytes_i && table_bus_o < results_bus_q + result_bytes) ||
      (results_bus_q < program_bus_o + 64'(penstock_pkg::SIZE_PROGRAM) &&
       program_bus_o < results_bus_q + result_bytes) ||
      (results_bus_q < tasks_bus_q + task_bytes && tasks_bus_q < results_bus_q + result_bytes);

  // ---- what the banks hold ----

  logic held_q, holds;
  logic [63:0] held_address_q, held_generation_q;
  logic [20:0] held_rows_q, held_capacity_q;
  logic [4:0] held_resources_q;
  logic [12:0] held_bits_q;
  logic [8:0] held_free_q;
  assign holds = held_q && held_address_q == table_bus_o && held_generation_q == generation_i &&
      held_rows_q == rows_i && held_capacity_q == capacity_i && held_resources_q == n_resources_i &&
      held_bits_q == n_bits_i && held_free_q == n_free_i;
  logic beyond;  // larger than the banks
  assign beyond = rows_i > 21'(ROWS) || n_resources_i > 5'(RESOURCES) || n_free_i > 9'(FREE);

  // ---- tasks: looked at one after another, then fetched again when their turn comes ----

  typedef enum logic [2:0] {
    NONE,  // nothing to fetch, or the one that was fetched is ready
    ASK,
    BEATS,
    PREPARE,
    MISS,
    BAD
  } fetch_e;
  fetch_e fetch_q;
  logic [20:0] looked_q, fetched_q, placed_q;  // tasks
  logic [63:0] fetch_address_q;
  logic asked_q, generation_written_q, committed_any_q;
  logic runs_q;  // a task is being scanned or committed_i
  logic forget_q;
  assign header_start_o = state_q == HEADER_WINDOW;
  assign program_start_o = state_q == PROGRAM_WINDOW && window_done && win_rsp_ok_i;
  assign load_table_o = state_q == LOAD && !asked_q && !holds;
  assign header_turn_o = state_q == HEADER;
  assign program_turn_o = state_q == PROGRAM;
  assign run_turn_o = state_q == RUN;
  assign task_valid_o = data_valid_i && (state_q == LOOK || (state_q == RUN && fetch_q == BEATS));
  assign task_begin_o = state_q == OVERLAP || (state_q == RUN && fetch_q == ASK) ||
      (state_q == LOOK && task_checked_i && looked_q + 21'd1 != count_q);
  assign task_prepare_o = state_q == RUN && fetch_q == PREPARE && !asked_q;
  assign load_column_o = state_q == RUN && fetch_q == MISS && !asked_q && writer_idle_i &&
      commit_ready_i && !read_error_i;
  assign read_stop_o = state_q == LOOK && task_checked_i &&
      (task_invalid_i || task_unsupported_i || read_error_i) && looked_q + 21'd1 != count_q;
  assign errors_clear_o = state_q == IDLE;

  always_comb begin
    request_valid_o = 1'b0;
    request_address_o = table_bus_o;
    request_bytes_o = 32'd192;
    data_ready_o = 1'b1;
    case (state_q)
      HEADER: request_valid_o = !asked_q;
      PROGRAM: begin
        request_valid_o = program_request_i;
        request_address_o = program_request_address_i;
        request_bytes_o = program_request_bytes_i;
        data_ready_o = program_data_ready_i;
      end
      LOOK: begin
        request_valid_o = !asked_q;
        request_address_o = tasks_bus_q;
        request_bytes_o = task_bytes[31:0];
        // A cycle between tasks, in which the verdict stands.
        data_ready_o = !task_checked_i;
      end
      LOAD: begin
        request_valid_o = load_request_i;
        request_address_o = load_request_address_i;
        request_bytes_o = load_request_bytes_i;
        data_ready_o = load_data_ready_i;
      end
      RUN: begin
        if (fetch_q == MISS) begin
          request_valid_o = load_request_i;
          request_address_o = load_request_address_i;
          request_bytes_o = load_request_bytes_i;
          data_ready_o = load_data_ready_i;
        end else begin
          request_valid_o = fetch_q == ASK;
          request_address_o = fetch_address_q;
          request_bytes_o = 32'(penstock_pkg::SIZE_TASK);
        end
      end
      default: ;
    endcase
  end

  // A task that is ready goes to work when the one before is in the banks.
  logic ready_next, fetch_more;
  assign ready_next = state_q == RUN && task_prepared_i && fetch_q == NONE && !runs_q &&
      fetched_q != placed_q && !read_error_i;
  assign task_take_o = ready_next;
  assign fetch_more = fetch_q == NONE && fetched_q == placed_q + {20'b0, runs_q} &&
      fetched_q != count_q && !read_error_i && !ready_next;

  logic started_q, scanned_q;
  assign scan_start_o = started_q;
  assign commit_start_o = scanned_q;

  assign put_valid_o = commit_put_valid_i || (state_q == GENERATION && !generation_written_q);
  always_comb begin
    put_line_o = commit_put_line_i;
    put_strobe_o = commit_put_strobe_i;
    put_data_o = commit_put_data_i;
    put_tag_o = commit_put_tag_i;
    if (state_q == GENERATION) begin
      put_line_o = table_bus_o[63:6] + 58'(penstock_pkg::AT_NODE_TABLE_GENERATION / 64);
      put_strobe_o = 64'hff;
      put_data_o = {448'b0, held_generation_q};
      put_tag_o = 1'b0;
    end
  end

  logic waits_scan_q;
  always_ff @(posedge clk_i) begin
    started_q <= 1'b0;
    scanned_q <= 1'b0;
    decision_o <= 1'b0;
    if (!rst_ni) begin
      state_q <= IDLE;
      fetch_q <= NONE;
      held_q <= 1'b0;
      window_asked_q <= 1'b0;
      runs_q <= 1'b0;
      waits_scan_q <= 1'b0;
      asked_q <= 1'b0;
      forget_q <= 1'b0;
    end else begin
      if (win_valid_o && win_ready_i) window_asked_q <= 1'b1;
      if (window_done) begin
        window_asked_q <= 1'b0;
        // Where a window does not end the job its status is written again.
        sel_done_status_o <= win_rsp_ok_i ? 5'(penstock_pkg::UNSUPPORTED)
                                          : 5'(penstock_pkg::OUT_OF_RANGE);
      end

      case (state_q)
        IDLE: begin
          asked_q <= 1'b0;
          if (sel_valid_i) state_q <= HEADER_WINDOW;
        end
        HEADER_WINDOW:
        if (window_done) state_q <= win_rsp_ok_i ? HEADER : DONE;
        HEADER: begin
          if (request_ready_i) asked_q <= 1'b1;
          if (header_done_i && reader_idle_i) begin
            asked_q <= 1'b0;
            sel_done_status_o <= header_status_i;
            state_q <= header_status_i == 5'(penstock_pkg::OK) && !read_error_i ? TABLE_READ_WINDOW
                                                                           : DONE;
          end
        end
        TABLE_READ_WINDOW:
        if (window_done) begin
          state_q <= commit_o ? TABLE_WRITE_WINDOW : PROGRAM_WINDOW;
          if (!win_rsp_ok_i || (!commit_o && beyond)) state_q <= DONE;
        end
        TABLE_WRITE_WINDOW:
        if (window_done) begin
          state_q <= PROGRAM_WINDOW;
          if (!win_rsp_ok_i || beyond) state_q <= DONE;
        end
        PROGRAM_WINDOW: begin
          if (window_done) begin
            state_q <= PROGRAM;
            if (!win_rsp_ok_i) begin
              sel_done_status_o <= 5'(penstock_pkg::OUT_OF_RANGE);
              state_q <= DONE;
            end
          end
        end
        PROGRAM:
        if (program_done_i && reader_idle_i) begin
          sel_done_status_o <= program_status_i;
          state_q <= program_status_i == 5'(penstock_pkg::OK) && count_q != '0 && !read_error_i ?
              TASKS_WINDOW : DONE;
        end
        TASKS_WINDOW: if (window_done) state_q <= win_rsp_ok_i ? RESULTS_WINDOW : DONE;
        RESULTS_WINDOW: if (window_done) state_q <= win_rsp_ok_i ? OVERLAP : DONE;
        OVERLAP: begin
          state_q <= overlaps ? DONE : LOOK;
          if (overlaps) sel_done_status_o <= 5'(penstock_pkg::INVALID_ARGUMENT);
        end
        LOOK: begin
          if (request_ready_i) asked_q <= 1'b1;
          if (task_checked_i) begin
            if (task_invalid_i || task_unsupported_i || read_error_i) begin
              sel_done_status_o <= task_invalid_i ? 5'(penstock_pkg::INVALID_ARGUMENT)
                                                : 5'(penstock_pkg::UNSUPPORTED);
              state_q <= STOP;
            end else if (looked_q + 21'd1 == count_q) begin
              state_q <= LOAD;
              asked_q <= 1'b0;
            end
          end
        end
        LOAD: begin
          sel_done_status_o <= 5'(penstock_pkg::OK);
          if (holds && !asked_q) state_q <= RUN;
          else begin
            asked_q <= 1'b1;
            held_q <= 1'b0;
            if (asked_q && loaded_i) begin
              asked_q <= 1'b0;
              held_q <= !read_error_i;
              state_q <= read_error_i ? STOP : RUN;
            end
          end
        end
        RUN: begin
          if (read_error_i && !runs_q && reader_idle_i &&
              (fetch_q != MISS || !asked_q || loaded_i)) state_q <= STOP;
          if (fetch_q == BAD && !runs_q) begin
            sel_done_status_o <= 5'(penstock_pkg::CORRUPT);
            state_q <= STOP;
          end
          if (placed_q == count_q && !runs_q) state_q <= STOP;
        end
        STOP:
        if (reader_idle_i && commit_ready_i) state_q <= committed_any_q ? GENERATION : FLUSH;
        GENERATION: if (put_ready_i) state_q <= FLUSH;
        FLUSH:
        if (writer_idle_i) begin
          state_q <= DONE;
          if (read_error_i || write_error_i) held_q <= 1'b0;
        end
        default: if (sel_done_ready_i) state_q <= IDLE;
      endcase

      // The task in work.
      if (state_q == RUN) begin
        if (ready_next) begin
          started_q <= 1'b1;
          runs_q <= 1'b1;
          waits_scan_q <= 1'b1;
        end
        if (waits_scan_q && scan_done_i && !started_q && commit_ready_i) begin
          waits_scan_q <= 1'b0;
          scanned_q <= 1'b1;
        end
        if (applied_i) begin
          runs_q <= 1'b0;
          decision_o <= 1'b1;
        end
      end

      // The next one.
      case (fetch_q)
        NONE: begin
          if (state_q == LOAD) begin
            // With a single task the one that was looked at is the next.
            if (count_q == 21'd1) fetch_q <= PREPARE;
          end else if (state_q == RUN && fetch_more) fetch_q <= ASK;
        end
        ASK: if (request_ready_i) fetch_q <= BEATS;
        BEATS:
        if (task_checked_i && state_q == RUN)
          fetch_q <= task_invalid_i || task_unsupported_i ? BAD : PREPARE;
        PREPARE:
        if (state_q == RUN) begin
          asked_q <= 1'b1;
          if (asked_q && task_prepared_i) begin
            fetch_q <= NONE;
            asked_q <= 1'b0;
          end else if (asked_q && miss_i) begin
            fetch_q <= MISS;
            asked_q <= 1'b0;
          end
        end
        MISS: begin
          if (load_column_o) asked_q <= 1'b1;
          if (asked_q && loaded_i) fetch_q <= PREPARE;
        end
        default: ;
      endcase
      if (state_q == STOP) fetch_q <= NONE;

      // What bus addresses mean may change while a job runs; the next one has to look anew.
      if (sel_forget_i) forget_q <= 1'b1;
      if (forget_q && state_q == IDLE) begin
        held_q <= 1'b0;
        forget_q <= 1'b0;
      end
    end

    // ---- registers without reset ----

    if (state_q == IDLE) begin
      queue_q <= sel_queue_i;
      commit_o <= sel_commit_i;
      count_q <= sel_count_i;
      table_q <= sel_table_i;
      program_q <= sel_program_i;
      tasks_q <= sel_tasks_i;
      results_q <= sel_results_i;
      looked_q <= '0;
      fetched_q <= '0;
      placed_q <= '0;
      committed_any_q <= 1'b0;
      generation_written_q <= 1'b0;
    end
    if (window_done) begin
      case (state_q)
        PROGRAM_WINDOW: program_bus_o <= win_rsp_bus_i;
        TASKS_WINDOW: tasks_bus_q <= win_rsp_bus_i;
        RESULTS_WINDOW: results_bus_q <= win_rsp_bus_i;
        default: table_bus_o <= win_rsp_bus_i;
      endcase
    end
    if (state_q == LOOK) begin
      fetch_address_q <= tasks_bus_q;
      result_address_o <= results_bus_q;
      if (task_checked_i) looked_q <= looked_q + 21'd1;
    end
    if (state_q == LOAD && !holds) begin
      held_address_q <= table_bus_o;
      held_generation_q <= generation_i;
      held_rows_q <= rows_i;
      held_capacity_q <= capacity_i;
      held_resources_q <= n_resources_i;
      held_bits_q <= n_bits_i;
      held_free_q <= n_free_i;
    end
    if (state_q == LOAD && count_q == 21'd1) fetched_q <= 21'd1;
    if (state_q == RUN) begin
      if (fetch_q == BEATS && task_checked_i) begin
        fetched_q <= fetched_q + 21'd1;
        fetch_address_q <= fetch_address_q + 64'(penstock_pkg::SIZE_TASK);
      end
      if (applied_i) begin
        placed_q <= placed_q + 21'd1;
        result_address_o <= result_address_o + 64'(penstock_pkg::SIZE_RESULT);
        if (committed_i) begin
          committed_any_q <= 1'b1;
          held_generation_q <= held_generation_q + 64'd1;
        end
      end
    end
    if (state_q == GENERATION && put_ready_i) generation_written_q <= 1'b1;

    // ---- what a completion says beside its status ----

    case (state_q)
      IDLE: begin
        sel_done_field_o <= 5'(penstock_pkg::FIELD_TABLE);
        sel_done_detail_o <= sel_table_i;
      end
      PROGRAM_WINDOW: begin
        sel_done_field_o <= 5'(penstock_pkg::FIELD_PROGRAM);
        sel_done_detail_o <= program_q;
      end
      PROGRAM: begin
        sel_done_field_o <= program_status_i == 5'(penstock_pkg::OK) ? '0 :
            5'(penstock_pkg::FIELD_PROGRAM);
        sel_done_detail_o <= program_status_i == 5'(penstock_pkg::OK) ? '0 :
            {57'b0, program_detail_i};
      end
      TASKS_WINDOW: begin
        sel_done_field_o <= 5'(penstock_pkg::FIELD_SRC);
        sel_done_detail_o <= tasks_q;
      end
      RESULTS_WINDOW, OVERLAP: begin
        sel_done_field_o <= 5'(penstock_pkg::FIELD_DST);
        sel_done_detail_o <= results_q;
      end
      LOOK: begin
        sel_done_field_o <= 5'(penstock_pkg::FIELD_TASK);
        sel_done_detail_o <= {43'b0, looked_q};
      end
      default: ;
    endcase
    if (state_q == RUN) begin
      sel_done_field_o <= '0;
      sel_done_detail_o <= '0;
      if (fetch_q == BAD) begin
        sel_done_field_o <= 5'(penstock_pkg::FIELD_TASK);
        sel_done_detail_o <= {43'b0, fetched_q - 21'd1};
      end
    end
    // A bus error decides whatever else was found.
    if (read_error_i && state_q != IDLE && state_q != DONE) begin
      sel_done_status_o <= 5'(penstock_pkg::IO_ERROR);
      sel_done_detail_o <= read_error_address_i;
      if (state_q == HEADER || state_q == LOAD || (state_q == RUN && fetch_q == MISS))
        sel_done_field_o <= 5'(penstock_pkg::FIELD_TABLE);
      if (state_q == PROGRAM) sel_done_field_o <= 5'(penstock_pkg::FIELD_PROGRAM);
      if (state_q == LOOK || (state_q == RUN && fetch_q != MISS))
        sel_done_field_o <= 5'(penstock_pkg::FIELD_TASK);
    end else if (state_q == FLUSH && write_error_i) begin
      sel_done_status_o <= 5'(penstock_pkg::IO_ERROR);
      sel_done_field_o <= write_error_tag_i ? 5'(penstock_pkg::FIELD_DST)
                                          : 5'(penstock_pkg::FIELD_TABLE);
      sel_done_detail_o <= write_error_address_i;
    end
  end
endmodule

`default_nettype wire
