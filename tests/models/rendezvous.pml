/* How the ranks of a comm meet in a record, and how they leave it.
 *
 * Code: host/comm/rendezvous.cpp. The record has an epoch and a member line per rank; who enters,
 * withdraws or frees the record holds the comms lock, which a death sets free; who has met says that
 * it leaves before that. A record without a living member is replaced under the next epoch; one that
 * lost a rank takes in nobody until the last has left. A rank waits outside of the lock, until all
 * have come, one has withdrawn or died, or its patience ends. Every rank has a first process, which
 * may die anywhere, and then a second one.
 *
 * Properties: all of a comm that met joined the same epoch, and know the same processes by it; two
 * comms of one name are never in use at once; nobody withdraws from a comm that has met.
 *
 * Twins that must fail: BROKEN_EPOCH (the lock is let go between reading the record and entering
 * it, so that a late joiner of an old epoch gets in), BROKEN_REPLACED (a comm that lost a rank
 * takes in its next process), BROKEN_WITHDRAW (withdraws without looking again).
 */
#define RANKS 2
#define PROCESSES 4    /* process p is of rank p % RANKS */
#define MAX_EPOCH 4
#define NOBODY 255

mtype = { absent, joined, left, withdrew };
bool exists;
byte epoch;
mtype state[RANKS] = absent;
byte who[RANKS];         /* the process in the member line */
bool alive[PROCESSES];
byte joined_epoch[PROCESSES];
byte in_use[PROCESSES];  /* the epoch in which it has met, while it uses the comm */
byte lock = NOBODY;
byte deaths = 2;
byte met_in = 0;         /* the oracle: the newest epoch in which anybody met, and who was met */
byte met[RANKS];

#define LIVES(r) (state[r] == joined && alive[who[r]])
#define LOST(r) (state[r] == withdrew || (state[r] == joined && !alive[who[r]]))
#define CAME(r) (state[r] == joined || state[r] == left)  /* dead by now, perhaps */
#define ALL_CAME (CAME(0) && CAME(1))

inline take_lock() { atomic { lock == NOBODY -> lock = me } }
inline drop_lock() { lock = NOBODY }
inline may_die() {
  if
  :: atomic { deaths > 0 && me < RANKS -> deaths--; alive[me] = false; in_use[me] = 0;
              printf("%d die\n", me);
              if
              :: lock == me -> lock = NOBODY
              :: else
              fi }; goto dead
  :: skip
  fi
}

proctype process(byte me) {
  byte mine;  /* epoch */
  bool has_met;
join:
  has_met = false;
  may_die();
  take_lock();
  atomic {
    printf("%d adopt\n", me);
    if
    :: !exists || !(LIVES(0) || LIVES(1)) ->
       if
       :: epoch == MAX_EPOCH -> drop_lock(); goto done
       :: else -> exists = true; epoch++; state[0] = absent; state[1] = absent
       fi
    :: else ->
       if
#ifdef BROKEN_REPLACED
       :: LOST(me % RANKS) -> skip
       :: LIVES(me % RANKS) || state[me % RANKS] == left -> drop_lock(); goto join
#else
       :: LOST(0) || LOST(1) || state[me % RANKS] != absent -> drop_lock(); goto join
#endif
       :: else
       fi
    fi;
    mine = epoch
#ifdef BROKEN_EPOCH
    ; drop_lock()
#endif
  };
  may_die();
  atomic { joined_epoch[me] = mine; state[me % RANKS] = joined; who[me % RANKS] = me;
           printf("%d enter\n", me)
#ifndef BROKEN_EPOCH
           ; drop_lock()
#endif
  };
  may_die();
  if  /* waiting for the others */
  :: atomic { ALL_CAME -> has_met = true; printf("%d meet\n", me) }
  :: atomic { LOST(1 - me % RANKS) -> printf("%d lost\n", me) }; goto leave
  :: atomic { !ALL_CAME -> printf("%d give_up\n", me) }; goto leave
  fi;
use:
  atomic {
    assert(epoch == mine);
    assert(joined_epoch[who[0]] == mine && joined_epoch[who[1]] == mine);
    byte p;
    for (p : 0 .. PROCESSES - 1) { assert(!alive[p] || in_use[p] == 0 || in_use[p] == mine) };
    p = 0;
    assert(met_in != mine || (met[0] == who[0] && met[1] == who[1]));
    in_use[me] = mine; met_in = mine; met[0] = who[0]; met[1] = who[1]
  };
  may_die();
leave:
  atomic {
    in_use[me] = 0;
    if
    :: has_met && exists && epoch == mine -> state[me % RANKS] = left; printf("%d tell\n", me)
    :: else
    fi
  };
  may_die();
  take_lock();
  atomic {
    printf("%d leave\n", me);
    if
    :: exists && epoch == mine ->
       if
#ifndef BROKEN_WITHDRAW
       :: !has_met && ALL_CAME -> has_met = true; drop_lock(); goto use  /* all came */
#endif
       :: has_met
       :: else -> assert(met_in < mine); state[me % RANKS] = withdrew
       fi;
       if
       :: !(LIVES(0) || LIVES(1)) -> exists = false
       :: else
       fi
    :: else
    fi;
    drop_lock();
    if
    :: has_met -> goto done
    :: else -> goto join
    fi
  };
dead:
  atomic { alive[me + RANKS] = true; run process(me + RANKS) };
done:
  skip
}

init { atomic { alive[0] = true; alive[1] = true; run process(0); run process(1) } }
