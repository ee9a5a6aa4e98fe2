/**
 * `postbote verify`: searches the files of the shards for damage and changes nothing. It prints one line per damage on
 * standard output. The exit code is 0 without damage and 1 with damage.
 */
import type { CommandCall } from '../../cli/commands/command-call.ts'
import type { ParsedCommand } from '../../cli/commands/command-row.ts'
import { printJsonLine } from '../../cli/output/print-result.ts'
import { jsonOption } from '../../cli/output/view.ts'
import { ProgressBar } from '../../cli/output/progress-bar.ts'
import { configFileOption } from '../../config/config.ts'
import { optionTable } from '../../config/config-options.ts'
import { waitingClock } from '../../kit/clock.ts'
import { messageOf } from '../../kit/errors.ts'
import { counted } from '../../kit/text/counted.ts'
import { DirectoryLockedError, lockDirectory } from '../../process/primary/directory-lock.ts'
import { shardPath } from '../../shard/data-directory.ts'
import { shardRecords } from '../../shard/shard-records.ts'
import { describeDamage } from './describe-damage.ts'
import {
  foreignTextOf,
  type ShardSelection,
  shardOption,
  shardSelection,
  surplusText,
} from './shard-selection.ts'

export const verifyCommand: ParsedCommand = {
  kind: 'parsed',
  name: 'verify',
  synopsis: 'verify [--shard N] [--json] [--dir DIR]',
  sentence:
    'searches the files of all shards, or of the given ones, for damage and changes nothing; the exit code is 1 if there is damage',
  arguments: [],
  options: [shardOption, jsonOption, optionTable.dir, configFileOption],
  onlyOptions: '--shard, --json, --dir or --config',
  run: verify,
}

async function verify(call: CommandCall): Promise<void> {
  const selection = await shardSelection(call)
  const isJson = call.has(jsonOption)
  const bar = new ProgressBar(isJson)
  if (isServed(selection.directory)) {
    bar.line(
      'a server runs on this directory: the check does not include what the server writes meanwhile',
    )
  }
  let damages = 0
  if (selection.surplus.length > 0) {
    damages++
    bar.line(surplusText(selection))
  }
  for (const shard of selection.shards) {
    try {
      damages += await verifyShard(selection, shard, bar)
    } catch (error) {
      damages++
      bar.line(`shard ${shard}: cannot be checked: ${messageOf(error)}`)
    }
  }
  bar.line(damages === 0 ? 'no damage was found' : `${counted(damages, 'damage')} found`)
  if (isJson) printJsonLine(JSON.stringify({ damages, lines: bar.kept }))
  if (damages > 0) process.exitCode = 1
}

/** Returns the number of damages. */
async function verifyShard(
  selection: ShardSelection,
  shard: number,
  bar: ProgressBar,
): Promise<number> {
  const { directory } = selection
  let damages = 0
  let foreign: string | undefined
  const parts = selection.files.read({
    records: shardRecords,
    directory: shardPath(directory, shard),
    clock: waitingClock,
    onProgress: (done, of) => bar.show(`shard ${shard}: reading`, done, of),
  })
  for await (const part of parts) {
    if (part.kind === 'damage') {
      damages++
      bar.line(describeDamage(part, directory))
    } else {
      foreign ??= foreignTextOf(selection, shard, part.entries)
    }
  }
  bar.clear()
  if (foreign !== undefined) {
    damages++
    bar.line(foreign)
  }
  return damages
}

function isServed(directory: string): boolean {
  try {
    lockDirectory(directory).release()
    return false
  } catch (error) {
    if (error instanceof DirectoryLockedError) return true
    throw error
  }
}
