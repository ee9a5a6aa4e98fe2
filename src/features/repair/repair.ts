/**
 * `postbote repair`: copies every readable record of damaged shards into new shards, and reports what is lost. No server
 * may run on the directory. The old shard is kept beside the new one (features/repair/repair-shard.ts).
 */
import { existsSync } from 'node:fs'
import type { CommandCall } from '../../cli/commands/command-call.ts'
import type { ParsedCommand } from '../../cli/commands/command-row.ts'
import { printJsonLine } from '../../cli/output/print-result.ts'
import { jsonOption } from '../../cli/output/view.ts'
import { ProgressBar } from '../../cli/output/progress-bar.ts'
import { configFileOption } from '../../config/config.ts'
import { optionTable } from '../../config/config-options.ts'
import { onOff } from '../../config/config-values.ts'
import { waitingClock } from '../../kit/clock.ts'
import { messageOf } from '../../kit/errors.ts'
import { counted } from '../../kit/text/counted.ts'
import { lockDirectory } from '../../process/primary/directory-lock.ts'
import { shardPath } from '../../shard/data-directory.ts'
import { writeDirectoryRecord } from '../../shard/records/directory-record.ts'
import { botIdOf, isTestQueue } from '../../shard/records/record-keys.ts'
import { ShardMarks } from '../../shard/recovery/shard-marks.ts'
import { shardRecords } from '../../shard/shard-records.ts'
import type { QueueLoss } from './count-rescued.ts'
import { describeDamage } from './describe-damage.ts'
import { finishRepair, type Repaired, repairShard } from './repair-shard.ts'
import {
  foreignTextIn,
  foreignTextOf,
  type ShardSelection,
  shardOption,
  shardSelection,
  surplusText,
} from './shard-selection.ts'

const unmadeText =
  'the first start with this directory did not finish, so nothing is stored in it: start the server instead'

const rebuildOption = {
  name: 'rebuild',
  kind: onOff,
  sentence: 'Includes shards without damage.',
} as const

export const repairCommand: ParsedCommand = {
  kind: 'parsed',
  name: 'repair',
  synopsis: 'repair [--shard N] [--rebuild] [--json] [--dir DIR]',
  sentence:
    'copies every readable record of damaged shards into new shards and prints what is lost; the server must be stopped; --rebuild includes shards without damage',
  arguments: [],
  options: [shardOption, rebuildOption, jsonOption, optionTable.dir, configFileOption],
  onlyOptions: '--shard, --rebuild, --json, --dir or --config',
  run: repair,
}

async function repair(call: CommandCall): Promise<void> {
  const selection = await shardSelection(call)
  const isJson = call.has(jsonOption)
  const lock = lockDirectory(selection.directory)
  try {
    if (selection.surplus.length > 0) throw new Error(surplusText(selection))
    await assertCountFits(selection)
    if (selection.isMade === false) throw new Error(unmadeText)
    // The records are written in the newest format: an old version of the server must not take them for damaged.
    if (selection.isMade === undefined) {
      await writeDirectoryRecord(selection.directory, {
        shards: selection.shardCount,
        isMade: true,
        types: [],
      })
    }
    const bar = new ProgressBar(isJson)
    const failed: number[] = []
    for (const shard of selection.shards) {
      try {
        await repairIfDamaged(selection, { shard, isRebuilt: call.has(rebuildOption) }, bar)
      } catch (error) {
        process.exitCode = 1
        failed.push(shard)
        bar.line(
          `shard ${shard}: the repair failed and the shard is unchanged: ${messageOf(error)}`,
        )
      }
    }
    bar.clear()
    if (isJson) printJsonLine(JSON.stringify({ failed_shards: failed, lines: bar.kept }))
  } finally {
    lock.release()
  }
}

/**
 * If the number in postbote.json is too large, shards that never existed would look missing and would be made. The
 * records of the existing shards show whether the number is right.
 */
async function assertCountFits(selection: ShardSelection): Promise<void> {
  const all = Array.from({ length: selection.shardCount }, (_, shard) => shard)
  const isMissing = (shard: number): boolean => !existsSync(shardPath(selection.directory, shard))
  if (!all.some(isMissing)) return
  for (const shard of all) {
    const foreign = isMissing(shard) ? undefined : await foreignTextIn(selection, shard)
    if (foreign !== undefined) throw new Error(foreign)
  }
}

async function repairIfDamaged(
  selection: ShardSelection,
  { shard, isRebuilt }: { readonly shard: number; readonly isRebuilt: boolean },
  bar: ProgressBar,
): Promise<void> {
  const { directory, files } = selection
  if (await finishRepair(directory, shard)) {
    await removeMarks(directory, shard)
    bar.line(`shard ${shard}: an interrupted repair was finished`)
  }
  if (!isRebuilt && !(await isDamaged(selection, shard, bar))) {
    bar.line(`shard ${shard}: no damage was found, the shard is unchanged`)
    return
  }
  let isLogDamaged = false
  const repaired = await repairShard(directory, shard, {
    files,
    clock: waitingClock,
    isOwn: (queue) => selection.shardOf(botIdOf(queue)) === shard,
    onDamage(damage) {
      bar.line(describeDamage(damage, directory))
      isLogDamaged ||= damage.mayLose && damage.isLog
    },
    onProgress: (step, done, of) => bar.show(`shard ${shard}: ${step}`, done, of),
  })
  await removeMarks(directory, shard)
  tell(shard, repaired, bar)
  if (isLogDamaged) {
    bar.line(
      `shard ${shard}: a log is damaged, so the newest updates of any bot in this shard may be lost`,
    )
  }
}

/** The marks of the old shard do not apply to the new one. */
async function removeMarks(directory: string, shard: number): Promise<void> {
  const log = {
    warn: (details: object, message: string): void => {
      process.stderr.write(`postbote: ${message}: ${JSON.stringify(details)}\n`)
    },
  }
  const marks = new ShardMarks(directory, log)
  await marks.setBroken(shard, undefined)
  await marks.setDamaged(shard, [])
  await marks.setLife(shard, { phase: 'closed', isUnchecked: false, deaths: 0 })
}

async function isDamaged(
  selection: ShardSelection,
  shard: number,
  bar: ProgressBar,
): Promise<boolean> {
  const { directory, files } = selection
  const parts = files.read({
    records: shardRecords,
    directory: shardPath(directory, shard),
    clock: waitingClock,
    onProgress: (done, of) => bar.show(`shard ${shard}: checking`, done, of),
  })
  // One damage is enough.
  for await (const part of parts) {
    if (part.kind === 'damage') return true
    const foreign = foreignTextOf(selection, shard, part.entries)
    if (foreign === undefined) continue
    bar.line(foreign)
    return true
  }
  return false
}

function tell(shard: number, { records, losses, kept }: Repaired, bar: ProgressBar): void {
  bar.line(`shard ${shard}: rescued ${counted(records, 'record')} into a new shard`)
  if (kept !== undefined) {
    bar.line(
      `shard ${shard}: the old shard is kept as ${kept}; remove it when you no longer need it`,
    )
  }
  if (records === 0) {
    bar.line(`shard ${shard}: no record was found, everything in the shard is lost`)
  }
  for (const loss of losses) bar.line(`shard ${shard}: ${lossText(loss)}`)
}

function lossText(loss: QueueLoss): string {
  const { queue, updatesBefore, updatesLeft, missingIds, isUnregistered } = loss
  const bot = `bot ${botIdOf(queue)}${isTestQueue(queue) ? ' (/test/)' : ''}`
  const count =
    updatesBefore === undefined
      ? `its ids and counts are lost, updates left: ${updatesLeft}`
      : `updates left: ${updatesLeft} of ${updatesBefore}`
  const ranges = missingIds.map(({ first, last }) => (first === last ? first : `${first}-${last}`))
  const missing = ranges.length === 0 ? '' : `; ids without an update: ${ranges.join(', ')}`
  const registration = isUnregistered
    ? '; it is not registered: register it with this id again'
    : ''
  return `${bot}: ${count}${missing}${registration}`
}
