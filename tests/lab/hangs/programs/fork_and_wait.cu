// A child process prepares data. The parent waits for the child to end before it sends the child
// its work, and a kernel waits for the parent.
#include <sys/wait.h>

#include "begin.cuh"

__global__ void expect_data(const volatile int* arrived, int* out) {
  while (*arrived == 0) __nanosleep(1000);
  *out = *arrived;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  int work[2], results[2];
  if (pipe(work) != 0 || pipe(results) != 0) return 3;
  const pid_t child = fork();
  if (child == 0) {
    close(work[1]);
    int task = 0;
    if (read(work[0], &task, sizeof task) == sizeof task) {
      task *= 2;
      if (write(results[1], &task, sizeof task) < 0) _exit(1);
    }
    _exit(0);
  }
  int* arrived = shared_with_host<int>(1);
  auto* out = zeros<int>(1);
  load(expect_data);
  expect_data<<<1, 1, 0, stream_of_its_own()>>>(arrived, out);
  CHECK(cudaGetLastError());
  const int task = 21;
  if (fixed && write(work[1], &task, sizeof task) < 0) return 3;
  waitpid(child, nullptr, 0);
  if (!fixed && write(work[1], &task, sizeof task) < 0) return 3;
  int result = 0;
  if (read(results[0], &result, sizeof result) != sizeof result) return 3;
  *static_cast<volatile int*>(arrived) = result;
  return finish();
}
