// The numbers of host/descriptor: opcodes, fields, types, limits, layouts.
// Generated from its headers by generate.py; change those, and run it again.
`default_nettype none

// No block needs them all.
/* verilator lint_off UNUSEDPARAM */
package penstock_pkg;
  // address.h: numbers
  localparam MAX_DEVICES = 16;
  localparam CACHE_LINE = 64;
  localparam SPACE_HOST = 240;
  localparam [63:0] OFFSET_MASK = 64'h00ffffffffffffff;

  // types.h: enum penstock_type
  localparam INT8 = 0;
  localparam UINT8 = 1;
  localparam INT32 = 2;
  localparam UINT32 = 3;
  localparam INT64 = 4;
  localparam UINT64 = 5;
  localparam F16 = 6;
  localparam F32 = 7;
  localparam F64 = 8;
  localparam BF16 = 9;
  localparam F8E4M3 = 10;
  localparam F8E5M2 = 11;
  localparam TYPE_COUNT = 12;

  // types.h: enum penstock_redop
  localparam SUM = 0;
  localparam PROD = 1;
  localparam MIN = 2;
  localparam MAX = 3;
  localparam AVG = 4;
  localparam PREMUL_SUM = 5;
  localparam REDOP_COUNT = 6;

  // types.h: enum penstock_status
  localparam OK = 0;
  localparam INVALID_ARGUMENT = 1;
  localparam UNSUPPORTED = 2;
  localparam OUT_OF_RANGE = 3;
  localparam NO_SPACE = 4;
  localparam NOT_FOUND = 5;
  localparam ALREADY_EXISTS = 6;
  localparam PERMISSION_DENIED = 7;
  localparam DEADLINE_EXCEEDED = 8;
  localparam CANCELLED = 9;
  localparam PEER_DEAD = 10;
  localparam REVOKED = 11;
  localparam MISMATCH = 12;
  localparam CORRUPT = 13;
  localparam IO_ERROR = 14;
  localparam BUSY = 15;
  localparam INTERNAL = 16;
  localparam STATUS_COUNT = 17;

  // descriptor.h: numbers
  localparam DESCRIPTOR_VERSION = 1;
  localparam INLINE_SOURCES = 8;
  localparam MAX_SOURCES = 64;
  localparam MAX_DESTINATIONS = 3;
  localparam [63:0] MAX_COUNT = 64'h0001000000000000;
  localparam MAX_TASKS = 1048576;
  localparam MAX_UPDATES = 16777216;
  localparam MAX_BARRIER = 64;
  localparam BLOCK_SCALE_BYTES = 4;

  // descriptor.h: enum penstock_opcode
  localparam OP_NOP = 0;
  localparam OP_COPY = 1;
  localparam OP_REDUCE = 2;
  localparam OP_SIGNAL = 3;
  localparam OP_WAIT = 4;
  localparam OP_SELECT = 5;
  localparam OP_UPDATE = 6;
  localparam OP_OUTER_STEP = 7;
  localparam OP_BARRIER = 8;
  localparam OP_COUNT = 9;

  // descriptor.h: enum penstock_flag
  localparam FLAG_SRC_LIST = 1;
  localparam FLAG_COMMIT = 2;
  localparam FLAG_STREAM = 4;
  localparam FLAG_WEIGHTS = 8;
  localparam FLAG_ALL = 15;

  // descriptor.h: enum penstock_field
  localparam FIELD_NONE = 0;
  localparam FIELD_OPCODE = 1;
  localparam FIELD_VERSION = 2;
  localparam FIELD_TYPE = 3;
  localparam FIELD_REDOP = 4;
  localparam FIELD_OUT_TYPE = 5;
  localparam FIELD_N_SRC = 6;
  localparam FIELD_N_DST = 7;
  localparam FIELD_BLOCK = 8;
  localparam FIELD_RESERVED = 8;
  localparam FIELD_FLAGS = 9;
  localparam FIELD_TIMEOUT = 10;
  localparam FIELD_COUNT = 11;
  localparam FIELD_SCALE = 12;
  localparam FIELD_DST = 13;
  localparam FIELD_SRC = 14;
  localparam FIELD_TABLE = 15;
  localparam FIELD_PROGRAM = 16;
  localparam FIELD_TASK = 17;
  localparam FIELD_UPDATE = 18;
  localparam FIELD_WEIGHTS = 19;
  localparam FIELD_ENUM_COUNT = 20;

  // descriptor.h: struct penstock_descriptor
  localparam SIZE_DESCRIPTOR = 128;
  localparam AT_DESCRIPTOR_OPCODE = 0;
  localparam AT_DESCRIPTOR_VERSION = 1;
  localparam AT_DESCRIPTOR_TYPE = 2;
  localparam AT_DESCRIPTOR_REDOP = 3;
  localparam AT_DESCRIPTOR_OUT_TYPE = 4;
  localparam AT_DESCRIPTOR_N_SRC = 5;
  localparam AT_DESCRIPTOR_N_DST = 6;
  localparam AT_DESCRIPTOR_BLOCK = 7;
  localparam AT_DESCRIPTOR_FLAGS = 8;
  localparam AT_DESCRIPTOR_TIMEOUT_MS = 12;
  localparam AT_DESCRIPTOR_COOKIE = 16;
  localparam AT_DESCRIPTOR_COUNT = 24;
  localparam AT_DESCRIPTOR_SCALE = 32;
  localparam AT_DESCRIPTOR_DST = 40;
  localparam COUNT_DESCRIPTOR_DST = 3;
  localparam AT_DESCRIPTOR_SRC = 64;
  localparam COUNT_DESCRIPTOR_SRC = 8;

  // descriptor.h: struct penstock_completion
  localparam SIZE_COMPLETION = 32;
  localparam AT_COMPLETION_COOKIE = 0;
  localparam AT_COMPLETION_STATUS = 8;
  localparam AT_COMPLETION_FIELD = 12;
  localparam AT_COMPLETION_DETAIL = 16;
  localparam AT_COMPLETION_SEQUENCE = 24;

  // node_table.h: numbers
  localparam [63:0] TABLE_MAGIC = 64'h656c626174747350;
  localparam TABLE_VERSION = 2;
  localparam TABLE_HEADER_BYTES = 4096;
  localparam MAX_ROWS = 1048576;
  localparam MAX_RESOURCES = 16;
  localparam MAX_GPUS = 16;
  localparam MAX_BIT_COLUMNS = 4096;
  localparam MAX_FREE_COLUMNS = 256;
  localparam MAX_DOMAIN_COLUMNS = 64;
  localparam MAX_COUNT_COLUMNS = 4096;
  localparam [63:0] MAX_QUANTITY = 64'h0020000000000000;
  localparam [63:0] MAX_REQUEST = 64'h0020000000000000;
  localparam MAX_FEATURE = 256;
  localparam [63:0] MAX_FREE_VALUE = 64'h0000010000000000;
  localparam MAX_DOMAIN_COUNT = 1048576;
  localparam MAX_WEIGHT = 1000000;
  localparam MAX_NORMALISED = 1048576;
  localparam [63:0] MAX_SCORE = 64'h4000000000000000;
  localparam BIT_NODE = 0;
  localparam BIT_UNSCHEDULABLE = 1;
  localparam BIT_FIRST_FREE = 2;
  localparam PROGRAM_MAGIC = 1735544947;
  localparam PROGRAM_VERSION = 2;
  localparam MAX_OPS = 64;
  localparam MAX_BEST = 8;
  localparam SHAPE_POINTS = 101;
  localparam MAX_TYPICAL = 256;
  localparam MAX_TYPICAL_WEIGHT = 1048576;
  localparam FGD_THRESHOLDS = 99;
  localparam MAX_TERMS = 16;
  localparam MAX_FEATURES = 8;
  localparam MAX_DOMAIN_TERMS = 12;
  localparam MAX_RAISES = 16;
  localparam ROW_DOMAIN = 65535;
  localparam SPREAD_REQUIRED = 1;
  localparam SPREAD_HOSTNAME = 2;

  // node_table.h: enum penstock_column_opcode
  localparam FILTER_BITS = 1;
  localparam FILTER_FIT = 2;
  localparam FILTER_GPU = 3;
  localparam FILTER_ROW = 4;
  localparam FILTER_DOMAINS = 5;
  localparam SCORE_LEAST_ALLOCATED = 32;
  localparam SCORE_MOST_ALLOCATED = 33;
  localparam SCORE_BALANCED = 34;
  localparam SCORE_BITS = 35;
  localparam SCORE_FEATURES = 36;
  localparam SCORE_BEST_FIT = 37;
  localparam SCORE_DOT_PRODUCT = 38;
  localparam SCORE_GPU_PACKING = 39;
  localparam SCORE_GPU_CLUSTERING = 40;
  localparam SCORE_DOMAINS = 41;
  localparam SCORE_SPREAD = 42;
  localparam SCORE_RATIO = 43;
  localparam SCORE_FGD = 44;

  // node_table.h: enum penstock_normalise
  localparam NORMALISE_NONE = 0;
  localparam NORMALISE_DEFAULT = 1;
  localparam NORMALISE_REVERSED = 2;
  localparam NORMALISE_MIN_MAX = 3;
  localparam NORMALISE_MIN_MAX_F64 = 4;
  localparam NORMALISE_SPREAD = 5;

  // node_table.h: enum penstock_tie
  localparam TIE_LOWEST_ROW = 0;
  localparam TIE_ROTATING = 1;
  localparam TIE_HASH = 2;

  // node_table.h: enum penstock_gpu_pick
  localparam GPU_LEAST_FREE = 0;
  localparam GPU_LOWEST = 1;
  localparam GPU_HASH = 2;
  localparam GPU_FGD = 3;

  // node_table.h: enum penstock_domain_kind
  localparam DOMAIN_ABSENT = 0;
  localparam DOMAIN_PRESENT = 1;
  localparam DOMAIN_SPREAD = 2;

  // node_table.h: enum penstock_update_field
  localparam UPDATE_ROWS = 0;
  localparam UPDATE_ALLOCATABLE = 1;
  localparam UPDATE_REQUESTED = 2;
  localparam UPDATE_SCORED = 3;
  localparam UPDATE_GPU = 4;
  localparam UPDATE_BIT = 5;
  localparam UPDATE_FREE = 6;
  localparam UPDATE_DOMAIN = 7;
  localparam UPDATE_COUNT = 8;

  // node_table.h: enum penstock_update_mode
  localparam UPDATE_SET = 0;
  localparam UPDATE_ADD = 1;

  // node_table.h: struct penstock_node_table
  localparam SIZE_NODE_TABLE = 144;
  localparam AT_NODE_TABLE_MAGIC = 0;
  localparam AT_NODE_TABLE_VERSION = 8;
  localparam AT_NODE_TABLE_HEADER_BYTES = 12;
  localparam AT_NODE_TABLE_BYTES = 16;
  localparam AT_NODE_TABLE_CAPACITY = 24;
  localparam AT_NODE_TABLE_ROWS = 28;
  localparam AT_NODE_TABLE_N_RESOURCES = 32;
  localparam AT_NODE_TABLE_N_GPUS = 36;
  localparam AT_NODE_TABLE_N_BITS = 40;
  localparam AT_NODE_TABLE_N_FREE = 44;
  localparam AT_NODE_TABLE_N_DOMAINS = 48;
  localparam AT_NODE_TABLE_N_COUNTS = 52;
  localparam AT_NODE_TABLE_ALLOCATABLE = 56;
  localparam AT_NODE_TABLE_REQUESTED = 64;
  localparam AT_NODE_TABLE_SCORED = 72;
  localparam AT_NODE_TABLE_GPU = 80;
  localparam AT_NODE_TABLE_BITS = 88;
  localparam AT_NODE_TABLE_FREE = 96;
  localparam AT_NODE_TABLE_DOMAIN = 104;
  localparam AT_NODE_TABLE_COUNT = 112;
  localparam AT_NODE_TABLE_LOGS = 120;
  localparam AT_NODE_TABLE_GENERATION = 128;
  localparam AT_NODE_TABLE_CHECKSUM = 136;

  // node_table.h: struct penstock_column_op
  localparam SIZE_COLUMN_OP = 128;
  localparam AT_COLUMN_OP_OP = 0;
  localparam AT_COLUMN_OP_NORMALISE = 1;
  localparam AT_COLUMN_OP_N = 2;
  localparam AT_COLUMN_OP_GROUP = 3;
  localparam AT_COLUMN_OP_WEIGHT = 4;
  localparam AT_COLUMN_OP_SKIP_UNASKED = 8;
  localparam AT_COLUMN_OP_RESERVED = 12;
  localparam AT_COLUMN_OP_COLUMN = 16;
  localparam COUNT_COLUMN_OP_COLUMN = 16;
  localparam AT_COLUMN_OP_LIST_WEIGHT = 48;
  localparam COUNT_COLUMN_OP_LIST_WEIGHT = 16;
  localparam AT_COLUMN_OP_SCALE = 80;
  localparam COUNT_COLUMN_OP_SCALE = 6;

  // node_table.h: struct penstock_typical
  localparam SIZE_TYPICAL = 32;
  localparam AT_TYPICAL_REQUEST = 0;
  localparam AT_TYPICAL_GPU_COUNT = 8;
  localparam AT_TYPICAL_GPU_MILLI = 12;
  localparam AT_TYPICAL_MODEL = 16;
  localparam AT_TYPICAL_RESERVED = 18;
  localparam COUNT_TYPICAL_RESERVED = 3;
  localparam AT_TYPICAL_WEIGHT = 24;

  // node_table.h: struct penstock_program
  localparam SIZE_PROGRAM = 17368;
  localparam AT_PROGRAM_MAGIC = 0;
  localparam AT_PROGRAM_VERSION = 4;
  localparam AT_PROGRAM_N_OPS = 6;
  localparam AT_PROGRAM_TIE = 8;
  localparam AT_PROGRAM_GPU_PICK = 9;
  localparam AT_PROGRAM_BEST = 10;
  localparam AT_PROGRAM_RESERVED = 11;
  localparam COUNT_PROGRAM_RESERVED = 5;
  localparam AT_PROGRAM_SEED = 16;
  localparam AT_PROGRAM_N_TYPICAL = 24;
  localparam AT_PROGRAM_RESERVED2 = 28;
  localparam AT_PROGRAM_RESERVED3 = 32;
  localparam COUNT_PROGRAM_RESERVED3 = 4;
  localparam AT_PROGRAM_OPS = 64;
  localparam COUNT_PROGRAM_OPS = 64;
  localparam AT_PROGRAM_SHAPE = 8256;
  localparam COUNT_PROGRAM_SHAPE = 128;
  localparam AT_PROGRAM_TYPICAL = 8384;
  localparam COUNT_PROGRAM_TYPICAL = 256;
  localparam AT_PROGRAM_THRESHOLD = 16576;
  localparam COUNT_PROGRAM_THRESHOLD = 99;

  // node_table.h: struct penstock_term
  localparam SIZE_TERM = 8;
  localparam AT_TERM_COLUMN = 0;
  localparam AT_TERM_GROUP = 2;
  localparam AT_TERM_CLEAR = 3;
  localparam AT_TERM_WEIGHT = 4;

  // node_table.h: struct penstock_domain_term
  localparam SIZE_DOMAIN_TERM = 32;
  localparam AT_DOMAIN_TERM_DOMAIN = 0;
  localparam AT_DOMAIN_TERM_COUNT = 2;
  localparam AT_DOMAIN_TERM_NODES = 4;
  localparam AT_DOMAIN_TERM_GROUP = 6;
  localparam AT_DOMAIN_TERM_KIND = 7;
  localparam AT_DOMAIN_TERM_WEIGHT = 8;
  localparam AT_DOMAIN_TERM_SELF = 12;
  localparam AT_DOMAIN_TERM_DOMAINS = 16;
  localparam AT_DOMAIN_TERM_MIN_DOMAINS = 20;
  localparam AT_DOMAIN_TERM_RESERVED = 24;

  // node_table.h: struct penstock_raise
  localparam SIZE_RAISE = 8;
  localparam AT_RAISE_COUNT = 0;
  localparam AT_RAISE_DOMAIN = 2;
  localparam AT_RAISE_ELIGIBLE = 4;
  localparam AT_RAISE_RESERVED = 6;

  // node_table.h: struct penstock_task
  localparam SIZE_TASK = 1024;
  localparam AT_TASK_REQUEST = 0;
  localparam COUNT_TASK_REQUEST = 16;
  localparam AT_TASK_SCORED_REQUEST = 128;
  localparam COUNT_TASK_SCORED_REQUEST = 16;
  localparam AT_TASK_GPU_COUNT = 256;
  localparam AT_TASK_GPU_MILLI = 260;
  localparam AT_TASK_ROW = 264;
  localparam AT_TASK_TIE = 272;
  localparam AT_TASK_N_TERMS = 280;
  localparam AT_TASK_KLASS = 284;
  localparam AT_TASK_TERMS = 288;
  localparam COUNT_TASK_TERMS = 16;
  localparam AT_TASK_FEATURE = 416;
  localparam COUNT_TASK_FEATURE = 8;
  localparam AT_TASK_SET_BITS = 480;
  localparam COUNT_TASK_SET_BITS = 8;
  localparam AT_TASK_COUNT = 496;
  localparam COUNT_TASK_COUNT = 4;
  localparam AT_TASK_N_DOMAIN_TERMS = 504;
  localparam AT_TASK_N_RAISES = 508;
  localparam AT_TASK_DOMAIN_TERMS = 512;
  localparam COUNT_TASK_DOMAIN_TERMS = 12;
  localparam AT_TASK_RAISES = 896;
  localparam COUNT_TASK_RAISES = 16;

  // node_table.h: struct penstock_best
  localparam SIZE_BEST = 16;
  localparam AT_BEST_ROW = 0;
  localparam AT_BEST_RESERVED = 4;
  localparam AT_BEST_SCORE = 8;

  // node_table.h: struct penstock_result
  localparam SIZE_RESULT = 160;
  localparam AT_RESULT_STATUS = 0;
  localparam AT_RESULT_ROW = 4;
  localparam AT_RESULT_SCORE = 8;
  localparam AT_RESULT_FEASIBLE = 16;
  localparam AT_RESULT_GPU_MASK = 20;
  localparam AT_RESULT_N_BEST = 24;
  localparam AT_RESULT_RESERVED = 28;
  localparam AT_RESULT_BEST = 32;
  localparam COUNT_RESULT_BEST = 8;

  // node_table.h: struct penstock_update
  localparam SIZE_UPDATE = 24;
  localparam AT_UPDATE_FIELD = 0;
  localparam AT_UPDATE_MODE = 2;
  localparam AT_UPDATE_COLUMN = 4;
  localparam AT_UPDATE_ROW = 8;
  localparam AT_UPDATE_RESERVED = 12;
  localparam AT_UPDATE_VALUE = 16;

  // Bytes of one element; 0 for a value that is no type.
  function automatic logic [3:0] type_size(input logic [7:0] kind);
    case (kind)
      penstock_pkg::INT8: type_size = 4'd1;
      penstock_pkg::UINT8: type_size = 4'd1;
      penstock_pkg::INT32: type_size = 4'd4;
      penstock_pkg::UINT32: type_size = 4'd4;
      penstock_pkg::INT64: type_size = 4'd8;
      penstock_pkg::UINT64: type_size = 4'd8;
      penstock_pkg::F16: type_size = 4'd2;
      penstock_pkg::F32: type_size = 4'd4;
      penstock_pkg::F64: type_size = 4'd8;
      penstock_pkg::BF16: type_size = 4'd2;
      penstock_pkg::F8E4M3: type_size = 4'd1;
      penstock_pkg::F8E5M2: type_size = 4'd1;
      default: type_size = 4'd0;
    endcase
  endfunction
endpackage
/* verilator lint_on UNUSEDPARAM */

`default_nettype wire
