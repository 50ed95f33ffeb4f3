/* A payload and its sequence number in one line: no fence, no second trip.
 *
 * Code: host/memory/inline_block.h and the collectives' lane. The payload's words are stored first
 * and the sequence last; the line is written back whole, at any moment. The reader loads the
 * sequence and then the payload; in between its copy may be evicted and filled anew. A slot is used
 * again SLOTS passes later, once the reader's progress fence says that it is done with the pass
 * before. Property: who sees sequence n reads payload n in every word.
 *
 * Twins that must fail: BROKEN_ORDER (sequence first), BROKEN_REUSE (no waiting for the reader).
 * Bounds: SLOTS=4 PASSES=6
 */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef PASSES
#define PASSES 5
#endif
#define WORDS 2
#define SLOT(pass) ((pass) % SLOTS)

typedef Line { byte sequence; byte word[WORDS] };
Line memory[SLOTS];
Line mine[SLOTS];      /* the writer's cache */
Line theirs[SLOTS];    /* the reader's cache */
bool filled[SLOTS];
byte progress;     /* the reader's fence: passes that it is done with */

inline clean(at) {
  memory[at].sequence = mine[at].sequence;
  memory[at].word[0] = mine[at].word[0];
  memory[at].word[1] = mine[at].word[1]
}
inline fill(at) {
  theirs[at].sequence = memory[at].sequence;
  theirs[at].word[0] = memory[at].word[0];
  theirs[at].word[1] = memory[at].word[1];
  filled[at] = true
}

active proctype writer() {
  byte pass = 1, w;
  do
  :: pass <= PASSES ->
#ifndef BROKEN_REUSE
     pass <= SLOTS || progress >= pass - SLOTS;
#endif
     w = 0;
#ifdef BROKEN_ORDER
     atomic { mine[SLOT(pass)].sequence = pass; printf("0 sequence %d\n", pass) };
#endif
     do
     :: w < WORDS ->
        atomic { mine[SLOT(pass)].word[w] = pass; printf("0 word %d %d\n", w, pass); w++ }
     :: else -> break
     od;
#ifndef BROKEN_ORDER
     atomic { mine[SLOT(pass)].sequence = pass; printf("0 sequence %d\n", pass) };
#endif
     atomic { clean(SLOT(pass)); printf("0 write_back %d\n", SLOT(pass)) };
     pass++
  :: else -> break
  od
}

active proctype reader() {
  byte pass = 1, w, seen;
  do
  :: pass <= PASSES ->
     do
     :: d_step { fill(SLOT(pass)); seen = theirs[SLOT(pass)].sequence;
                 printf("1 look %d\n", SLOT(pass)) };
        if
        :: seen == pass -> break
        :: seen > pass -> assert(seen <= pass)  /* its own pass is gone */
        :: else
        fi
     od;
     w = 0;
     do
     :: w < WORDS ->
        d_step {
          if
          :: !filled[SLOT(pass)] -> fill(SLOT(pass))
          :: else
          fi;
          printf("1 take %d %d\n", SLOT(pass), w);
          assert(theirs[SLOT(pass)].word[w] == pass);
          w++
        }
     :: else -> break
     od;
     atomic { progress = pass; printf("1 progress %d\n", pass) };
     pass++
  :: else -> break
  od
}

/* What caches do of their own accord. */
active proctype caches() {
  byte slot;
end:
  do
  :: d_step { clean(slot); printf("2 clean %d\n", slot) }
  :: atomic { filled[slot] -> filled[slot] = false; printf("2 drop %d\n", slot) }
  :: slot = (slot + 1) % SLOTS
  od
}
