/**
 * What a simulated disk knows besides its directory: which bytes and which names were synced. Built from the lines that
 * disk-shim.c appends; its header lists them.
 *
 * The two kinds of disk differ in when a name becomes durable:
 *
 *   posix   only by a sync of its directory, each name for itself
 *   ext4    by the next sync of anything: the file system commits all earlier changes of names, in their order
 */

export type DiskKind = 'posix' | 'ext4'

/** A name that was made (with the inode it means) or removed ('0'), and when: the number of its line. */
export interface NameChange {
  readonly name: string
  readonly inode: string
  readonly at: number
}

export interface JournalDirectory {
  /** Name to inode, as of the beginning of its last sync. */
  durable: ReadonlyMap<string, string>
  /** The number of the line that says what `durable` is; earlier lines say nothing about it any more. */
  listedAt: number
  /** Since then, in their order. */
  changes: NameChange[]
  /** What a sync that is not known to have succeeded found when it began, by its name. */
  readonly listings: Map<
    string,
    { readonly names: ReadonlyMap<string, string>; readonly at: number }
  >
}

/** Bytes inside of a file that were replaced since its last sync. */
export interface Replacement {
  readonly offset: number
  readonly copy: string
}

export interface JournalFile {
  /** So many bytes from the beginning were synced. */
  syncedBytes: number
  /** Ranges whose sync failed: a later sync that succeeds says nothing about them. */
  readonly doubtful: { readonly from: number; readonly to: number }[]
  replaced: Replacement[]
  /** What was synced before the file was cut, where it has not been synced since. */
  cut: { readonly copy: string; readonly syncedBytes: number } | undefined
}

export class DiskJournal {
  readonly directories = new Map<string, JournalDirectory>()
  readonly files = new Map<string, JournalFile>()
  readonly #kind: DiskKind

  /** Throws where the shim has met something that it cannot account for. */
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
      // The inode may have been another directory's.
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
    // Of two threads that sync a growing file, the later one may be noted first.
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
    // Of two threads that sync a directory, the one that began earlier may be noted last.
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

  /** All changes that were noted before a line. */
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
