/**
 * What a simulated disk knows beyond its directory: which bytes and which names were synced. It is built from the
 * lines that disk-shim.c appends, which disk-record.h lists.
 *
 * The two kinds of disk differ in when a name becomes durable:
 *
 *   posix   only by a sync of its directory, each name separately
 *   ext4    by the next sync of anything: the file system commits all earlier changes of names, in their order
 */

export type DiskKind = 'posix' | 'ext4'

/** A name that was created (with its inode) or removed ('0'). `at` is the number of its line. */
export interface NameChange {
  readonly name: string
  readonly inode: string
  readonly at: number
}

export interface JournalDirectory {
  /** Maps names to inodes, as of the beginning of the last sync of the directory. */
  durable: ReadonlyMap<string, string>
  /** The number of the line that determined `durable`. Earlier lines no longer affect it. */
  listedAt: number
  /** Changes of names since then, in their order. */
  changes: NameChange[]
  /** By the id of a sync: the names that it found when it began. Removed when the sync has succeeded. */
  readonly listings: Map<
    string,
    { readonly names: ReadonlyMap<string, string>; readonly at: number }
  >
}

/** Bytes inside a file that were replaced since its last sync. */
export interface Replacement {
  readonly offset: number
  readonly copy: string
}

export interface JournalFile {
  /** Number of bytes from the beginning of the file that were synced. */
  syncedBytes: number
  /** Ranges whose sync failed. A later sync that succeeds does not make them durable. */
  readonly doubtful: { readonly from: number; readonly to: number }[]
  replaced: Replacement[]
  /** What was synced before the file was truncated, if it has not been synced since. */
  cut: { readonly copy: string; readonly syncedBytes: number } | undefined
}

export class DiskJournal {
  readonly directories = new Map<string, JournalDirectory>()
  readonly files = new Map<string, JournalFile>()
  readonly #kind: DiskKind

  /** Throws if the shim has recorded something that it cannot account for. */
  constructor(text: string, kind: DiskKind) {
    this.#kind = kind
    for (const [at, line] of text.split('\n').entries()) if (line !== '') this.#read(line, at)
  }

  directory(inode: string): JournalDirectory {
    const known = this.directories.get(inode)
    if (known !== undefined) return known
    const made = emptyDirectory()
    this.directories.set(inode, made)
    return made
  }

  file(inode: string): JournalFile {
    const known = this.files.get(inode)
    if (known !== undefined) return known
    const made = { syncedBytes: 0, doubtful: [], replaced: [], cut: undefined }
    this.files.set(inode, made)
    return made
  }

  #read(line: string, at: number): void {
    const [kind = '', inode = '', ...rest] = line.split(' ')
    const readers: Readonly<Record<string, () => void>> = {
      S: () => this.#synced(this.file(inode), Number(rest[0]), at),
      F: () => this.#failed(this.file(inode), Number(rest[0])),
      L: () => this.#directoryListed(this.directory(inode), rest, at),
      D: () => this.#directorySynced(this.directory(inode), rest[0] ?? ''),
      // The inode may have belonged to another directory.
      M: () => this.directories.set(inode, emptyDirectory()),
      N: () => this.#named(inode, { name: decodeURIComponent(rest[0] ?? ''), at }, rest[1] ?? ''),
      T: () => this.#cut(this.file(inode), rest[1] ?? ''),
      O: () => this.file(inode).replaced.push({ offset: Number(rest[0]), copy: rest[2] ?? '' }),
    }
    const read = readers[kind]
    if (read === undefined) {
      throw new Error(`the shim cannot account for line ${at + 1}: ${line}`)
    }
    read()
  }

  #synced(file: JournalFile, bytes: number, at: number): void {
    // If two threads sync a growing file, the later sync may be recorded first.
    file.syncedBytes = file.cut === undefined ? Math.max(file.syncedBytes, bytes) : bytes
    file.replaced = []
    file.cut = undefined
    this.#commitNames(at)
  }

  #failed(file: JournalFile, bytes: number): void {
    if (bytes > file.syncedBytes) file.doubtful.push({ from: file.syncedBytes, to: bytes })
  }

  #directoryListed(
    directory: JournalDirectory,
    [sync = '', ...names]: readonly string[],
    at: number,
  ): void {
    const listed = names.map((each) => {
      const [name = '', inode = ''] = each.split('=')
      return [decodeURIComponent(name), inode] as const
    })
    directory.listings.set(sync, { names: new Map(listed), at })
  }

  #directorySynced(directory: JournalDirectory, sync: string): void {
    const listing = directory.listings.get(sync)
    directory.listings.delete(sync)
    // If two threads sync a directory, the sync that began earlier may be recorded last.
    if (listing === undefined || listing.at < directory.listedAt) return
    directory.durable = listing.names
    directory.listedAt = listing.at
    directory.changes = directory.changes.filter(({ at }) => at > listing.at)
    this.#commitNames(listing.at)
  }

  #named(
    directory: string,
    { name, at }: { readonly name: string; readonly at: number },
    inode: string,
  ): void {
    this.directory(directory).changes.push({ name, inode, at })
  }

  #cut(file: JournalFile, copy: string): void {
    file.cut ??= { copy, syncedBytes: file.syncedBytes }
    file.syncedBytes = 0
    file.replaced = []
  }

  /** Makes all changes of names durable that were recorded before a line. */
  #commitNames(before: number): void {
    if (this.#kind === 'posix') return
    for (const directory of this.directories.values()) {
      const durable = new Map(directory.durable)
      for (const { name, inode, at } of directory.changes) {
        if (at > before) break
        if (inode === '0') durable.delete(name)
        else durable.set(name, inode)
      }
      directory.durable = durable
      directory.listedAt = Math.max(directory.listedAt, before)
      directory.changes = directory.changes.filter(({ at }) => at > before)
    }
  }
}

function emptyDirectory(): JournalDirectory {
  return { durable: new Map(), listedAt: -1, changes: [], listings: new Map() }
}
