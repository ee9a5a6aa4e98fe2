/** `postbote keys`: lists, makes, rotates and revokes keys of the private API. */
import { scopes } from '../../access/access.ts'
import { accessKeyRateMax } from '../../access/limits.ts'
import { systemClock } from '../../clock.ts'
import { anyText, listOf, oneOf, wholeNumber } from '../../config/config-values.ts'
import { botIdMax, botIdMin } from '../../limits.ts'
import { accessKeyOverlapSMax } from '../../operations/limits.ts'
import type { CallResult } from '../../operations/target-of.ts'
import { keyOperations } from '../../operations/key-operations.ts'
import type { ResultOf } from '../../operations/operation.ts'
import type { CommandCall } from '../commands/command-call.ts'
import type { ParsedCommand } from '../commands/command-row.ts'
import { accessKeyTtlSMax } from '../limits.ts'
import { cell, timeCell } from './cells.ts'
import { privateApiOf, remoteOptions } from './private-api-of.ts'
import { printResult, tableLines, tell } from './print-result.ts'

const rate = wholeNumber(1, accessKeyRateMax)
const nameArgument = {
  name: '<name>',
  kind: anyText,
  sentence: 'Name of the key for people.',
} as const
const keyIdArgument = {
  name: '<key_id>',
  kind: anyText,
  sentence: 'Id of the key, the part after pbk_.',
} as const
const scopesOption = {
  name: 'scopes',
  kind: listOf(oneOf(scopes), 1),
  defaultShown: 'none; required',
  sentence: 'What the key may do.',
} as const
const botsOption = {
  name: 'bots',
  kind: listOf(wholeNumber(botIdMin, botIdMax), 1),
  defaultShown: 'all bots',
  sentence: 'Ids of the only bots that the key is for, at most 1,000.',
} as const
const updatesOption = {
  name: 'updates-per-second',
  kind: rate,
  defaultShown: 'no limit',
  sentence: 'The key may push this many updates in a second.',
} as const
const requestsOption = {
  name: 'requests-per-second',
  kind: rate,
  defaultShown: 'no limit',
  sentence: 'The key may make this many requests in a second.',
} as const
const ttlOption = {
  name: 'ttl',
  kind: wholeNumber(1, accessKeyTtlSMax),
  defaultShown: 'the key does not expire',
  sentence: 'The key ends after this many seconds.',
} as const
const overlapOption = {
  name: 'overlap',
  kind: wholeNumber(0, accessKeyOverlapSMax),
  default: '0',
  sentence: 'The old key stays valid for this many seconds.',
} as const

export const keysCommands: readonly ParsedCommand[] = [
  {
    kind: 'parsed',
    name: 'keys list',
    sentence: 'lists the keys of the private API, with their last use',
    arguments: [],
    options: remoteOptions,
    run: list,
  },
  {
    kind: 'parsed',
    name: 'keys create',
    sentence: 'makes a key of the private API and prints it; it is never shown again',
    arguments: [nameArgument],
    options: [scopesOption, botsOption, updatesOption, requestsOption, ttlOption, ...remoteOptions],
    run: create,
  },
  {
    kind: 'parsed',
    name: 'keys rotate',
    sentence: 'gives a key a new secret and prints it; the old one ends',
    arguments: [keyIdArgument],
    options: [overlapOption, ...remoteOptions],
    run: rotate,
  },
  {
    kind: 'parsed',
    name: 'keys revoke',
    sentence: 'ends a key, its streams and its sessions',
    arguments: [keyIdArgument],
    options: remoteOptions,
    run: revoke,
  },
]

async function list(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  printResult(call, await api.call(keyOperations.listKeys, {}), ({ keys }) =>
    keys.length === 0 ? ['no keys but the admin key'] : keyLines(keys),
  )
}

function keyLines(keys: ResultOf<typeof keyOperations.listKeys>['keys']): readonly string[] {
  return tableLines({
    head: ['key_id', 'name', 'scopes', 'bots', 'updates/s', 'requests/s', 'expires', 'last_used'],
    rows: keys.map((key) => [
      key.key_id,
      key.name,
      key.scopes.join(','),
      key.bots === null ? 'all' : key.bots.join(','),
      cell(key.updates_per_second),
      cell(key.requests_per_second),
      timeCell(key.expires),
      timeCell(key.last_used),
    ]),
  })
}

async function create(call: CommandCall): Promise<void> {
  const ttlS = call.get(ttlOption)
  const body = {
    name: call.need(nameArgument),
    scopes: call.need(scopesOption),
    bots: call.get(botsOption),
    updates_per_second: call.get(updatesOption),
    requests_per_second: call.get(requestsOption),
    expires: ttlS === undefined ? undefined : Math.floor(systemClock.nowMs() / 1_000) + ttlS,
  }
  const api = await privateApiOf(call)
  printKey(call, await api.call(keyOperations.createKey, { body }))
}

async function rotate(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  const asked = { key_id: call.need(keyIdArgument), body: { overlap: call.need(overlapOption) } }
  printKey(call, await api.call(keyOperations.rotateKey, asked))
}

async function revoke(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  const keyId = call.need(keyIdArgument)
  const result = await api.call(keyOperations.revokeKey, { key_id: keyId })
  printResult(call, result, () => [`revoked ${keyId}`])
  tellUnreached(result.value)
}

function printKey(call: CommandCall, result: CallResult<typeof keyOperations.createKey>): void {
  printResult(call, result, ({ key }) => [key])
  tellUnreached(result.value)
}

function tellUnreached({
  unreached_workers: unreached,
}: {
  readonly unreached_workers?: number | undefined
}): void {
  if (unreached === undefined) return
  tell(`${unreached} workers did not respond and take the change within seconds after they do`)
}
