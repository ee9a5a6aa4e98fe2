/*
 * Simulates a disk that can report what it would hold after a power loss, and that fails on demand. simulated-disk.ts
 * preloads it into every process of a server (LD_PRELOAD), explains the environment and reads the records.
 *
 * disk-record.h lists the records that it writes.
 *
 * Writes through stdio are not recorded, because appended bytes need no record. Changes in place through stdio would
 * be missed, but the server makes none. A writable shared mapping causes an X record.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "disk-record.h"

/* The C library also defines it as a macro. */
#undef fwrite_unlocked

#define EXPORT __attribute__((visibility("default")))
#define FDS_MAX 65536
/* Stays clear of descriptors that a parent passes down by number. */
#define JOURNAL_FD_MIN 200

/* Values of the first byte of the faults file. */
enum {
  FAULT_NONE = 0,
  FAULT_FULL = 1,
  FAULT_SYNC = 2,
  FAULT_WRITE = 3,
  FAULT_HOLD_BEGIN = 4,
  FAULT_HOLD_END = 5,
  FAULT_FULL_LOGS = 6,
  FAULT_FULL_TABLES = 7,
  FAULT_FULL_LISTS = 8
};

/* The second word of the faults file has the process whose sync of a log stands still. */
static volatile int32_t *faults;
/* Whether a descriptor was opened for writing below the root. May be outdated, so the path is checked again. */
static unsigned char writable[FDS_MAX];
static unsigned int directory_syncs;

static FILE *(*real_fopen)(const char *, const char *);
static size_t (*real_fwrite_unlocked)(const void *, size_t, size_t, FILE *);
static int (*real_fflush_unlocked)(FILE *);

__attribute__((constructor)) static void start(void) {
  const char *directory = getenv("DISK_SHIM_ROOT");
  const char *journal_file = getenv("DISK_SHIM_JOURNAL");
  const char *graves_directory = getenv("DISK_SHIM_GRAVES");
  const char *faults_file = getenv("DISK_SHIM_FAULTS");
  real_fopen = dlsym(RTLD_NEXT, "fopen64");
  real_fwrite_unlocked = dlsym(RTLD_NEXT, "fwrite_unlocked");
  real_fflush_unlocked = dlsym(RTLD_NEXT, "fflush_unlocked");
  if (directory == NULL || journal_file == NULL || graves_directory == NULL) return;
  root_length = strlen(directory);
  if (root_length >= sizeof root || strlen(graves_directory) >= sizeof graves - 64) return;
  strcpy(root, directory);
  strcpy(graves, graves_directory);
  int low = open_directly(journal_file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  journal = fcntl(low, F_DUPFD_CLOEXEC, JOURNAL_FD_MIN);
  close(low);
  if (faults_file != NULL) {
    int fd = open_directly(faults_file, O_RDWR | O_CLOEXEC, 0);
    void *page = mmap(NULL, 2 * sizeof *faults, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED) faults = page;
    close(fd);
  }
}

static int is_watched_fd(int fd, char *path) {
  char link[32];
  char found[PATH_MAX];
  if (journal < 0 || fd < 0) return 0;
  int saved = errno;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, found, sizeof found - 1);
  errno = saved;
  if (length <= 0) return 0;
  found[length] = '\0';
  if (path != NULL) strcpy(path, found);
  return is_watched(found);
}

static int fault(void) { return faults == NULL ? FAULT_NONE : *(const volatile unsigned char *)faults; }

/* Returns whether files of one kind have no room: one that is there can be opened, and nothing can be written to it. */
static int is_full_kind(int kind, const char *path) {
  const char *slash = strrchr(path, '/');
  const char *name = slash == NULL ? path : slash + 1;
  const char *dot = strrchr(name, '.');
  if (kind == FAULT_FULL_LOGS) return dot != NULL && strcmp(dot, ".log") == 0;
  if (kind == FAULT_FULL_TABLES) return dot != NULL && strcmp(dot, ".ldb") == 0;
  return kind == FAULT_FULL_LISTS && strncmp(name, "MANIFEST-", 9) == 0;
}

/* Returns whether writing a file fails now, or creating one if the path is NULL, and sets errno. */
static int fails_to_write(const char *path) {
  int kind = fault();
  if (kind == FAULT_FULL || (path != NULL && is_full_kind(kind, path))) errno = ENOSPC;
  else if (kind == FAULT_WRITE) errno = EIO;
  else return 0;
  return 1;
}

/* What must be known about a file before it is opened for writing. */
struct before {
  int exists;
  ino_t inode;
  off_t size;
  char copy[64];
};

static void look_before(const char *path, int cuts, struct before *before) {
  struct stat found;
  int saved = errno;
  memset(before, 0, sizeof *before);
  if (stat(path, &found) == 0) {
    before->exists = 1;
    before->inode = found.st_ino;
    before->size = found.st_size;
    if (cuts && found.st_size > 0) copy_bytes(path, 0, found.st_size, before->copy);
  }
  errno = saved;
}

static void opened(const char *path, int fd, const struct before *before) {
  struct stat found;
  int saved = errno;
  if (fd < FDS_MAX) writable[fd] = 1;
  else record("X descriptor-too-high\n");
  if (!before->exists && fstat(fd, &found) == 0) record_name(path, found.st_ino);
  if (before->copy[0] != '\0')
    record("T %lu %lld %s\n", (unsigned long)before->inode, (long long)before->size, before->copy);
  errno = saved;
}

static int open_watched(const char *path, int flags, mode_t mode) {
  struct before before;
  if ((flags & O_ACCMODE) == O_RDONLY && !(flags & (O_CREAT | O_TRUNC)))
    return open_directly(path, flags, mode);
  look_before(path, (flags & O_TRUNC) != 0, &before);
  if ((flags & O_CREAT) && !before.exists && fails_to_write(NULL)) return -1;
  int fd = open_directly(path, flags, mode);
  if (fd >= 0) opened(path, fd, &before);
  return fd;
}

static int open_any(const char *path, int flags, mode_t mode) {
  if (is_watched(path)) return open_watched(path, flags, mode);
  return open_directly(path, flags, mode);
}

#define MODE_ARGUMENT(flags, mode)                    \
  mode_t mode = 0;                                    \
  if ((flags) & (O_CREAT | O_TMPFILE)) {              \
    va_list args;                                     \
    va_start(args, flags);                            \
    mode = (mode_t)va_arg(args, int);                 \
    va_end(args);                                     \
  }

EXPORT int open(const char *path, int flags, ...) {
  MODE_ARGUMENT(flags, mode)
  return open_any(path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...) {
  MODE_ARGUMENT(flags, mode)
  return open_any(path, flags, mode);
}

EXPORT int openat(int directory, const char *path, int flags, ...) {
  MODE_ARGUMENT(flags, mode)
  if (is_watched(path)) return open_watched(path, flags, mode);
  return (int)syscall(SYS_openat, directory, path, flags, mode);
}

EXPORT int openat64(int directory, const char *path, int flags, ...) {
  MODE_ARGUMENT(flags, mode)
  if (is_watched(path)) return open_watched(path, flags, mode);
  return (int)syscall(SYS_openat, directory, path, flags, mode);
}

EXPORT FILE *fopen64(const char *path, const char *mode) {
  struct before before;
  if (mode[0] == 'r' || !is_watched(path)) return real_fopen(path, mode);
  look_before(path, mode[0] == 'w', &before);
  if (!before.exists && fails_to_write(NULL)) return NULL;
  FILE *file = real_fopen(path, mode);
  if (file != NULL) opened(path, fileno(file), &before);
  return file;
}

EXPORT FILE *fopen(const char *path, const char *mode) { return fopen64(path, mode); }

static int stream_fails(FILE *file) {
  char path[PATH_MAX];
  if (fault() == FAULT_NONE || file == NULL) return 0;
  int fd = fileno(file);
  if (fd < 0 || fd >= FDS_MAX || !writable[fd] || !is_watched_fd(fd, path)) return 0;
  return fails_to_write(path);
}

EXPORT size_t fwrite_unlocked(const void *bytes, size_t size, size_t count, FILE *file) {
  if (stream_fails(file)) return 0;
  return real_fwrite_unlocked(bytes, size, count, file);
}

EXPORT int fflush_unlocked(FILE *file) {
  if (stream_fails(file)) return EOF;
  return real_fflush_unlocked(file);
}

/* Called before a write of `length` bytes at `offset`; a negative offset means the descriptor's position. */
static int may_write(int fd, off_t offset, size_t length) {
  char path[PATH_MAX];
  char copy[64];
  struct stat found;
  if (!is_watched_fd(fd, path)) return 1;
  if (fails_to_write(path)) return 0;
  int saved = errno;
  if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode)) {
    if (offset < 0)
      offset = (fcntl(fd, F_GETFL) & O_APPEND) ? found.st_size : lseek(fd, 0, SEEK_CUR);
    off_t end = offset + (off_t)length < found.st_size ? offset + (off_t)length : found.st_size;
    if (offset < end) {
      copy_bytes(path, offset, end - offset, copy);
      record("O %lu %lld %lld %s\n", (unsigned long)found.st_ino, (long long)offset,
             (long long)(end - offset), copy);
    }
  }
  errno = saved;
  return 1;
}

static size_t length_of(const struct iovec *parts, int count) {
  size_t length = 0;
  for (int at = 0; at < count; at++) length += parts[at].iov_len;
  return length;
}

#define IS_HINTED(fd) ((fd) >= 0 && (fd) < FDS_MAX && writable[fd])

EXPORT ssize_t write(int fd, const void *bytes, size_t length) {
  if (IS_HINTED(fd) && !may_write(fd, -1, length)) return -1;
  return syscall(SYS_write, fd, bytes, length);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count) {
  if (IS_HINTED(fd) && !may_write(fd, -1, length_of(parts, count))) return -1;
  return syscall(SYS_writev, fd, parts, count);
}

EXPORT ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
  if (IS_HINTED(fd) && !may_write(fd, offset, length)) return -1;
  return syscall(SYS_pwrite64, fd, bytes, length, offset);
}

EXPORT ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
  return pwrite64(fd, bytes, length, offset);
}

EXPORT ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) {
  if (IS_HINTED(fd) && !may_write(fd, offset, length_of(parts, count))) return -1;
  return syscall(SYS_pwritev, fd, parts, count, offset, 0);
}

EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
  return pwritev64(fd, parts, count, offset);
}

EXPORT int ftruncate64(int fd, off64_t length) {
  char path[PATH_MAX];
  struct before before = {0};
  int watched = IS_HINTED(fd) && is_watched_fd(fd, path);
  if (watched) {
    struct stat found;
    if (fstat(fd, &found) == 0 && length < found.st_size) look_before(path, 1, &before);
  }
  int result = (int)syscall(SYS_ftruncate, fd, length);
  if (result == 0 && before.copy[0] != '\0')
    record("T %lu %lld %s\n", (unsigned long)before.inode, (long long)before.size, before.copy);
  return result;
}

EXPORT int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

EXPORT void *mmap64(void *address, size_t length, int protection, int flags, int fd,
                    off64_t offset) {
  if (fd >= 0 && (flags & MAP_SHARED) && (protection & PROT_WRITE) && is_watched_fd(fd, NULL))
    record("X writable-mapping\n");
  return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}

EXPORT void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
  return mmap64(address, length, protection, flags, fd, offset);
}

/* The thread stands still until the process is killed, if a sync of a log is to be held here. */
static void hold_at(int kind, const char *path) {
  size_t length = strlen(path);
  if (fault() != kind || length < 4 || strcmp(path + length - 4, ".log") != 0) return;
  faults[1] = getpid();
  for (;;) pause();
}

static int sync_watched(int fd, long call, const char *path) {
  char line[LINE_MAX_BYTES];
  size_t length = 0;
  struct stat found;
  if (fstat(fd, &found) != 0) return -1;
  if (fault() == FAULT_SYNC || fault() == FAULT_WRITE) {
    if (!S_ISDIR(found.st_mode))
      record("F %lu %lld\n", (unsigned long)found.st_ino, (long long)found.st_size);
    errno = EIO;
    return -1;
  }
  if (S_ISDIR(found.st_mode)) {
    char sync[32];
    snprintf(sync, sizeof sync, "%d-%u", getpid(),
             __atomic_add_fetch(&directory_syncs, 1, __ATOMIC_RELAXED));
    length = list_names(path, found.st_ino, sync, line, sizeof line);
    if (length == 0) record("X cannot-list\n");
    append(line, length);
    length = (size_t)snprintf(line, sizeof line, "D %lu %s\n", (unsigned long)found.st_ino, sync);
  } else {
    length = (size_t)snprintf(line, sizeof line, "S %lu %lld\n", (unsigned long)found.st_ino,
                              (long long)found.st_size);
  }
  hold_at(FAULT_HOLD_BEGIN, path);
  int result = (int)syscall(call, fd);
  if (result == 0) append(line, length);
  hold_at(FAULT_HOLD_END, path);
  return result;
}

EXPORT int fsync(int fd) {
  char path[PATH_MAX];
  return is_watched_fd(fd, path) ? sync_watched(fd, SYS_fsync, path) : (int)syscall(SYS_fsync, fd);
}

EXPORT int fdatasync(int fd) {
  char path[PATH_MAX];
  return is_watched_fd(fd, path) ? sync_watched(fd, SYS_fdatasync, path)
                                 : (int)syscall(SYS_fdatasync, fd);
}

EXPORT int rename(const char *from, const char *to) {
  char lines[2 * PATH_MAX + 128];
  int watched = is_watched(from) || is_watched(to);
  ino_t inode = watched ? inode_of(from) : 0;
  if (watched) keep_in_graves(to);
  int result = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
  if (watched && result == 0) {
    int saved = errno;
    size_t length = name_line(lines, sizeof lines, to, inode);
    length += name_line(lines + length, sizeof lines - length, from, 0);
    append(lines, length);
    errno = saved;
  }
  return result;
}

EXPORT int link(const char *from, const char *to) {
  int result = (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
  if (result == 0 && is_watched(to)) record_name(to, inode_of(to));
  return result;
}

static int remove_name(const char *path, int flags) {
  int watched = is_watched(path);
  if (watched && flags == 0) keep_in_graves(path);
  int result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, flags);
  if (watched && result == 0) record_name(path, 0);
  return result;
}

EXPORT int unlink(const char *path) { return remove_name(path, 0); }

EXPORT int rmdir(const char *path) { return remove_name(path, AT_REMOVEDIR); }

EXPORT int mkdir(const char *path, mode_t mode) {
  int watched = is_watched(path);
  if (watched && inode_of(path) == 0 && fails_to_write(NULL)) return -1;
  int result = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
  if (watched && result == 0) {
    ino_t inode = inode_of(path);
    /* The inode may have belonged to another directory, so an M record declares it empty. */
    record("M %lu\n", (unsigned long)inode);
    record_name(path, inode);
  }
  return result;
}
