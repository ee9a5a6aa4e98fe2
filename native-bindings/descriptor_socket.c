/*
 * Sends open descriptors from one process to another, and ends listening without a reset. Plain N-API for Linux.
 * Node.js can send a descriptor over a process channel, but it waits for the receiver's acknowledgement before it
 * sends the next one, so every connection costs both processes several turns of their event loops. Its messages are
 * also serialized JavaScript objects.
 *
 *   socketPair() -> [fd, fd]
 *       Creates the two ends of a SOCK_SEQPACKET socket: packets arrive complete and in order; none is lost or
 *       merged. Both ends are non-blocking and close-on-exec. A child process gets its end through the stdio option
 *       of fork.
 *
 *   sendDescriptor(end, fd, packet) -> boolean
 *       Returns false if the socket buffer is full at the moment or the receiver is gone.
 *
 *   receiveDescriptor(end, packet, result) -> boolean
 *       Fills packet, writes the descriptor to result[0] and the length of the packet to result[1]. Returns false if
 *       no packet is waiting. A descriptor of -1 means that this process had no free descriptor and the packet came
 *       without it.
 *
 *   takeNoMore(fd)
 *       From now on a listening TCP socket takes no new connection: its filter drops their first packet (SYN), which their
 *       clients send again after a second. Those that wait to be accepted can be accepted. Closing the socket would reset
 *       those, when their clients may have sent a request.
 *
 * None of these functions blocks or runs JavaScript.
 */
#include <errno.h>
#include <linux/filter.h>
#include <node_api.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "throw_errno.h"

static napi_value boolean(napi_env env, bool value) {
  napi_value result;
  return napi_get_boolean(env, value, &result) == napi_ok ? result : NULL;
}

static napi_value socket_pair(napi_env env, napi_callback_info info) {
  (void)info;
  int ends[2];
  napi_value list, end;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
    return throw_errno(env, "cannot make a socket pair", errno);
  }
  bool is_made = napi_create_array_with_length(env, 2, &list) == napi_ok;
  for (uint32_t index = 0; is_made && index < 2; index++) {
    is_made = napi_create_int32(env, ends[index], &end) == napi_ok &&
              napi_set_element(env, list, index, end) == napi_ok;
  }
  if (is_made) return list;
  close(ends[0]);
  close(ends[1]);
  return NULL;
}

/* Room for one descriptor, with the alignment that the kernel requires. */
union control {
  char bytes[CMSG_SPACE(sizeof(int))];
  struct cmsghdr align;
};

static napi_value send_descriptor(napi_env env, napi_callback_info info) {
  size_t count = 3;
  napi_value args[3];
  int32_t end, fd;
  void* bytes;
  size_t length;
  if (napi_get_cb_info(env, info, &count, args, NULL, NULL) != napi_ok || count != 3 ||
      napi_get_value_int32(env, args[0], &end) != napi_ok ||
      napi_get_value_int32(env, args[1], &fd) != napi_ok ||
      napi_get_buffer_info(env, args[2], &bytes, &length) != napi_ok || length == 0) {
    napi_throw_type_error(env, NULL, "expected sendDescriptor(end, fd, packet)");
    return NULL;
  }
  union control control = {.bytes = {0}};
  struct iovec part = {.iov_base = bytes, .iov_len = length};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &fd, sizeof fd);

  ssize_t sent;
  do {
    sent = sendmsg(end, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent == -1 && errno == EINTR);
  if (sent != -1) return boolean(env, true);
  switch (errno) {
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
    case ETOOMANYREFS: /* This process has more descriptors in flight than it may have open. */
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
      return boolean(env, false);
    default:
      return throw_errno(env, "cannot send a descriptor", errno);
  }
}

/* Returns the descriptor that came with a packet, or -1. */
static int descriptor_of(struct msghdr* message) {
  int fd = -1;
  for (struct cmsghdr* header = CMSG_FIRSTHDR(message); header != NULL;
       header = CMSG_NXTHDR(message, header)) {
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int))) {
      memcpy(&fd, CMSG_DATA(header), sizeof fd);
    }
  }
  return fd;
}

static napi_value receive_descriptor(napi_env env, napi_callback_info info) {
  size_t count = 3;
  napi_value args[3];
  int32_t end;
  void *bytes, *result;
  size_t length, places;
  napi_typedarray_type type;
  if (napi_get_cb_info(env, info, &count, args, NULL, NULL) != napi_ok || count != 3 ||
      napi_get_value_int32(env, args[0], &end) != napi_ok ||
      napi_get_buffer_info(env, args[1], &bytes, &length) != napi_ok || length == 0 ||
      napi_get_typedarray_info(env, args[2], &type, &places, &result, NULL, NULL) != napi_ok ||
      type != napi_int32_array || places != 2) {
    napi_throw_type_error(env, NULL, "expected receiveDescriptor(end, packet, result)");
    return NULL;
  }
  union control control;
  struct iovec part = {.iov_base = bytes, .iov_len = length};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           /* Excludes the padding, which would have room for a second descriptor. */
                           .msg_controllen = CMSG_LEN(sizeof(int))};
  ssize_t received;
  do {
    received = recvmsg(end, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (received == -1 && errno == EINTR);
  if (received == -1 && errno != EAGAIN && errno != ECONNRESET) {
    return throw_errno(env, "cannot receive a descriptor", errno);
  }
  /* No packet is empty, so 0 means that the sender closed its end. */
  if (received <= 0) return boolean(env, false);
  int fd = descriptor_of(&message);
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    if (fd != -1) close(fd);
    return throw_errno(env, "cannot receive a packet of this length", EMSGSIZE);
  }
  ((int32_t*)result)[0] = fd;
  ((int32_t*)result)[1] = (int32_t)received;
  return boolean(env, true);
}

static napi_value take_no_more(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value arg, undefined;
  int32_t fd;
  if (napi_get_cb_info(env, info, &count, &arg, NULL, NULL) != napi_ok || count != 1 ||
      napi_get_value_int32(env, arg, &fd) != napi_ok) {
    napi_throw_type_error(env, NULL, "expected takeNoMore(fd)");
    return NULL;
  }
  /* A packet begins with the header of TCP, which has its flags in byte 13 (RFC 9293, 3.1). 0 drops it. */
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x02, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0),
      BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
  };
  struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
  if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0) {
    return throw_errno(env, "cannot filter new connections", errno);
  }
  return napi_get_undefined(env, &undefined) == napi_ok ? undefined : NULL;
}

NAPI_MODULE_INIT() {
  const napi_property_descriptor functions[] = {
      {"socketPair", NULL, socket_pair, NULL, NULL, NULL, napi_enumerable, NULL},
      {"sendDescriptor", NULL, send_descriptor, NULL, NULL, NULL, napi_enumerable, NULL},
      {"receiveDescriptor", NULL, receive_descriptor, NULL, NULL, NULL, napi_enumerable, NULL},
      {"takeNoMore", NULL, take_no_more, NULL, NULL, NULL, napi_enumerable, NULL},
  };
  napi_define_properties(env, exports, sizeof functions / sizeof functions[0], functions);
  return exports;
}
