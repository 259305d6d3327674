// A simulator in C. It reads kernels as examples/simulator/main.cc does, and prints the same:
// cycle, kernel, block and SM of each block. The argument is a policy. A line with a cycle of -1
// asks for what must be refused.
#include <stdio.h>
#include <stdlib.h>

#include "adapter_c.h"

struct run {
  struct tbsched_block block;
  long end;
};

static struct tbsched_adapter *adapter;
static struct run *running;
static size_t count, room;
static long lengths[64];

static void refuse(void) {
  fprintf(stderr, "%s\n", tbsched_why());
  exit(2);
}

// Blocks end in the order of their SMs, and then of their start; then others take their place.
static void cycle(long now) {
  for (int sm = 0; sm < tbsched_sms(adapter); ++sm) {
    size_t kept = 0;
    for (size_t k = 0; k < count; ++k) {
      if (running[k].block.sm != sm || running[k].end != now) {
        running[kept++] = running[k];
      } else if (tbsched_leave(adapter, sm, running[k].block.slot)) {
        refuse();
      }
    }
    count = kept;
  }
  if (tbsched_distribute(adapter)) refuse();
  for (struct tbsched_block block; tbsched_next(adapter, &block);) {
    if (count == room) running = realloc(running, (room = 2 * room + 64) * sizeof *running);
    running[count++] = (struct run){block, now + lengths[block.kernel] + 7 * block.block % 13};
    printf("%ld %d %d %d\n", now, block.kernel, block.block, block.sm);
  }
}

int main(int argc, char *argv[]) {
  adapter = tbsched_new(argc > 1 ? argv[1] : "", "", "");
  if (!adapter) refuse();
  long now = 0, comes;
  int number = 0;
  struct tbsched_kernel kernel = {.cluster = 1, .carveout = -1};
  while (scanf("%ld %d %d %d %d %ld", &comes, &kernel.blocks, &kernel.threads, &kernel.registers,
               &kernel.shared_memory, &lengths[number]) == 6) {
    if (comes < 0 && tbsched_leave(adapter, 0, 12345)) refuse();
    while (now < comes) cycle(now++);
    if (tbsched_launch(adapter, number++, &kernel)) refuse();
  }
  do cycle(now++);
  while (count);
  tbsched_free(adapter);
  free(running);
}
