/* Agreement among hosts over blocks with one writer each: Disk Paxos (Gafni and Lamport, 2003) with
 * the pool as its one disk, and blocks that serve a later decision after an earlier one.
 *
 * Code: host/memory/agreement_ballot.cpp, of which each step is one step here: the write of the
 * own block, or the read of another's (how a block of several lines is read while it is written is
 * in block.pml). A host may stop for ever at any step, or be followed there by a new process, which
 * knows only what stands in its block. Decision 2 may be begun by who knows decision 1, in the same
 * blocks. Property: all who learn a decision learn the same.
 *
 * Twins that must fail: BROKEN_SECOND_READ (decided without reading the others' blocks again),
 * BROKEN_HIGHEST (takes the first accepted value that it meets), BROKEN_RECYCLED (takes a block
 * that serves a later decision for an empty one).
 * Bounds: BALLOTS=4
 * Bounds: BALLOTS=3 CRASHES=3
 * Bounds: HOSTS=3 NUMBERS=1 BALLOTS=1
 * Full bounds: HOSTS=3 NUMBERS=1 BALLOTS=2
 * Full bounds: HOSTS=3 BALLOTS=2 CRASHES=0
 */
#ifndef HOSTS
#define HOSTS 2
#endif
#ifndef BALLOTS
#define BALLOTS 3  /* that a host begins in all */
#endif
#ifndef NUMBERS
#define NUMBERS 2
#endif

typedef Block { byte number; byte promised; byte accepted; byte value; bool decided };
Block block[HOSTS];
byte decision[NUMBERS + 1];  /* 0: none yet. The oracle, which no host reads. */
#ifndef CRASHES
#define CRASHES 1
#endif
byte crashes = CRASHES;

inline learn(chosen) {
  assert(decision[number] == 0 || decision[number] == chosen);
  decision[number] = chosen
}

proctype host(byte me) {
  byte number = 1, ballot, highest, accepted, value, begun, other;
recall:
  atomic {
    printf("%d recall\n", me);
    accepted = 0; value = 0; ballot = 0; highest = 0; other = 0;
    if
    :: block[me].number > number -> number = block[me].number
    :: else
    fi;
    if
    :: block[me].number == number && block[me].decided -> learn(block[me].value); goto learned
    :: block[me].number == number && !block[me].decided -> highest = block[me].promised
    :: else
    fi
  };
promise:
  if
  :: begun == BALLOTS -> goto stop
  :: begun < BALLOTS
  fi;
  atomic {  /* step 1 */
    begun++;
    ballot = (highest / HOSTS + 1) * HOSTS + me;
    if
    :: block[me].number < number ->
       block[me].number = number; block[me].accepted = 0; block[me].value = 0;
       block[me].decided = false
    :: else
    fi;
    block[me].promised = ballot; accepted = block[me].accepted; value = block[me].value;
    other = (me + 1) % HOSTS; printf("%d promise\n", me)
  };
hear:  /* steps 2 and 4 */
  do
  :: other != me ->
     atomic {
       printf("%d hear %d\n", me, other);
       if
#ifndef BROKEN_RECYCLED
       :: block[other].number > number -> goto stop
#endif
       :: block[other].number == number && block[other].decided ->
          learn(block[other].value); goto learned
       :: block[other].number == number && !block[other].decided ->
          if
          :: block[other].promised > highest -> highest = block[other].promised
          :: else
          fi;
          if
          :: block[other].promised > ballot -> goto promise
          :: else
          fi;
          if
#ifdef BROKEN_HIGHEST
          :: block[other].accepted > 0 && accepted == 0 ->
#else
          :: block[other].accepted > accepted ->
#endif
             accepted = block[other].accepted; value = block[other].value
          :: else
          fi
       :: else
       fi;
       other = (other + 1) % HOSTS
     }
  :: other == me -> break
  :: atomic { crashes > 0 -> crashes--; number = 1; printf("%d crash\n", me); goto recall }
  od;
  if
  :: block[me].accepted != ballot ->
     atomic {  /* step 3 */
       if
       :: accepted == 0 -> value = me + 1
       :: else
       fi;
       block[me].accepted = ballot; block[me].value = value; other = (me + 1) % HOSTS;
       printf("%d accept\n", me)
     };
#ifndef BROKEN_SECOND_READ
     goto hear
#endif
  :: else
  fi;
  atomic {  /* step 5 */
    block[me].decided = true; learn(block[me].value); printf("%d record\n", me)
  };
learned:
  if
  :: number < NUMBERS -> number++; goto recall
  :: else
  fi;
stop:
  skip
}

init {
  atomic { byte h; for (h : 0 .. HOSTS - 1) { run host(h) } }
}
