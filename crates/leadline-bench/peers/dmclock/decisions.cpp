// Decisions per second of ceph/dmclock: the same load as `yardstick::Deciding` of leadline-sim.
//
// decisions CLIENTS COUNT
//
// A third each of the clients has a reservation, a limit, both; weights are 1 to 4. Every client has two requests waiting
// at the start; a decision and the arrival of the next request of the client that was served count as one. Virtual time
// goes on by 1 / (100 per second and client). Prints decisions that served a request, and the seconds of CPU time.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

#include "dmclock_server.h"

namespace dmc = crimson::dmclock;

struct Request {
  uint32_t bytes;
};

// Tags calculated when they are needed, as Ceph uses it; what clients may have does not change while it runs.
using Queue = dmc::PullPriorityQueue<uint32_t, Request, true, false>;

static double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "decisions CLIENTS COUNT\n");
    return 2;
  }
  const uint32_t clients = uint32_t(std::atoll(words[1]));
  const uint64_t decisions = uint64_t(std::atoll(words[2]));
  const double rate = 100.0;
  std::mt19937_64 bits(1);
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  std::vector<dmc::ClientInfo> infos;
  for (uint32_t client = 0; client < clients; ++client) {
    const double weight = double(1 + bits() % 4);
    double reservation = 0.0, limit = 0.0;
    if (client % 3 == 0) {
      reservation = rate * (0.2 + 0.4 * unit(bits));
    } else if (client % 3 == 1) {
      limit = rate * (0.8 + unit(bits));
    } else {
      reservation = rate * 0.3;
      limit = rate * (0.8 + unit(bits));
    }
    infos.emplace_back(reservation, weight, limit);
  }
  Queue queue([&infos](const uint32_t& client) { return &infos[client]; }, dmc::AtLimit::Wait);
  const dmc::ReqParams nothing_elsewhere(1, 1);
  double now = 1.0;
  const double gap = 1.0 / rate / double(clients);
  for (uint32_t client = 0; client < clients; ++client) {
    for (int backlog = 0; backlog < 2; ++backlog) {
      queue.add_request_time(Request{4096}, client, nothing_elsewhere, now, 1u);
    }
  }
  auto step = [&]() -> uint64_t {
    now += gap;
    auto pulled = queue.pull_request(now);
    if (!pulled.is_retn()) {
      return 0;
    }
    queue.add_request_time(Request{4096}, pulled.get_retn().client, nothing_elsewhere, now, 1u);
    return 1;
  };
  for (uint64_t warm = 0; warm < 20 * uint64_t(clients); ++warm) {
    step();
  }
  uint64_t served = 0;
  const double start = cpu_seconds();
  for (uint64_t done = 0; done < decisions; ++done) {
    served += step();
  }
  std::printf("%llu %.9f\n", (unsigned long long)served, cpu_seconds() - start);
  return 0;
}
