/*
 * Sends datagrams to a Unix socket. Plain N-API for Linux. Node.js has no Unix datagram sockets, and a service manager
 * such as systemd listens on one. A child process per message, such as systemd-notify, would be the alternative: the
 * service manager would have to accept messages from all processes of the service, and would often not know from which
 * service a message comes, because the child has ended when it looks.
 *
 *   sendDatagram(address, bytes) -> boolean
 *       `address` is a Buffer with the path of the socket, or a zero byte and the name of an abstract socket. Returns
 *       false if the receiver's queue is full at the moment. Throws if nobody listens. Never blocks.
 */
#include <errno.h>
#include <node_api.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "throw_errno.h"

/* Returns 0, or the errno of the failure. */
static int send_to(const struct sockaddr_un* address, socklen_t length, const void* bytes,
                   size_t count) {
  int end = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (end == -1) return errno;
  ssize_t sent;
  do {
    sent = sendto(end, bytes, count, MSG_NOSIGNAL, (const struct sockaddr*)address, length);
  } while (sent == -1 && errno == EINTR);
  int failure = sent == -1 ? errno : 0;
  close(end);
  return failure;
}

static napi_value send_datagram(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value args[2], is_sent;
  void *name, *bytes;
  size_t name_length, length;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (napi_get_cb_info(env, info, &count, args, NULL, NULL) != napi_ok || count != 2 ||
      napi_get_buffer_info(env, args[0], &name, &name_length) != napi_ok || name_length == 0 ||
      napi_get_buffer_info(env, args[1], &bytes, &length) != napi_ok || length == 0) {
    napi_throw_type_error(env, NULL, "expected sendDatagram(address, bytes)");
    return NULL;
  }
  if (name_length > sizeof address.sun_path) {
    return throw_errno(env, "cannot send a datagram", ENAMETOOLONG);
  }
  memcpy(address.sun_path, name, name_length);
  int failure = send_to(&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + name_length),
                        bytes, length);
  switch (failure) {
    case 0:
    case EAGAIN:
    case ENOBUFS:
      return napi_get_boolean(env, failure == 0, &is_sent) == napi_ok ? is_sent : NULL;
    default:
      return throw_errno(env, "cannot send a datagram", failure);
  }
}

NAPI_MODULE_INIT() {
  napi_value function;
  if (napi_create_function(env, "sendDatagram", NAPI_AUTO_LENGTH, send_datagram, NULL, &function) ==
      napi_ok) {
    napi_set_named_property(env, exports, "sendDatagram", function);
  }
  return exports;
}
