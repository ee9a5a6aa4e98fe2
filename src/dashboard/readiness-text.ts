/** What /readyz says, in sentences for the operator. Pure. */
import { shardsText } from './format.ts'
import type { DamageShape, ReadinessShape } from './shapes.ts'

/** What a status means to the reader. */
const statusTexts: Readonly<Record<string, string>> = {
  starting: 'Some shards are not served at present. Their bots wait for a worker that starts.',
  'no database': 'The server does not serve, because none of its databases responds.',
  broken: 'The server serves no shard, because all are broken.',
}
/** Chosen: what fits into a line or two. /readyz names all of them. */
const namedMax = 3

/** Returns a sentence for each thing that needs attention. */
export function readinessTexts(readiness: ReadinessShape): readonly string[] {
  const {
    status,
    broken_shards: broken = [],
    checking_shards: checking = [],
    poisoned_shards: poisoned = 0,
    away_databases: away = [],
    damaged_files: damaged = [],
    damaged: copies = [],
  } = readiness
  const texts = [
    statusTexts[status],
    broken.length > 0 &&
      `The bots of ${shardsText(shardsOf(broken))} are refused, because damaged files are set aside (${filesText(broken)}). Repair them as docs/operations.md describes.`,
    poisoned > 0 &&
      `${poisoned === 1 ? 'One shard refuses' : `${poisoned} shards refuse`} changes until the disk or the database can be written again.`,
    away.length > 0 &&
      `${away.length === 1 ? 'Database' : 'Databases'} ${away.join(', ')} of several ${away.length === 1 ? 'does' : 'do'} not respond, and the bots there wait.`,
    checking.length > 0 &&
      `The files of ${shardsText(checking)} are checked before they are opened.`,
    damaged.length > 0 &&
      `Files of ${shardsText(shardsOf(damaged))} are damaged, and the bots are still served (${filesText(damaged)}).`,
    copies.length > 0 && `Damaged files were copied aside: ${namesText(copies)}.`,
  ]
  return texts.filter((text) => typeof text === 'string')
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
