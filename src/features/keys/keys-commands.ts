/** `postbote keys`: lists, makes, rotates and revokes keys of the private API. */
import { systemClock } from '../../kit/clock.ts'
import { anyText, wholeNumber } from '../../config/config-values.ts'
import { keyOperations } from './key-operations.ts'
import type { ParsedCommand } from '../../cli/commands/command-row.ts'
import { itemTable } from '../../cli/remote/cells.ts'
import { privateApiOf } from '../../cli/remote/private-api-of.ts'
import { printResult, tableLines, tell } from '../../cli/output/print-result.ts'
import { remoteCommand } from '../../cli/remote/remote-command.ts'

/** `--ttl` is at most this: 100 years. Chosen: a key that should last longer has no end. */
const accessKeyTtlSMax = 100 * 365 * 86_400

const nameArgument = {
  name: '<name>',
  kind: anyText,
  sentence: 'Name of the key for people.',
} as const
const ttlOption = {
  name: 'ttl',
  kind: wholeNumber(1, accessKeyTtlSMax),
  defaultShown: 'the key does not expire',
  sentence: 'The key ends after this many seconds.',
} as const

export const keysCommands: readonly ParsedCommand[] = [
  remoteCommand(keyOperations.listKeys, {
    sentence: 'lists the keys of the private API, with their last use',
    lines({ keys }) {
      if (keys.length === 0) return ['no keys but the admin key']
      const shown = keys.map((key) => ({
        ...key,
        scopes: key.scopes.join(','),
        bots: key.bots === null ? 'all' : key.bots.join(','),
      }))
      const limits = ['updates_per_second', 'requests_per_second'] as const
      const fields = [
        'key_id',
        'name',
        'scopes',
        'bots',
        ...limits,
        'expires',
        'last_used',
      ] as const
      return tableLines(itemTable(shown, fields))
    },
  }),
  remoteCommand(keyOperations.createKey, {
    sentence: 'makes a key of the private API and prints it; it is never shown again',
    arguments: [nameArgument],
    fields: {
      scopes: { sentence: 'What the key may do.' },
      bots: {
        defaultShown: 'all bots',
        sentence: 'Ids of the only bots that the key is for, at most 1,000.',
      },
      updates_per_second: {
        defaultShown: 'no limit',
        sentence: 'The key may push this many updates in a second.',
      },
      requests_per_second: {
        defaultShown: 'no limit',
        sentence: 'The key may make this many requests in a second.',
      },
    },
    options: [ttlOption],
    async run(call, { body }) {
      const ttlS = call.get(ttlOption)
      const nowS = Math.floor(systemClock.nowMs() / 1_000)
      const api = await privateApiOf(call)
      const expires = ttlS === undefined ? undefined : nowS + ttlS
      const asked = body === undefined ? {} : { body: { ...body, expires } }
      const result = await api.call(keyOperations.createKey, asked)
      printResult(call, result, keyLines)
      tellUnreached(result.value)
    },
  }),
  remoteCommand(keyOperations.rotateKey, {
    sentence: 'gives a key a new secret and prints it; the old one ends',
    fields: {
      overlap: { default: '0', sentence: 'The old key stays valid for this many seconds.' },
    },
    lines: keyLines,
    remark: tellUnreached,
  }),
  remoteCommand(keyOperations.revokeKey, {
    sentence: 'ends a key, its streams and its sessions',
    lines: ({ key_id: id }) => [`revoked ${id}`],
    remark: tellUnreached,
  }),
]

function keyLines({ key }: { readonly key: string }): readonly string[] {
  return [key]
}

function tellUnreached({
  unreached_workers: unreached,
}: {
  readonly unreached_workers?: number | undefined
}): void {
  if (unreached === undefined) return
  tell(`${unreached} workers did not respond and take the change within seconds after they do`)
}
