/**
 * What is known about a shard outside its database, for the next process that opens it and for /readyz. The marks are
 * small files in `<dir>/marks`, named after the number of the shard:
 *
 *     3.life        the shard is open, or its last process did not close it cleanly
 *     3.broken      the shard is set aside: no process has it open, and requests for its bots are refused
 *     3.damaged     a check found damage in files of the shard while it was open
 *     3.checking    its files are being checked before it is opened
 *
 * They are outside the shard's own directory, which may be missing or unreadable. They are not synced: a crash of a
 * process leaves them intact, but a power loss within seconds of a start may hide that the shard was not closed
 * cleanly. A mark that cannot be written (the disk is full) is logged and skipped, because the shard can be served
 * without it.
 */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { isAbsolute, join, relative } from 'node:path'
import { damagesNamedMax } from '../../kit/limits.ts'
import type { FileDamage } from '../../store/shard-damaged.ts'
import type { Log } from '../../kit/surroundings.ts'

const phases = ['closed', 'waiting', 'opening', 'open'] as const

/**
 * The phase of a shard that a process recorded last:
 *
 *     closed --> opening --> open --> closed
 *        \--> waiting --/
 */
export type ShardPhase = (typeof phases)[number]

export interface ShardLife {
  readonly phase: ShardPhase
  /** The shard was not closed cleanly, and its files have not been checked completely since then. */
  readonly isUnchecked: boolean
  /** Number of processes that died while they opened or compacted this shard, since it was last given a new try. */
  readonly deaths: number
}

/** What /readyz says about one file. */
export interface ShardTrouble extends FileDamage {
  readonly shard: number
}

export interface ShardTroubles {
  readonly broken: readonly ShardTrouble[]
  readonly damaged: readonly ShardTrouble[]
  /** Shards whose files are being checked before they are opened. */
  readonly checking: readonly number[]
}

type Kind = 'life' | 'broken' | 'damaged' | 'checking'

export class ShardMarks {
  readonly #dataDir: string
  readonly #log: Pick<Log, 'warn'>
  readonly #directory: string

  constructor(dataDir: string, log: Pick<Log, 'warn'>) {
    this.#dataDir = dataDir
    this.#log = log
    this.#directory = marksPath(dataDir)
  }

  /** Returns the life of a shard that no process has open. */
  async life(shard: number): Promise<ShardLife> {
    const text = await readIfThere(this.#path(shard, 'life'))
    if (text === undefined) return closedInOrder
    // Only a crash of the machine leaves half a mark.
    return asLife(parsed(text)) ?? { phase: 'open', isUnchecked: true, deaths: 0 }
  }

  async setLife(shard: number, life: ShardLife): Promise<void> {
    const isNothing = life.phase === 'closed' && !life.isUnchecked && life.deaths === 0
    await this.#set(shard, 'life', isNothing ? undefined : life)
  }

  async broken(shard: number): Promise<FileDamage | undefined> {
    const text = await readIfThere(this.#path(shard, 'broken'))
    return text === undefined ? undefined : (asDamage(parsed(text)) ?? unknownDamage)
  }

  /** `undefined` removes the mark. */
  async setBroken(shard: number, damage: FileDamage | undefined): Promise<void> {
    await this.#set(shard, 'broken', damage && this.#named(damage))
  }

  async hasDamaged(shard: number): Promise<boolean> {
    return (await readIfThere(this.#path(shard, 'damaged'))) !== undefined
  }

  /** An empty list removes the mark. */
  async setDamaged(shard: number, damages: readonly FileDamage[]): Promise<void> {
    const named = damages.slice(0, damagesNamedMax).map((damage) => this.#named(damage))
    await this.#set(shard, 'damaged', named.length === 0 ? undefined : named)
  }

  async setChecking(shard: number, isChecking: boolean): Promise<void> {
    await this.#set(shard, 'checking', isChecking ? {} : undefined)
  }

  /** Returns the damage with the file as a path relative to the data directory. */
  #named({ file, offset, reason }: FileDamage): FileDamage {
    const dataDir = this.#dataDir
    return { file: isAbsolute(file) ? relative(dataDir, file) : file, offset, reason }
  }

  async #set(shard: number, kind: Kind, content: object | undefined): Promise<void> {
    const path = this.#path(shard, kind)
    try {
      if (content === undefined) {
        await rm(path, { force: true })
        return
      }
      await mkdir(this.#directory, { recursive: true, mode: 0o700 })
      const unfinished = `${path}.tmp`
      await writeFile(unfinished, JSON.stringify(content), { mode: 0o600 })
      await rename(unfinished, path)
    } catch (error) {
      this.#log.warn({ shard, error: String(error) }, `the mark ${path} could not be changed`)
    }
  }

  #path(shard: number, kind: Kind): string {
    return join(this.#directory, `${shard}.${kind}`)
  }
}

/**
 * Reads the marks of all shards.
 *
 * @param dataDir - the data directory of a server that may be running.
 * @returns what the marks say, in the order of the shards.
 */
export async function shardTroubles(dataDir: string): Promise<ShardTroubles> {
  const directory = marksPath(dataDir)
  // The directory does not exist before the first start.
  const names = await readdir(directory).catch(() => [])
  const broken: ShardTrouble[] = []
  const damaged: ShardTrouble[] = []
  const checking: number[] = []
  for (const [shard, kind] of names.map(partsOf).toSorted(([a], [b]) => a - b)) {
    if (kind === 'checking') checking.push(shard)
    if (kind !== 'broken' && kind !== 'damaged') continue
    // The server may have removed the mark since it was listed.
    const text = await readIfThere(join(directory, `${shard}.${kind}`))
    if (text === undefined) continue
    if (kind === 'broken') {
      broken.push({ shard, ...(asDamage(parsed(text)) ?? unknownDamage) })
    } else {
      for (const damage of asDamages(parsed(text))) damaged.push({ shard, ...damage })
    }
  }
  return { broken, damaged, checking }
}

const closedInOrder: ShardLife = { phase: 'closed', isUnchecked: false, deaths: 0 }
const unknownDamage: FileDamage = { file: 'shards', reason: 'its mark cannot be read' }

function marksPath(dataDir: string): string {
  return join(dataDir, 'marks')
}

function partsOf(name: string): readonly [shard: number, kind: string] {
  const [, shard = '-1', kind = ''] = /^(\d+)\.([a-z]+)$/.exec(name) ?? []
  return [Number(shard), kind]
}

/** Returns undefined if the text is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Marks are not synced, and the disk may be failing: no content of a mark may keep a shard from being opened. */
function asLife(mark: unknown): ShardLife | undefined {
  const { phase, isUnchecked, deaths } = fieldsOf(mark)
  const known = phases.find((each) => each === phase)
  if (known === undefined || typeof isUnchecked !== 'boolean') return undefined
  return typeof deaths === 'number' ? { phase: known, isUnchecked, deaths } : undefined
}

function asDamage(mark: unknown): FileDamage | undefined {
  const { file, offset, reason } = fieldsOf(mark)
  if (typeof file !== 'string' || typeof reason !== 'string') return undefined
  return typeof offset === 'number' ? { file, offset, reason } : { file, reason }
}

function asDamages(mark: unknown): readonly FileDamage[] {
  const damages: readonly unknown[] = Array.isArray(mark) ? mark : [mark]
  return damages.map((each) => asDamage(each) ?? unknownDamage)
}

function fieldsOf(mark: unknown): Readonly<Record<string, unknown>> {
  return typeof mark === 'object' && mark !== null ? { ...mark } : {}
}

/** Also returns undefined if the file cannot be read: a bad disk must not keep other shards from being opened. */
async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch {
    return undefined
  }
}
