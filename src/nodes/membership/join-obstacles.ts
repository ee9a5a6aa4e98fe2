import type { JoiningNode, JoinObstacle, NodeRow } from '../../store/node-table.ts'

/**
 * Returns the rows that keep a node from joining. A node without an address must be alone, because no other one could
 * forward requests to it. Its name is the reason that is named last: two servers on one host have the same name unless
 * somebody gives them others, and the missing address is what their operator has to know.
 */
export function joinObstacles(
  { name, address }: Pick<JoiningNode, 'name' | 'address'>,
  rows: readonly NodeRow[],
): readonly JoinObstacle[] {
  return rows.flatMap((row): readonly JoinObstacle[] => {
    if (row.address === '') return [{ reason: 'other without address', row }]
    if (address === '') return [{ reason: 'self without address', row }]
    return row.name === name ? [{ reason: 'name taken', row }] : []
  })
}
