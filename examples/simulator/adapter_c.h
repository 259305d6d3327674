// The adapter for C, and for languages that call C. The simulator asks which blocks start; nothing
// calls it back.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct tbsched_adapter;

struct tbsched_kernel {
  int blocks, threads, registers, shared_memory;  // as in Adapter::Kernel
  int cluster, priority, carveout;
};

// A block that starts. With its SM and slot it leaves.
struct tbsched_block {
  int sm, slot, kernel, block;
};

// Empty names are the adapter's defaults. Returns null if one is unknown: tbsched_why says which.
struct tbsched_adapter *tbsched_new(const char *policy, const char *device, const char *board);
void tbsched_free(struct tbsched_adapter *adapter);
int tbsched_sms(const struct tbsched_adapter *adapter);
// The kernel's blocks may start from now on. Returns 0, or -1 for one that never can.
int tbsched_launch(struct tbsched_adapter *adapter, int number,
                   const struct tbsched_kernel *kernel);
// Starts every block that has room now. Returns 0, or -1 if that failed. tbsched_next returns them
// one by one: 1, or 0 at the end.
int tbsched_distribute(struct tbsched_adapter *adapter);
int tbsched_next(struct tbsched_adapter *adapter, struct tbsched_block *block);
// A block has ended. Returns 0, or -1 if none runs there.
int tbsched_leave(struct tbsched_adapter *adapter, int sm, int slot);
// Why the last call of this thread was refused.
const char *tbsched_why(void);

#ifdef __cplusplus
}
#endif
