// Launch attributes: which SMs the blocks get, and what is refused.
#include "timeline.cuh"
static void launch(Run& r, cudaStream_t s, int grid, int threads, size_t smem, int cluster,
                   int policy, int domain, int preferred, const char* name, std::string* code) {
  cudaLaunchAttribute a[4];
  int n = 0;
  cudaLaunchConfig_t c{};
  c.gridDim = grid;
  c.blockDim = threads;
  c.dynamicSmemBytes = smem;
  c.stream = s;
  if (cluster > 1) {
    a[n].id = cudaLaunchAttributeClusterDimension;
    a[n].val.clusterDim = {(unsigned)cluster, 1, 1};
    ++n;
  }
  if (policy >= 0) {
    a[n].id = cudaLaunchAttributeClusterSchedulingPolicyPreference;
    a[n].val.clusterSchedulingPolicyPreference = (cudaClusterSchedulingPolicy)policy;
    ++n;
  }
  if (domain >= 0) {
    a[n].id = cudaLaunchAttributeMemSyncDomain;
    a[n].val.memSyncDomain = (cudaLaunchMemSyncDomain)domain;
    ++n;
  }
  if (preferred > 0) {
    a[n].id = cudaLaunchAttributePreferredClusterDimension;
    memset(&a[n].val, 0, sizeof a[n].val);
    a[n].val.preferredClusterDim.x = preferred;
    a[n].val.preferredClusterDim.y = a[n].val.preferredClusterDim.z = 1;
    ++n;
  }
  c.attrs = a;
  c.numAttrs = n;
  Rec* q = r.k(name, grid, true);
  u64 ns = 20000;
  cudaError_t e = cudaLaunchKernelEx(&c, spin, ns, q);
  *code = cudaGetErrorName(e);
  cudaGetLastError();
}
int main(int n, char** v) {
  begin("attributes");
  cudaFuncSetAttribute(spin, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10);
  auto s = stream(), t = stream();
  // Non-portable sizes without the attribute, then with it.
  for (int allowed = 0; allowed < 2; ++allowed) {
    if (allowed) cudaFuncSetAttribute(spin, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    for (int cl : {2, 4, 7, 8, 9, 10, 12, 16, 32})
      part_case("size", [&] {
        std::string code;
        Run r("size", 0);
        launch(r, s, cl * 2, 128, 0, cl, -1, -1, 0, "x", &code);
        cudaLaunchConfig_t c{};
        cudaLaunchAttribute a{};
        a.id = cudaLaunchAttributeClusterDimension;
        a.val.clusterDim = {(unsigned)cl, 1, 1};
        c.attrs = &a;
        c.numAttrs = 1;
        c.gridDim = cl * 2;
        c.blockDim = 128;
        int n = -1, m = -1;
        cudaError_t e = cudaOccupancyMaxActiveClusters(&n, spin, &c);
        cudaError_t e2 = cudaOccupancyMaxPotentialClusterSize(&m, spin, &c);
        cudaGetLastError();
        r.extra =
            fmt("\"allowed\":%d,\"cluster\":%d,\"code\":\"%s\",\"occupancy\":%d,\"occupancy_code\":"
                "\"%s\",\"potential\":%d,\"potential_code\":\"%s\",",
                allowed, cl, code.c_str(), n, cudaGetErrorName(e), m, cudaGetErrorName(e2));
        r.finish();
      });
  }
  struct C {
    int grid, threads;
    size_t smem;
  };
  std::vector<C> cs{{1, 128, 0},          {5, 512, 0},   {20, 1024, 0},
                    {33, 256, 100 << 10}, {66, 1024, 0}, {132, 128, 0}};
  for (int cl : {1, 2, 4, 8, 16})
    for (auto& c : cs)
      for (int back : {0, 40})
        for (int i = 0; i < 2; ++i)
          for (int policy : {-1, 0, 1, 2})
            part_case("policy", [&] {
              int grid = std::min(c.grid * cl, 1056);
              grid -= grid % cl;
              std::string code;
              Run r("policy", i);
              if (back) {
                spin<<<back, 1024, 0, t>>>(200000, r.k("back", back, true));
                usleep(40);
              }
              launch(r, s, grid, c.threads, c.smem, cl, policy, -1, 0, "x", &code);
              r.extra =
                  fmt("\"cluster\":%d,\"grid\":%d,\"threads\":%d,\"smem\":%zu,\"back\":%d,"
                      "\"policy\":%d,\"code\":\"%s\",",
                      cl, grid, c.threads, c.smem, back, policy, code.c_str());
              r.finish();
            });
  for (int domain : {-1, 0, 1})
    for (auto& c : cs)
      for (int i = 0; i < 2; ++i)
        part_case("domain", [&] {
          std::string code;
          Run r("domain", i);
          launch(r, s, c.grid * 2, c.threads, c.smem, 2, -1, domain, 0, "x", &code);
          launch(r, t, c.grid, 256, 0, 1, -1, domain >= 0 ? 1 - domain : -1, 0, "y", &code);
          r.extra =
              fmt("\"grid\":%d,\"domain\":%d,\"code\":\"%s\",", c.grid * 2, domain, code.c_str());
          r.finish();
        });
  for (int rep = 0; rep < 3; ++rep)
    for (int grid : {16, 64, 240})
      for (int back : {0, 60})
        for (int pf : {0, 0, 4, 0, 8, 0, 16, 0})  // 0: without; what ran before decides, too
          part_case("preferred", [&] {
            std::string code;
            Run r("preferred", rep);
            if (back) {
              spin<<<back, 1024, 0, t>>>(200000, r.k("back", back, true));
              usleep(40);
            }
            launch(r, s, grid, 128, 0, 2, -1, -1, pf, "x", &code);
            r.extra = fmt("\"preferred\":%d,\"grid\":%d,\"back\":%d,\"code\":\"%s\",", pf, grid,
                          back, code.c_str());
            r.finish();
          });
  end();
}
