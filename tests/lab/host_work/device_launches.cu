// Launches from kernels, and graphs launched from the device. Argument: cdp or device_graphs.
#include "timeline.cuh"
static const int R = 12;
// kind 0 default stream, 1 fire and forget, 2 tail, 3 a stream made in the kernel, 4 fire and
// forget + tail
__global__ void parent(int kind, int children, int blocks, int threads, u64 before, u64 after,
                       u64 child_ns, Rec* me, Rec* calls, Rec* kids) {
  u64 t = gtime();
  if (threadIdx.x == 0) {
    mark(me + blockIdx.x, t);
    wait_since(t, before);
    cudaStream_t s = 0;
    if (kind == 3) cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    for (int i = 0; i < children; ++i) {
      u64 a = gtime();
      int n = blockIdx.x * children + i;
      Rec* k = kids + n * blocks;
      if (kind == 0 || kind == 3) spin<<<blocks, threads, 0, s>>>(child_ns, k);
      if (kind == 1 || (kind == 4 && i % 2 == 0))
        spin<<<blocks, threads, 0, cudaStreamFireAndForget>>>(child_ns, k);
      if (kind == 2 || (kind == 4 && i % 2))
        spin<<<blocks, threads, 0, cudaStreamTailLaunch>>>(child_ns, k);
      if (calls) {
        Rec* c = calls + n;
        c->start = a;
        c->end = gtime();
        c->sm = cudaGetLastError();
        c->seen = 1;
      }
    }
    u64 b = gtime();
    wait_since(b, after);
    me[blockIdx.x].end = gtime();
  }
}
__global__ void nested(int depth, u64 ns, Rec* r) {
  u64 t = gtime();
  mark(r, t);
  if (depth) nested<<<1, 1, 0, cudaStreamFireAndForget>>>(depth - 1, ns, r + 1);
  wait_since(t, ns);
  r->end = gtime();
}

__global__ void launches_graph(cudaGraphExec_t g, int how, int times, u64 before, u64 after,
                               Rec* r) {
  u64 t = gtime();
  mark(r, t);
  wait_since(t, before);
  for (int i = 0; i < times; ++i) {
    u64 a = gtime();
    cudaError_t e = cudaSuccess;
    if (how == 0) e = cudaGraphLaunch(g, cudaStreamGraphFireAndForget);
    if (how == 1) e = cudaGraphLaunch(g, cudaStreamGraphTailLaunch);
    if (how == 2) e = cudaGraphLaunch(g, cudaStreamGraphFireAndForgetAsSibling);
    r[1 + i].start = a;
    r[1 + i].end = gtime();
    r[1 + i].sm = e;
    r[1 + i].seen = 1;
  }
  u64 b = gtime();
  wait_since(b, after);
  r->end = gtime();
}
__global__ void relaunches(unsigned* left, u64 ns, Rec* r, unsigned* count) {
  u64 t = gtime();
  unsigned n = atomicAdd(count, 1u);
  wait_since(t, ns);
  if (--*left > 0) cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
  if (n < 64) {
    mark(r + n, t);
    r[n].end = gtime();
  }
}
__global__ void set2(unsigned* a, unsigned x, unsigned* b) {
  *a = x;
  *b = 0;
}

static void cdp() {
  auto s = stream(), t = stream();
  static const char* kinds[] = {"default", "fire_and_forget", "tail", "own_stream", "both"};
  part_case("warm", [&] {
    Rec* q = pool().base;
    for (int k = 0; k < 5; ++k) {
      parent<<<1, 32, 0, s>>>(k, 2, 1, 32, 0, 0, 1000, q, q + 10, q + 20);
      CK(cudaDeviceSynchronize());
    }
    nested<<<1, 1, 0, s>>>(3, 1000, q);
    CK(cudaDeviceSynchronize());
  });
  for (int kind = 0; kind < 5; ++kind)
    for (int n : {1, 2, 4, 16})
      for (u64 after : {0ull, 100000ull})
        part_case(kinds[kind], [&] {
          for (int i = 0; i < R; ++i) {
            Run r("cdp", i,
                  fmt("\"kind\":\"%s\",\"children\":%d,\"after\":%llu,", kinds[kind], n, after));
            Rec *me = r.k("parent"), *calls = r.k("calls", n, true, true),
                *kids = r.k("children", n, true, true);
            parent<<<1, 32, 0, s>>>(kind, n, 1, 32, 10000, after, 20000, me, calls, kids);
            spin<<<1, 32, 0, s>>>(2000, r.k("after"));
            CK(cudaGetLastError());
            r.finish();
          }
        });
  // Several parent blocks: do children of one block wait for those of another?
  for (int kind = 0; kind < 4; ++kind)
    for (int pb : {4, 132})
      part_case(kinds[kind], [&] {
        for (int i = 0; i < 4; ++i) {
          Run r("cdp.blocks", i, fmt("\"kind\":\"%s\",\"parents\":%d,", kinds[kind], pb));
          Rec *me = r.k("parent", pb, true, true), *kids = r.k("children", pb * 2, true, true);
          parent<<<pb, 32, 0, s>>>(kind, 2, 1, 32, 10000, 20000, 20000, me, nullptr, kids);
          spin<<<1, 32, 0, s>>>(2000, r.k("after"));
          r.finish();
        }
      });
  // Where: blocks of a child against those of an ordinary kernel.
  for (int blocks : {7, 132, 200, 264})
    for (int kind : {1, 2, 5})
      part_case("cdp.where", [&] {
        for (int i = 0; i < 6; ++i) {
          Run r(
              "cdp.where", i,
              fmt("\"kind\":\"%s\",\"blocks\":%d,", kind == 5 ? "ordinary" : kinds[kind], blocks));
          Rec* me = r.k("parent", 1, true);
          Rec* kids = r.k("children", blocks, true);
          if (kind == 5) {
            spin<<<1, 32, 0, s>>>(10000, me);
            spin<<<blocks, 512, 0, s>>>(20000, kids);
          } else
            parent<<<1, 32, 0, s>>>(kind, 1, blocks, 512, 10000, kind == 1 ? 50000 : 0, 20000, me,
                                    nullptr, kids);
          r.finish();
        }
      });
  // Priority: the GPU is filled by waves of another kernel; the parent is as urgent, more or less.
  for (int kind : {0, 1, 2})
    for (int pp : {0, -5})
      for (int fp : {0, -3})
        part_case("cdp.priority", [&] {
          auto u = stream(pp), w = stream(fp);
          for (int i = 0; i < 4; ++i) {
            Run r("cdp.priority", i,
                  fmt("\"kind\":\"%s\",\"parent\":%d,\"fill\":%d,", kinds[kind], pp, fp));
            Rec *me = r.k("parent"), *calls = r.k("calls", 1, true, true),
                *kids = r.k("children", 66, true);
            parent<<<1, 32, 0, u>>>(kind, 1, 66, 1024, 60000, 20000, 5000, me, calls, kids);
            usleep(20);
            spin<<<264 * 10, 1024, 0, w>>>(30000, r.k("fill", 264 * 10));
            r.finish();
          }
          cudaStreamDestroy(u);
          cudaStreamDestroy(w);
        });
  // Queue: do kernels of other streams pass?
  part_case("cdp.other_stream", [&] {
    for (int kind = 0; kind < 3; ++kind)
      for (int i = 0; i < 6; ++i) {
        Run r("cdp.other_stream", i, fmt("\"kind\":\"%s\",", kinds[kind]));
        Rec *me = r.k("parent"), *kids = r.k("children", 4, true, true);
        parent<<<1, 32, 0, s>>>(kind, 4, 1, 32, 10000, 100000, 50000, me, nullptr, kids);
        for (int j = 0; j < 4; ++j) spin<<<1, 32, 0, t>>>(5000, r.k(fmt("other%d", j).c_str()));
        spin<<<1, 32, 0, s>>>(2000, r.k("after"));
        r.finish();
      }
  });
  part_case("cdp.nested", [&] {
    for (int d : {1, 3, 8})
      for (int i = 0; i < 6; ++i) {
        Run r("cdp.nested", i, fmt("\"depth\":%d,", d));
        Rec* q = r.k("chain", d + 1, true, true);
        nested<<<1, 1, 0, s>>>(d, 10000, q);
        spin<<<1, 32, 0, s>>>(2000, r.k("after"));
        r.finish();
      }
  });
  part_case("cdp.many", [&] {
    for (int n : {100, 1000})
      for (int kind : {0, 1, 2}) {
        Run r("cdp.many", 0, fmt("\"kind\":\"%s\",\"children\":%d,", kinds[kind], n));
        Rec *me = r.k("parent"), *calls = r.k("calls", n, false, true),
            *kids = r.k("children", n, false, true);
        parent<<<1, 32, 0, s>>>(kind, n, 1, 32, 0, 0, 2000, me, calls, kids);
        r.finish();
      }
  });
}
static void device_graphs() {
  auto s = stream(), t = stream();
  Rec* b = pool().base;
  unsigned* left;
  CK(cudaMalloc(&left, 64));
  static const char* hows[] = {"fire_and_forget", "tail", "sibling"};
  auto kern = [&](cudaGraph_t g, void* f, void** a, std::vector<cudaGraphNode_t> d,
                  int blocks = 1) {
    cudaKernelNodeParams p{};
    p.func = f;
    p.gridDim = blocks;
    p.blockDim = 1;
    p.kernelParams = a;
    cudaGraphNode_t n;
    CK(cudaGraphAddKernelNode(&n, g, d.data(), d.size(), &p));
    return n;
  };
  for (int how = 0; how < 3; ++how)
    for (u64 after : {0ull, 100000ull})
      for (int times : {1, 2})
        part_case(hows[how], [&] {
          if (times == 2 && how != 0) {
          }
          cudaGraph_t c;
          CK(cudaGraphCreate(&c, 0));
          u64 ns = 20000;
          Rec* r0 = b + 20;
          void* a0[] = {&ns, &r0};
          auto k0 = kern(c, (void*)spin, a0, {});
          Rec* r1 = b + 21;
          void* a1[] = {&ns, &r1};
          kern(c, (void*)spin, a1, {k0});
          cudaGraphExec_t dx;
          CK(cudaGraphInstantiate(&dx, c, cudaGraphInstantiateFlagDeviceLaunch));
          CK(cudaGraphUpload(dx, s));
          CK(cudaDeviceSynchronize());
          cudaGraph_t g;
          CK(cudaGraphCreate(&g, 0));
          u64 before = 10000, af = after;
          int h = how, tm = times;
          Rec* rp = b;
          void* ap[] = {&dx, &h, &tm, &before, &af, &rp};
          auto pn = kern(g, (void*)launches_graph, ap, {});
          Rec* rn = b + 10;
          u64 n2 = 30000;
          void* an[] = {&n2, &rn};
          kern(g, (void*)spin, an, {pn});
          cudaGraphExec_t x;
          CK(cudaGraphInstantiate(&x, g, 0));
          for (int i = 0; i < R; ++i) {
            Run r("device_graph", i,
                  fmt("\"how\":\"%s\",\"after\":%llu,\"times\":%d,", hows[how], after, times));
            r.k("launcher");
            r.k("calls", 9, true, true);
            r.k("next node");
            pool().used = 20;
            r.k("g0");
            r.k("g1");
            CK(cudaGraphLaunch(x, s));
            spin<<<1, 32, 0, s>>>(2000, r.k("after"));
            r.finish();
          }
          cudaGraphExecDestroy(x);
          cudaGraphExecDestroy(dx);
        });
  part_case("relaunch", [&] {
    cudaGraph_t g;
    CK(cudaGraphCreate(&g, 0));
    u64 ns = 5000;
    Rec* r0 = b;
    unsigned* cnt = left + 1;
    void* a[] = {&left, &ns, &r0, &cnt};
    kern(g, (void*)relaunches, a, {});
    cudaGraphExec_t x;
    CK(cudaGraphInstantiate(&x, g, cudaGraphInstantiateFlagDeviceLaunch));
    CK(cudaGraphUpload(x, s));
    CK(cudaDeviceSynchronize());
    for (int i = 0; i < R; ++i) {
      set2<<<1, 1, 0, s>>>(left, 10, left + 1);
      CK(cudaStreamSynchronize(s));
      Run r("relaunch", i);
      r.k("times", 64, false, true);
      CK(cudaGraphLaunch(x, s));
      for (int j = 0; j < 3; ++j) spin<<<1, 32, 0, t>>>(3000, r.k(fmt("other%d", j).c_str()));
      spin<<<1, 32, 0, s>>>(2000, r.k("after"));
      r.finish();
    }
  });
}
int main(int n, char** v) {
  std::string what = n > 1 ? v[1] : "cdp";
  static std::string name = "cdp." + what;
  begin(name.c_str());
  if (what == "cdp")
    part_case("cdp", cdp);
  else
    part_case("device_graphs", device_graphs);
  end();
}
