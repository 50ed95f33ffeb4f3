/* A block of several lines with one writer, read by others while it is written: two copies, written
 * in turn, with a sequence number and a checksum.
 *
 * Code: host/memory/agreement_block.cpp. A copy is two lines here, which get to the memory and are
 * read one by one, in any order; it counts when both are of the same write. The writer may stop for
 * ever in the middle of a write. Property, on which the agreement builds: what a reader takes is no
 * older than the last write that was complete when it began to read.
 *
 * Twins that must fail: BROKEN_COPY (one copy only, so that a writer that stopped leaves nothing to
 * read), BROKEN_LOOK (a reader that finds one copy torn takes the other one of the same look).
 */
#define WRITES 5
#define LOOKS 2

#ifdef BROKEN_COPY
#define COPY(s) 0
#else
#define COPY(s) ((s) % 2)
#endif

byte line[4];      /* copy c: lines 2c and 2c + 1; contents: the sequence number of the write */
byte complete;     /* sequence number of the last complete write */
bool has_stopped;

active proctype writer() {
  byte s = 1, half;
  do
  :: s <= WRITES ->
     if  /* either line first */
     :: half = 0
     :: half = 1
     fi;
     atomic { line[2 * COPY(s) + half] = s; printf("0 line %d %d\n", 2 * COPY(s) + half, s) };
     if
     :: atomic { has_stopped = true; printf("0 stop\n") }; goto stop
     :: skip
     fi;
     atomic { line[2 * COPY(s) + 1 - half] = s; complete = s;
              printf("0 line %d %d\n", 2 * COPY(s) + 1 - half, s) };
     s++
  :: else -> break
  od;
  has_stopped = true;
stop:
  skip
}

byte seen[4];
#define COUNTS(copy) (seen[2 * (copy)] == seen[2 * (copy) + 1])

inline look() {  /* each line once, in any order */
  todo = 15;
  do
  :: atomic { (todo & 1) -> seen[0] = line[0]; todo = todo - 1; printf("1 look 0\n") }
  :: atomic { (todo & 2) -> seen[1] = line[1]; todo = todo - 2; printf("1 look 1\n") }
  :: atomic { (todo & 4) -> seen[2] = line[2]; todo = todo - 4; printf("1 look 2\n") }
  :: atomic { (todo & 8) -> seen[3] = line[3]; todo = todo - 8; printf("1 look 3\n") }
  :: todo == 0 -> break
  od
}

active proctype reader() {
  byte todo, least, taken, torn, tries;
  bool at_rest;
  do
  :: tries < LOOKS ->
     at_rest = has_stopped;
     tries = (at_rest -> LOOKS : tries + 1);
     least = complete;
     torn = 2;
     look();
     if
     :: COUNTS(0) && COUNTS(1)
     :: else ->
#ifndef BROKEN_LOOK
        torn = (COUNTS(0) -> 1 : 0);
        look()
#else
        torn = (COUNTS(0) -> 1 : 0)
#endif
     fi;
     taken = 255;
     if
     :: COUNTS(0) && COUNTS(1) -> taken = (seen[0] > seen[2] -> seen[0] : seen[2])
     :: torn < 2 && !COUNTS(torn) && COUNTS(1 - torn) -> taken = seen[2 * (1 - torn)]
     :: else
     fi;
     assert(taken == 255 || taken >= least);
     /* Of a writer at rest a block can be read, whatever it left. */
     assert(taken != 255 || !at_rest)
  :: else -> break
  od
}
