/* NCCL on the host, between the processes: sockets, and the thread that moves what a GPU would move beside its host. */
#include "tests/cuda/nccl_double.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <thread>

#define refuse pl_fake_nccl_refuse

constexpr int PATIENCE = 60;       /* seconds until what blocks for ever aborts instead */
constexpr double TRANSFER = 0.001; /* seconds that an array takes at least */

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static void rest() { std::this_thread::sleep_for(std::chrono::microseconds(100)); }

static void put(other_rank &o, frame f, const char *data) {
  o.out.append(reinterpret_cast<const char *>(&f), sizeof f);
  if (data) o.out.append(data, f.count * sizeof(float));
}

static void write_some(other_rank &o) {
  while (!o.out.empty() && !o.gone) {
    const ssize_t n = send(o.socket, o.out.data(), o.out.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) o.gone = true;
    if (n <= 0) return;
    o.out.erase(0, static_cast<size_t>(n));
  }
}

static void take(ncclComm_t comm, int rank, const frame &f, const char *data) {
  other_rank &o = comm->others[static_cast<size_t>(rank)];
  if (f.kind == HELLO) o.connected = true;
  if (f.kind == POSTED) o.posted.push_back(f);
  if (f.kind != DATA) return;
  if (o.receiving.empty()) refuse("rank %d got an array from rank %d that it does not receive", comm->rank, rank);
  operation *r = o.receiving.front();
  if (r->number != f.number || r->count != f.count)
    refuse("rank %d receives array %llu of %zu numbers, rank %d sends %llu of %llu", comm->rank,
           static_cast<unsigned long long>(r->number), r->count, rank, static_cast<unsigned long long>(f.number),
           static_cast<unsigned long long>(f.count));
  std::memcpy(r->data, data, r->count * sizeof(float));
  r->over = true;
  o.receiving.pop_front();
  pl_fake_nccl().arrived++;
}

static void read_some(ncclComm_t comm, int rank) {
  other_rank &o = comm->others[static_cast<size_t>(rank)];
  char bytes[65536];
  while (!o.gone) {
    const ssize_t n = recv(o.socket, bytes, sizeof bytes, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) o.gone = true;
    if (n <= 0) break;
    o.in.append(bytes, static_cast<size_t>(n));
  }
  for (;;) {
    frame f;
    if (o.in.size() < sizeof f) return;
    std::memcpy(&f, o.in.data(), sizeof f);
    const size_t size = sizeof f + (f.kind == DATA ? f.count * sizeof(float) : 0);
    if (o.in.size() < size) return;
    take(comm, rank, f, o.in.data() + sizeof f);
    o.in.erase(0, size);
  }
}

/* The memory is read at the end of the transfer: what was written there too soon is what is sent. */
static void send_what_is_posted(ncclComm_t comm, int rank) {
  other_rank &o = comm->others[static_cast<size_t>(rank)];
  while (!o.posted.empty() && !o.sending.empty()) {
    operation *s = o.sending.front();
    const frame p = o.posted.front();
    if (s->number != p.number || s->count != p.count)
      refuse("rank %d sends array %llu of %zu numbers, rank %d receives %llu of %llu", comm->rank,
             static_cast<unsigned long long>(s->number), s->count, rank, static_cast<unsigned long long>(p.number),
             static_cast<unsigned long long>(p.count));
    if (s->since == 0) s->since = now();
    if (now() - s->since < TRANSFER) return;
    put(o, {DATA, s->number, s->count}, s->data);
    s->over = true;
    o.posted.pop_front();
    o.sending.pop_front();
  }
}

static void begin(launch &l) {
  l.begun = true;
  for (operation &x : l.operations) {
    other_rank &o = l.comm->others[static_cast<size_t>(x.peer)];
    if (x.sends) {
      o.sending.push_back(&x);
    } else {
      o.receiving.push_back(&x);
      put(o, {POSTED, x.number, x.count}, nullptr);
    }
  }
}

static void end(launch &l) {
  l.over = true;
  l.comm->queue.pop_front();
  pl_fake_nccl().streams[l.stream].pop_front();
}

static bool is_over(const launch &l) {
  for (const operation &x : l.operations)
    if (!x.over) return false;
  return true;
}

static bool move(ncclComm_t comm) {
  for (int r = 0; r < comm->count; r++) {
    if (r == comm->rank) continue;
    other_rank &o = comm->others[static_cast<size_t>(r)];
    read_some(comm, r);
    send_what_is_posted(comm, r);
    write_some(o);
  }
  if (comm->queue.empty()) return false;
  std::shared_ptr<launch> l = comm->queue.front();
  if (!l->begun && pl_fake_nccl().streams[l->stream].front() != l) return false;
  if (!l->begun) {
    begin(*l);
    return true;
  }
  if (!is_over(*l)) return false;
  end(*l);
  return true;
}

void pl_fake_nccl_move() {
  for (bool moved = true; moved;) {
    moved = false;
    for (ncclComm_t c : pl_fake_nccl().comms) moved = move(c) || moved;
  }
}

static void go_on_for_ever() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  for (;;) {
    {
      std::lock_guard<std::mutex> guard(pl_fake_nccl().lock);
      pl_fake_nccl_move();
    }
    rest();
  }
}

static sockaddr_un address_of(const std::string &name, int rank, socklen_t *size) {
  sockaddr_un a = {};
  a.sun_family = AF_UNIX; /* an abstract name, which goes with the process: its first byte is 0 */
  const int n = std::snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "pl_nccl.%s.%d", name.c_str(), rank);
  *size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(n));
  return a;
}

static int make_socket() {
  const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (s < 0) refuse("no socket: %s", std::strerror(errno));
  return s;
}

static void call(ncclComm_t comm, int rank) {
  const double limit = now() + PATIENCE;
  socklen_t size;
  const sockaddr_un a = address_of(comm->name, rank, &size);
  const int s = make_socket();
  while (connect(s, reinterpret_cast<const sockaddr *>(&a), size) != 0) {
    if (now() > limit) refuse("rank %d waits for rank %d, which does not come to ncclCommInitRank", comm->rank, rank);
    rest();
  }
  if (write(s, &comm->rank, sizeof comm->rank) != sizeof comm->rank) refuse("rank %d is gone", rank);
  comm->others[static_cast<size_t>(rank)].socket = s;
}

static void be_called(ncclComm_t comm, int door) {
  pollfd p = {door, POLLIN, 0};
  int rank = -1;
  if (poll(&p, 1, PATIENCE * 1000) != 1) refuse("rank %d waits for others, which do not come to ncclCommInitRank", comm->rank);
  const int s = accept4(door, nullptr, nullptr, SOCK_CLOEXEC);
  if (s < 0 || read(s, &rank, sizeof rank) != sizeof rank || rank <= comm->rank || rank >= comm->count)
    refuse("rank %d was called by somebody else", comm->rank);
  if (comm->others[static_cast<size_t>(rank)].socket >= 0) refuse("two ranks of a communicator say that they are %d", rank);
  comm->others[static_cast<size_t>(rank)].socket = s;
}

/* The higher rank calls. */
void pl_fake_nccl_meet(ncclComm_t comm) {
  const int door = make_socket();
  socklen_t size;
  const sockaddr_un a = address_of(comm->name, comm->rank, &size);
  if (bind(door, reinterpret_cast<const sockaddr *>(&a), size) != 0 || listen(door, comm->count) != 0)
    refuse("two ranks of a communicator say that they are %d", comm->rank);
  for (int r = 0; r < comm->rank; r++) call(comm, r);
  for (int r = comm->rank + 1; r < comm->count; r++) be_called(comm, door);
  close(door);
  for (other_rank &o : comm->others)
    if (o.socket >= 0 && fcntl(o.socket, F_SETFL, O_NONBLOCK) != 0) refuse("a socket that blocks");
}

static void connect_to(ncclComm_t comm, int rank) {
  const double limit = now() + PATIENCE;
  other_rank &o = comm->others[static_cast<size_t>(rank)];
  while (!o.connected && !o.gone) {
    if (now() > limit) refuse("rank %d connects to rank %d, which does not come to it", comm->rank, rank);
    pl_fake_nccl_move();
    rest();
  }
}

/* All are told before any is waited for. */
void pl_fake_nccl_connect(const std::vector<operation> &operations, ncclComm_t comm) {
  for (const operation &x : operations) {
    other_rank &o = comm->others[static_cast<size_t>(x.peer)];
    if (!o.hello_sent) put(o, {HELLO, 0, 0}, nullptr);
    o.hello_sent = true;
  }
  for (const operation &x : operations) connect_to(comm, x.peer);
}

void pl_fake_nccl_start_thread() { std::thread(go_on_for_ever).detach(); }
