/* One-sided ping-pong: a rank writes into its partner's window and signals; the partner answers in
 * the same way. Ranks 0 and 1 play, then 2 and 3, and so on. */
#include <stdio.h>
#include <string.h>

#include "penstock/penstock.h"

enum { ROUNDS = 1000, MESSAGE = 256 };

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, penstock_last_error());
  return 2;
}

static void fill(char* message, uint32_t rank, int round) {
  memset(message, 0, MESSAGE);
  snprintf(message, MESSAGE, "round %d from rank %u", round, (unsigned)rank);
}

/* 0: all rounds were right. */
static int play(penstock_window* window, uint32_t rank, uint32_t partner) {
  char message[MESSAGE];
  char expected[MESSAGE];
  const int serves = rank < partner;
  for (int round = 1; round <= ROUNDS; ++round) {
    for (int turn = 0; turn < 2; ++turn) {
      if ((turn == 0) == serves) {
        fill(message, rank, round);
        if (penstock_window_put(window, partner, 0, message, MESSAGE) != PENSTOCK_OK ||
            penstock_window_signal(window, partner, 0, (uint64_t)round) != PENSTOCK_OK) {
          return fail("put");
        }
        continue;
      }
      if (penstock_window_wait_signal(window, partner, 0, (uint64_t)round, 0) != PENSTOCK_OK ||
          penstock_window_observe(window, 0, MESSAGE) != PENSTOCK_OK) {
        return fail("wait");
      }
      fill(expected, partner, round);
      if (memcmp(penstock_window_data(window), expected, MESSAGE) != 0) {
        printf("rank %u got WRONG \"%s\"\n", (unsigned)rank, (char*)penstock_window_data(window));
        return 1;
      }
    }
  }
  printf("rank %u and rank %u: %d rounds, right\n", (unsigned)rank, (unsigned)partner, ROUNDS);
  return 0;
}

int main(void) {
  penstock_comm* comm = NULL;
  if (penstock_comm_init(NULL, &comm) != PENSTOCK_OK) return fail("init");
  const uint32_t rank = penstock_comm_rank(comm);
  const uint32_t partner = rank ^ 1;
  penstock_window_config config = PENSTOCK_WINDOW_CONFIG_INIT;
  config.bytes = MESSAGE;
  penstock_window* window = NULL;
  if (penstock_window_make(comm, &config, &window) != PENSTOCK_OK) return fail("window");
  int result = 0;
  if (partner < penstock_comm_size(comm)) {
    result = play(window, rank, partner);
  } else {
    printf("rank %u has nobody to play with\n", (unsigned)rank);
  }
  penstock_window_destroy(window);
  penstock_comm_destroy(comm);
  return result;
}
