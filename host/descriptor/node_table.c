#include "penstock/descriptor/node_table.h"

#include "penstock/descriptor/descriptor.h"

/* ---- the table's header ---- */

static uint64_t fnv1a(uint64_t hash, const void* bytes, uint32_t n) {
  const unsigned char* p = (const unsigned char*)bytes;
  for (uint32_t i = 0; i < n; i++) hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
  return hash;
}

/* Over version..n_counts (56 bytes) with rows taken as 0, because rows changes during the table's
 * life. */
static uint64_t header_checksum(const struct penstock_node_table* header) {
  const uint32_t rows = 0;
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  hash = fnv1a(hash, &header->version, sizeof header->version);
  hash = fnv1a(hash, &header->header_bytes, sizeof header->header_bytes);
  hash = fnv1a(hash, &header->bytes, sizeof header->bytes);
  hash = fnv1a(hash, &header->capacity, sizeof header->capacity);
  hash = fnv1a(hash, &rows, sizeof rows);
  hash = fnv1a(hash, &header->n_resources, sizeof header->n_resources);
  hash = fnv1a(hash, &header->n_gpus, sizeof header->n_gpus);
  hash = fnv1a(hash, &header->n_bits, sizeof header->n_bits);
  hash = fnv1a(hash, &header->n_free, sizeof header->n_free);
  hash = fnv1a(hash, &header->n_domains, sizeof header->n_domains);
  return fnv1a(hash, &header->n_counts, sizeof header->n_counts);
}

uint64_t penstock_node_table_init(struct penstock_node_table* header, uint32_t capacity,
                                  uint32_t n_resources, uint32_t n_gpus, uint32_t n_bits,
                                  uint32_t n_free, uint32_t n_domains, uint32_t n_counts) {
  if (capacity == 0 || capacity > PENSTOCK_MAX_ROWS) return 0;
  if (n_resources == 0 || n_resources > PENSTOCK_MAX_RESOURCES) return 0;
  if (n_gpus > PENSTOCK_MAX_GPUS) return 0;
  if (n_bits < PENSTOCK_BIT_FIRST_FREE || n_bits > PENSTOCK_MAX_BIT_COLUMNS) return 0;
  if (n_free > PENSTOCK_MAX_FREE_COLUMNS) return 0;
  if (n_domains > PENSTOCK_MAX_DOMAIN_COLUMNS || n_counts > PENSTOCK_MAX_COUNT_COLUMNS) return 0;

  /* At most 2^20 rows of 48 + 16 + 256 cells, 4096 bits, and half as wide 64 + 4096 cells: far from
   * overflow. */
  const uint32_t rounded = (capacity + 63u) & ~63u;
  const uint64_t cells = (uint64_t)rounded * sizeof(int64_t);
  struct penstock_node_table h = {0};
  h.magic = PENSTOCK_TABLE_MAGIC;
  h.version = PENSTOCK_TABLE_VERSION;
  h.header_bytes = PENSTOCK_TABLE_HEADER_BYTES;
  h.capacity = rounded;
  h.n_resources = n_resources;
  h.n_gpus = n_gpus;
  h.n_bits = n_bits;
  h.n_free = n_free;
  h.n_domains = n_domains;
  h.n_counts = n_counts;
  h.allocatable = PENSTOCK_TABLE_HEADER_BYTES;
  h.requested = h.allocatable + n_resources * cells;
  h.scored = h.requested + n_resources * cells;
  h.gpu = h.scored + n_resources * cells;
  h.bits = h.gpu + n_gpus * cells;
  /* Bit columns are packed; what follows them starts on a cache line again. */
  h.free = (h.bits + (uint64_t)n_bits * (rounded / 8u) + 63u) & ~UINT64_C(63);
  h.domain = h.free + n_free * cells;
  h.count = h.domain + n_domains * (cells / 2);
  h.logs = h.count + n_counts * (cells / 2);
  /* One log more than there are rows; the table's size stays a multiple of a cache line. */
  h.bytes = h.logs + (n_domains > 0 ? cells + 64u : 0u);
  h.checksum = header_checksum(&h);
  if (header) *header = h;
  return h.bytes;
}

uint32_t penstock_node_table_check(const struct penstock_node_table* header, uint64_t bytes) {
  if (bytes < PENSTOCK_TABLE_HEADER_BYTES) return PENSTOCK_OUT_OF_RANGE;
  if (header->magic != PENSTOCK_TABLE_MAGIC || header->version != PENSTOCK_TABLE_VERSION)
    return PENSTOCK_CORRUPT;
  if (header->capacity % 64u != 0 || header->rows > header->capacity) return PENSTOCK_CORRUPT;

  struct penstock_node_table expected = {0};
  if (penstock_node_table_init(&expected, header->capacity, header->n_resources, header->n_gpus,
                               header->n_bits, header->n_free, header->n_domains,
                               header->n_counts) == 0)
    return PENSTOCK_CORRUPT;
  if (header->header_bytes != expected.header_bytes || header->bytes != expected.bytes ||
      header->allocatable != expected.allocatable || header->requested != expected.requested ||
      header->scored != expected.scored || header->gpu != expected.gpu ||
      header->bits != expected.bits || header->free != expected.free ||
      header->domain != expected.domain || header->count != expected.count ||
      header->logs != expected.logs || header->checksum != expected.checksum)
    return PENSTOCK_CORRUPT;
  return header->bytes <= bytes ? PENSTOCK_OK : PENSTOCK_OUT_OF_RANGE;
}

/* ---- programs ---- */

/* What an operation takes. A column's kind says which of the table's counts bounds it. */
enum column_kind { NO_COLUMN, RESOURCE, FREE_COLUMN };
struct op_rule {
  const char* name; /* null: no such operation */
  uint8_t kind;     /* of its columns */
  uint8_t min_n;
  uint8_t max_n;
  uint8_t group;        /* 1: has one */
  uint8_t list_weight;  /* 1: entry by entry */
  uint8_t skip_unasked; /* 1: allowed */
  uint8_t scales;       /* 0: none, 1: scale[0] alone, 2: entry by entry */
  uint8_t negative;     /* 1: the score may be below 0 */
  int64_t bound;        /* magnitude of the score */
};

#define PERCENT 100
static const struct op_rule kRules[PENSTOCK_SCORE_FGD + 1] = {
    [PENSTOCK_FILTER_BITS] = {"bits", NO_COLUMN, 0, 0, 1, 0, 0, 0, 0, 0},
    [PENSTOCK_FILTER_FIT] = {"fit", RESOURCE, 0, 16, 0, 0, 0, 0, 0, 0},
    [PENSTOCK_FILTER_GPU] = {"gpu", NO_COLUMN, 0, 0, 0, 0, 0, 0, 0, 0},
    [PENSTOCK_FILTER_ROW] = {"row", NO_COLUMN, 0, 0, 0, 0, 0, 0, 0, 0},
    [PENSTOCK_FILTER_DOMAINS] = {"domains", NO_COLUMN, 0, 0, 1, 0, 0, 0, 0, 0},
    [PENSTOCK_SCORE_LEAST_ALLOCATED] = {"least_allocated", RESOURCE, 0, 16, 0, 1, 1, 0, 0, PERCENT},
    [PENSTOCK_SCORE_MOST_ALLOCATED] = {"most_allocated", RESOURCE, 0, 16, 0, 1, 1, 0, 0, PERCENT},
    [PENSTOCK_SCORE_BALANCED] = {"balanced", RESOURCE, 0, 16, 0, 0, 1, 0, 0, PERCENT},
    [PENSTOCK_SCORE_BITS] = {"score_bits", NO_COLUMN, 0, 0, 1, 0, 0, 0, 1, INT64_C(1) << 24},
    [PENSTOCK_SCORE_FEATURES] = {"features", FREE_COLUMN, 0, 8, 0, 0, 0, 0, 1, INT64_C(1) << 51},
    [PENSTOCK_SCORE_BEST_FIT] = {"best_fit", RESOURCE, 0, 6, 0, 0, 0, 2, 1,
                                 PENSTOCK_MAX_FREE_VALUE},
    [PENSTOCK_SCORE_DOT_PRODUCT] = {"dot_product", RESOURCE, 1, 6, 0, 0, 0, 2, 1,
                                    PENSTOCK_MAX_FREE_VALUE},
    [PENSTOCK_SCORE_GPU_PACKING] = {"gpu_packing", RESOURCE, 1, 1, 0, 0, 0, 0, 0, PERCENT},
    [PENSTOCK_SCORE_GPU_CLUSTERING] = {"gpu_clustering", FREE_COLUMN, 0, 16, 0, 0, 0, 1, 1,
                                       INT64_C(1) << 20},
    [PENSTOCK_SCORE_DOMAINS] = {"score_domains", NO_COLUMN, 0, 0, 1, 0, 0, 0, 1, INT64_C(1) << 46},
    [PENSTOCK_SCORE_SPREAD] = {"spread", NO_COLUMN, 0, 0, 1, 0, 0, 0, 1, INT64_C(1) << 36},
    [PENSTOCK_SCORE_RATIO] = {"ratio", RESOURCE, 0, 16, 0, 1, 1, 0, 0, PERCENT},
    [PENSTOCK_SCORE_FGD] = {"fgd", RESOURCE, 1, 1, 0, 0, 0, 0, 0, PERCENT},
};

static const struct op_rule* find_rule(uint32_t op) {
  if (op > PENSTOCK_SCORE_FGD || !kRules[op].name) return 0;
  return &kRules[op];
}

const char* penstock_column_opcode_name(uint32_t op) {
  const struct op_rule* rule = find_rule(op);
  return rule ? rule->name : "?";
}

static int lists_are_valid(const struct penstock_column_op* op, const struct op_rule* rule,
                           const struct penstock_node_table* table) {
  const uint32_t columns = rule->kind == RESOURCE      ? table->n_resources
                           : rule->kind == FREE_COLUMN ? table->n_free
                                                       : 0;
  if (op->n < rule->min_n) return 0;
  for (uint32_t i = 0; i < PENSTOCK_MAX_RESOURCES; i++) {
    const int used = i < op->n;
    if (used ? op->column[i] >= columns : op->column[i] != 0) return 0;
    if (used && rule->list_weight) {
      if (op->list_weight[i] < 1 || op->list_weight[i] > 100) return 0;
    } else if (op->list_weight[i] != 0) {
      return 0;
    }
  }
  const uint32_t scales = rule->scales == 2 ? op->n : rule->scales;
  for (uint32_t i = 0; i < sizeof op->scale / sizeof op->scale[0]; i++) {
    if (i < scales ? op->scale[i] < 1 || op->scale[i] > PENSTOCK_MAX_QUANTITY : op->scale[i] != 0)
      return 0;
  }
  return 1;
}

/* |weight| * what the score can reach once it is normalised. */
static int64_t weighted_bound(const struct penstock_column_op* op, const struct op_rule* rule) {
  int64_t bound = rule->bound;
  if (op->normalise == PENSTOCK_NORMALISE_MIN_MAX ||
      op->normalise == PENSTOCK_NORMALISE_MIN_MAX_F64 ||
      op->normalise == PENSTOCK_NORMALISE_SPREAD) {
    bound = PERCENT;
  } else if (op->normalise != PENSTOCK_NORMALISE_NONE) {
    bound = rule->negative ? PENSTOCK_MAX_NORMALISED : PERCENT;
  }
  const int64_t weight = op->weight < 0 ? -(int64_t)op->weight : op->weight;
  /* A product beyond the limit is all that matters of it. */
  return weight > PENSTOCK_MAX_SCORE / bound ? PENSTOCK_MAX_SCORE + 1 : weight * bound;
}

static uint32_t check_op(const struct penstock_column_op* op,
                         const struct penstock_node_table* table) {
  const struct op_rule* rule = find_rule(op->op);
  if (!rule || op->normalise > PENSTOCK_NORMALISE_SPREAD) return PENSTOCK_UNSUPPORTED;
  if (op->reserved != 0 || op->n > rule->max_n) return PENSTOCK_INVALID_ARGUMENT;
  if (!rule->group && op->group != 0) return PENSTOCK_INVALID_ARGUMENT;
  if (rule->skip_unasked ? (uint64_t)op->skip_unasked >> op->n != 0 : op->skip_unasked != 0)
    return PENSTOCK_INVALID_ARGUMENT;
  if (PENSTOCK_COLUMN_OP_IS_SCORE(op->op)) {
    if (op->weight < -PENSTOCK_MAX_WEIGHT || op->weight > PENSTOCK_MAX_WEIGHT)
      return PENSTOCK_INVALID_ARGUMENT;
  } else if (op->weight != 0 || op->normalise != PENSTOCK_NORMALISE_NONE) {
    return PENSTOCK_INVALID_ARGUMENT;
  }
  return lists_are_valid(op, rule, table) ? PENSTOCK_OK : PENSTOCK_INVALID_ARGUMENT;
}

static int reserved_is_zero(const struct penstock_program* program) {
  for (uint32_t i = 0; i < sizeof program->reserved; i++)
    if (program->reserved[i] != 0) return 0;
  for (uint32_t i = 0; i < sizeof program->reserved3 / sizeof program->reserved3[0]; i++)
    if (program->reserved3[i] != 0) return 0;
  return program->reserved2 == 0;
}

static int shape_is_valid(const uint8_t* shape) {
  for (uint32_t i = 0; i < 128; i++)
    if (shape[i] > (i < PENSTOCK_SHAPE_POINTS ? PERCENT : 0)) return 0;
  return 1;
}

static int typical_is_valid(const struct penstock_program* program,
                            const struct penstock_node_table* table) {
  if (program->n_typical > PENSTOCK_MAX_TYPICAL) return 0;
  int64_t room = PENSTOCK_MAX_TYPICAL_WEIGHT;
  for (uint32_t i = 0; i < program->n_typical; i++) {
    const struct penstock_typical* typical = &program->typical[i];
    if (typical->request < 0 || typical->request > PENSTOCK_MAX_REQUEST ||
        typical->gpu_count > PENSTOCK_MAX_GPUS || typical->model >= table->n_bits)
      return 0;
    if (typical->gpu_count == 0 ? typical->gpu_milli != 0
                                : typical->gpu_milli < 1 || typical->gpu_milli > 1000)
      return 0;
    if (typical->reserved[0] != 0 || typical->reserved[1] != 0 || typical->reserved[2] != 0)
      return 0;
    if (typical->weight < 1 || typical->weight > room) return 0;
    room -= typical->weight;
  }
  for (uint32_t i = 1; i < PENSTOCK_FGD_THRESHOLDS; i++)
    if (program->threshold[i] < program->threshold[i - 1]) return 0;
  return 1;
}

uint32_t penstock_program_check(const struct penstock_program* program,
                                const struct penstock_node_table* table, uint64_t* detail) {
  *detail = PENSTOCK_MAX_OPS;
  if (program->magic != PENSTOCK_PROGRAM_MAGIC || program->version != PENSTOCK_PROGRAM_VERSION)
    return PENSTOCK_CORRUPT;
  if (program->n_ops > PENSTOCK_MAX_OPS || program->tie > PENSTOCK_TIE_HASH ||
      program->gpu_pick > PENSTOCK_GPU_FGD || program->best < 1 ||
      program->best > PENSTOCK_MAX_BEST || !typical_is_valid(program, table) ||
      !reserved_is_zero(program) || !shape_is_valid(program->shape))
    return PENSTOCK_INVALID_ARGUMENT;

  int64_t room = PENSTOCK_MAX_SCORE;
  int scores = 0;
  int picks_by_score = 0;
  for (uint32_t i = 0; i < program->n_ops; i++) {
    const struct penstock_column_op* op = &program->ops[i];
    *detail = i;
    const uint32_t status = check_op(op, table);
    if (status != PENSTOCK_OK) return status;
    if (!PENSTOCK_COLUMN_OP_IS_SCORE(op->op)) {
      if (scores) return PENSTOCK_INVALID_ARGUMENT;
      continue;
    }
    scores = 1;
    if (op->op == PENSTOCK_SCORE_FGD) picks_by_score = 1;
    const int64_t bound = weighted_bound(op, find_rule(op->op));
    if (bound > room) return PENSTOCK_INVALID_ARGUMENT;
    room -= bound;
  }
  *detail = PENSTOCK_MAX_OPS;
  if (program->gpu_pick == PENSTOCK_GPU_FGD && !picks_by_score) return PENSTOCK_INVALID_ARGUMENT;
  *detail = 0;
  return PENSTOCK_OK;
}

/* ---- tasks ---- */

static int requests_are_valid(const struct penstock_task* task,
                              const struct penstock_node_table* table) {
  for (uint32_t r = 0; r < PENSTOCK_MAX_RESOURCES; r++) {
    const int64_t limit = r < table->n_resources ? PENSTOCK_MAX_REQUEST : 0;
    if (task->request[r] < 0 || task->request[r] > limit) return 0;
    if (task->scored_request[r] < 0 || task->scored_request[r] > limit) return 0;
  }
  return 1;
}

static int terms_are_valid(const struct penstock_task* task,
                           const struct penstock_node_table* table) {
  if (task->n_terms > PENSTOCK_MAX_TERMS) return 0;
  for (uint32_t i = 0; i < task->n_terms; i++) {
    const struct penstock_term* term = &task->terms[i];
    if (term->column >= table->n_bits || term->clear > 1) return 0;
    if (term->weight < -PENSTOCK_MAX_WEIGHT || term->weight > PENSTOCK_MAX_WEIGHT) return 0;
  }
  return 1;
}

static int domain_column_is_valid(uint16_t column, const struct penstock_node_table* table) {
  return column == PENSTOCK_ROW_DOMAIN || column < table->n_domains;
}

/* What holds of a domain term whatever reads it. */
static int domain_terms_are_valid(const struct penstock_task* task,
                                  const struct penstock_node_table* table) {
  if (task->n_domain_terms > PENSTOCK_MAX_DOMAIN_TERMS) return 0;
  for (uint32_t i = 0; i < task->n_domain_terms; i++) {
    const struct penstock_domain_term* term = &task->domain_terms[i];
    if (!domain_column_is_valid(term->domain, table) || term->count >= table->n_counts ||
        term->nodes >= table->n_counts)
      return 0;
    if (term->kind > (PENSTOCK_SPREAD_REQUIRED | PENSTOCK_SPREAD_HOSTNAME) || term->self > 1 ||
        term->domains > table->capacity || term->weight < -PENSTOCK_MAX_WEIGHT ||
        term->reserved != 0)
      return 0;
  }
  return 1;
}

/* What an operation wants of the domain terms in its group. */
static int domain_terms_suit(const struct penstock_task* task, const struct penstock_column_op* op,
                             const struct penstock_node_table* table) {
  if (op->op != PENSTOCK_FILTER_DOMAINS && op->op != PENSTOCK_SCORE_DOMAINS &&
      op->op != PENSTOCK_SCORE_SPREAD)
    return 1;
  for (uint32_t i = 0; i < task->n_domain_terms; i++) {
    const struct penstock_domain_term* term = &task->domain_terms[i];
    if (term->group != op->group) continue;
    if (op->op == PENSTOCK_SCORE_DOMAINS) {
      if (term->kind != 0 || term->weight > PENSTOCK_MAX_WEIGHT) return 0;
    } else if (op->op == PENSTOCK_SCORE_SPREAD) {
      /* Without a domain column there are no logs. */
      if (term->weight < 1 || table->n_domains == 0) return 0;
    } else if (term->kind > PENSTOCK_DOMAIN_SPREAD ||
               (term->kind == PENSTOCK_DOMAIN_SPREAD && term->weight < 1)) {
      return 0;
    }
  }
  return 1;
}

static int raises_are_valid(const struct penstock_task* task,
                            const struct penstock_node_table* table) {
  if (task->n_raises > PENSTOCK_MAX_RAISES) return 0;
  for (uint32_t i = 0; i < task->n_raises; i++) {
    const struct penstock_raise* raise = &task->raises[i];
    if (!domain_column_is_valid(raise->domain, table) || raise->count >= table->n_counts ||
        raise->eligible >= table->n_bits || raise->reserved != 0)
      return 0;
  }
  return 1;
}

uint32_t penstock_task_check(const struct penstock_task* task,
                             const struct penstock_program* program,
                             const struct penstock_node_table* table) {
  if (!requests_are_valid(task, table) || !terms_are_valid(task, table) ||
      !domain_terms_are_valid(task, table) || !raises_are_valid(task, table))
    return PENSTOCK_INVALID_ARGUMENT;
  if (task->n_domain_terms > 0)
    for (uint32_t i = 0; i < program->n_ops; i++)
      if (!domain_terms_suit(task, &program->ops[i], table)) return PENSTOCK_INVALID_ARGUMENT;
  if (task->gpu_count > PENSTOCK_MAX_GPUS) return PENSTOCK_INVALID_ARGUMENT;
  if (task->gpu_count == 0 ? task->gpu_milli != 0 : task->gpu_milli < 1 || task->gpu_milli > 1000)
    return PENSTOCK_INVALID_ARGUMENT;
  if (task->row < -1 || task->row >= (int64_t)PENSTOCK_MAX_ROWS) return PENSTOCK_INVALID_ARGUMENT;
  if (task->klass >= PENSTOCK_MAX_RESOURCES) return PENSTOCK_INVALID_ARGUMENT;
  for (uint32_t i = 0; i < PENSTOCK_MAX_FEATURES; i++)
    if (task->feature[i] < -PENSTOCK_MAX_FEATURE || task->feature[i] > PENSTOCK_MAX_FEATURE)
      return PENSTOCK_INVALID_ARGUMENT;
  for (uint32_t i = 0; i < sizeof task->set_bits / sizeof task->set_bits[0]; i++)
    if (task->set_bits[i] != 0 &&
        (task->set_bits[i] < PENSTOCK_BIT_FIRST_FREE || task->set_bits[i] >= table->n_bits))
      return PENSTOCK_INVALID_ARGUMENT;
  for (uint32_t i = 0; i < sizeof task->count / sizeof task->count[0]; i++)
    if (task->count[i] > table->n_free) return PENSTOCK_INVALID_ARGUMENT;
  return PENSTOCK_OK;
}
