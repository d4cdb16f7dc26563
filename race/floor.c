/* The floor: what the kernel alone charges for carrying bytes between two sockets.
 *
 * One thread, epoll, edge-triggered; a connection to the server for each of a client; what one side
 * sends is written to the other. It reads no HTTP, knows no limits, counts nothing and recovers from
 * nothing: a balancer does more, and the distance to this is what all of that costs.
 *
 *   floor LISTEN-PORT SERVER-PORT          copies bytes both ways
 *   floor LISTEN-PORT SERVER-PORT pooled   for a connection per request: takes kept connections to
 *                                          the server, sends a request of its own over them and
 *                                          closes the client's connection after the response, which
 *                                          must be small enough for one read
 *
 * Only for `race/run`, on loopback. It ends with the first error that it does not expect.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER_BYTES = 64 * 1024, EVENTS_MAX = 256, POOL_MAX = 4096 };

/* One direction's reader: what `fd` sends goes to `other`. */
struct side {
  int fd;
  struct side *other;
  char *kept; /* bytes that `other` would not take yet */
  size_t kept_bytes;
  int ended, is_server, readable;
};

static int epoll_fd;
static struct sockaddr_in server_address;
static struct side *pool[POOL_MAX];
static int pool_size, is_pooled;
static struct side *dead[2 * EVENTS_MAX]; /* freed after the round: events may still name them */
static int dead_size;
static char buffer[BUFFER_BYTES + 1];
static const char canned[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

static void stop(const char *what) {
  fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
  exit(1);
}

static struct side *watch(int fd, int is_server) {
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  struct side *side = calloc(1, sizeof *side);
  if (!side) stop("calloc");
  side->fd = fd;
  side->is_server = is_server;
  struct epoll_event event = {EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.ptr = side}};
  if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event)) stop("epoll_ctl");
  return side;
}

static struct side *dial(void) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) stop("socket");
  if (connect(fd, (struct sockaddr *)&server_address, sizeof server_address) && errno != EINPROGRESS)
    stop("connect");
  return watch(fd, 1);
}

static void drop(struct side *side) {
  close(side->fd);
  side->fd = -1;
  dead[dead_size++] = side;
}

static void drop_pair(struct side *side) {
  struct side *other = side->other;
  drop(side);
  if (other && other->fd >= 0) drop(other);
}

/* Writes to `to` as much as it takes; keeps the rest with the reader. */
static int push(struct side *from, struct side *to, const char *bytes, size_t count) {
  while (count) {
    ssize_t sent = send(to->fd, bytes, count, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != ENOTCONN) return -1;
      char *kept = malloc(count);
      if (!kept) stop("malloc");
      memcpy(kept, bytes, count);
      free(from->kept);
      from->kept = kept;
      from->kept_bytes = count;
      return 0;
    }
    bytes += sent;
    count -= sent;
  }
  return 0;
}

/* Reads until the socket is empty or the other side takes no more. */
static void pull(struct side *from) {
  while (from->readable && !from->kept) {
    ssize_t count = recv(from->fd, buffer, BUFFER_BYTES, 0);
    if (count < 0 && errno == EAGAIN) {
      from->readable = 0;
      return;
    }
    if (count <= 0) {
      drop_pair(from);
      return;
    }
    if (count < BUFFER_BYTES && !from->ended) from->readable = 0;
    if (is_pooled && from->is_server) {
      /* The response: say that the connection ends, end it, and keep the server's. */
      struct side *client = from->other;
      if (!client) continue;
      buffer[count] = 0;
      char *word = strstr(buffer, "keep-alive");
      if (word) memcpy(word, "close     ", 10);
      send(client->fd, buffer, count, MSG_NOSIGNAL);
      drop(client);
      from->other = NULL;
      if (pool_size < POOL_MAX) pool[pool_size++] = from;
      else drop(from);
      return;
    }
    if (is_pooled) {
      if (!from->other) {
        from->other = pool_size ? pool[--pool_size] : dial();
        from->other->other = from;
      }
      if (push(from, from->other, canned, sizeof canned - 1)) {
        drop_pair(from);
        return;
      }
      continue;
    }
    if (push(from, from->other, buffer, count)) {
      drop_pair(from);
      return;
    }
  }
}

static void event(struct side *side, unsigned what) {
  if (side->fd < 0) return;
  if ((what & EPOLLOUT) && side->other && side->other->kept) {
    struct side *reader = side->other;
    char *bytes = reader->kept;
    reader->kept = NULL;
    int failed = push(reader, side, bytes, reader->kept_bytes);
    free(bytes);
    if (failed) {
      drop_pair(side);
      return;
    }
    if (!reader->kept) pull(reader);
    if (side->fd < 0) return;
  }
  if (what & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) side->ended = 1;
  if (what & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
    if (is_pooled && side->is_server && !side->other && side->ended) {
      for (int i = 0; i < pool_size; i++)
        if (pool[i] == side) pool[i--] = pool[--pool_size];
      drop(side);
      return;
    }
    side->readable = 1;
    pull(side);
  }
}

int main(int count, char **words) {
  if (count < 3) {
    fprintf(stderr, "usage: floor LISTEN-PORT SERVER-PORT [pooled]\n");
    return 2;
  }
  is_pooled = count > 3;
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  server_address.sin_family = AF_INET;
  server_address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  server_address.sin_port = htons(atoi(words[2]));
  struct sockaddr_in own = server_address;
  own.sin_port = htons(atoi(words[1]));
  int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (struct sockaddr *)&own, sizeof own) || listen(listener, 4096)) stop("listen");
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event accepting = {EPOLLIN, {.ptr = NULL}};
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &accepting);
  for (;;) {
    struct epoll_event events[EVENTS_MAX];
    int ready = epoll_wait(epoll_fd, events, EVENTS_MAX, -1);
    if (ready < 0 && errno != EINTR) stop("epoll_wait");
    for (int i = 0; i < ready; i++) {
      if (events[i].data.ptr) {
        event(events[i].data.ptr, events[i].events);
        continue;
      }
      for (int taken = 0; taken < 64; taken++) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) break;
        struct side *client = watch(fd, 0);
        if (is_pooled) continue;
        client->other = dial();
        client->other->other = client;
      }
    }
    while (dead_size) {
      struct side *side = dead[--dead_size];
      free(side->kept);
      free(side);
    }
  }
}
