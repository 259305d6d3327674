// The host sends the next message after the answer, and the kernel answers after the next message.
#include "begin.cuh"

struct Mailbox {
  int sent, answered;
};

__global__ void answer(volatile Mailbox* box, int messages, int ahead) {
  for (int i = 0; i < messages; ++i) {
    while (box->sent < i + ahead) {
    }
    box->answered = i + 1;
    __threadfence_system();
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* box = shared_with_host<Mailbox>(1);
  volatile auto* seen = box;
  load(answer);
  answer<<<1, 1, 0, stream_of_its_own()>>>(box, 100, fixed ? 1 : 2);
  CHECK(cudaGetLastError());
  for (int i = 0; i < 100; ++i) {
    seen->sent = i + 1;
    while (seen->answered < i + 1) usleep(10);
  }
  return finish();
}
