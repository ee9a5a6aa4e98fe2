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
  /** Name to inode, as of its last sync. */
  durable: Map<string, string>
  /** Since then, in their order. */
  changes: NameChange[]
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
    const made = { durable: new Map<string, string>(), changes: [] }
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
      S: () => this.#synced(this.file(inode), Number(rest[0])),
      F: () => this.#failed(this.file(inode), Number(rest[0])),
      D: () => this.#directorySynced(this.directory(inode), rest),
      // The inode may have been another directory's.
      M: () => this.directories.set(inode, { durable: new Map(), changes: [] }),
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

  #synced(file: JournalFile, bytes: number): void {
    // Of two threads that sync a growing file, the later one may be noted first.
    file.syncedBytes = file.cut === undefined ? Math.max(file.syncedBytes, bytes) : bytes
    file.replaced = []
    file.cut = undefined
    this.#commitNames()
  }

  #failed(file: JournalFile, bytes: number): void {
    if (bytes > file.syncedBytes) file.doubtful.push({ from: file.syncedBytes, to: bytes })
  }

  #directorySynced(directory: JournalDirectory, names: readonly string[]): void {
    directory.durable = new Map(
      names.map((each) => {
        const [name = '', inode = ''] = each.split('=')
        return [decodeURIComponent(name), inode] as const
      }),
    )
    directory.changes = []
    this.#commitNames()
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

  #commitNames(): void {
    if (this.#kind === 'posix') return
    for (const directory of this.directories.values()) {
      for (const { name, inode } of directory.changes) {
        if (inode === '0') directory.durable.delete(name)
        else directory.durable.set(name, inode)
      }
      directory.changes = []
    }
  }
}
