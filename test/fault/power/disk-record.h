/*
 * The records of disk-shim.c.
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
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE_MAX_BYTES 65536

static char root[PATH_MAX];
static size_t root_length;
static char graves[PATH_MAX];
static int journal = -1;
static unsigned int copies;

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
static void keep_in_graves(const char *path) {
  char grave[PATH_MAX + 32];
  struct stat found;
  int saved = errno;
  if (lstat(path, &found) == 0 && S_ISREG(found.st_mode)) {
    snprintf(grave, sizeof grave, "%s/%lu", graves, (unsigned long)found.st_ino);
    if (syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, grave, 0) != 0 && errno != EEXIST)
      record("X cannot-keep\n");
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

/* Below the root, but not in run/, which is recreated at every start. */
static int is_watched(const char *path) {
  if (journal < 0 || path == NULL || strncmp(path, root, root_length) != 0) return 0;
  const char *rest = path + root_length;
  if (*rest != '\0' && *rest != '/') return 0;
  return !(strncmp(rest, "/run", 4) == 0 && (rest[4] == '\0' || rest[4] == '/'));
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
