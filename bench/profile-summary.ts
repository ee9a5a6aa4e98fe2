/**
 * How the server's workers spent their time, from the CPU profiles of its runs: self time by function, and the same time
 * charged to the nearest of our own functions on the stack, so that the work of Node and libraries shows at the line that
 * caused it. Idle time is left out. A process that waits for a CPU counts as busy, which shows most where it wakes its
 * client (`writev`).
 */
import type { CallFrame, CpuProfile, ProfileNode } from './inspected-process.ts'
import { sourcePlace } from './source-place.ts'

const linesShown = 30
/** Processes with less than this part of the busiest one's time (the primary) are left out. */
const busyPartMin = 0.3

/** A name and its part of the total time. */
export type Share = readonly [string, number]

export interface ProfileShares {
  /** Self time of the functions that take most of it; the largest first. */
  readonly self: readonly Share[]
  readonly charged: readonly Share[]
  readonly files: readonly Share[]
}

export function profileSummary(shares: ProfileShares): string {
  return [
    '#### Self time',
    ...linesOf(shares.self),
    '',
    '#### Charged to the nearest function of ours',
    ...linesOf(shares.charged),
    '',
    '#### Self time by file',
    ...linesOf(shares.files),
    '',
  ].join('\n')
}

export function profileShares(profiles: readonly CpuProfile[]): ProfileShares {
  const shown = busyProfiles(profiles).map((profile) => new Totals(profile))
  return {
    self: sharesOf(shown.map(({ selfUs }) => selfUs)),
    charged: sharesOf(shown.map(({ chargedUs }) => chargedUs)),
    files: sharesOf(shown.map(({ fileUs }) => fileUs)),
  }
}

/** Returns the profiles of the processes that did most of the work. */
export function busyProfiles(profiles: readonly CpuProfile[]): readonly CpuProfile[] {
  const busyUs = profiles.map((profile) => new Totals(profile).busyUs)
  const busiestUs = Math.max(...busyUs)
  return profiles.filter((_, index) => (busyUs[index] ?? 0) >= busyPartMin * busiestUs)
}

class Totals {
  readonly selfUs = new Map<string, number>()
  readonly chargedUs = new Map<string, number>()
  readonly fileUs = new Map<string, number>()
  busyUs = 0

  constructor(profile: CpuProfile) {
    const nodes = new Map(profile.nodes.map((node) => [node.id, node]))
    const owners = ownersOf(profile.nodes, nodes)
    for (const [index, id] of profile.samples.entries()) {
      const node = nodes.get(id)
      const us = profile.timeDeltas[index] ?? 0
      if (node === undefined || ['(idle)', '(root)'].includes(node.callFrame.functionName)) continue
      this.busyUs += us
      const name = nameOf(node.callFrame)
      add(this.selfUs, name, us)
      add(this.fileUs, sourcePlace(node.callFrame.url).file || name, us)
      add(this.chargedUs, owners.get(id) ?? name, us)
    }
  }
}

/** By node: the nearest frame at or above it that is ours. */
function ownersOf(
  list: readonly ProfileNode[],
  nodes: ReadonlyMap<number, ProfileNode>,
): Map<number, string> {
  const owners = new Map<number, string>()
  const below = new Set(list.flatMap(({ children }) => children ?? []))
  const open = list
    .filter(({ id }) => !below.has(id))
    .map((node): readonly [ProfileNode, string | undefined] => [node, undefined])
  for (const [node, inherited] of open) {
    const isOurs = sourcePlace(node.callFrame.url).kind === 'ours'
    const owner = isOurs ? nameOf(node.callFrame) : inherited
    if (owner !== undefined) owners.set(node.id, owner)
    for (const id of node.children ?? []) {
      const child = nodes.get(id)
      if (child !== undefined) open.push([child, owner])
    }
  }
  return owners
}

function sharesOf(maps: readonly ReadonlyMap<string, number>[]): Share[] {
  const sums = new Map<string, number>()
  for (const [name, us] of maps.flatMap((map) => [...map])) add(sums, name, us)
  const allUs = [...sums.values()].reduce((sum, us) => sum + us, 0)
  return [...sums]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, linesShown)
    .map(([name, us]) => [name, us / allUs])
}

function linesOf(shares: readonly Share[]): string[] {
  return shares.map(([name, part]) => `${(100 * part).toFixed(1).padStart(6)} %  ${name}`)
}

function add(sums: Map<string, number>, name: string, us: number): void {
  sums.set(name, (sums.get(name) ?? 0) + us)
}

function nameOf(frame: CallFrame): string {
  const name = frame.functionName === '' ? '(anonymous)' : frame.functionName
  const { file } = sourcePlace(frame.url)
  return file === '' ? name : `${name} ${file}:${frame.lineNumber + 1}`
}
