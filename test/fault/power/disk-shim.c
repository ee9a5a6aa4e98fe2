/*
 * Simulates a disk that can report what it would hold after a power loss, and that fails on demand. simulated-disk.ts
 * preloads it into every process of a server (LD_PRELOAD), explains the environment and reads the records.
 *
 * Killed processes leave the directory in the state of the page cache, with everything that was ever written. The
 * shim therefore records only what a power loss needs in addition: what was synced, and what the directory no longer
 * shows. Each record is one line. It is appended by one write() to a file opened with O_APPEND, so that the lines of
 * all processes and threads are complete and in one order:
 *
 *   S <inode> <size>                     a file was synced while it had this size
 *   F <inode> <size>                     a sync failed: what is unsynced so far stays unsynced
 *   L <directory inode> <sync> <name>=<inode>..  a sync of a directory begins, which has these names
 *   D <directory inode> <sync>           that sync has succeeded
 *   M <directory inode>                  a directory was created and is empty
 *   N <directory inode> <name> <inode>   a name was created or now refers to this file; 0: it was removed
 *   T <inode> <size before> <copy>       a file was truncated; <copy> holds its former contents
 *   O <inode> <offset> <bytes> <copy>    bytes inside a file are about to be replaced; <copy> holds them
 *   X <what>                             the shim cannot account for something: the journal is void
 *
 * A process can be killed between an operation and its record. The order of the two makes the disk look harsher,
 * never kinder, if the record is missing. S and D follow a sync that has succeeded; S has the size from before the
 * sync, and L lists the names from before it in a separate line, because two threads may sync a directory at the same
 * time and the earlier list must not override the later one. O precedes its write: without the write, the bytes are
 * the same. N and T follow their operation, and the directory itself shows the latest state. Before a file loses its
 * last name, it gets a second one in the graves directory, so that its bytes are still there if the removal is
 * undone.
 *
 * Writes through stdio are not recorded, because appended bytes need no record. Changes in place through stdio would
 * be missed, but the server makes none. A writable shared mapping causes an X record.
 */
#define _GNU_SOURCE
#include <dirent.h>
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

/* The C library also defines it as a macro. */
#undef fwrite_unlocked

#define EXPORT __attribute__((visibility("default")))
#define LINE_MAX_BYTES 65536
#define FDS_MAX 65536
/* Stays clear of descriptors that a parent passes down by number. */
#define JOURNAL_FD_MIN 200

/* Values of the first byte of the faults file. */
enum { FAULT_NONE = 0, FAULT_FULL = 1, FAULT_SYNC = 2, FAULT_WRITE = 3 };

static char root[PATH_MAX];
static size_t root_length;
static char graves[PATH_MAX];
static int journal = -1;
static const volatile unsigned char *faults;
/* Whether a descriptor was opened for writing below the root. May be outdated, so the path is checked again. */
static unsigned char writable[FDS_MAX];
static unsigned int copies;
static unsigned int directory_syncs;

static FILE *(*real_fopen)(const char *, const char *);
static size_t (*real_fwrite_unlocked)(const void *, size_t, size_t, FILE *);
static int (*real_fflush_unlocked)(FILE *);

static int open_directly(const char *path, int flags, mode_t mode) {
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void append(const char *line, size_t length) {
  if (journal >= 0) (void)!syscall(SYS_write, journal, line, length);
}

static void record(const char *format, ...) {
  char line[LINE_MAX_BYTES];
  int saved = errno;
  va_list args;
  va_start(args, format);
  int length = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (length > 0 && length < (int)sizeof line) append(line, (size_t)length);
  else append("X line-too-long\n", 16);
  errno = saved;
}

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
    int fd = open_directly(faults_file, O_RDONLY | O_CLOEXEC, 0);
    void *page = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED) faults = page;
    close(fd);
  }
}

/* Below the root, but not in run/, which is recreated at every start. */
static int is_watched(const char *path) {
  if (journal < 0 || path == NULL || strncmp(path, root, root_length) != 0) return 0;
  const char *rest = path + root_length;
  if (*rest != '\0' && *rest != '/') return 0;
  return !(strncmp(rest, "/run", 4) == 0 && (rest[4] == '\0' || rest[4] == '/'));
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

static int is_writable_fd(int fd) {
  return fd >= 0 && fd < FDS_MAX && writable[fd] && is_watched_fd(fd, NULL);
}

static int fault(void) { return faults == NULL ? FAULT_NONE : faults[0]; }

/* Returns whether writing or creating a file fails now, and sets errno. */
static int fails_to_write(void) {
  int kind = fault();
  if (kind == FAULT_FULL) errno = ENOSPC;
  else if (kind == FAULT_WRITE) errno = EIO;
  else return 0;
  return 1;
}

/* Escapes the characters that would end a field with percent signs. */
static const char *escaped(const char *name, char *into, size_t size) {
  size_t length = 0;
  for (; *name != '\0' && length + 4 < size; name++) {
    unsigned char c = (unsigned char)*name;
    if (c <= ' ' || c == '%' || c == '=') length += (size_t)sprintf(into + length, "%%%02X", c);
    else into[length++] = (char)c;
  }
  into[length] = '\0';
  return into;
}

static ino_t inode_of(const char *path) {
  struct stat found;
  int saved = errno;
  ino_t inode = lstat(path, &found) == 0 ? found.st_ino : 0;
  errno = saved;
  return inode;
}

/* Formats one N line. */
static size_t name_line(char *into, size_t size, const char *path, ino_t inode) {
  char parent[PATH_MAX];
  char name[PATH_MAX];
  const char *slash = strrchr(path, '/');
  if (slash == NULL || slash == path) return 0;
  snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
  escaped(slash + 1, name, sizeof name);
  return (size_t)snprintf(into, size, "N %lu %s %lu\n", (unsigned long)inode_of(parent), name,
                          (unsigned long)inode);
}

static void record_name(const char *path, ino_t inode) {
  char line[PATH_MAX + 64];
  int saved = errno;
  append(line, name_line(line, sizeof line, path, inode));
  errno = saved;
}

/* Preserves the bytes of a file that is about to lose this name. */
static void addDeadLetters(const char *path) {
  char grave[PATH_MAX + 32];
  struct stat found;
  int saved = errno;
  if (lstat(path, &found) == 0 && S_ISREG(found.st_mode)) {
    snprintf(grave, sizeof grave, "%s/%lu", graves, (unsigned long)found.st_ino);
    if (syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, grave, 0) != 0 && errno != EEXIST)
      record("X cannot-addDeadLetters\n");
  }
  errno = saved;
}

/* Copies `length` bytes of a file from `offset` into the graves directory; returns the name of the copy. */
static const char *copy_bytes(const char *path, off_t offset, off_t length, char *name) {
  char file[PATH_MAX + 64];
  char chunk[16384];
  sprintf(name, "copy-%d-%u", getpid(), __atomic_add_fetch(&copies, 1, __ATOMIC_RELAXED));
  snprintf(file, sizeof file, "%s/%s", graves, name);
  int from = open_directly(path, O_RDONLY | O_CLOEXEC, 0);
  int to = open_directly(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  while (length > 0) {
    size_t wanted = length < (off_t)sizeof chunk ? (size_t)length : sizeof chunk;
    ssize_t got = pread(from, chunk, wanted, offset);
    if (got <= 0 || syscall(SYS_write, to, chunk, got) != got) {
      record("X cannot-copy\n");
      break;
    }
    offset += got;
    length -= got;
  }
  close(from);
  close(to);
  return name;
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
  if ((flags & O_CREAT) && !before.exists && fails_to_write()) return -1;
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
  if (!before.exists && fails_to_write()) return NULL;
  FILE *file = real_fopen(path, mode);
  if (file != NULL) opened(path, fileno(file), &before);
  return file;
}

EXPORT FILE *fopen(const char *path, const char *mode) { return fopen64(path, mode); }

EXPORT size_t fwrite_unlocked(const void *bytes, size_t size, size_t count, FILE *file) {
  if (fault() != FAULT_NONE && is_writable_fd(fileno(file)) && fails_to_write()) return 0;
  return real_fwrite_unlocked(bytes, size, count, file);
}

EXPORT int fflush_unlocked(FILE *file) {
  if (fault() != FAULT_NONE && file != NULL && is_writable_fd(fileno(file)) && fails_to_write())
    return EOF;
  return real_fflush_unlocked(file);
}

/* Called before a write of `length` bytes at `offset`; a negative offset means the descriptor's position. */
static int may_write(int fd, off_t offset, size_t length) {
  char path[PATH_MAX];
  char copy[64];
  struct stat found;
  if (!is_watched_fd(fd, path)) return 1;
  if (fails_to_write()) return 0;
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

/* Formats the names of a directory as one L line, before the directory is synced. */
static size_t list_names(const char *path, ino_t inode, const char *sync, char *line,
                         size_t size) {
  char name[1024];
  char file[2 * PATH_MAX];
  size_t length = (size_t)snprintf(line, size, "L %lu %s", (unsigned long)inode, sync);
  DIR *directory = opendir(path);
  if (directory == NULL) return 0;
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    struct stat found;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
    if (!is_watched(file)) continue;
    if (fstatat(dirfd(directory), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode)) continue;
    if (length + sizeof name + 32 > size) {
      length = 0;
      break;
    }
    escaped(entry->d_name, name, sizeof name);
    length += (size_t)snprintf(line + length, size - length, " %s=%lu", name,
                               (unsigned long)found.st_ino);
  }
  closedir(directory);
  if (length > 0) line[length++] = '\n';
  return length;
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
  int result = (int)syscall(call, fd);
  if (result == 0) append(line, length);
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
  if (watched) addDeadLetters(to);
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
  if (watched && flags == 0) addDeadLetters(path);
  int result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, flags);
  if (watched && result == 0) record_name(path, 0);
  return result;
}

EXPORT int unlink(const char *path) { return remove_name(path, 0); }

EXPORT int rmdir(const char *path) { return remove_name(path, AT_REMOVEDIR); }

EXPORT int mkdir(const char *path, mode_t mode) {
  int watched = is_watched(path);
  if (watched && inode_of(path) == 0 && fails_to_write()) return -1;
  int result = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
  if (watched && result == 0) {
    ino_t inode = inode_of(path);
    /* The inode may have belonged to another directory, so an M record declares it empty. */
    record("M %lu\n", (unsigned long)inode);
    record_name(path, inode);
  }
  return result;
}
