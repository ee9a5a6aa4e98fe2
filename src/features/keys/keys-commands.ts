/** `postbote keys`: lists, makes, rotates and revokes keys of the private API. `postbote audit`: what was changed with them. */
import type { ResultOf } from '../../api/operation.ts'
import type { ParsedCommand } from '../../cli/commands/command-row.ts'
import { botKind, botsKind, keyOrAdminKind } from '../../cli/remote/id-of.ts'
import { privateApiOf } from '../../cli/remote/private-api-of.ts'
import { printCall, remoteCommand } from '../../cli/remote/remote-command.ts'
import { resultLines } from '../../cli/remote/result-lines.ts'
import { anyText } from '../../config/config-values.ts'
import { span } from '../../config/duration.ts'
import { systemClock } from '../../kit/clock.ts'
import { counted } from '../../kit/text/counted.ts'
import { changeText } from '../../api/change-text.ts'
import { auditOperations } from './audit-operations.ts'
import { keyOperations } from './key-operations.ts'

/** `--ttl` is at most this: 100 years. Chosen: a key that should last longer has no end. */
const accessKeyTtlSMax = 100 * 365 * 86_400

const nameArgument = {
  name: '<name>',
  kind: anyText,
  sentence: 'Name of the key for people.',
} as const
const ttlOption = {
  name: 'ttl',
  kind: span(1, accessKeyTtlSMax),
  defaultShown: 'the key does not expire',
  sentence: 'The key ends after this time.',
} as const

export const keysCommands: readonly ParsedCommand[] = [
  remoteCommand(keyOperations.listKeys),
  remoteCommand(keyOperations.createKey, {
    sentence: 'creates a key of the private API and prints it; it is never shown again',
    arguments: [nameArgument],
    fields: {
      scopes: { sentence: 'What the key may do.' },
      bots: {
        kind: botsKind,
        defaultShown: 'all bots',
        sentence: 'Ids or @usernames of the only bots that the key is for, at most 1,000.',
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
      printCall(call, keyOperations.createKey, result, asked)
    },
  }),
  remoteCommand(keyOperations.rotateKey, {
    sentence: 'rotates a key and prints its new secret; the old one ends',
    fields: {
      overlap: { default: '0', sentence: 'The old key stays valid for this time.' },
    },
  }),
  remoteCommand(keyOperations.revokeKey),
]

/** The calls that changed something, as a table. */
export const auditCommand: ParsedCommand = remoteCommand(auditOperations.listAudit, {
  fields: {
    since: { defaultShown: 'all that is kept' },
    until: { defaultShown: 'now' },
    key: {
      kind: keyOrAdminKind,
      defaultShown: 'all keys',
      sentence: 'Only calls of the key with this id or name, or of admin.',
    },
    operation: {
      defaultShown: 'all operations',
      sentence: 'Only calls of this operation, such as removeBot.',
    },
    bot: { kind: botKind, defaultShown: 'all bots', sentence: 'Only calls about this bot.' },
    before: {
      defaultShown: 'the last call',
      sentence: 'Begins before the call with this id, for the next page.',
    },
    limit: { sentence: 'Lists this many calls at most.' },
  },
  lines: ({ calls }, view) => {
    const shown = calls.map((each) => ({
      ...each,
      bot_id: each.bot_id ?? someBots(each.bot_ids.length),
      changes: changesText(each.changes),
    }))
    return resultLines(auditOperations.listAudit, { calls: shown }, view)
  },
})

type Changes = ResultOf<typeof auditOperations.listAudit>['calls'][number]['changes']

/** A server of an earlier version tells no changes. */
function changesText(changes: Changes): string | null {
  return changes?.map(changeText).join('; ') || null
}

/** A part of a call that registers many bots is about all of these. */
function someBots(count: number): string | null {
  return count === 0 ? null : counted(count, 'bot')
}
