import { clockDifferenceMsMax } from '../../kit/limits.ts'
import type { NodeRow } from '../../store/node-table.ts'

/** Returns `12 s ahead` or `12 s behind` for a node whose clock differs too much from the database's, otherwise undefined. */
export function clockDifference({ clock }: NodeRow): string | undefined {
  const skewMs = clock?.skewMs ?? 0
  if (Math.abs(skewMs) <= clockDifferenceMsMax) return undefined
  return `${Math.round(Math.abs(skewMs) / 1_000)} s ${skewMs > 0 ? 'ahead' : 'behind'}`
}
