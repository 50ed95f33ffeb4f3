/* Death and takeover: a host that sleeps is removed, and wakes in the middle of what it did.
 *
 * Code: host/memory/agreement_members.h. Host 0 has a worker, which writes a block in two steps
 * whenever it believes its host a member, and a watcher, which takes note of new epochs. Host 1
 * may at any time find host 0 silent and remove it (epoch 2), and then wants to use the block for
 * something else. Before that the block stays in quarantine, until host 0 has acknowledged the
 * epoch, which it does with no worker at work, or is proven dead. Property: host 1 reads what it
 * wrote; and when nobody sleeps for ever, it gets there.
 *
 * Twins that must fail: BROKEN_QUARANTINE (none), BROKEN_ACKNOWLEDGE (the watcher acknowledges
 * while the worker is at work), BROKEN_CHECK (instead of a quarantine, the worker looks at the
 * epoch right before each write: it may sleep behind the look).
 */
#define ROUNDS 3
#define OLD 1
#define NEW 2

byte epoch = 1;         /* decided by agreement: agreement.pml */
byte noted = 1;         /* the epoch that host 0's processes know */
bool at_work;
byte acknowledged = 1;
bool dead;              /* proven: it makes no step any more */
byte word[2];           /* the block */

#ifdef BROKEN_CHECK
#define MAY_WRITE (epoch == 1)
#else
#define MAY_WRITE true
#endif

inline write(n) {
  if
  :: MAY_WRITE
  :: dead || !MAY_WRITE -> goto stop
  fi;
  if
  :: atomic { !dead -> word[n] = OLD; printf("0 write %d\n", n) }
  :: dead -> goto stop
  fi
}

active proctype worker() {
  byte round;
  do
  :: round < ROUNDS ->
     atomic {
       if
       :: dead || noted > 1 -> goto stop
       :: else -> at_work = true; printf("0 begin\n")
       fi
     };
     write(0);
     write(1);
     if
     :: atomic { !dead -> at_work = false; printf("0 end\n") }
     :: dead -> goto stop
     fi;
     round++
  :: else -> break
  od;
stop:
  at_work = false
}

active proctype watcher() {
  if
  :: epoch > noted && !dead -> atomic { noted = epoch; printf("2 note\n") }
  :: dead -> goto stop
  :: timeout -> goto stop
  fi;
  atomic {
#ifndef BROKEN_ACKNOWLEDGE
    !at_work || dead;
#endif
    if
    :: !dead -> acknowledged = noted; printf("2 acknowledge\n")
    :: else
    fi
  };
stop:
  skip
}

active proctype death() {
  if
  :: atomic { !dead -> dead = true; printf("3 die\n") }
  :: skip
  fi
}

active proctype survivor() {
  atomic { epoch++; printf("1 remove\n") };
#ifndef BROKEN_QUARANTINE
#ifndef BROKEN_CHECK
  acknowledged >= epoch || dead;
#endif
#endif
  atomic { word[0] = NEW; printf("1 write 0\n") };
  atomic { word[1] = NEW; printf("1 write 1\n") };
  atomic { printf("1 read\n"); assert(word[0] == NEW && word[1] == NEW) }
}
