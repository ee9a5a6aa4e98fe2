/** Whether the databases that `--database` names are those of one cluster, in their order. Pure. */
import type { PgUrl } from '../../api/pg-url.ts'
import { counted } from '../../kit/text/counted.ts'
import type { ClusterRow } from '../postgres/cluster-row.ts'

/** A database, and its row; undefined if the database did not respond. */
export interface NamedDatabase {
  readonly database: Pick<PgUrl, 'shown'>
  readonly row: ClusterRow | undefined
}

/** Returns what is wrong, each problem as a line. */
export function databaseProblems(named: readonly NamedDatabase[]): readonly string[] {
  const known = named.flatMap(({ database: { shown }, row }, place) =>
    row === undefined ? [] : [{ shown, row, place }],
  )
  const [first] = known
  if (first === undefined) return []
  const stranger = known.find(({ row }) => row.id !== first.row.id)
  if (stranger !== undefined) {
    return [
      `--database: ${stranger.shown} belongs to the cluster ${stranger.row.id}, and ${first.shown} to the cluster ${first.row.id}`,
    ]
  }
  const { databases } = first.row
  if (databases !== named.length) {
    return [
      `--database: expected all databases of the cluster of ${first.shown}, which are ${databases}, got ${named.length}`,
    ]
  }
  return known.flatMap(({ shown, row: { number, shards }, place }) => {
    const twin = known.find((other) => other.row.number === number && other.place < place)
    if (twin !== undefined) return [`--database: ${twin.shown} and ${shown} are one database`]
    if (shards !== first.row.shards) {
      return [
        `--database: ${shown} has ${counted(shards, 'shard')}, and ${first.shown} ${first.row.shards}`,
      ]
    }
    if (number === place) return []
    return [
      `--database: ${shown} is the ${nth(number)} database of the cluster, and is named as the ${nth(place)}: name them in the order of postbote database init`,
    ]
  })
}

function nth(number: number): string {
  const count = number + 1
  const ending = /1\d$/.test(`${count}`) ? 'th' : (['th', 'st', 'nd', 'rd'][count % 10] ?? 'th')
  return `${count}${ending}`
}
