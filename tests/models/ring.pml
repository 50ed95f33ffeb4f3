/* The ring of descriptors and the ring of completions of one queue.
 *
 * Code: host/queue/queue.h, queue.cpp. Positions count up; position p stands in slot p % DEPTH of
 * either ring. submitted is written by the submitter, completed by the engine, polled by the
 * submitter. Properties: the engine executes what was submitted, in order; every accepted
 * descriptor gives exactly one completion, in order; nothing accepted is lost; all of it ends.
 *
 * Twins that must fail: BROKEN_RESERVE (accepted while the descriptor has a place but its
 * completion has none), BROKEN_COMMIT (counted before it is filled in).
 */
#define DEPTH 2
#define ITEMS 5

byte descriptor[DEPTH];
byte completion[DEPTH];
byte submitted, completed, polled;

#ifdef BROKEN_RESERVE
#define HAS_PLACE (submitted - completed < DEPTH)
#else
#define HAS_PLACE (submitted - polled < DEPTH)
#endif

active proctype submitter() {
  byte next = 1;  /* to submit: the descriptor's contents */
  do
  :: next <= ITEMS && HAS_PLACE ->
#ifdef BROKEN_COMMIT
     atomic { submitted++; printf("0 commit %d\n", next) };
     atomic { descriptor[(next - 1) % DEPTH] = next; printf("0 fill %d\n", next) };
#else
     atomic { descriptor[submitted % DEPTH] = next; printf("0 fill %d\n", next) };
     atomic { submitted++; printf("0 commit %d\n", next) };
#endif
     next++
  :: polled < completed ->
     atomic {
       printf("0 poll %d\n", polled);
       assert(completion[polled % DEPTH] == polled + 1);
       completion[polled % DEPTH] = 0
     };
     polled++
  :: polled == ITEMS -> break
  od;
  assert(next == ITEMS + 1 && submitted == ITEMS && completed == ITEMS)
}

active proctype engine() {
  byte held;
  do
  :: completed < submitted ->
     atomic {
       held = descriptor[completed % DEPTH];
       printf("1 take %d\n", completed);
       assert(held == completed + 1)
     };
     atomic {
       printf("1 complete %d\n", completed);
       assert(completion[completed % DEPTH] == 0);  /* nobody's completion is overwritten */
       completion[completed % DEPTH] = held
     };
     completed++
  :: completed == ITEMS -> break
  od
}
