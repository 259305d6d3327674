// Host functions and values in memory: when they happen, and what they hold up. Argument: hf,
// values or queue.
#include "timeline.cuh"
typedef CUresult (*Write32)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
typedef CUresult (*Wait32)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
typedef CUresult (*Write64)(CUstream, CUdeviceptr, cuuint64_t, unsigned);
typedef CUresult (*Batch)(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned);
static Write32 write32;
static Wait32 wait32;
static Batch batch;
static const int R = 15;

static void host_functions() {
  for (int nf : {0, 1, 2, 4})
    for (int ns : {0, 10000, 100000}) {
      if (nf == 0 && ns) continue;
      part_case("hf.chain", [&] {
        auto s = stream();
        for (int i = 0; i < R + 3; ++i) {
          Run r("hf.chain", i - 3, fmt("\"functions\":%d,\"ns\":%d,", nf, ns));
          std::vector<Fn> f(nf, Fn{&r, "f", ns});
          spin<<<1, 32, 0, s>>>(150000, r.k("a"));
          for (auto& x : f) r.call("launch f", [&] { return cudaLaunchHostFunc(s, host_fn, &x); });
          spin<<<1, 32, 0, s>>>(5000, r.k("b"));
          CK(cudaGetLastError());
          r.finish();
        }
        cudaStreamDestroy(s);
      });
    }
  for (int streams : {2, 3, 8})
    for (int prio : {0, 1})
      part_case("hf.streams", [&] {
        std::vector<cudaStream_t> s;
        for (int i = 0; i < streams; ++i) s.push_back(stream(prio && i == streams - 1 ? -5 : 0));
        for (int i = 0; i < R; ++i) {
          Run r("hf.streams", i, fmt("\"streams\":%d,\"priorities\":%d,", streams, prio));
          std::vector<Fn> f;
          static const char* names[] = {"f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"};
          for (int j = 0; j < streams; ++j) f.push_back(Fn{&r, names[j], 100000});
          for (int j = 0; j < streams; ++j)
            spin<<<1, 32, 0, s[j]>>>(200000, r.k(fmt("a%d", j).c_str()));
          for (int j = 0; j < streams; ++j) {
            CK(cudaLaunchHostFunc(s[j], host_fn, &f[j]));
            spin<<<1, 32, 0, s[j]>>>(5000, r.k(fmt("b%d", j).c_str()));
          }
          r.finish();
        }
        for (auto x : s) cudaStreamDestroy(x);
      });
  part_case("hf.two_contexts", [&] {
    typedef CUresult (*Create)(CUcontext*, unsigned, CUdevice);
    typedef CUresult (*Set)(CUcontext);
    typedef CUresult (*Get)(CUcontext*);
    typedef CUresult (*Destroy)(CUcontext);
    auto create = driver<Create>("cuCtxCreate", 3020);
    auto set = driver<Set>("cuCtxSetCurrent");
    auto get = driver<Get>("cuCtxGetCurrent");
    auto destroy = driver<Destroy>("cuCtxDestroy");
    CUcontext c0, c1;
    CU(get(&c0));
    CU(create(&c1, 0, 0));
    auto s1 = stream();
    Rec* q;
    CK(cudaMalloc(&q, sizeof(Rec) * 64));
    CK(cudaMemset(q, 0, sizeof(Rec) * 64));
    spin<<<1, 32, 0, s1>>>(1000, q);
    CK(cudaDeviceSynchronize());
    CU(set(c0));
    auto s0 = stream();
    for (int i = 0; i < R; ++i) {
      Run r("hf.two_contexts", i);
      Fn f0{&r, "f0", 100000}, f1{&r, "f1", 100000};
      spin<<<1, 32, 0, s0>>>(200000, r.k("a0"));
      CK(cudaLaunchHostFunc(s0, host_fn, &f0));
      spin<<<1, 32, 0, s0>>>(5000, r.k("b0"));
      CU(set(c1));
      spin<<<1, 32, 0, s1>>>(200000, q);
      CK(cudaLaunchHostFunc(s1, host_fn, &f1));
      spin<<<1, 32, 0, s1>>>(5000, q + 1);
      CK(cudaStreamSynchronize(s1));
      Rec two[2];
      CK(cudaMemcpy(two, q, sizeof two, cudaMemcpyDeviceToHost));
      CU(set(c0));
      i64 o = the_clock().offset;
      r.host("kernel a1", (i64)two[0].start - o, (i64)two[0].end - o);
      r.host("kernel b1", (i64)two[1].start - o, (i64)two[1].end - o);
      r.finish();
    }
    destroy(c1);
    CU(set(c0));
    cudaStreamDestroy(s0);
  });
  part_case("hf.legacy", [&] {
    auto s = stream(0, false), n = stream();
    for (int i = 0; i < R; ++i) {
      Run r("hf.legacy", i);
      Fn f{&r, "f", 100000};
      spin<<<1, 32, 0, 0>>>(100000, r.k("legacy"));
      CK(cudaLaunchHostFunc(0, host_fn, &f));
      spin<<<1, 32, 0, s>>>(5000, r.k("blocking"));
      spin<<<1, 32, 0, n>>>(5000, r.k("non_blocking"));
      r.finish();
    }
    cudaStreamDestroy(s);
    cudaStreamDestroy(n);
  });
  part_case("hf.event", [&] {
    auto s = stream(), t = stream();
    cudaEvent_t e;
    CK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    for (int i = 0; i < R; ++i) {
      Run r("hf.event", i);
      Fn f{&r, "f", 50000};
      spin<<<1, 32, 0, s>>>(100000, r.k("a"));
      CK(cudaLaunchHostFunc(s, host_fn, &f));
      CK(cudaEventRecord(e, s));
      CK(cudaStreamWaitEvent(t, e, 0));
      spin<<<1, 32, 0, t>>>(5000, r.k("b"));
      r.finish();
    }
  });
  // Calls of the main thread during a host function.
  part_case("hf.calls_meanwhile", [&] {
    auto s = stream(), t = stream();
    for (int what = 0; what < 6; ++what)
      for (int i = 0; i < 5; ++i) {
        static const char* names[] = {"launch",
                                      "cudaMalloc+cudaFree",
                                      "cudaHostAlloc+cudaFreeHost",
                                      "cudaStreamSynchronize other",
                                      "cudaLaunchHostFunc",
                                      "cudaDeviceSynchronize"};
        Run r("hf.calls_meanwhile", i, fmt("\"call\":\"%s\",", names[what]));
        Fn f{&r, "f", 500000}, g{&r, "g", 0};
        CK(cudaLaunchHostFunc(s, host_fn, &f));
        usleep(100);
        void* p;
        r.call("call", [&] {
          switch (what) {
            case 0:
              spin<<<1, 32, 0, t>>>(1000, r.k("k"));
              return cudaGetLastError();
            case 1:
              cudaMalloc(&p, 1 << 20);
              return cudaFree(p);
            case 2:
              cudaHostAlloc(&p, 1 << 20, 0);
              return cudaFreeHost(p);
            case 3:
              return cudaStreamSynchronize(t);
            case 4:
              return cudaLaunchHostFunc(t, host_fn, &g);
            default:
              return cudaDeviceSynchronize();
          }
        });
        r.finish();
      }
  });
  part_case("hf.graph", [&] {
    for (int form = 0; form < 4; ++form) {  // 0 chain, 1 two in parallel, 2 function beside a
                                            // kernel, 3 chain of two functions
      static const char* forms[] = {"chain", "parallel", "beside_kernel", "two"};
      auto s = stream();
      Fn f0{nullptr, "f0", 50000}, f1{nullptr, "f1", 50000};
      Rec* q = pool().base + 100000;
      cudaGraph_t g;
      CK(cudaGraphCreate(&g, 0));
      cudaGraphNode_t a, b, h0, h1;
      auto kern = [&](cudaGraphNode_t* n, std::vector<cudaGraphNode_t> d, u64 ns, Rec* rec) {
        cudaKernelNodeParams p{};
        void* args[] = {&ns, &rec};
        p.func = (void*)spin;
        p.gridDim = 1;
        p.blockDim = 32;
        p.kernelParams = args;
        CK(cudaGraphAddKernelNode(n, g, d.data(), d.size(), &p));
      };
      auto hostn = [&](cudaGraphNode_t* n, std::vector<cudaGraphNode_t> d, Fn* f) {
        cudaHostNodeParams p{host_fn, f};
        CK(cudaGraphAddHostNode(n, g, d.data(), d.size(), &p));
      };
      kern(&a, {}, 100000, pool().base);
      if (form == 0) {
        hostn(&h0, {a}, &f0);
        kern(&b, {h0}, 5000, pool().base + 1);
      }
      if (form == 1) {
        hostn(&h0, {a}, &f0);
        hostn(&h1, {a}, &f1);
        kern(&b, {h0, h1}, 5000, pool().base + 1);
      }
      if (form == 2) {
        hostn(&h0, {a}, &f0);
        kern(&b, {a}, 5000, pool().base + 1);
      }
      if (form == 3) {
        hostn(&h0, {a}, &f0);
        hostn(&h1, {h0}, &f1);
        kern(&b, {h1}, 5000, pool().base + 1);
      }
      cudaGraphExec_t x;
      CK(cudaGraphInstantiate(&x, g, 0));
      (void)q;
      for (int i = 0; i < R + 2; ++i) {
        Run r("hf.graph", i - 2, fmt("\"form\":\"%s\",", forms[form]));
        f0.run = f1.run = &r;
        r.k("a");
        r.k("b");
        r.call("launch", [&] { return cudaGraphLaunch(x, s); });
        r.call("launch after", [&] {
          spin<<<1, 32, 0, s>>>(5000, r.k("after"));
          return cudaGetLastError();
        });
        r.finish();
      }
      cudaGraphExecDestroy(x);
      cudaGraphDestroy(g);
      cudaStreamDestroy(s);
    }
  });
  part_case("hf.two_graphs", [&] {
    auto s = stream(), t = stream();
    std::vector<cudaGraphExec_t> xs;
    static Fn f0{nullptr, "f0", 100000}, f1{nullptr, "f1", 100000};
    for (int k = 0; k < 2; ++k) {
      cudaGraph_t g;
      CK(cudaGraphCreate(&g, 0));
      cudaGraphNode_t a, h;
      u64 ns = 100000;
      Rec* rec = pool().base + k;
      void* args[] = {&ns, &rec};
      cudaKernelNodeParams p{};
      p.func = (void*)spin;
      p.gridDim = 1;
      p.blockDim = 32;
      p.kernelParams = args;
      CK(cudaGraphAddKernelNode(&a, g, nullptr, 0, &p));
      cudaHostNodeParams hp{host_fn, k ? &f1 : &f0};
      CK(cudaGraphAddHostNode(&h, g, &a, 1, &hp));
      cudaGraphExec_t x;
      CK(cudaGraphInstantiate(&x, g, 0));
      xs.push_back(x);
    }
    for (int i = 0; i < R; ++i) {
      Run r("hf.two_graphs", i);
      f0.run = f1.run = &r;
      r.k("a0");
      r.k("a1");
      CK(cudaGraphLaunch(xs[0], s));
      CK(cudaGraphLaunch(xs[1], t));
      spin<<<1, 32, 0, s>>>(5000, r.k("b0"));
      spin<<<1, 32, 0, t>>>(5000, r.k("b1"));
      r.finish();
    }
  });
}

static void values() {
  write32 = driver<Write32>("cuStreamWriteValue32");
  wait32 = driver<Wait32>("cuStreamWaitValue32");
  batch = driver<Batch>("cuStreamBatchMemOp");
  unsigned *dev, *pin;
  CK(cudaMalloc(&dev, 4096));
  CK(cudaHostAlloc(&pin, 4096, cudaHostAllocMapped));
  for (int where = 0; where < 2; ++where) {
    CUdeviceptr p = (CUdeviceptr)(where ? (void*)pin : (void*)dev);
    const char* wn = where ? "host" : "device";
    auto set = [&](unsigned v) {
      if (where)
        *(volatile unsigned*)pin = v;
      else {
        CK(cudaMemcpy(dev, &v, 4, cudaMemcpyHostToDevice));
      }
    };
    for (int n : {0, 1, 2, 4, 8})
      for (int kind = 0; kind < 4; ++kind) {
        if (!n && kind) continue;
        static const char* kinds[] = {"write", "write_no_barrier", "wait_satisfied",
                                      "batch_of_writes"};
        part_case("value.chain", [&] {
          auto s = stream();
          for (int i = 0; i < R + 2; ++i) {
            set(kind == 2);
            Run r("value.chain", i - 2,
                  fmt("\"memory\":\"%s\",\"kind\":\"%s\",\"n\":%d,", wn, kinds[kind], n));
            spin<<<1, 32, 0, s>>>(150000, r.k("a"));
            if (kind == 3) {
              std::vector<CUstreamBatchMemOpParams> b(n);
              for (auto& x : b) {
                memset(&x, 0, sizeof x);
                x.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
                x.writeValue.address = p;
                x.writeValue.value = 1;
              }
              r.call("call", [&] { return batch(s, n, b.data(), 0); });
            } else
              for (int j = 0; j < n; ++j)
                r.call("call", [&] {
                  return kind == 2
                             ? wait32(s, p, 1, CU_STREAM_WAIT_VALUE_GEQ)
                             : write32(s, p, 1,
                                       kind == 1 ? CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER : 0);
                });
            spin<<<1, 32, 0, s>>>(5000, r.k("b"));
            r.finish();
          }
          cudaStreamDestroy(s);
        });
      }
    for (u64 ns : {20000ull, 200000ull, 2000000ull, 8000000ull})
      part_case("value.cross", [&] {
        auto s = stream(), t = stream();
        for (int i = 0; i < R; ++i) {
          set(0);
          Run r("value.cross", i, fmt("\"memory\":\"%s\",\"ns\":%llu,", wn, ns));
          r.call("wait", [&] { return wait32(t, p, 1, CU_STREAM_WAIT_VALUE_GEQ); });
          spin<<<1, 32, 0, t>>>(5000, r.k("b"));
          spin<<<1, 32, 0, s>>>(ns, r.k("a"));
          r.call("write", [&] { return write32(s, p, 1, 0); });
          if (where) {
            volatile unsigned* v = pin;
            i64 limit = host_ns() + 100000000;
            while (!*v && host_ns() < limit) {
            }
            i64 x = host_ns();
            r.host("seen", x, x);
          }
          r.finish();
        }
        cudaStreamDestroy(s);
        cudaStreamDestroy(t);
      });
    part_case("value.event", [&] {
      cudaEvent_t e;
      CK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
      auto s = stream(), t = stream();
      for (int i = 0; i < R; ++i) {
        Run r("value.event", i, fmt("\"memory\":\"%s\",", wn));
        spin<<<1, 32, 0, s>>>(100000, r.k("a"));
        CK(cudaEventRecord(e, s));
        CK(cudaStreamWaitEvent(t, e, 0));
        spin<<<1, 32, 0, t>>>(5000, r.k("b"));
        r.finish();
      }
    });
  }
  // The host writes.
  for (i64 ns : {20000ll, 200000ll, 2000000ll})
    part_case("value.by_host", [&] {
      auto t = stream();
      for (int i = 0; i < R; ++i) {
        *(volatile unsigned*)pin = 0;
        Run r("value.by_host", i, fmt("\"ns\":%lld,", ns));
        CU(wait32(t, (CUdeviceptr)pin, 1, CU_STREAM_WAIT_VALUE_GEQ));
        spin<<<1, 32, 0, t>>>(5000, r.k("b"));
        i64 a = host_ns();
        while (host_ns() - a < ns) {
        }
        i64 b = host_ns();
        *(volatile unsigned*)pin = 1;
        r.host("write", b, host_ns());
        r.finish();
      }
      cudaStreamDestroy(t);
    });
  part_case("value.legacy", [&] {
    auto s = stream(0, false), n = stream();
    for (int i = 0; i < R; ++i) {
      *(volatile unsigned*)pin = 0;
      Run r("value.legacy", i);
      CU(wait32(0, (CUdeviceptr)pin, 1, CU_STREAM_WAIT_VALUE_GEQ));
      spin<<<1, 32, 0, s>>>(5000, r.k("blocking"));
      spin<<<1, 32, 0, n>>>(5000, r.k("non_blocking"));
      usleep(200);
      i64 b = host_ns();
      *(volatile unsigned*)pin = 1;
      r.host("write", b, host_ns());
      r.finish();
    }
  });
  part_case("value.legacy_behind", [&] {
    auto s = stream(0, false);
    for (int i = 0; i < R; ++i) {
      *(volatile unsigned*)pin = 0;
      Run r("value.legacy_behind", i);
      CU(wait32(s, (CUdeviceptr)pin, 1, CU_STREAM_WAIT_VALUE_GEQ));
      spin<<<1, 32, 0, 0>>>(5000, r.k("legacy"));
      usleep(200);
      i64 b = host_ns();
      *(volatile unsigned*)pin = 1;
      r.host("write", b, host_ns());
      r.finish();
    }
  });
  part_case("value.calls_meanwhile", [&] {
    auto s = stream(), t = stream();
    for (int i = 0; i < 10; ++i) {
      *(volatile unsigned*)pin = 0;
      Run r("value.calls_meanwhile", i);
      CU(wait32(s, (CUdeviceptr)pin, 1, CU_STREAM_WAIT_VALUE_GEQ));
      for (int j = 0; j < 5; ++j)
        r.call("launch", [&] {
          spin<<<1, 32, 0, t>>>(1000, r.k("k"));
          return cudaGetLastError();
        });
      r.call("malloc", [&] {
        void* q;
        cudaError_t e = cudaMalloc(&q, 1 << 20);
        return e;
      });
      usleep(300);
      i64 b = host_ns();
      *(volatile unsigned*)pin = 1;
      r.host("write", b, host_ns());
      r.finish();
    }
  });
}

// Does work of other streams wait behind something that waits? The host ends each wait itself.
static void queues() {
  write32 = driver<Write32>("cuStreamWriteValue32");
  wait32 = driver<Wait32>("cuStreamWaitValue32");
  unsigned* pin;
  CK(cudaHostAlloc(&pin, 4096, cudaHostAllocMapped));
  const int n = 40;
  for (int kind = 0; kind < 10; ++kind) {
    static const char* kinds[] = {
        "wait_value",    "wait_value+kernel", "host_function", "host_function+kernel",
        "kernel+kernel", "event_wait+kernel", "kernel+write",  "kernel+write_no_barrier",
        "kernel+record", "kernel+wait_over"};
    part_case("queue", [&] {
      std::vector<cudaStream_t> s;
      for (int i = 0; i < n; ++i) s.push_back(stream());
      cudaEvent_t e;
      CK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
      for (int i = 0; i < n; ++i) spin<<<1, 32, 0, s[i]>>>(1000, pool().base);
      CK(cudaDeviceSynchronize());
      auto hold = stream();
      spin<<<1, 32, 0, hold>>>(1000, pool().base);
      CK(cudaDeviceSynchronize());
      for (int i = 0; i < 6; ++i) {
        *(volatile unsigned*)pin = 0;
        Run r("queue", i, fmt("\"kind\":\"%s\",", kinds[kind]));
        Fn f{&r, "f", 1500000};
        if (kind == 5) {
          spin<<<1, 32, 0, hold>>>(1500000, r.k("hold"));
          CK(cudaEventRecord(e, hold));
        }
        if (kind < 2) CU(wait32(s[0], (CUdeviceptr)pin, 1, CU_STREAM_WAIT_VALUE_GEQ));
        if (kind == 2 || kind == 3) CK(cudaLaunchHostFunc(s[0], host_fn, &f));
        if (kind == 4 || kind >= 6) spin<<<1, 32, 0, s[0]>>>(1500000, r.k("first"));
        if (kind == 6 || kind == 7)
          CU(write32(s[0], (CUdeviceptr)(pin + 64), 1,
                     kind == 7 ? CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER : 0));
        if (kind == 8) CK(cudaEventRecord(e, s[0]));
        if (kind == 9) CU(wait32(s[0], (CUdeviceptr)(pin + 128), 0, CU_STREAM_WAIT_VALUE_GEQ));
        if (kind == 5) CK(cudaStreamWaitEvent(s[0], e, 0));
        if ((kind < 6 && kind & 1) || kind == 4) spin<<<1, 32, 0, s[0]>>>(1000, r.k("own"));
        for (int j = 1; j < n; ++j)
          r.call(fmt("c%d", j).c_str(), [&] {
            spin<<<1, 32, 0, s[j]>>>(1000, r.k(fmt("o%d", j).c_str()));
            return cudaGetLastError();
          });
        usleep(1200);
        i64 b = host_ns();
        *(volatile unsigned*)pin = 1;
        r.host("write", b, host_ns());
        r.finish();
      }
      for (auto x : s) cudaStreamDestroy(x);
      cudaStreamDestroy(hold);
    });
  }
  // Many streams that wait at the same time, and one more kernel.
  for (int many : {1, 7, 8, 9, 31, 32, 33, 64, 127, 128, 129, 200})
    part_case("queue.many_waits", [&] {
      std::vector<cudaStream_t> s;
      for (int i = 0; i <= many; ++i) s.push_back(stream());
      for (auto x : s) spin<<<1, 32, 0, x>>>(1000, pool().base);
      CK(cudaDeviceSynchronize());
      for (int i = 0; i < 3; ++i) {
        *(volatile unsigned*)pin = 0;
        Run r("queue.many_waits", i, fmt("\"waits\":%d,", many));
        for (int j = 0; j < many; ++j)
          CU(wait32(s[j], (CUdeviceptr)pin, 1, CU_STREAM_WAIT_VALUE_GEQ));
        spin<<<1, 32, 0, s[many]>>>(1000, r.k("o"));
        for (int j = 0; j < many; ++j) spin<<<1, 32, 0, s[j]>>>(1000, r.k(fmt("w%d", j).c_str()));
        usleep(500);
        i64 b = host_ns();
        *(volatile unsigned*)pin = 1;
        r.host("write", b, host_ns());
        r.finish();
      }
      for (auto x : s) cudaStreamDestroy(x);
    });
  // Behind a host function, work in other streams: a copy, a host function.
  part_case("queue.copy_behind", [&] {
    auto s = stream(), t = stream();
    void *d, *h;
    CK(cudaMalloc(&d, 1 << 20));
    CK(cudaHostAlloc(&h, 1 << 20, 0));
    for (int kind = 0; kind < 2; ++kind)
      for (int i = 0; i < 5; ++i) {
        *(volatile unsigned*)pin = 0;
        Run r("queue.copy_behind", i,
              fmt("\"kind\":\"%s\",", kind ? "host_function" : "wait_value"));
        Fn f{&r, "f", 1000000};
        if (kind)
          CK(cudaLaunchHostFunc(s, host_fn, &f));
        else
          CU(wait32(s, (CUdeviceptr)pin, 1, CU_STREAM_WAIT_VALUE_GEQ));
        CK(cudaMemcpyAsync(d, h, 1 << 20, cudaMemcpyHostToDevice, t));
        spin<<<1, 32, 0, t>>>(1000, r.k("behind copy"));
        usleep(700);
        i64 b = host_ns();
        *(volatile unsigned*)pin = 1;
        r.host("write", b, host_ns());
        r.finish();
      }
  });
}
int main(int n, char** v) {
  std::string what = n > 1 ? v[1] : "all";
  static std::string name = "hostfn." + what;
  begin(name.c_str());
  if (what == "hf") host_functions();
  if (what == "values") part_case("values", values);
  if (what == "queue") part_case("queues", queues);
  end();
}
