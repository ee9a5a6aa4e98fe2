import { readFileSync } from 'node:fs'

/** Returns the ids of the processes that a process has started and not waited for. One that has ended has none. */
export function childrenOf(pid: number): readonly number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    return children.split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

/** Returns the ids of a process and of all processes below it. */
export function treeOf(pid: number): readonly number[] {
  return [pid, ...childrenOf(pid).flatMap(treeOf)]
}
