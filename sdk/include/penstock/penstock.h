/* Penstock: collectives over a memory pool, and scheduling decisions. The C interface.
 *
 * Rules of this interface:
 *  - Objects are opaque; what a function makes, the function of the same family destroys.
 *    Destroying a null pointer does nothing.
 *  - Configurations are structs that begin with their own size, so that they can grow: set it with
 *    the _INIT macro. Zero means "the default".
 *  - Every function that can fail returns a penstock_status; penstock_last_error() then gives the
 *    sentence that belongs to it, per thread, until the next failure on that thread.
 *  - Symbols are versioned and never change their meaning; new ones are added.
 *  - A comm and its requests are used by one thread at a time, and so is a cluster; different ones
 * by different threads; a pool by any thread. A forked child cannot use what its parent made.
 */
#ifndef PENSTOCK_PENSTOCK_H_
#define PENSTOCK_PENSTOCK_H_

#include <stddef.h>
#include <stdint.h>

#include "penstock/descriptor/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" of the library that is loaded. */
PENSTOCK_API const char* penstock_version_string(void);

/* The sentence of this thread's last failure: what is wrong, where, what would be right. Never
 * null; "" before the first failure. Valid until this thread's next failure. */
PENSTOCK_API const char* penstock_last_error(void);

/* ---- comm ---- */

typedef struct penstock_comm penstock_comm;
typedef struct penstock_request penstock_request;

typedef struct penstock_comm_config {
  size_t size;         /* sizeof(penstock_comm_config) */
  const char* name;    /* ranks that give the same name meet; null: PENSTOCK_COMM or the job's */
  int32_t rank;        /* with ranks > 0 */
  int32_t ranks;       /* 0: rank and size come from the launcher (penstock run, torchrun, Open MPI,
                          MPICH, Slurm), or this process is alone */
  const char* pool;    /* spec of the pool; null: PENSTOCK_POOL, or a temporary pool of the job */
  const char* engine;  /* null: PENSTOCK_ENGINE, or the best for this machine */
  uint32_t timeout_ms; /* deadline of every wait; 0: PENSTOCK_TIMEOUT_MS, or 30000 */
  uint32_t flags;      /* PENSTOCK_COMM_..., or 0 */
} penstock_comm_config;
/* Waits for a comm of this name whose ranks call penstock_comm_grow, and takes a free rank in it;
 * `rank` and `ranks` are 0. */
#define PENSTOCK_COMM_NEWCOMER 1u
#define PENSTOCK_COMM_CONFIG_INIT \
  { sizeof(penstock_comm_config), 0, 0, 0, 0, 0, 0, 0 }

/* Meets the other ranks. `config` may be null: everything from the launcher and the environment.
 * Several comms of different names may exist at once. */
PENSTOCK_API enum penstock_status penstock_comm_init(const penstock_comm_config* config,
                                                     penstock_comm** comm);
/* Leaves. Calls that are on their way are given up. */
PENSTOCK_API void penstock_comm_destroy(penstock_comm* comm);

PENSTOCK_API uint32_t penstock_comm_rank(const penstock_comm* comm);
PENSTOCK_API uint32_t penstock_comm_size(const penstock_comm* comm);
/* Name of the engine that executes this rank's descriptors. Lives as long as the comm. */
PENSTOCK_API const char* penstock_comm_engine(const penstock_comm* comm);
/* PENSTOCK_OK, or why the comm cannot be used any more (a rank died, a deadline passed, it was
 * aborted). */
PENSTOCK_API enum penstock_status penstock_comm_health(penstock_comm* comm);
/* Tells every rank to give up: their calls return PENSTOCK_REVOKED with this reason. */
PENSTOCK_API enum penstock_status penstock_comm_abort(penstock_comm* comm, const char* reason);

/* ---- comms out of comms, and going on after a failure ----
 *
 * Each of these is called by every rank of the comm (of shrink: by every one that is left), and
 * makes a comm of its own, to be destroyed like any other. `*made` is null unless it succeeds.
 */
/* Tells every rank to give up: pending and later calls return PENSTOCK_REVOKED. Idempotent. */
PENSTOCK_API enum penstock_status penstock_comm_revoke(penstock_comm* comm);
/* Agrees with the other survivors on who is left; ranks are dense, in the old order. The old comm
 * is revoked. PENSTOCK_REVOKED when the others went on without this rank, because it did not call
 * before their deadline. */
PENSTOCK_API enum penstock_status penstock_comm_shrink(penstock_comm* comm, penstock_comm** made);
/* With newcomers (PENSTOCK_COMM_NEWCOMER) as the ranks from the present size on, `ranks` in all.
 * The old comm stays as it is. */
PENSTOCK_API enum penstock_status penstock_comm_grow(penstock_comm* comm, uint32_t ranks,
                                                     penstock_comm** made);
/* One comm for each color, with ranks in the order of (key, old rank); none, and PENSTOCK_OK, for a
 * negative color. The old comm stays as it is. */
PENSTOCK_API enum penstock_status penstock_comm_split(penstock_comm* comm, int32_t color,
                                                      int32_t key, penstock_comm** made);
/* 1 for a comm that ranks joined or split off, one more with each shrink and grow. */
PENSTOCK_API uint64_t penstock_comm_epoch(const penstock_comm* comm);

/* ---- collectives ----
 *
 * Every rank calls the same functions in the same order with the same count, type, operation and
 * root. `count` is in elements: of the whole vector for all_reduce, broadcast and reduce; of one
 * rank's part for all_gather, reduce_scatter, all_to_all, gather and scatter, whose buffers of
 * parts hold size * count elements, part r at element r * count. 0 is allowed.
 *
 * In place: recv == send for all_reduce, broadcast, reduce and all_to_all; send == recv +
 * rank * count for all_gather and, at the root, gather; recv == send + rank * count for
 * reduce_scatter and, at the root, scatter. Any other overlap is an error.
 *
 * Buffers that a rank does not need may be null (recv of reduce and gather, send of broadcast and
 * scatter, at every rank but the root). What a rank does not need is not touched.
 *
 * A result has the same bits on every rank, on every engine and in every run: the fold goes over
 * the ranks in order; with PENSTOCK_GROUP inside each group of ranks, and then over the groups.
 *
 * The functions return when this rank's buffers are final. Errors: PENSTOCK_INVALID_ARGUMENT (the
 * call makes no sense; the comm stays usable), PENSTOCK_PEER_DEAD, PENSTOCK_DEADLINE_EXCEEDED,
 * PENSTOCK_REVOKED (the comm is revoked).
 */
PENSTOCK_API enum penstock_status penstock_all_reduce(penstock_comm* comm, const void* send,
                                                      void* recv, uint64_t count,
                                                      enum penstock_type type,
                                                      enum penstock_redop op);
PENSTOCK_API enum penstock_status penstock_broadcast(penstock_comm* comm, const void* send,
                                                     void* recv, uint64_t count,
                                                     enum penstock_type type, uint32_t root);
PENSTOCK_API enum penstock_status penstock_reduce(penstock_comm* comm, const void* send, void* recv,
                                                  uint64_t count, enum penstock_type type,
                                                  enum penstock_redop op, uint32_t root);
PENSTOCK_API enum penstock_status penstock_all_gather(penstock_comm* comm, const void* send,
                                                      void* recv, uint64_t count,
                                                      enum penstock_type type);
PENSTOCK_API enum penstock_status penstock_reduce_scatter(penstock_comm* comm, const void* send,
                                                          void* recv, uint64_t count,
                                                          enum penstock_type type,
                                                          enum penstock_redop op);
PENSTOCK_API enum penstock_status penstock_all_to_all(penstock_comm* comm, const void* send,
                                                      void* recv, uint64_t count,
                                                      enum penstock_type type);
PENSTOCK_API enum penstock_status penstock_gather(penstock_comm* comm, const void* send, void* recv,
                                                  uint64_t count, enum penstock_type type,
                                                  uint32_t root);
PENSTOCK_API enum penstock_status penstock_scatter(penstock_comm* comm, const void* send,
                                                   void* recv, uint64_t count,
                                                   enum penstock_type type, uint32_t root);
/* A send and the receive that it meets agree in count and type; they are ordered per pair of ranks
 * and direction, and independent of the collectives. A send may return before it is received. */
PENSTOCK_API enum penstock_status penstock_send(penstock_comm* comm, const void* data,
                                                uint64_t count, enum penstock_type type,
                                                uint32_t peer);
PENSTOCK_API enum penstock_status penstock_recv(penstock_comm* comm, void* data, uint64_t count,
                                                enum penstock_type type, uint32_t peer);
PENSTOCK_API enum penstock_status penstock_barrier(penstock_comm* comm);

/* ---- the same without blocking ---- */

enum penstock_collective {
  PENSTOCK_ALL_REDUCE = 0,
  PENSTOCK_BROADCAST = 1,
  PENSTOCK_REDUCE = 2,
  PENSTOCK_ALL_GATHER = 3,
  PENSTOCK_REDUCE_SCATTER = 4,
  PENSTOCK_ALL_TO_ALL = 5,
  PENSTOCK_GATHER = 6,
  PENSTOCK_SCATTER = 7,
  PENSTOCK_SEND = 8,
  PENSTOCK_RECV = 9,
  PENSTOCK_BARRIER = 10
};

typedef struct penstock_call {
  size_t size; /* sizeof(penstock_call) */
  enum penstock_collective collective;
  enum penstock_type type;
  enum penstock_redop op;
  uint32_t root; /* or the peer of SEND and RECV */
  const void* send;
  void* recv;
  uint64_t count;
  uint64_t scale; /* PENSTOCK_PREMUL_SUM: bit pattern of the factor, as an f32 for f32 and narrower
                     floats, an f64 for f64, a 64-bit integer for integers; else 0 */
} penstock_call;
#define PENSTOCK_CALL_INIT \
  { sizeof(penstock_call), PENSTOCK_BARRIER, PENSTOCK_UINT8, PENSTOCK_SUM, 0, 0, 0, 0, 0 }

/* Begins a call. The buffers are not to be touched until the request is done. Calls of one comm run
 * in the order in which they were begun; they make progress inside penstock_test, penstock_wait and
 * every other call on the comm. */
PENSTOCK_API enum penstock_status penstock_start(penstock_comm* comm, const penstock_call* call,
                                                 penstock_request** request);
/* *done becomes 1 when the call is finished, else 0; the status is the call's once it is. */
PENSTOCK_API enum penstock_status penstock_test(penstock_request* request, int* done);
PENSTOCK_API enum penstock_status penstock_wait(penstock_request* request);
/* Before the comm is destroyed. A call that is not done goes on. */
PENSTOCK_API void penstock_request_free(penstock_request* request);

/* ---- windows: one-sided access ----
 *
 * Every rank exposes bytes of the pool; any rank writes into and reads from them without a call at
 * the other. A put writes whole cache lines: its offset is a multiple of 64, and what its last line
 * has behind the end becomes zero. Two ranks write the same line only if the second has waited for
 * a signal that came after the first one's put. A window is used by one thread at a time, and
 * destroyed before its comm.
 */
typedef struct penstock_window penstock_window;

typedef struct penstock_window_config {
  size_t size;           /* sizeof(penstock_window_config) */
  uint64_t bytes;        /* that this rank exposes; may differ between ranks */
  uint32_t signals;      /* counters per pair of ranks and direction; 0: 16 */
  uint32_t blocks;       /* that each rank can publish */
  uint64_t block_bytes;  /* the most that one holds */
  uint32_t block_copies; /* versions that stay readable, 1 to 4; 0: 1 */
  uint32_t timeout_ms;   /* deadline of every wait; 0: 30000 */
} penstock_window_config;
#define PENSTOCK_WINDOW_CONFIG_INIT \
  { sizeof(penstock_window_config), 0, 0, 0, 0, 0, 0 }

/* Every rank calls it, with the same signals, blocks, block_bytes and block_copies. All get their
 * window, or all get an error. */
PENSTOCK_API enum penstock_status penstock_window_make(penstock_comm* comm,
                                                       const penstock_window_config* config,
                                                       penstock_window** window);
/* Leaves, and waits for nobody. The memory is free once all ranks have left or are dead. */
PENSTOCK_API void penstock_window_destroy(penstock_window* window);
/* This rank's part, and how many bytes a rank exposes. */
PENSTOCK_API void* penstock_window_data(penstock_window* window);
PENSTOCK_API uint64_t penstock_window_bytes(const penstock_window* window, uint32_t rank);

/* The data is the caller's again when put returns; whoever sees a later signal sees it. */
PENSTOCK_API enum penstock_status penstock_window_put(penstock_window* window, uint32_t target,
                                                      uint64_t offset, const void* data,
                                                      uint64_t bytes);
PENSTOCK_API enum penstock_status penstock_window_get(penstock_window* window, uint32_t source,
                                                      uint64_t offset, void* data, uint64_t bytes);
/* Around loads and stores of one's own part: publish makes stores visible to those who see a later
 * signal, observe drops what this processor has cached of what others put. */
PENSTOCK_API enum penstock_status penstock_window_publish(penstock_window* window, uint64_t offset,
                                                          uint64_t bytes);
PENSTOCK_API enum penstock_status penstock_window_observe(penstock_window* window, uint64_t offset,
                                                          uint64_t bytes);
/* Raises the counter that this rank has at the target; counters begin at 0 and never fall. */
PENSTOCK_API enum penstock_status penstock_window_signal(penstock_window* window, uint32_t target,
                                                         uint32_t slot, uint64_t value);
/* Until the source's counter here is at least `value`; timeout_ms 0: the window's. */
PENSTOCK_API enum penstock_status penstock_window_wait_signal(penstock_window* window,
                                                              uint32_t source, uint32_t slot,
                                                              uint64_t value, uint32_t timeout_ms);
/* The same for any rank; *source tells which. */
PENSTOCK_API enum penstock_status penstock_window_wait_any(penstock_window* window, uint32_t slot,
                                                           uint64_t value, uint32_t timeout_ms,
                                                           uint32_t* source);

/* Blocks: published by their owner, fetched by any number of readers, who write nothing and
 * recognise that a block was overwritten while they read it. */
typedef struct penstock_block {
  size_t size; /* sizeof(penstock_block) */
  uint32_t owner;
  uint32_t slot;
  uint64_t version; /* from 1 */
  uint64_t key;     /* the publisher's */
  uint64_t bytes;
} penstock_block;
#define PENSTOCK_BLOCK_INIT \
  { sizeof(penstock_block), 0, 0, 0, 0, 0 }

/* The next version of this rank's block in `slot`; *version (may be null) receives its number. */
PENSTOCK_API enum penstock_status penstock_window_publish_block(penstock_window* window,
                                                                uint32_t slot, uint64_t key,
                                                                const void* data, uint64_t bytes,
                                                                uint64_t* version);
/* The newest version, at least min_version, which is waited for. PENSTOCK_OUT_OF_RANGE if it has
 * more than `capacity` bytes. `block` (may be null) receives what it is. */
PENSTOCK_API enum penstock_status penstock_window_fetch_block(
    penstock_window* window, uint32_t owner, uint32_t slot, uint64_t min_version, void* data,
    uint64_t capacity, uint32_t timeout_ms, penstock_block* block);
/* The first block with this key, by owner and slot; PENSTOCK_NOT_FOUND if nobody has published
 * one. */
PENSTOCK_API enum penstock_status penstock_window_find_block(penstock_window* window, uint64_t key,
                                                             penstock_block* block);

/* ---- averaging between random partners ---- */

/* Replaces the elements by their average with those of one other rank, the same bits at both.
 * Seed and round say who meets whom; bit r of `absent` set: rank r is not in this round and need
 * not call. Ranks that are in it give the same arguments (but data). Who is left over keeps its
 * elements. */
PENSTOCK_API enum penstock_status penstock_pairwise_average(penstock_comm* comm, uint64_t seed,
                                                            uint64_t round, uint64_t absent,
                                                            void* data, uint64_t count,
                                                            enum penstock_type type);
/* Whom `rank` of `ranks` (at most 64) meets; itself if nobody, or if it is out of range. */
PENSTOCK_API uint32_t penstock_pairwise_partner(uint64_t seed, uint64_t round, uint32_t ranks,
                                                uint32_t rank, uint64_t absent);

/* ---- statistics ---- */

#define PENSTOCK_LATENCY_BUCKETS 44
#define PENSTOCK_ALL_COLLECTIVES (-1)

typedef struct penstock_statistics {
  size_t size;    /* sizeof(penstock_statistics) */
  uint64_t timed; /* 1: times are taken (PENSTOCK_STATS is set); 0: the rest is 0 */
  uint64_t calls;
  uint64_t bytes; /* count * element size, summed */
  uint64_t ns;    /* inside the calls, of which: */
  uint64_t wait_ns;
  uint64_t copy_ns;
  uint64_t reduce_ns;
  uint64_t signal_ns;
  uint64_t waits;
  uint64_t max_ns;                            /* of a blocking call */
  uint64_t latency[PENSTOCK_LATENCY_BUCKETS]; /* blocking calls of 2^b to 2^(b+1) - 1 ns */
} penstock_statistics;

/* Of one collective (enum penstock_collective; SEND and RECV are one), or of all. `statistics` has
 * its size set. */
PENSTOCK_API enum penstock_status penstock_comm_statistics(const penstock_comm* comm,
                                                           int32_t collective,
                                                           penstock_statistics* statistics);

/* ---- pool ---- */

typedef struct penstock_pool penstock_pool;

/* Makes a pool of `devices` files (PATH, or PATH.0 .. PATH.n-1) with every page reserved. */
PENSTOCK_API enum penstock_status penstock_pool_create(const char* spec, uint32_t devices,
                                                       uint64_t bytes_per_device);
/* Removes its files; PENSTOCK_BUSY while live processes map it. */
PENSTOCK_API enum penstock_status penstock_pool_destroy(const char* spec);
PENSTOCK_API enum penstock_status penstock_pool_map(const char* spec, penstock_pool** pool);
PENSTOCK_API void penstock_pool_unmap(penstock_pool* pool);

/* A region of the pool: named (1..47 bytes) for others to find, or anonymous (null). It goes when
 * it is freed, or after its maker has ended. `device` -1: where most is free. *data receives its
 * address in this process. Buffers inside a mapped pool may be given to collectives. */
PENSTOCK_API enum penstock_status penstock_pool_allocate(penstock_pool* pool, const char* name,
                                                         uint64_t bytes, int32_t device,
                                                         void** data);
PENSTOCK_API enum penstock_status penstock_pool_find(penstock_pool* pool, const char* name,
                                                     void** data, uint64_t* bytes);
PENSTOCK_API enum penstock_status penstock_pool_free(penstock_pool* pool, void* data);

/* ---- scheduling decisions ---- */

typedef struct penstock_cluster penstock_cluster;

typedef struct penstock_decision {
  size_t size;       /* sizeof(penstock_decision) */
  char node[256];    /* "" when the pod fits nowhere */
  int64_t score;     /* of that node: the policy's weighted sum */
  uint32_t feasible; /* nodes that passed every filter */
  uint32_t reserved;
} penstock_decision;
#define PENSTOCK_DECISION_INIT \
  { sizeof(penstock_decision), {0}, 0, 0, 0 }

/* Reads what `kubectl get nodes,pods -A -o json` printed into a file, and builds its node table.
 * `policy` is a name (null: "default", what kube-scheduler does by default) or the path of a
 * KubeSchedulerConfiguration, of which the first profile counts; `engine` is a name (null:
 * PENSTOCK_ENGINE, or the best). PENSTOCK_INVALID_ARGUMENT names the place in the file. */
PENSTOCK_API enum penstock_status penstock_cluster_read(const char* path, const char* policy,
                                                        const char* engine,
                                                        penstock_cluster** cluster);
PENSTOCK_API void penstock_cluster_destroy(penstock_cluster* cluster);
/* Decides where a pending pod of the file ("namespace/name") goes. With commit 1 the node's
 * resources are taken, so that later decisions see it, and the pod is pending no more.
 * PENSTOCK_NOT_FOUND for a pod that is not pending there; a pod that fits nowhere is no error.
 * PENSTOCK_UNSUPPORTED names a term of the pod that cannot be evaluated. */
PENSTOCK_API enum penstock_status penstock_cluster_place(penstock_cluster* cluster, const char* pod,
                                                         int commit, penstock_decision* decision);

#ifdef __cplusplus
}
#endif
#endif
