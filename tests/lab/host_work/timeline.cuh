// One time base (the GPU's globaltimer) for kernels and host calls; a line of JSON per run.
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
typedef unsigned long long u64;
typedef long long i64;

struct Rec {
  u64 start, end;
  unsigned sm, seen;
};

__device__ __forceinline__ u64 gtime() {
  u64 t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}
__device__ __forceinline__ unsigned smid() {
  unsigned s;
  asm volatile("mov.u32 %0, %smid;" : "=r"(s));
  return s;
}

// Records that a block began at `t`, and its SM.
__device__ __forceinline__ void mark(Rec* r, u64 t) {
  r->start = t;
  r->sm = smid();
  r->seen = 1;
}
// Spins until `ns` have passed since `t`.
__device__ __forceinline__ void wait_since(u64 t, u64 ns) {
  while (gtime() - t < ns) {
  }
}

// Each block: records start, spins, records end.
__global__ void spin(u64 ns, Rec* r) {
  u64 t = gtime();
  if (threadIdx.x == 0) mark(r + blockIdx.x, t);
  wait_since(t, ns);
  __syncthreads();
  if (threadIdx.x == 0) r[blockIdx.x].end = gtime();
}
// The n-th execution of the kernel writes r[n * grid + block].
__global__ void spin_again(u64 ns, Rec* r, unsigned* count, unsigned most) {
  __shared__ unsigned n;
  u64 t = gtime();
  if (threadIdx.x == 0) n = atomicAdd(count + blockIdx.x, 1u);
  __syncthreads();
  wait_since(t, ns);
  __syncthreads();
  if (threadIdx.x == 0 && n < most) {
    Rec& x = r[n * gridDim.x + blockIdx.x];
    x.start = t;
    x.sm = smid();
    x.seen = 1;
    x.end = gtime();
  }
}
__global__ void pingpong(volatile unsigned* in, volatile u64* out, int n) {
  for (int i = 1; i <= n; ++i) {
    while (*in < (unsigned)i) {
    }
    *out = gtime();
  }
}
// Waits until *flag is set (in pinned memory), for at most `limit` ns.
__global__ void gate(volatile unsigned* flag, u64 limit, Rec* r) {
  u64 t = gtime();
  if (threadIdx.x == 0) mark(r, t);
  while (!*flag && gtime() - t < limit) {
  }
  if (threadIdx.x == 0) r->end = gtime();
}

inline i64 host_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}
inline long tid() { return syscall(SYS_gettid); }

struct Out {
  std::mutex m;
};
inline std::mutex& out_mutex() {
  static std::mutex m;
  return m;
}
inline const char*& part_name() {
  static const char* p = "?";
  return p;
}
inline void line(const std::string& s) {
  std::lock_guard<std::mutex> l(out_mutex());
  fputs(s.c_str(), stdout);
  fputc('\n', stdout);
  fflush(stdout);
}
inline std::string fmt(const char* f, ...) {
  char b[4096];
  va_list a;
  va_start(a, f);
  vsnprintf(b, sizeof b, f, a);
  va_end(a);
  return b;
}
inline void problem(const char* where, const char* what, const char* name) {
  line(fmt("{\"part\":\"%s\",\"error\":\"%s\",\"call\":\"%s\",\"code\":\"%s\"}", part_name(), where,
           what, name));
}
struct Failed {};
inline const char*& case_name() {
  static const char* p = "?";
  return p;
}
#define CK(x)                                         \
  do {                                                \
    cudaError_t e_ = (x);                             \
    if (e_ != cudaSuccess) {                          \
      cudaGetLastError();                             \
      problem(case_name(), #x, cudaGetErrorName(e_)); \
      throw Failed();                                 \
    }                                                 \
  } while (0)
#define CU(x)                                                        \
  do {                                                               \
    CUresult e_ = (x);                                               \
    if (e_ != CUDA_SUCCESS) {                                        \
      problem(case_name(), #x, fmt("CUresult %d", (int)e_).c_str()); \
      throw Failed();                                                \
    }                                                                \
  } while (0)
// A driver function by name, without linking libcuda.
template <class F>
F driver(const char* name, unsigned version = 12040) {
  void* p = nullptr;
  cudaDriverEntryPointQueryResult q;
  if (cudaGetDriverEntryPointByVersion(name, &p, version, cudaEnableDefault, &q) != cudaSuccess ||
      !p) {
    problem(case_name(), name, "no entry point");
    throw Failed();
  }
  return (F)p;
}

struct Clock {  // globaltimer minus host clock, ns
  i64 offset = 0, spread = 0;
  void calibrate() {
    unsigned* in;
    u64* out;
    CK(cudaHostAlloc(&in, 4, cudaHostAllocMapped));
    CK(cudaHostAlloc(&out, 8, cudaHostAllocMapped));
    *in = 0;
    *out = 0;
    const int n = 200;
    pingpong<<<1, 1>>>(in, out, n);
    CK(cudaGetLastError());
    i64 best = 1ll << 60;
    volatile u64* vo = out;
    volatile unsigned* vi = in;
    u64 last = 0;
    i64 give_up = host_ns() + 2000000000ll;
    for (int i = 1; i <= n; ++i) {
      i64 a = host_ns();
      *vi = i;
      u64 g;
      while ((g = *vo) == last && host_ns() < give_up) {
      }
      i64 b = host_ns();
      last = g;
      if (b - a < best) {
        best = b - a;
        offset = (i64)g - (a + b) / 2;
      }
    }
    *vi = n;
    CK(cudaDeviceSynchronize());
    spread = best;
    cudaFreeHost(in);
    cudaFreeHost(out);
  }
};
inline Clock& the_clock() {
  static Clock c;
  return c;
}

struct Pool {  // records in device memory
  Rec* base = nullptr;
  size_t used = 0, size = 1 << 17;
  void init() {
    CK(cudaMalloc(&base, size * sizeof(Rec)));
    clear();
  }
  void clear() {
    used = 0;
    CK(cudaMemset(base, 0, size * sizeof(Rec)));
    CK(cudaDeviceSynchronize());
  }
  Rec* take(size_t n) {
    Rec* r = base + used;
    used += n;
    if (used > size) {
      problem(case_name(), "pool", "full");
      throw Failed();
    }
    return r;
  }
};
inline Pool& pool() {
  static Pool p;
  return p;
}

struct HostInterval {
  std::string name;
  i64 a, b;
  long thread;
};
struct Run {  // kernels and host intervals of one run
  std::string label;
  int rep;
  std::string extra;
  struct K {
    std::string name;
    Rec* r;
    int n;
    bool sms, each;
  };
  std::vector<K> ks;
  std::vector<HostInterval> hs;
  std::mutex m;
  Run(const char* name, int rep_, std::string extra_ = "") : label(name), rep(rep_), extra(extra_) {
    size_t u = pool().used;
    if (u) CK(cudaMemset(pool().base, 0, u * sizeof(Rec)));
    pool().used = 0;
    CK(cudaDeviceSynchronize());
  }
  Rec* k(const char* name, int blocks = 1, bool sms = false, bool each = false) {
    Rec* r = pool().take(blocks);
    ks.push_back({name, r, blocks, sms, each});
    return r;
  }
  void host(const char* name, i64 a, i64 b) {
    std::lock_guard<std::mutex> l(m);
    hs.push_back({name, a, b, tid()});
  }
  template <class F>
  void call(const char* name, F f) {
    i64 a = host_ns();
    auto e = f();
    i64 b = host_ns();
    host(name, a, b);
    if ((int)e) problem(label.c_str(), name, fmt("%d", (int)e).c_str());
  }
  void finish(bool sync = true) {
    if (sync) CK(cudaDeviceSynchronize());
    std::vector<Rec> v(pool().used);
    if (!v.empty())
      CK(cudaMemcpy(v.data(), pool().base, v.size() * sizeof(Rec), cudaMemcpyDeviceToHost));
    i64 base = 0;
    auto low = [&](i64 t) {
      if (!base || t < base) base = t;
    };
    for (auto& x : ks)
      for (int i = 0; i < x.n; ++i) {
        Rec& r = v[x.r - pool().base + i];
        if (r.seen) low((i64)r.start);
      }
    for (auto& h : hs) low(h.a + the_clock().offset);
    std::string s = fmt("{\"part\":\"%s\",\"case\":\"%s\",\"rep\":%d,%s\"k\":[", part_name(),
                        label.c_str(), rep, extra.c_str());
    bool first = true;
    for (auto& x : ks) {
      i64 a = 0, b = 0;
      int seen = 0;
      std::string sm, ea;
      for (int i = 0; i < x.n; ++i) {
        Rec& r = v[x.r - pool().base + i];
        if (r.seen) {
          ++seen;
          if (!a || (i64)r.start < a) a = r.start;
          if ((i64)r.end > b) b = r.end;
        }
        if (x.sms) sm += fmt("%s%d", i ? "," : "", r.seen ? (int)r.sm : -1);
        if (x.each)
          ea += fmt("%s%lld,%lld", i ? "," : "", r.seen ? (i64)r.start - base : -1,
                    r.seen ? (i64)r.end - base : -1);
      }
      s += fmt("%s[\"%s\",%lld,%lld,%d", first ? "" : ",", x.name.c_str(), seen ? a - base : -1,
               seen ? b - base : -1, seen);
      first = false;
      if (x.sms)
        s += ",[" + sm + "]";
      else if (x.each)
        s += ",[]";
      if (x.each) s += ",[" + ea + "]";
      s += "]";
    }
    s += "],\"h\":[";
    first = true;
    for (auto& h : hs) {
      s += fmt("%s[\"%s\",%lld,%lld,%ld]", first ? "" : ",", h.name.c_str(),
               h.a + the_clock().offset - base, h.b + the_clock().offset - base, h.thread % 100000);
      first = false;
    }
    line(s + "]}");
  }
};

struct Fn {
  Run* run;
  const char* name;
  i64 ns;
};  // a host function
inline void CUDART_CB host_fn(void* p) {
  Fn* f = (Fn*)p;
  i64 a = host_ns();
  while (host_ns() - a < f->ns) {
  }
  f->run->host(f->name, a, host_ns());
}

template <class F>
void part_case(const char* name, F f) {
  case_name() = name;
  try {
    f();
  } catch (Failed&) {
    cudaError_t e = cudaDeviceSynchronize();
    if (e != cudaSuccess) {
      problem(name, "sticky", cudaGetErrorName(e));
      fflush(stdout);
      _exit(4);
    }
  }
}
inline cudaStream_t stream(int priority = 0, bool non_blocking = true) {
  cudaStream_t s;
  CK(cudaStreamCreateWithPriority(&s, non_blocking ? cudaStreamNonBlocking : cudaStreamDefault,
                                  priority));
  return s;
}
inline void begin(const char* part) {
  part_name() = part;
  case_name() = "begin";
  try {
    cudaDeviceProp p;
    CK(cudaGetDeviceProperties(&p, 0));
    int d = 0, r = 0;
    cudaDriverGetVersion(&d);
    cudaRuntimeGetVersion(&r);
    pool().init();
    Rec* x = pool().take(1024);
    spin<<<1, 32>>>(1000, x);
    spin_again<<<1, 32>>>(1000, x, (unsigned*)(x + 512), 1);
    CK(cudaDeviceSynchronize());
    pool().clear();
    the_clock().calibrate();
    the_clock().calibrate();
    const char* c = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    line(
        fmt("{\"part\":\"%s\",\"device\":\"%s\",\"sms\":%d,\"driver\":%d,\"runtime\":%d,"
            "\"connections\":%s,\"clock_spread\":%lld}",
            part, p.name, p.multiProcessorCount, d, r, c ? c : "8", the_clock().spread));
  } catch (Failed&) {
    _exit(3);
  }
}
inline void end() {
  case_name() = "end";
  try {
    i64 o = the_clock().offset;
    the_clock().calibrate();
    line(fmt("{\"part\":\"%s\",\"clock_drift\":%lld,\"clock_spread\":%lld}", part_name(),
             the_clock().offset - o, the_clock().spread));
  } catch (Failed&) {
  }
}
