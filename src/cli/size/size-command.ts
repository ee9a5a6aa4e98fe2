/** `postbote size`: estimates what a server needs for a load, from what the bench has measured. It starts nothing. */
import { ConfigError } from '../../config/config.ts'
import { onOff, wholeNumber } from '../../config/config-values.ts'
import { mib, workersMax } from '../../limits.ts'
import type { CommandCall } from '../commands/command-call.ts'
import type { ParsedCommand } from '../commands/command-row.ts'
import { jsonOption, madeResult, printResult } from '../output/print-result.ts'
import { estimateSize, measuredRateMax, type SizeEstimate, type SizeLoad } from './estimate-size.ts'
import { sizeMachine, sizeReport } from './size-costs.ts'

/** Chosen: far more than one server is for, and small enough that no product loses digits. */
const amountMax = 1_000_000_000
/** The smallest that was measured, and none that real bots get is much smaller. */
const updateBytesMin = 300
/** The most that `--max-update-bytes` allows, rounded up. */
const updateBytesMax = 4 * mib

const botsOption = {
  name: 'bots',
  kind: wholeNumber(1, amountMax),
  defaultShown: 'none; required',
  sentence: 'Bots that poll or have a webhook.',
} as const
const rateOption = {
  name: 'rate',
  kind: wholeNumber(0, amountMax),
  defaultShown: 'none; required',
  sentence: 'Updates in a second, of all bots together.',
} as const
const backlogOption = {
  name: 'backlog',
  kind: wholeNumber(0, amountMax),
  default: '0',
  sentence: 'Updates that wait, because bots are away.',
} as const
const updateBytesOption = {
  name: 'update-bytes',
  kind: wholeNumber(updateBytesMin, updateBytesMax),
  default: String(updateBytesMin),
  sentence: 'Size of an update as JSON.',
} as const
const webhookOption = {
  name: 'webhook',
  kind: onOff,
  sentence: 'The bots have webhooks.',
} as const
const pollOption = {
  name: 'poll',
  kind: onOff,
  sentence: 'The bots poll, as without --webhook.',
} as const

export const sizeCommand: ParsedCommand = {
  kind: 'parsed',
  name: 'size',
  sentence:
    'estimates the CPU time, workers, memory and disk that a server needs for a load, from what the bench has measured',
  arguments: [],
  options: [
    botsOption,
    rateOption,
    backlogOption,
    updateBytesOption,
    pollOption,
    webhookOption,
    jsonOption,
  ],
  run: size,
}

async function size(call: CommandCall): Promise<void> {
  const isHooked = call.has(webhookOption)
  if (isHooked && call.has(pollOption)) {
    throw new ConfigError(['--poll and --webhook: expected one of them, got both'])
  }
  const load: SizeLoad = {
    mode: isHooked ? 'webhook' : 'poll',
    bots: call.need(botsOption),
    updatesPerSecond: call.need(rateOption),
    backlog: call.need(backlogOption),
    updateBytes: call.need(updateBytesOption),
  }
  const estimate = estimateSize(load)
  const value = {
    cores: Number(estimate.cores.toFixed(2)),
    workers: estimate.workers,
    memory_bytes: Math.round(estimate.memoryBytes),
    disk_bytes: Math.round(estimate.diskBytes),
  }
  printResult(call, madeResult(value), () => [
    ...amountLines(estimate),
    `This is what ${sizeMachine} took, with a local LevelDB (bench/results/${sizeReport}).`,
    ...(load.updatesPerSecond > measuredRateMax(load)
      ? [`Above ${measuredRateMax(load)} updates a second nothing was measured.`]
      : []),
    ...(estimate.workers > workersMax
      ? [`A server has at most ${workersMax} workers, so this takes several servers.`]
      : []),
    'Leave as much again for bursts and restarts.',
  ])
}

function amountLines({ cores, workers, memoryBytes, diskBytes }: SizeEstimate): readonly string[] {
  return [
    `CPU      ${cores.toFixed(2)} cores`,
    `workers  ${workers}`,
    `memory   ${Math.round(memoryBytes / 1e6)} MB`,
    `disk     ${Math.round(diskBytes / 1e6)} MB`,
  ]
}
