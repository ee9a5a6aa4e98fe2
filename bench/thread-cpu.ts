/**
 * The CPU time of threads by what they do, from /proc (Linux only).
 *
 * Node 20 and LevelDB give their threads no names, and later versions only some of them, so a thread is known by where it
 * waits: those of libuv's pool in the data of node, and LevelDB's thread, which compacts, in the heap of the main thread,
 * which made LevelDB's environment. V8's threads, which collect garbage and compile, wait in that heap, too, but Node starts
 * them before the pool. A thread that was never seen waiting there, or belongs to another program, is `other`.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { ticksOf, usPerTick } from './process-cpu.ts'

export const threadKinds = ['main', 'LevelDB', 'pool', 'V8', 'other'] as const
export type ThreadKind = (typeof threadKinds)[number]
export type CpuUsByThread = Readonly<Partial<Record<ThreadKind, number>>>

/** The CPU time of each thread so far, by process and thread id. */
export type ThreadTimes = ReadonlyMap<string, number>

/** A range of addresses and the file to which it belongs; '' if it is none. */
export interface Mapping {
  readonly start: bigint
  readonly end: bigint
  readonly file: string
}

const futexCalls: Readonly<Partial<Record<NodeJS.Architecture, string>>> = {
  x64: '202',
  arm64: '98',
}
/** What is known of the threads of all processes. A busy thread is not, until it is seen waiting. */
const knownKinds = new Map<string, ThreadKind>()

export function threadTimes(pids: readonly number[]): ThreadTimes {
  const times = new Map<string, number>()
  for (const pid of pids) {
    const threads = readdirSync(`/proc/${pid}/task`).map(Number)
    learnKinds(pid, threads)
    for (const thread of threads) {
      times.set(keyOf(pid, thread), ticksOf(`${pid}/task/${thread}`) * usPerTick)
    }
  }
  return times
}

/** Returns the time between two readings. */
export function timeByKind(before: ThreadTimes, after: ThreadTimes): CpuUsByThread {
  const sums: Partial<Record<ThreadKind, number>> = {}
  for (const [key, us] of after) {
    const kind = knownKinds.get(key) ?? 'other'
    sums[kind] = (sums[kind] ?? 0) + us - (before.get(key) ?? 0)
  }
  return sums
}

/** Parses /proc/<pid>/maps. Zeroed data of a file is an anonymous range right after that of the file. */
export function mappingsOf(maps: string): readonly Mapping[] {
  const mappings: Mapping[] = []
  for (const line of maps.split('\n')) {
    const [, start, end, name = ''] = /^(\w+)-(\w+) \S+ \S+ \S+ \d+ *(.*)$/.exec(line) ?? []
    if (start === undefined || end === undefined) continue
    const range = { start: BigInt(`0x${start}`), end: BigInt(`0x${end}`) }
    const before = mappings.at(-1)
    const isMore = name === '' && before?.end === range.start
    mappings.push({ ...range, file: isMore ? before.file : name })
  }
  return mappings
}

/**
 * Returns what the threads of a process do, as far as it shows.
 *
 * @param calls - by thread id, in their order: where it waits, as /proc/<pid>/task/<tid>/syscall has it.
 */
export function kindsByWait(
  calls: ReadonlyMap<number, string>,
  mappings: readonly Mapping[],
  arch: NodeJS.Architecture = process.arch,
): ReadonlyMap<number, ThreadKind> {
  const places = [...calls].map(([thread, call]) => ({
    thread,
    file: placeOf(call, mappings, arch),
  }))
  // The first one that waits in the data of node is its thread for signals, which is idle. Then comes the pool.
  const firstInNode = places.findIndex(({ file }) => isNode(file))
  const hasLevelDb = mappings.some(({ file }) => /\/leveldown\/.*\.node$/.test(file))
  return new Map(
    places.flatMap(({ thread, file }, nth): [number, ThreadKind][] => {
      if (nth === 0) return [[thread, 'main']]
      if (nth < firstInNode) return [[thread, 'V8']]
      if (isNode(file)) return [[thread, 'pool']]
      return hasLevelDb && firstInNode > 0 && file === '[heap]' ? [[thread, 'LevelDB']] : []
    }),
  )
}

function isNode(file: string): boolean {
  return /\/(?:node|libuv\.so[^/]*)$/.test(file)
}

/** Returns the file in whose memory a thread waits for another; '' if it does something else. */
function placeOf(call: string, mappings: readonly Mapping[], arch: NodeJS.Architecture): string {
  const [number, at] = call.split(' ')
  if (number !== futexCalls[arch] || at === undefined) return ''
  const address = BigInt(at)
  return mappings.find(({ start, end }) => start <= address && address < end)?.file ?? ''
}

function learnKinds(pid: number, threads: readonly number[]): void {
  if (threads.every((thread) => knownKinds.has(keyOf(pid, thread)))) return
  try {
    const mappings = mappingsOf(readFileSync(`/proc/${pid}/maps`, 'utf8'))
    const calls = new Map(
      threads.map((thread) => [
        thread,
        readFileSync(`/proc/${pid}/task/${thread}/syscall`, 'utf8'),
      ]),
    )
    for (const [thread, kind] of kindsByWait(calls, mappings)) {
      const key = keyOf(pid, thread)
      // What was seen first is right: later, a thread of the pool may wait for LevelDB.
      if (!knownKinds.has(key)) knownKinds.set(key, kind)
    }
  } catch {
    // A system may forbid it, and a thread may have ended. The main thread has the id of the process.
    knownKinds.set(keyOf(pid, pid), 'main')
  }
}

function keyOf(pid: number, thread: number): string {
  return `${pid}/${thread}`
}
