// Nodes of graphs: times between the end of a node and the start of the next, and where bodies of
// conditional nodes run. Argument: gaps or conditionals.
#include "timeline.cuh"
static const int R = 12;
__global__ void set_if(cudaGraphConditionalHandle h, unsigned v, u64 ns, Rec* r) {
  u64 t = gtime();
  mark(r, t);
  wait_since(t, ns);
  cudaGraphSetConditional(h, v);
  r->end = gtime();
}
// The last kernel of a body: counts down.
__global__ void count_down(cudaGraphConditionalHandle h, unsigned* left, u64 ns, Rec* r,
                           unsigned* count, unsigned most) {
  u64 t = gtime();
  wait_since(t, ns);
  unsigned n = atomicAdd(count, 1u);
  unsigned l = --*left;
  cudaGraphSetConditional(h, l > 0);
  if (n < most) {
    mark(r + n, t);
    r[n].end = gtime();
  }
}
__global__ void reset(unsigned* left, unsigned n, unsigned* counts, int k) {
  if (threadIdx.x == 0) {
    *left = n;
    for (int i = 0; i < k; ++i) counts[i] = 0;
  }
}
__global__ void trigger_at(u64 at, u64 ns, Rec* r) {
  u64 t = gtime();
  if (threadIdx.x == 0) mark(r + blockIdx.x, t);
  wait_since(t, at);
  asm volatile("griddepcontrol.launch_dependents;");
  wait_since(t, ns);
  if (threadIdx.x == 0) r[blockIdx.x].end = gtime();
}

struct G {
  cudaGraph_t g;
  bool own;
  G() : own(true) { CK(cudaGraphCreate(&g, 0)); }
  G(cudaGraph_t b) : g(b), own(false) {}
  typedef std::vector<cudaGraphNode_t> D;
  cudaGraphNode_t any(void* fn, int blocks, int threads, void** args, D d, size_t smem = 0) {
    cudaKernelNodeParams p{};
    p.func = fn;
    p.gridDim = blocks;
    p.blockDim = threads;
    p.kernelParams = args;
    p.sharedMemBytes = (unsigned)smem;
    cudaGraphNode_t n;
    CK(cudaGraphAddKernelNode(&n, g, d.data(), d.size(), &p));
    return n;
  }
  cudaGraphNode_t k(D d, u64 ns, Rec* r, int blocks = 1, int threads = 32) {
    void* a[] = {&ns, &r};
    return any((void*)spin, blocks, threads, a, d);
  }
  cudaGraphNode_t again(D d, u64 ns, Rec* r, unsigned* count, unsigned most, int blocks = 1,
                        int threads = 32) {
    void* a[] = {&ns, &r, &count, &most};
    return any((void*)spin_again, blocks, threads, a, d);
  }
  cudaGraphNode_t setter(D d, cudaGraphConditionalHandle h, unsigned v, u64 ns, Rec* r) {
    void* a[] = {&h, &v, &ns, &r};
    return any((void*)set_if, 1, 1, a, d);
  }
  cudaGraphNode_t down(D d, cudaGraphConditionalHandle h, unsigned* left, u64 ns, Rec* r,
                       unsigned* count, unsigned most) {
    void* a[] = {&h, &left, &ns, &r, &count, &most};
    return any((void*)count_down, 1, 1, a, d);
  }
  cudaGraphNode_t cond(D d, cudaGraphConditionalHandle h, cudaGraphConditionalNodeType t,
                       unsigned size, std::vector<cudaGraph_t>* bodies) {
    cudaGraphNodeParams p{};
    p.type = cudaGraphNodeTypeConditional;
    p.conditional.handle = h;
    p.conditional.type = t;
    p.conditional.size = size;
    cudaGraphNode_t n;
    CK(cudaGraphAddNode(&n, g, d.data(), nullptr, d.size(), &p));
    for (unsigned i = 0; i < size; ++i) bodies->push_back(p.conditional.phGraph_out[i]);
    return n;
  }
  cudaGraphConditionalHandle handle(unsigned v = 0, unsigned flags = cudaGraphCondAssignDefault) {
    cudaGraphConditionalHandle h;
    CK(cudaGraphConditionalHandleCreate(&h, g, v, flags));
    return h;
  }
};
static unsigned *left_, *counts;
static std::string ints(const std::vector<int>& v) {
  std::string s;
  for (size_t i = 0; i < v.size(); ++i) s += fmt("%s%d", i ? "," : "", v[i]);
  return s;
}

static void gaps() {
  void *dev, *host;
  CK(cudaMalloc(&dev, 64 << 20));
  CK(cudaHostAlloc(&host, 1 << 20, 0));
  auto s = stream();
  cudaEvent_t e, e2;
  CK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  CK(cudaEventCreateWithFlags(&e2, cudaEventDisableTiming));
  CK(cudaEventRecord(e2, s));
  CK(cudaDeviceSynchronize());
  static const char* kinds[] = {"none",          "empty",
                                "kernel",        "memset_4",
                                "memset_1M",     "memset_2d",
                                "memcpy_h2d_4K", "memcpy_d2d_4K",
                                "host",          "record",
                                "wait",          "record+wait other",
                                "child_1",       "child_2_parallel",
                                "child_empty",   "alloc",
                                "alloc+free",    "batch_write",
                                "child_in_child"};
  for (int kind = 0; kind < 19; ++kind)
    for (int n : {1, 3})
      part_case(kinds[kind], [&] {
        if (n == 3 && (kind == 0 || kind >= 15)) return;
        G g;
        Rec* b = pool().base;
        auto last = g.k({}, 30000, b);
        int extra = 0;
        static Fn f;
        for (int j = 0; j < n; ++j) {
          cudaGraphNode_t x = last;
          G::D d{last};
          switch (kind) {
            case 0:
              break;
            case 1:
              CK(cudaGraphAddEmptyNode(&x, g.g, d.data(), 1));
              break;
            case 2:
              x = g.k(d, 5000, b + 2 + extra++);
              break;
            case 3:
            case 4:
            case 5: {
              cudaMemsetParams p{};
              p.dst = dev;
              p.value = 0;
              p.elementSize = 4;
              p.width = kind == 3 ? 1 : kind == 4 ? 262144 : 64;
              p.height = kind == 5 ? 16 : 1;
              p.pitch = 512;
              CK(cudaGraphAddMemsetNode(&x, g.g, d.data(), 1, &p));
              break;
            }
            case 6:
              CK(cudaGraphAddMemcpyNode1D(&x, g.g, d.data(), 1, dev, host, 4096,
                                          cudaMemcpyHostToDevice));
              break;
            case 7:
              CK(cudaGraphAddMemcpyNode1D(&x, g.g, d.data(), 1, dev, (char*)dev + 65536, 4096,
                                          cudaMemcpyDeviceToDevice));
              break;
            case 8: {
              cudaHostNodeParams p{host_fn, &f};
              f.name = "f";
              f.ns = 0;
              CK(cudaGraphAddHostNode(&x, g.g, d.data(), 1, &p));
              break;
            }
            case 9:
              CK(cudaGraphAddEventRecordNode(&x, g.g, d.data(), 1, e));
              break;
            case 10:
              CK(cudaGraphAddEventWaitNode(&x, g.g, d.data(), 1, e2));
              break;
            case 11:
              CK(cudaGraphAddEventRecordNode(&x, g.g, d.data(), 1, e));
              d = {x};
              CK(cudaGraphAddEventWaitNode(&x, g.g, d.data(), 1, e2));
              break;
            case 12:
            case 13:
            case 14: {
              G c;
              if (kind == 12) c.k({}, 5000, b + 2 + extra++);
              if (kind == 13) {
                c.k({}, 5000, b + 2 + extra++);
                c.k({}, 5000, b + 2 + extra++);
              }
              if (kind == 14) {
                cudaGraphNode_t z;
                CK(cudaGraphAddEmptyNode(&z, c.g, nullptr, 0));
              }
              CK(cudaGraphAddChildGraphNode(&x, g.g, d.data(), 1, c.g));
              break;
            }
            case 15:
            case 16: {
              cudaMemAllocNodeParams p{};
              p.poolProps.allocType = cudaMemAllocationTypePinned;
              p.poolProps.location.type = cudaMemLocationTypeDevice;
              p.bytesize = 1 << 20;
              CK(cudaGraphAddMemAllocNode(&x, g.g, d.data(), 1, &p));
              cudaGraphNode_t y;
              G::D dd{x};
              if (kind == 16) {
                CK(cudaGraphAddMemFreeNode(&y, g.g, dd.data(), 1, p.dptr));
                x = y;
              } else {
                auto kk = g.k({x}, 5000, b + 2 + extra++);
                G::D d3{kk};
                CK(cudaGraphAddMemFreeNode(&y, g.g, d3.data(), 1, p.dptr));
                x = kk;
              }
              break;
            }
            case 17: {
              cudaGraphNodeParams p{};
              (void)p;
              typedef CUresult (*Add)(CUgraphNode*, CUgraph, const CUgraphNode*, size_t,
                                      const CUDA_BATCH_MEM_OP_NODE_PARAMS*);
              auto add = driver<Add>("cuGraphAddBatchMemOpNode");
              CUstreamBatchMemOpParams op;
              memset(&op, 0, sizeof op);
              op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
              op.writeValue.address = (CUdeviceptr)dev;
              op.writeValue.value = 1;
              CUDA_BATCH_MEM_OP_NODE_PARAMS q{};
              typedef CUresult (*Get)(CUcontext*);
              CUcontext c;
              CU(driver<Get>("cuCtxGetCurrent")(&c));
              q.ctx = c;
              q.count = 1;
              q.paramArray = &op;
              CU(add((CUgraphNode*)&x, g.g, (CUgraphNode*)d.data(), 1, &q));
              break;
            }
            case 18: {
              G c, i;
              i.k({}, 5000, b + 2 + extra++);
              cudaGraphNode_t z;
              CK(cudaGraphAddChildGraphNode(&z, c.g, nullptr, 0, i.g));
              CK(cudaGraphAddChildGraphNode(&x, g.g, d.data(), 1, c.g));
              break;
            }
          }
          last = x;
        }
        g.k({last}, 5000, b + 1);
        cudaGraphExec_t x;
        i64 t0 = host_ns();
        CK(cudaGraphInstantiate(&x, g.g, 0));
        i64 t1 = host_ns();
        for (int i = 0; i < R + 3; ++i) {
          Run r("gap", i - 3,
                fmt("\"kind\":\"%s\",\"n\":%d,\"instantiate\":%lld,", kinds[kind], n, t1 - t0));
          f.run = &r;
          r.k("a");
          r.k("b");
          for (int j = 0; j < extra; ++j) r.k(fmt("m%d", j).c_str());
          spin<<<1, 32, 0, s>>>(60000, pool().base + 120000);
          r.call("launch", [&] { return cudaGraphLaunch(x, s); });
          spin<<<1, 32, 0, s>>>(2000, r.k("after"));
          r.finish();
        }
        cudaGraphExecDestroy(x);
        cudaGraphDestroy(g.g);
      });
  // Parallel branches with nodes that are no kernels: which run at once?
  part_case("roots", [&] {
    for (int kind = 0; kind < 4; ++kind) {
      static const char* names[] = {"kernels", "host+kernels", "memset+kernels", "child+kernels"};
      G g;
      Rec* b = pool().base;
      static Fn f{nullptr, "f", 30000};
      cudaGraphNode_t x;
      if (kind == 1) {
        cudaHostNodeParams p{host_fn, &f};
        CK(cudaGraphAddHostNode(&x, g.g, nullptr, 0, &p));
      }
      if (kind == 2) {
        cudaMemsetParams p{};
        p.dst = dev;
        p.elementSize = 4;
        p.width = 4 << 20;
        p.height = 1;
        CK(cudaGraphAddMemsetNode(&x, g.g, nullptr, 0, &p));
      }
      if (kind == 3) {
        G c;
        auto q = c.k({}, 20000, b + 3);
        c.k({q}, 20000, b + 4);
        CK(cudaGraphAddChildGraphNode(&x, g.g, nullptr, 0, c.g));
      }
      auto k0 = g.k({}, 20000, b);
      g.k({}, 20000, b + 1);
      g.k({k0}, 20000, b + 2);
      cudaGraphExec_t e;
      CK(cudaGraphInstantiate(&e, g.g, 0));
      for (int i = 0; i < R; ++i) {
        Run r("roots", i, fmt("\"kind\":\"%s\",", names[kind]));
        f.run = &r;
        for (int j = 0; j < 5; ++j) r.k(fmt("k%d", j).c_str());
        spin<<<1, 32, 0, s>>>(60000, pool().base + 120000);
        CK(cudaGraphLaunch(e, s));
        r.finish();
      }
    }
  });
  // A wait node that waits for an event of another stream, recorded before the launch / after; a
  // record node that another stream waits for.
  part_case("event_nodes", [&] {
    auto t = stream(), u = stream();
    G g;
    Rec* b = pool().base;
    auto a = g.k({}, 10000, b);
    cudaGraphNode_t w, rec;
    G::D d{a};
    CK(cudaGraphAddEventWaitNode(&w, g.g, d.data(), 1, e2));
    auto c = g.k({w}, 10000, b + 1);
    G::D d2{c};
    CK(cudaGraphAddEventRecordNode(&rec, g.g, d2.data(), 1, e));
    auto z = g.k({rec}, 100000, b + 2);
    (void)z;
    cudaGraphExec_t x;
    CK(cudaGraphInstantiate(&x, g.g, 0));
    for (int late = 0; late < 2; ++late)
      for (int i = 0; i < R; ++i) {
        Run r("event_nodes", i, fmt("\"recorded\":\"%s\",", late ? "after the launch" : "before"));
        r.k("first");
        r.k("behind wait");
        r.k("behind record");
        auto record = [&] {
          spin<<<1, 32, 0, t>>>(200000, r.k("other"));
          CK(cudaEventRecord(e2, t));
        };
        if (!late) record();
        CK(cudaGraphLaunch(x, s));
        if (late) record();
        CK(cudaStreamWaitEvent(u, e, 0));
        spin<<<1, 32, 0, u>>>(5000, r.k("waits for e"));
        r.finish();
      }
  });
  part_case("many_nodes", [&] {
    for (int n : {10, 100, 1000})
      for (int width : {1, 4}) {
        G g;
        std::vector<cudaGraphNode_t> last(width);
        std::vector<Rec*> rr;
        for (int i = 0; i < n; ++i) {
          G::D d;
          if (i >= width) d.push_back(last[i % width]);
          last[i % width] = g.k(d, 2000, pool().base + i);
        }
        cudaGraphExec_t x;
        i64 a = host_ns();
        CK(cudaGraphInstantiate(&x, g.g, 0));
        i64 b = host_ns();
        for (int i = 0; i < 5; ++i) {
          Run r("many_nodes", i,
                fmt("\"n\":%d,\"width\":%d,\"instantiate\":%lld,", n, width, b - a));
          r.k("all", n, false, n <= 100);
          r.call("launch", [&] { return cudaGraphLaunch(x, s); });
          cudaGraphExecUpdateResultInfo info;
          r.call("update", [&] { return cudaGraphExecUpdate(x, g.g, &info); });
          r.finish();
        }
        cudaGraphExecDestroy(x);
      }
  });
}

static void conditionals() {
  CK(cudaMalloc(&left_, 4));
  CK(cudaMalloc(&counts, 4096));
  CK(cudaMemset(counts, 0, 4096));
  auto s = stream(), t = stream();
  Rec* b = pool().base;
  reset<<<1, 1, 0, s>>>(left_, 1, counts, 4);
  CK(cudaDeviceSynchronize());
  typedef std::vector<cudaGraph_t> B;
  for (int form = 0; form < 6; ++form)
    for (unsigned v : {0u, 1u}) {
      static const char* forms[] = {"if",           "if_else",       "if_two_parallel",
                                    "if_two_chain", "if_empty_body", "if_memset"};
      part_case(forms[form], [&] {
        G g;
        auto h = g.handle();
        auto a = g.setter({}, h, v, 20000, b);
        B bodies;
        auto c = g.cond({a}, h, cudaGraphCondTypeIf, form == 1 ? 2 : 1, &bodies);
        G body(bodies[0]);
        if (form <= 3) {
          auto q = body.k({}, 5000, b + 2);
          if (form == 2) body.k({}, 5000, b + 3);
          if (form == 3) body.k({q}, 5000, b + 3);
        }
        if (form == 1) G(bodies[1]).k({}, 5000, b + 4);
        if (form == 5) {
          cudaGraphNode_t x;
          cudaMemsetParams p{};
          p.dst = counts;
          p.elementSize = 4;
          p.width = 1;
          p.height = 1;
          CK(cudaGraphAddMemsetNode(&x, body.g, nullptr, 0, &p));
        }
        g.k({c}, 5000, b + 1);
        cudaGraphExec_t x;
        i64 t0 = host_ns();
        CK(cudaGraphInstantiate(&x, g.g, 0));
        i64 t1 = host_ns();
        for (int i = 0; i < R + 3; ++i) {
          Run r("if", i - 3,
                fmt("\"form\":\"%s\",\"value\":%u,\"instantiate\":%lld,", forms[form], v, t1 - t0));
          r.k("a");
          r.k("b");
          r.k("body0");
          r.k("body1");
          r.k("else");
          spin<<<1, 32, 0, s>>>(60000, b + 120000);
          r.call("launch", [&] { return cudaGraphLaunch(x, s); });
          spin<<<1, 32, 0, s>>>(2000, r.k("after"));
          r.finish();
        }
      });
    }
  for (unsigned v : {0u, 1u, 3u, 7u})
    part_case("switch", [&] {
      G g;
      auto h = g.handle();
      auto a = g.setter({}, h, v, 20000, b);
      B bodies;
      auto c = g.cond({a}, h, cudaGraphCondTypeSwitch, 4, &bodies);
      for (int j = 0; j < 4; ++j) G(bodies[j]).k({}, 5000, b + 2 + j);
      g.k({c}, 5000, b + 1);
      cudaGraphExec_t x;
      CK(cudaGraphInstantiate(&x, g.g, 0));
      for (int i = 0; i < R + 2; ++i) {
        Run r("switch", i - 2, fmt("\"value\":%u,", v));
        r.k("a");
        r.k("b");
        for (int j = 0; j < 4; ++j) r.k(fmt("body%d", j).c_str());
        spin<<<1, 32, 0, s>>>(60000, b + 120000);
        CK(cudaGraphLaunch(x, s));
        spin<<<1, 32, 0, s>>>(2000, r.k("after"));
        r.finish();
      }
    });
  // while: n iterations of a body of `chain` kernels, the last of which counts down
  for (unsigned n : {1u, 2u, 3u, 10u, 50u})
    for (int chain : {1, 2, 3})
      part_case("while", [&] {
        if (n == 50 && chain > 1) return;
        G g;
        auto h = g.handle(1);
        auto a = g.k({}, 20000, b);
        B bodies;
        auto c = g.cond({a}, h, cudaGraphCondTypeWhile, 1, &bodies);
        G body(bodies[0]);
        cudaGraphNode_t last{};
        for (int j = 0; j + 1 < chain; ++j)
          last =
              body.again(j ? G::D{last} : G::D{}, 5000, b + 2 + 64 * (j + 1), counts + 1 + j, 64);
        body.down(chain > 1 ? G::D{last} : G::D{}, h, left_, 5000, b + 2, counts, 64);
        g.k({c}, 5000, b + 1);
        cudaGraphExec_t x;
        CK(cudaGraphInstantiate(&x, g.g, 0));
        for (int i = 0; i < R; ++i) {
          Run r("while", i - 2, fmt("\"n\":%u,\"chain\":%d,", n, chain));
          r.k("a");
          r.k("b");
          for (int j = 0; j < chain; ++j)
            r.k(j ? fmt("body%d", j - 1).c_str() : "last", 64, false, true);
          reset<<<1, 1, 0, s>>>(left_, n, counts, 4);
          spin<<<1, 32, 0, s>>>(60000, b + 120000);
          CK(cudaGraphLaunch(x, s));
          spin<<<1, 32, 0, s>>>(2000, r.k("after"));
          r.finish();
        }
      });
  // where: blocks of bodies against those of ordinary kernels and graph kernels, alone and beside a
  // kernel that is there before
  for (int blocks : {7, 66, 132, 200, 264})
    for (int back : {0, 20, 100})
      part_case("where", [&] {
        G g;
        auto h = g.handle();
        auto a = g.setter({}, h, 1, 20000, b + 60000);
        B bodies;
        auto c = g.cond({a}, h, cudaGraphCondTypeIf, 1, &bodies);
        (void)c;
        G(bodies[0]).k({}, 20000, b, blocks, 512);
        cudaGraphExec_t x;
        CK(cudaGraphInstantiate(&x, g.g, 0));
        G p;
        auto pa = p.k({}, 20000, b + 60000, 1, 1);
        p.k({pa}, 20000, b, blocks, 512);
        cudaGraphExec_t y;
        CK(cudaGraphInstantiate(&y, p.g, 0));
        for (int i = 0; i < 6; ++i)
          for (int how = 0; how < 3; ++how) {
            static const char* hows[] = {"body", "graph", "stream"};
            Run r("where", i,
                  fmt("\"how\":\"%s\",\"blocks\":%d,\"back\":%d,", hows[how], blocks, back));
            Rec* q = r.k("x", blocks, true);
            if (back) spin<<<back, 1024, 0, t>>>(300000, r.k("back", back, true));
            usleep(60);
            if (how == 0) CK(cudaGraphLaunch(x, s));
            if (how == 1) CK(cudaGraphLaunch(y, s));
            if (how == 2) {
              spin<<<1, 1, 0, s>>>(20000, b + 60000);
              spin<<<blocks, 512, 0, s>>>(20000, q);
            }
            r.finish();
          }
      });
  // Several at once: two conditional nodes in one graph; a kernel beside a conditional; another
  // stream's kernels during a while
  part_case("two_ifs", [&] {
    G g;
    auto h = g.handle(1), i = g.handle(1);
    auto a = g.k({}, 20000, b);
    B x1, x2;
    auto c = g.cond({a}, h, cudaGraphCondTypeIf, 1, &x1),
         d = g.cond({a}, i, cudaGraphCondTypeIf, 1, &x2);
    G(x1[0]).k({}, 30000, b + 2);
    G(x2[0]).k({}, 30000, b + 3);
    g.k({a}, 30000, b + 4);
    g.k({c, d}, 5000, b + 1);
    cudaGraphExec_t x;
    CK(cudaGraphInstantiate(&x, g.g, 0));
    for (int j = 0; j < R; ++j) {
      Run r("two_ifs", j);
      r.k("a");
      r.k("b");
      r.k("body0");
      r.k("body1");
      r.k("beside");
      CK(cudaGraphLaunch(x, s));
      r.finish();
    }
  });
  part_case("other_stream", [&] {
    G g;
    auto h = g.handle(1);
    B bodies;
    auto c = g.cond({}, h, cudaGraphCondTypeWhile, 1, &bodies);
    (void)c;
    G(bodies[0]).down({}, h, left_, 20000, b, counts, 64);
    cudaGraphExec_t x;
    CK(cudaGraphInstantiate(&x, g.g, 0));
    for (int j = 0; j < R; ++j) {
      Run r("other_stream", j);
      r.k("body", 64, false, true);
      reset<<<1, 1, 0, s>>>(left_, 20, counts, 4);
      CK(cudaStreamSynchronize(s));
      CK(cudaGraphLaunch(x, s));
      for (int q = 0; q < 5; ++q) {
        spin<<<1, 32, 0, t>>>(5000, r.k(fmt("other%d", q).c_str()));
      }
      spin<<<1, 32, 0, s>>>(2000, r.k("after"));
      r.finish();
    }
  });
  // Priority of a body: the GPU is full of a kernel of another priority; the graph is launched in
  // an urgent stream, or its node has a priority.
  for (int way = 0; way < 3; ++way)
    part_case("priority", [&] {
      static const char* ways[] = {"plain", "stream -5", "node -5"};
      G g;
      auto h = g.handle(1);
      auto a = g.k({}, 5000, b);
      B bodies;
      auto c = g.cond({a}, h, cudaGraphCondTypeIf, 1, &bodies);
      (void)c;
      auto q = G(bodies[0]).k({}, 5000, b + 2, 66, 1024);
      if (way == 2) {
        cudaKernelNodeAttrValue v{};
        v.priority = -5;
        CK(cudaGraphKernelNodeSetAttribute(q, cudaLaunchAttributePriority, &v));
      }
      cudaGraphExec_t x;
      CK(cudaGraphInstantiate(&x, g.g, way == 2 ? cudaGraphInstantiateFlagUseNodePriority : 0));
      auto u = stream(way == 1 ? -5 : 0), w = stream(0);
      for (int j = 0; j < 6; ++j) {
        Run r("priority", j, fmt("\"way\":\"%s\",", ways[way]));
        r.k("a");
        r.k("pad");
        r.k("body", 66, true);
        CK(cudaGraphLaunch(x, u));
        spin<<<264 * 12, 1024, 0, w>>>(30000, r.k("fill", 264 * 12));
        r.finish();
      }
    });
  part_case("nested", [&] {
    G g;
    auto h = g.handle(1);
    B bodies;
    auto a = g.k({}, 20000, b);
    auto c = g.cond({a}, h, cudaGraphCondTypeWhile, 1, &bodies);
    G body(bodies[0]);
    auto i = body.handle(1);
    B inner;
    auto ic = body.cond({}, i, cudaGraphCondTypeIf, 1, &inner);
    G(inner[0]).again({}, 5000, b + 100, counts + 1, 64);
    body.down({ic}, h, left_, 5000, b + 2, counts, 64);
    g.k({c}, 5000, b + 1);
    cudaGraphExec_t x;
    CK(cudaGraphInstantiate(&x, g.g, 0));
    for (int j = 0; j < R; ++j) {
      Run r("nested", j);
      r.k("a");
      r.k("b");
      Rec* q = r.k("last", 64, false, true);
      (void)q;
      pool().used = 100;
      r.k("inner", 64, false, true);
      reset<<<1, 1, 0, s>>>(left_, 5, counts, 4);
      CK(cudaGraphLaunch(x, s));
      r.finish();
    }
  });
  // What a body takes: each kind of node, the code of the instantiation.
  part_case("allowed", [&] {
    for (int kind = 0; kind < 7; ++kind) {
      static const char* kinds[] = {"kernel",       "memset", "memcpy", "host",
                                    "event_record", "child",  "alloc"};
      G g;
      auto h = g.handle(1);
      B bodies;
      auto c = g.cond({}, h, cudaGraphCondTypeIf, 1, &bodies);
      (void)c;
      cudaGraph_t y = bodies[0];
      cudaGraphNode_t x;
      cudaError_t e = cudaSuccess;
      static Fn f;
      cudaEvent_t ev;
      cudaEventCreate(&ev);
      if (kind == 0) G(y).k({}, 1000, b);
      if (kind == 1) {
        cudaMemsetParams p{};
        p.dst = counts;
        p.elementSize = 4;
        p.width = 1;
        p.height = 1;
        e = cudaGraphAddMemsetNode(&x, y, nullptr, 0, &p);
      }
      if (kind == 2)
        e = cudaGraphAddMemcpyNode1D(&x, y, nullptr, 0, counts, counts + 8, 4,
                                     cudaMemcpyDeviceToDevice);
      if (kind == 3) {
        cudaHostNodeParams p{host_fn, &f};
        e = cudaGraphAddHostNode(&x, y, nullptr, 0, &p);
      }
      if (kind == 4) e = cudaGraphAddEventRecordNode(&x, y, nullptr, 0, ev);
      if (kind == 5) {
        G c2;
        c2.k({}, 1000, b);
        e = cudaGraphAddChildGraphNode(&x, y, nullptr, 0, c2.g);
      }
      if (kind == 6) {
        cudaMemAllocNodeParams p{};
        p.poolProps.allocType = cudaMemAllocationTypePinned;
        p.poolProps.location.type = cudaMemLocationTypeDevice;
        p.bytesize = 1 << 20;
        e = cudaGraphAddMemAllocNode(&x, y, nullptr, 0, &p);
      }
      cudaGraphExec_t ex;
      cudaError_t e2 = e == cudaSuccess ? cudaGraphInstantiate(&ex, g.g, 0) : cudaSuccess;
      cudaGetLastError();
      line(
          fmt("{\"part\":\"%s\",\"case\":\"allowed\",\"kind\":\"%s\",\"add\":\"%s\","
              "\"instantiate\":\"%s\"}",
              part_name(), kinds[kind], cudaGetErrorName(e), cudaGetErrorName(e2)));
    }
  });
  // Programmatic edges.
  for (int port : {0, 1, 2})
    part_case("edges", [&] {
      G g;
      u64 at = 20000, ns = 60000;
      Rec* r0 = b;
      void* args[] = {&at, &ns, &r0};
      auto a = g.any((void*)trigger_at, 4, 32, args, {});
      u64 n2 = 20000;
      Rec* r1 = b + 4;
      void* a2[] = {&n2, &r1};
      cudaGraphNodeParams p{};
      p.type = cudaGraphNodeTypeKernel;
      p.kernel.func = (void*)spin;
      p.kernel.gridDim = 1;
      p.kernel.blockDim = 32;
      p.kernel.kernelParams = a2;
      cudaGraphEdgeData ed{};
      ed.from_port = port;
      ed.type = port == 1   ? cudaGraphDependencyTypeProgrammatic
                : port == 2 ? cudaGraphDependencyTypeProgrammatic
                            : cudaGraphDependencyTypeDefault;
      cudaGraphNode_t n;
      CK(cudaGraphAddNode(&n, g.g, &a, &ed, 1, &p));
      cudaGraphExec_t x;
      CK(cudaGraphInstantiate(&x, g.g, 0));
      for (int i = 0; i < R; ++i) {
        Run r("edges", i, fmt("\"port\":%d,", port));
        r.k("a", 4, false, true);
        r.k("b");
        spin<<<1, 32, 0, s>>>(60000, b + 120000);
        CK(cudaGraphLaunch(x, s));
        r.finish();
      }
    });
  part_case("device_mem_nodes", [&] {
    G g;
    cudaMemAllocNodeParams p{};
    p.poolProps.allocType = cudaMemAllocationTypePinned;
    p.poolProps.location.type = cudaMemLocationTypeDevice;
    p.bytesize = 256 << 20;
    cudaGraphNode_t x, y;
    CK(cudaGraphAddMemAllocNode(&x, g.g, nullptr, 0, &p));
    auto kk = g.k({x}, 20000, b);
    G::D d{kk};
    CK(cudaGraphAddMemFreeNode(&y, g.g, d.data(), 1, p.dptr));
    cudaGraphExec_t e;
    CK(cudaGraphInstantiate(&e, g.g, 0));
    for (int busy = 0; busy < 2; ++busy)
      for (int i = 0; i < 6; ++i) {
        Run r("mem_nodes", i, fmt("\"busy\":%d,", busy));
        r.k("k");
        if (busy) spin<<<1, 32, 0, t>>>(1000000, r.k("other"));
        r.call("launch", [&] { return cudaGraphLaunch(e, s); });
        if (i == 3) r.call("trim", [&] { return cudaDeviceGraphMemTrim(0); });
        r.finish();
      }
  });
}
int main(int n, char** v) {
  std::string what = n > 1 ? v[1] : "gaps";
  static std::string name = "graphs." + what;
  begin(name.c_str());
  if (what == "gaps")
    part_case("gaps", gaps);
  else
    part_case("conditionals", conditionals);
  end();
}
