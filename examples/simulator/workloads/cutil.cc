// What programs of CUDA's first SDK want of its library: timers that stand still, and a comparison.
#include <cstring>

extern "C" {
int cutCreateTimer(unsigned* timer) {
  *timer = 0;
  return 1;
}
int cutDeleteTimer(unsigned) { return 1; }
int cutStartTimer(unsigned) { return 1; }
int cutStopTimer(unsigned) { return 1; }
int cutResetTimer(unsigned) { return 1; }
float cutGetTimerValue(unsigned) { return 0; }
int cutCheckCmdLineFlag(int, const char**, const char*) { return 0; }
int cutGetCmdLineArgumenti(int, const char**, const char*, int*) { return 0; }
int cutCompareub(const unsigned char* a, const unsigned char* b, unsigned bytes) {
  return std::memcmp(a, b, bytes) == 0;
}
}
