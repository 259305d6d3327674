#include "cuda-sim.h"

// A map of addresses: local memory of each thread of each SM, then shared memory of each SM.
const addr_t PER_THREAD = 16, PER_SM = 96;
const addr_t LOCAL = 1000;
const addr_t SHARED = LOCAL + PER_THREAD * MAX_THREAD_PER_SM * MAX_STREAMING_MULTIPROCESSORS;
const addr_t GLOBAL = SHARED + PER_SM * MAX_STREAMING_MULTIPROCESSORS;

char whichspace(addr_t addr) {
  if (addr < LOCAL || addr >= GLOBAL) return 'g';
  return addr >= SHARED ? 's' : 'l';
}

addr_t shared_to_generic(unsigned smid, addr_t addr) { return SHARED + PER_SM * smid + addr; }

bool isspace_shared(unsigned smid, addr_t addr) {
  return addr >= SHARED + PER_SM * smid && addr < SHARED + PER_SM * (smid + 1);
}

addr_t generic_to_shared(unsigned smid, addr_t addr) { return addr - (SHARED + PER_SM * smid); }

addr_t local_to_generic(unsigned smid, unsigned hwtid, addr_t addr) {
  return LOCAL + PER_THREAD * (MAX_THREAD_PER_SM * smid + hwtid) + addr;
}

bool isspace_local(unsigned smid, unsigned hwtid, addr_t addr) {
  const addr_t start = LOCAL + PER_THREAD * (MAX_THREAD_PER_SM * smid + hwtid);
  return addr >= start && addr < start + PER_THREAD;
}

addr_t generic_to_local(unsigned smid, unsigned hwtid, addr_t addr) {
  return addr - (LOCAL + PER_THREAD * (MAX_THREAD_PER_SM * smid + hwtid));
}
