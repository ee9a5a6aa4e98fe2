/*
 * Two functions that Node.js lacks. Plain N-API for Linux.
 *
 *   mapRegion(path, bytes, create) -> ArrayBuffer
 *       Maps one file with MAP_SHARED, so that Atomics calls of several processes operate on the same memory. With
 *       `create` the file must not exist yet: the call creates it with mode 0600 and reserves its blocks immediately.
 *       On a full disk, a store into a hole of a sparse file would raise SIGBUS, which JavaScript cannot catch.
 *       Without `create` the call maps the complete file, which must have exactly `bytes` bytes; if `bytes` is 0, any
 *       size is accepted.
 *       The mapping ends when the ArrayBuffer is garbage-collected or its thread ends. Do not post it to a worker
 *       thread: Node.js would silently copy it. Every thread maps the file for itself.
 *
 *   lockFile(path) -> fd, or null if another open file holds the lock
 *       flock belongs to the open file and not to the process id: the lock ends when the last descriptor is closed,
 *       even after kill -9. O_CLOEXEC prevents child processes from inheriting it.
 *
 * Errors carry the path, the errno text and a negative `errno`, like the errors of node:fs.
 */
#include <errno.h>
#include <fcntl.h>
#include <node_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "throw_errno.h"

static napi_value throw_system_error(napi_env env, const char* action, const char* path, int number) {
  char what[400];
  snprintf(what, sizeof what, "%s %.300s", action, path);
  return throw_errno(env, what, number);
}

/*
 * Returns a copy of a string argument, or throws a TypeError and returns NULL. A string with a NUL byte is refused.
 */
static char* copy_path(napi_env env, napi_value value) {
  size_t length = 0;
  char* path = NULL;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &length) == napi_ok &&
      (path = malloc(length + 1)) != NULL &&
      napi_get_value_string_utf8(env, value, path, length + 1, &length) == napi_ok &&
      strlen(path) == length) {
    return path;
  }
  free(path);
  napi_throw_type_error(env, NULL, "path must be a string without NUL bytes");
  return NULL;
}

static int open_retrying(const char* path, int flags) {
  int fd;
  do {
    fd = open(path, flags | O_RDWR | O_CLOEXEC, 0600);
  } while (fd == -1 && errno == EINTR);
  return fd;
}

/* Returns 0 or the error number. posix_fallocate returns its error and does not set errno. */
static int reserve(int fd, off_t bytes) {
  int number;
  do {
    number = posix_fallocate(fd, 0, bytes);
  } while (number == EINTR);
  return number;
}

static void unmap(napi_env env, void* address, void* hint) {
  (void)env;
  munmap(address, (size_t)(uintptr_t)hint);
}

/* Takes ownership of a mapping; unmaps it immediately if no ArrayBuffer can be created. */
static napi_value wrap_mapping(napi_env env, void* address, size_t bytes) {
  napi_value buffer;
  if (napi_create_external_arraybuffer(env, address, bytes, unmap, (void*)(uintptr_t)bytes, &buffer) ==
      napi_ok) {
    return buffer;
  }
  munmap(address, bytes);
  napi_throw_error(env, NULL, "this build of Node.js allows no external ArrayBuffers");
  return NULL;
}

static napi_value map_new_file(napi_env env, const char* path, off_t bytes) {
  int fd = open_retrying(path, O_CREAT | O_EXCL);
  if (fd == -1) return throw_system_error(env, "cannot create", path, errno);

  int number = reserve(fd, bytes);
  void* address = MAP_FAILED;
  if (number == 0) {
    address = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) number = errno;
  }
  close(fd);
  if (address == MAP_FAILED) {
    unlink(path);
    return throw_system_error(env, "cannot reserve and map", path, number);
  }
  return wrap_mapping(env, address, (size_t)bytes);
}

static napi_value map_existing_file(napi_env env, const char* path, off_t bytes) {
  int fd = open_retrying(path, 0);
  if (fd == -1) return throw_system_error(env, "cannot open", path, errno);

  struct stat status;
  int number = fstat(fd, &status) == 0 ? 0 : errno;
  if (number == 0 && !S_ISREG(status.st_mode)) number = EINVAL;
  if (number == 0 && (status.st_size == 0 || (bytes != 0 && status.st_size != bytes))) {
    char text[512];
    snprintf(text, sizeof text, "cannot map %.300s: it has %lld bytes, expected %s%lld", path,
             (long long)status.st_size, bytes == 0 ? "at least " : "",
             bytes == 0 ? 1LL : (long long)bytes);
    napi_throw_error(env, NULL, text);
    close(fd);
    return NULL;
  }
  void* address = MAP_FAILED;
  if (number == 0) {
    address = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) number = errno;
  }
  close(fd);
  if (address == MAP_FAILED) return throw_system_error(env, "cannot map", path, number);
  return wrap_mapping(env, address, (size_t)status.st_size);
}

static napi_value map_region(napi_env env, napi_callback_info info) {
  size_t count = 3;
  napi_value args[3];
  int64_t bytes;
  bool create;
  if (napi_get_cb_info(env, info, &count, args, NULL, NULL) != napi_ok || count != 3 ||
      napi_get_value_int64(env, args[1], &bytes) != napi_ok ||
      napi_get_value_bool(env, args[2], &create) != napi_ok || bytes < (create ? 1 : 0)) {
    napi_throw_type_error(env, NULL, "expected mapRegion(path, bytes, create)");
    return NULL;
  }
  char* path = copy_path(env, args[0]);
  if (path == NULL) return NULL;
  napi_value buffer = create ? map_new_file(env, path, bytes) : map_existing_file(env, path, bytes);
  free(path);
  return buffer;
}

static napi_value lock_file(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value args[1];
  napi_value result = NULL;
  if (napi_get_cb_info(env, info, &count, args, NULL, NULL) != napi_ok || count != 1) {
    napi_throw_type_error(env, NULL, "expected lockFile(path)");
    return NULL;
  }
  char* path = copy_path(env, args[0]);
  if (path == NULL) return NULL;

  int fd = open_retrying(path, O_CREAT);
  if (fd == -1) {
    throw_system_error(env, "cannot open", path, errno);
  } else {
    int locked;
    do {
      locked = flock(fd, LOCK_EX | LOCK_NB);
    } while (locked == -1 && errno == EINTR);
    int number = locked == 0 ? 0 : errno;
    if (number != 0) close(fd);
    if (number == 0) {
      napi_create_int32(env, fd, &result);
    } else if (number == EWOULDBLOCK) {
      napi_get_null(env, &result);
    } else {
      throw_system_error(env, "cannot lock", path, number);
    }
  }
  free(path);
  return result;
}

NAPI_MODULE_INIT() {
  const napi_property_descriptor functions[] = {
      {"mapRegion", NULL, map_region, NULL, NULL, NULL, napi_enumerable, NULL},
      {"lockFile", NULL, lock_file, NULL, NULL, NULL, napi_enumerable, NULL},
  };
  napi_define_properties(env, exports, sizeof functions / sizeof functions[0], functions);
  return exports;
}
