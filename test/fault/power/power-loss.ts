/**
 * Simulates a power loss of a simulated disk. The killed processes have left a directory that shows everything that
 * was ever written; this replaces it with the directory that a harsh disk would hold.
 *
 * What was synced is there. Everything else is random. Bytes after the synced end are kept, dropped, cut off, or torn
 * sector by sector, with zeros and garbage in between. Of the names that changed since their directory was synced,
 * each shows one of its former states (posix), or all changes after one moment are undone (ext4, which also tears no
 * sectors). A sector is written completely or not at all, and no bytes of other files turn up.
 */
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { unreachable } from '../../../src/kit/errors.ts'
import type { Luck } from '../../support/simulation/luck.ts'
import { type DiskKind, DiskJournal, type JournalFile, type NameChange } from './disk-journal.ts'

const sectorBytes = 512
const pageBytes = 4_096
/** Recreated at every start; the shim does not watch it. */
export const unwatchedName = 'run'

export interface PowerLossOptions {
  readonly root: string
  readonly journal: string
  readonly graves: string
  readonly kind: DiskKind
  readonly luck: Luck
}

/** The names and inodes of the current directory tree, by the inode of the directory. */
interface Found {
  readonly root: string
  readonly names: ReadonlyMap<string, ReadonlyMap<string, string>>
  /** The path of each inode. */
  readonly paths: ReadonlyMap<string, string>
}

/** Replaces the directory by its remains. No process may use it. Returns descriptions of what was lost. */
export function losePower(options: PowerLossOptions): readonly string[] {
  const journal = new DiskJournal(readFileSync(options.journal, 'utf8'), options.kind)
  const remains = new Remains(options, journal)
  const rebuilt = `${options.root}.rebuilt`
  const before = `${options.root}.before`
  for (const path of [rebuilt, before]) rmSync(path, { recursive: true, force: true })
  remains.build(remains.found.root, rebuilt)
  renameSync(options.root, before)
  renameSync(rebuilt, options.root)
  rmSync(before, { recursive: true })
  return remains.losses
}

/** Returns the first lines of a journal: everything below the root is there and synced. */
export function syncedLines(root: string): string {
  const { names, paths } = look(root)
  const lines: string[] = []
  for (const [inode, entries] of names) {
    const listed = [...entries].map(([name, each]) => ` ${encodeURIComponent(name)}=${each}`)
    lines.push(`L ${inode} before${listed.join('')}\nD ${inode} before\n`)
  }
  for (const [inode, path] of paths) {
    const found = lstatSync(path)
    if (found.isFile()) lines.push(`S ${inode} ${found.size}\n`)
  }
  return lines.join('')
}

class Remains {
  readonly found: Found
  readonly losses: string[] = []
  readonly #options: PowerLossOptions
  readonly #journal: DiskJournal
  /** With ext4: the first change that is undone. */
  readonly #undoneFrom: number
  readonly #built = new Map<string, string>()

  constructor(options: PowerLossOptions, journal: DiskJournal) {
    this.#options = options
    this.#journal = journal
    this.found = look(options.root)
    const changes = [...journal.directories.values()].flatMap(({ changes: each }) => each)
    this.#undoneFrom = drawMoment(
      changes.map(({ at }) => at).toSorted((left, right) => left - right),
      options.luck,
    )
  }

  build(inode: string, target: string): void {
    const path = this.found.paths.get(inode)
    mkdirSync(target, { mode: 0o700 })
    if (path !== undefined) chmodSync(target, lstatSync(path).mode)
    for (const [name, each] of this.#namesOf(inode)) {
      const isDirectory = this.found.names.has(each) || this.#journal.directories.has(each)
      if (isDirectory) this.build(each, join(target, name))
      else this.#buildFile(each, join(target, name))
    }
  }

  #namesOf(inode: string): ReadonlyMap<string, string> {
    const actual = this.found.names.get(inode) ?? new Map<string, string>()
    const { durable, changes } = this.#journal.directory(inode)
    const names = new Map<string, string>()
    for (const name of new Set([
      ...durable.keys(),
      ...changes.map((each) => each.name),
      ...actual.keys(),
    ])) {
      const states = statesOf(name, { durable, changes, actual })
      const chosen = this.#chooseState(states)
      if (chosen.inode !== '0') names.set(name, chosen.inode)
      const last = states.at(-1)?.inode
      if (chosen.inode !== last) {
        const of = `${this.found.paths.get(inode) ?? 'a removed directory'}/${name}`
        this.losses.push(`${of}: means inode ${chosen.inode} and not ${last}`)
      }
    }
    return names
  }

  #chooseState(states: readonly NameChange[]): NameChange {
    const last = states.at(-1)
    const { kind, luck } = this.#options
    if (last === undefined) throw new Error('a name has no state')
    if (states.length === 1) return last
    if (kind === 'ext4') return states.findLast(({ at }) => at < this.#undoneFrom) ?? last
    return luck.chance(0.4) ? last : luck.pick(states)
  }

  #buildFile(inode: string, target: string): void {
    const known = this.#built.get(inode)
    if (known !== undefined) return linkSync(known, target)
    this.#built.set(inode, target)
    const grave = join(this.#options.graves, inode)
    const path = this.found.paths.get(inode) ?? (existsSync(grave) ? grave : undefined)
    if (path === undefined) throw new Error(`the bytes of inode ${inode} (${target}) are not known`)
    const { size, mode } = lstatSync(path)
    const file = this.#journal.file(inode)
    if (isSynced(file, size)) return linkSync(path, target)
    const bytes = this.#bytesLeft(file, readFileSync(path))
    this.losses.push(
      `${path}: ${bytes.length} of ${size} bytes are left, ${file.syncedBytes} were synced`,
    )
    writeFileSync(target, bytes, { mode })
  }

  #bytesLeft(file: JournalFile, bytes: Buffer): Buffer {
    const { luck, kind, graves } = this.#options
    if (file.cut !== undefined && luck.chance(0.5)) {
      return readFileSync(join(graves, file.cut.copy)).subarray(0, file.cut.syncedBytes)
    }
    const left = tearTail(bytes, file.syncedBytes, { luck, kind })
    for (const { from, to } of file.doubtful) {
      const isKept = luck.chance(0.4)
      if (!isKept && from < left.length)
        tearSectors(left, { from, to: Math.min(to, left.length) }, luck)
    }
    for (const { offset, copy } of file.replaced.toReversed()) {
      if (luck.chance(0.5)) readFileSync(join(graves, copy)).copy(left, offset)
    }
    return left
  }
}

/** Returns the synced bytes, followed by what remains of the others. */
export function tearTail(
  bytes: Buffer,
  syncedBytes: number,
  { luck, kind }: { readonly luck: Luck; readonly kind: DiskKind },
): Buffer {
  if (syncedBytes >= bytes.length) return Buffer.from(bytes)
  const cutAt = luck.int(syncedBytes, bytes.length)
  const fates =
    kind === 'ext4'
      ? (['kept', 'dropped', 'cut'] as const)
      : (['kept', 'dropped', 'cut', 'torn', 'garbage'] as const)
  const fate = luck.pick(fates)
  switch (fate) {
    case 'kept':
      return Buffer.from(bytes)
    case 'dropped':
      return Buffer.from(bytes.subarray(0, syncedBytes))
    case 'cut': {
      const whole = kind === 'ext4' ? Math.floor(cutAt / pageBytes) * pageBytes : cutAt
      return Buffer.from(bytes.subarray(0, Math.max(whole, syncedBytes)))
    }
    case 'torn': {
      const left = Buffer.from(bytes)
      tearSectors(left, { from: syncedBytes, to: left.length }, luck)
      return left
    }
    case 'garbage': {
      const left = Buffer.from(bytes)
      // The sector in which the garbage begins was written completely or not at all.
      const sector = Math.floor(cutAt / sectorBytes) * sectorBytes
      fillWithGarbage(left.subarray(Math.max(sector, syncedBytes)), luck)
      return left
    }
    default:
      return unreachable(fate)
  }
}

/** Each sector in the range keeps its bytes or becomes zeros or garbage. Bytes outside the range stay. */
function tearSectors(
  bytes: Buffer,
  { from, to }: { readonly from: number; readonly to: number },
  luck: Luck,
): void {
  for (let at = from; at < to; ) {
    const end = Math.min(to, (Math.floor(at / sectorBytes) + 1) * sectorBytes)
    const fate = luck.pick(['kept', 'zeros', 'garbage'] as const)
    if (fate === 'zeros') bytes.fill(0, at, end)
    if (fate === 'garbage') fillWithGarbage(bytes.subarray(at, end), luck)
    at = end
  }
}

function fillWithGarbage(bytes: Buffer, luck: Luck): void {
  for (let at = 0; at < bytes.length; at++) bytes[at] = luck.int(0, 255)
}

function isSynced(file: JournalFile, size: number): boolean {
  const { syncedBytes, doubtful, replaced, cut } = file
  return syncedBytes >= size && doubtful.length + replaced.length === 0 && cut === undefined
}

/** Returns the possible states of a name, the latest last: at its last sync, after each change since, and now. */
function statesOf(
  name: string,
  of: {
    readonly durable: ReadonlyMap<string, string>
    readonly changes: readonly NameChange[]
    readonly actual: ReadonlyMap<string, string>
  },
): readonly NameChange[] {
  const states = [
    { name, inode: of.durable.get(name) ?? '0', at: -1 },
    ...of.changes.filter((change) => change.name === name),
  ]
  const now = of.actual.get(name) ?? '0'
  // A process may have been killed before it recorded its last change.
  if (states.at(-1)?.inode !== now) states.push({ name, inode: now, at: Number.MAX_SAFE_INTEGER })
  return states
}

/** Draws whether all changes are kept, none, or those before a moment. */
function drawMoment(moments: readonly number[], luck: Luck): number {
  const fate = luck.pick(['all', 'none', 'some'] as const)
  if (fate === 'none' || moments.length === 0) return fate === 'all' ? Infinity : 0
  return fate === 'all' ? Infinity : luck.pick(moments)
}

function look(root: string): Found {
  const names = new Map<string, Map<string, string>>()
  const paths = new Map<string, string>()
  const walk = (directory: string, inode: string): void => {
    paths.set(inode, directory)
    const entries = new Map<string, string>()
    names.set(inode, entries)
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      if (directory === root && entry.name === unwatchedName) continue
      if (!entry.isDirectory() && !entry.isFile()) continue
      const path = join(directory, entry.name)
      const each = String(lstatSync(path).ino)
      entries.set(entry.name, each)
      if (entry.isDirectory()) walk(path, each)
      else paths.set(each, path)
    }
  }
  const inode = String(lstatSync(root).ino)
  walk(root, inode)
  return { root: inode, names, paths }
}
