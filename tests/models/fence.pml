/* Publish and observe of a payload and a fence over memory that is not coherent.
 *
 * Code: host/memory/fence.cpp, Pool::publish and Pool::observe. Two lines, payload and fence, each
 * written by the writer. A store changes the writer's cache; a line gets to the memory when it is
 * evicted, at any time and in any order, or at the latest at the store fence after its write-back.
 * The reader's cache fills at a load and stays as it is until it is evicted, or until the full
 * fence after an invalidation. Property: who sees the fence at n finds payload n.
 *
 * Twins that must fail: BROKEN_WRITE_BACK, BROKEN_STORE_FENCE, BROKEN_INVALIDATE,
 * BROKEN_FULL_FENCE.
 */
#define ROUNDS 4
#define PAYLOAD 0
#define FENCE 1

byte memory[2];
byte mine[2];          /* the writer's cache */
bool dirty[2];
bool written_back[2];  /* by the next store fence */
byte theirs[2];        /* the reader's cache */
bool filled[2];
bool invalidated[2];   /* by the next full fence */
byte done;             /* rounds that the reader is through with */

inline store(line, value) {
  atomic { mine[line] = value; dirty[line] = true; printf("0 store %d\n", line) }
}
inline write_back(line) {
  atomic { written_back[line] = true; printf("0 write_back %d\n", line) }
}
inline evict_dirty(line) {
  atomic { dirty[line] -> memory[line] = mine[line]; dirty[line] = false;
           printf("2 clean %d\n", line) }
}
inline complete(line) {
  if
  :: written_back[line] && dirty[line] -> memory[line] = mine[line]; dirty[line] = false
  :: else
  fi;
  written_back[line] = false
}
inline store_fence() {
  d_step { complete(PAYLOAD); complete(FENCE); printf("0 store_fence\n") }
}
inline invalidate(line) {
  atomic { invalidated[line] = true; printf("1 invalidate %d\n", line) }
}
inline drop(line) {
  if
  :: invalidated[line] -> filled[line] = false
  :: else
  fi;
  invalidated[line] = false
}
inline full_fence() {
  d_step { drop(PAYLOAD); drop(FENCE); printf("1 full_fence\n") }
}
inline load(line) {
  d_step {
    if
    :: !filled[line] -> theirs[line] = memory[line]; filled[line] = true
    :: else
    fi;
    printf("1 load %d\n", line)
  }
}

active proctype writer() {
  byte round = 1;
  do
  :: round <= ROUNDS ->
     done == round - 1;  /* the payload's line is free again */
     store(PAYLOAD, round);
#ifndef BROKEN_WRITE_BACK
     write_back(PAYLOAD);
#endif
#ifndef BROKEN_STORE_FENCE
     store_fence();
#endif
     store(FENCE, round);
     write_back(FENCE);
     round++
  :: else -> break
  od
}

active proctype reader() {
  byte round = 1;
  do
  :: round <= ROUNDS ->
     do
     :: invalidate(FENCE);
        full_fence();
        load(FENCE);
        if
        :: theirs[FENCE] >= round -> break
        :: else
        fi
     od;
#ifndef BROKEN_INVALIDATE
     invalidate(PAYLOAD);
#endif
#ifndef BROKEN_FULL_FENCE
     full_fence();
#endif
     load(PAYLOAD);
     atomic { assert(theirs[PAYLOAD] == round); done = round };
     round++
  :: else -> break
  od
}

/* What caches do of their own accord. The reader has the old payload cached from the start. */
active proctype caches() {
end:
  do
  :: evict_dirty(PAYLOAD)
  :: evict_dirty(FENCE)
  :: atomic { filled[PAYLOAD] -> filled[PAYLOAD] = false; printf("2 drop %d\n", PAYLOAD) }
  :: atomic { !filled[PAYLOAD] -> theirs[PAYLOAD] = memory[PAYLOAD]; filled[PAYLOAD] = true;
              printf("2 fill %d\n", PAYLOAD) }
  od
}
