/* Several hosts claim the name of a region at once, with nothing but entries of one writer each.
 *
 * Code: MappedPool::settle_name in host/memory/mapped_pool_regions.cpp. A host publishes its entry
 * as claimed, then reads the others' entries. It withdraws from a live one and from the claim of a
 * lower host; it waits for the claim of a higher host to be withdrawn or made live. A host may
 * stop for ever, or free what it has made. Properties: at most one entry is live at a time; when no
 * host stops, one of them gets the name.
 *
 * Twins that must fail: BROKEN_LOOK (reads the others' entries before its claim, not after),
 * BROKEN_WAIT (the lower host does not wait for a higher one's claim), BROKEN_ORDER (each withdraws
 * from any other's claim).
 * Bounds: HOSTS=2 DEATHS=0
 * Bounds: HOSTS=2 DEATHS=1
 */
#ifndef HOSTS
#define HOSTS 3
#endif
#ifndef DEATHS
#define DEATHS 1
#endif

mtype = { unused, claimed, live };
mtype entry[HOSTS] = unused;
byte deaths = DEATHS;
byte ended, made, lives;

inline look() {
  other = 0; waits = false;
  do
  :: other < HOSTS ->
     atomic {
       printf("%d look %d\n", me, other);
       if
       :: other == me
       :: other != me && entry[other] == live -> goto withdraw
       :: other < me && entry[other] == claimed -> goto withdraw
#ifdef BROKEN_ORDER
       :: other > me && entry[other] == claimed -> goto withdraw
#else
       :: other > me && entry[other] == claimed -> waits = true
#endif
       :: else
       fi;
       other++
     }
  :: else -> break
  od
}

proctype host(byte me) {
  byte other;
  bool waits;
#ifdef BROKEN_LOOK
  look();
  atomic { entry[me] = claimed; printf("%d claim\n", me) };
#else
  atomic { entry[me] = claimed; printf("%d claim\n", me) };
  if
  :: atomic { deaths > 0 -> deaths--; printf("%d die\n", me) }; goto stop
  :: skip
  fi;
again:
  look();
#ifndef BROKEN_WAIT
  if
  :: waits -> goto again
  :: else
  fi;
#endif
#endif
  atomic {
    printf("%d confirm\n", me);
    entry[me] = live; made++; lives++;
    assert(lives == 1)
  };
  if
  :: atomic { entry[me] = unused; lives--; printf("%d free\n", me) }
  :: skip
  fi;
  goto end;
withdraw:
  atomic { entry[me] = unused; printf("%d withdraw\n", me) };
end:
  ended++;
stop:
  skip
}

init {
  atomic { byte h; for (h : 0 .. HOSTS - 1) { run host(h) } };
  ended == HOSTS || deaths < DEATHS;
  assert(made > 0 || deaths < DEATHS)
}
