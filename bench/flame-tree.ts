/**
 * CPU profiles as one tree of calls, for a flame graph: equal calls below equal callers are one frame, whatever process
 * or line they came from. Idle time is left out, and so are processes that did little.
 */
import type { CallFrame, CpuProfile, ProfileNode } from './inspected-process.ts'
import { busyProfiles } from './profile-summary.ts'
import { type SourcePlace, sourcePlace } from './source-place.ts'

export interface FlameFrame {
  readonly name: string
  readonly place: SourcePlace
  readonly line: number
  /** The time in the function and in all that it calls. */
  us: number
  /** By name and file. */
  readonly children: Map<string, FlameFrame>
}

/**
 * Merges the profiles.
 *
 * @param profiles - with the frames of source files: see `inSources`.
 * @returns the frame of all time; its children are the functions that Node calls.
 */
export function flameTree(profiles: readonly CpuProfile[]): FlameFrame {
  const root = frameOf({ functionName: 'all', url: '', lineNumber: 0 })
  for (const profile of busyProfiles(profiles)) addProfile(root, profile)
  return root
}

function addProfile(root: FlameFrame, { nodes, samples, timeDeltas }: CpuProfile): void {
  const selfUs = new Map<number, number>()
  for (const [index, id] of samples.entries()) {
    selfUs.set(id, (selfUs.get(id) ?? 0) + (timeDeltas[index] ?? 0))
  }
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const add = (parent: FlameFrame, node: ProfileNode): number => {
    const { functionName, url } = node.callFrame
    if (functionName === '(idle)') return 0
    const key = `${functionName} ${url}`
    const isRoot = functionName === '(root)'
    const frame = isRoot ? parent : (parent.children.get(key) ?? frameOf(node.callFrame))
    if (!isRoot) parent.children.set(key, frame)
    let us = isRoot ? 0 : (selfUs.get(node.id) ?? 0)
    for (const id of node.children ?? []) {
      const child = byId.get(id)
      if (child !== undefined) us += add(frame, child)
    }
    frame.us += us
    return us
  }
  const below = new Set(nodes.flatMap(({ children }) => children ?? []))
  for (const node of nodes) if (!below.has(node.id)) add(root, node)
}

function frameOf({ functionName, url, lineNumber }: CallFrame): FlameFrame {
  return {
    name: functionName === '' ? '(anonymous)' : functionName,
    place: sourcePlace(url),
    line: lineNumber + 1,
    us: 0,
    children: new Map(),
  }
}
