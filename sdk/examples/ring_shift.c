/* Non-blocking point to point from C: every rank hands a message to its right neighbour. */
#include <stdio.h>
#include <string.h>

#include "penstock/penstock.h"

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, penstock_last_error());
  return 2;
}

int main(void) {
  penstock_comm* comm = NULL;
  if (penstock_comm_init(NULL, &comm) != PENSTOCK_OK) return fail("init");
  const uint32_t rank = penstock_comm_rank(comm);
  const uint32_t size = penstock_comm_size(comm);
  if (size == 1) {
    printf("alone: nobody to talk to\n");
    penstock_comm_destroy(comm);
    return 0;
  }
  const uint32_t right = (rank + 1) % size;
  const uint32_t left = (rank + size - 1) % size;

  char out[64] = {0};
  char in[64] = {0};
  char expected[64] = {0};
  snprintf(out, sizeof out, "greetings from rank %u", (unsigned)rank);
  snprintf(expected, sizeof expected, "greetings from rank %u", (unsigned)left);

  penstock_call send = PENSTOCK_CALL_INIT;
  send.collective = PENSTOCK_SEND;
  send.root = right;
  send.send = out;
  send.count = sizeof out;
  penstock_call receive = PENSTOCK_CALL_INIT;
  receive.collective = PENSTOCK_RECV;
  receive.root = left;
  receive.recv = in;
  receive.count = sizeof in;

  penstock_request* requests[2] = {NULL, NULL};
  if (penstock_start(comm, &send, &requests[0]) != PENSTOCK_OK) return fail("send");
  if (penstock_start(comm, &receive, &requests[1]) != PENSTOCK_OK) return fail("receive");
  for (int i = 0; i < 2; ++i) {
    if (penstock_wait(requests[i]) != PENSTOCK_OK) return fail("wait");
    penstock_request_free(requests[i]);
  }
  const int right_message = memcmp(in, expected, sizeof in) == 0;
  printf("rank %u of %u got \"%s\", %s\n", (unsigned)rank, (unsigned)size, in,
         right_message ? "right" : "WRONG");
  penstock_comm_destroy(comm);
  return right_message ? 0 : 1;
}
