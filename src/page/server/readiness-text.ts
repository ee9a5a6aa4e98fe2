/** What /readyz says, in sentences for the operator. Pure. */
import { shardsText } from '../elements/format.ts'
import type { DamageShape, ReadinessShape } from '../frame/shapes.ts'

/** What a status means to the reader. */
const statusTexts: Readonly<Record<string, string>> = {
  starting: 'Some shards are not served at present. Their bots wait for a worker that starts.',
  'no database': 'The server does not serve, because none of its databases responds.',
  leaving: 'Other nodes take the shards of this node, which then ends.',
  broken: 'The server serves no shard, because all are broken.',
}
/** Chosen: what fits into a line or two. /readyz names all of them. */
const namedMax = 3

/** Returns a sentence for each thing that needs attention. */
export function readinessTexts(readiness: ReadinessShape): readonly string[] {
  const texts = [
    statusTexts[readiness.status],
    brokenText(readiness.broken_shards ?? []),
    poisonedText(readiness.poisoned_shards ?? 0),
    awayText(readiness.away_databases ?? []),
    checkingText(readiness.checking_shards ?? []),
    damagedText(stillServed(readiness)),
    copiesText(readiness.damaged ?? []),
  ]
  return texts.filter((text) => text !== undefined)
}

function brokenText(damages: readonly DamageShape[]): string | undefined {
  if (damages.length === 0) return undefined
  return `The bots of ${shardsText(shardsOf(damages))} are refused, because damaged files are set aside (${filesText(damages)}). Repair them as docs/run/trouble.md describes.`
}

function poisonedText(count: number): string | undefined {
  if (count === 0) return undefined
  const which = count === 1 ? 'One shard refuses' : `${count} shards refuse`
  return `${which} changes until the disk or the database can be written again.`
}

function awayText(databases: readonly number[]): string | undefined {
  if (databases.length === 0) return undefined
  const which = databases.length === 1 ? 'Database' : 'Databases'
  const verb = databases.length === 1 ? 'does' : 'do'
  return `${which} ${databases.join(', ')} of several ${verb} not respond, and the bots there wait.`
}

function checkingText(shards: readonly number[]): string | undefined {
  if (shards.length === 0) return undefined
  return `The files of ${shardsText(shards)} are checked before they are opened.`
}

/** Damage of shards that are set aside is named with them. */
function stillServed({ damaged_files: damages = [], broken_shards: broken = [] }: ReadinessShape) {
  const aside = new Set(shardsOf(broken))
  return damages.filter(({ shard }) => !aside.has(shard))
}

function damagedText(damages: readonly DamageShape[]): string | undefined {
  if (damages.length === 0) return undefined
  return `Files of ${shardsText(shardsOf(damages))} are damaged, and the bots are still served (${filesText(damages)}).`
}

function copiesText(files: readonly string[]): string | undefined {
  return files.length === 0 ? undefined : `Damaged files were copied aside: ${namesText(files)}.`
}

function shardsOf(damages: readonly DamageShape[]): readonly number[] {
  return [...new Set(damages.map(({ shard }) => shard))]
}

function filesText(damages: readonly DamageShape[]): string {
  return namesText(damages.map(({ file, reason }) => `${file}: ${reason}`))
}

function namesText(names: readonly string[]): string {
  const more = names.length > namedMax ? [`and ${names.length - namedMax} more`] : []
  return [...names.slice(0, namedMax), ...more].join(', ')
}
