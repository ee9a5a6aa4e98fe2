/**
 * What the server's workers spent their time on, out of the CPU profiles in a directory: self time by function, and
 * the same time charged to the nearest of our own functions on the stack, so that what Node and libraries do is seen
 * at the line that asked for it. Idle time is left out; a thread that waits for a CPU counts as busy.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

interface CallFrame {
  readonly functionName: string
  readonly url: string
  readonly lineNumber: number
}

interface ProfileNode {
  readonly id: number
  readonly callFrame: CallFrame
  readonly children?: readonly number[]
}

interface CpuProfile {
  readonly nodes: readonly ProfileNode[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

const linesShown = 30
/** Threads less busy than this part of the busiest one (the primary, pools) are left out. */
const busyPartMin = 0.3

export async function profileSummary(directory: string): Promise<string> {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.cpuprofile'))
  const totals: Totals[] = []
  for (const file of files) {
    const profile: CpuProfile = JSON.parse(await readFile(join(directory, file), 'utf8'))
    totals.push(new Totals(profile))
  }
  const busiestUs = Math.max(...totals.map(({ busyUs }) => busyUs))
  const shown = totals.filter(({ busyUs }) => busyUs >= busyPartMin * busiestUs)
  return [
    `#### Self time of ${shown.length} of ${files.length} threads`,
    ...linesOf(shown.map(({ selfUs }) => selfUs)),
    '',
    '#### Charged to the nearest function of ours',
    ...linesOf(shown.map(({ chargedUs }) => chargedUs)),
    '',
    '#### Self time by file',
    ...linesOf(shown.map(({ fileUs }) => fileUs)),
    '',
  ].join('\n')
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
      add(this.fileUs, node.callFrame.url === '' ? name : placeOf(node.callFrame.url), us)
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
    const isOurs = /\/dist\/(?:src|workers)\//.test(node.callFrame.url)
    const owner = isOurs ? nameOf(node.callFrame) : inherited
    if (owner !== undefined) owners.set(node.id, owner)
    for (const id of node.children ?? []) {
      const child = nodes.get(id)
      if (child !== undefined) open.push([child, owner])
    }
  }
  return owners
}

function linesOf(maps: readonly ReadonlyMap<string, number>[]): string[] {
  const sums = new Map<string, number>()
  for (const [name, us] of maps.flatMap((map) => [...map])) add(sums, name, us)
  const allUs = [...sums.values()].reduce((sum, us) => sum + us, 0)
  return [...sums]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, linesShown)
    .map(([name, us]) => `${((100 * us) / allUs).toFixed(1).padStart(6)} %  ${name}`)
}

function add(sums: Map<string, number>, name: string, us: number): void {
  sums.set(name, (sums.get(name) ?? 0) + us)
}

function nameOf(frame: CallFrame): string {
  const name = frame.functionName === '' ? '(anonymous)' : frame.functionName
  if (frame.url === '') return name
  return `${name} ${placeOf(frame.url)}:${frame.lineNumber + 1}`
}

function placeOf(url: string): string {
  return url.replace(/^.*\/(?:dist|node_modules)\//, '')
}
