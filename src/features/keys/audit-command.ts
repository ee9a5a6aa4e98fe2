/** `postbote audit`: the calls that changed something, as a table. */
import { auditOperations } from './audit-operations.ts'
import type { ParsedCommand } from '../../cli/commands/command-row.ts'
import { remoteCommand } from '../../cli/remote/remote-command.ts'
import { resultLines } from '../../cli/remote/result-lines.ts'

export const auditCommand: ParsedCommand = remoteCommand(auditOperations.listAudit, {
  fields: {
    since: { defaultShown: 'all that is kept' },
    until: { defaultShown: 'now' },
    key: { defaultShown: 'all keys', sentence: 'Only calls of the key with this id, or of admin.' },
    operation: {
      defaultShown: 'all operations',
      sentence: 'Only calls of this operation, such as removeBot.',
    },
    bot: { defaultShown: 'all bots', sentence: 'Only calls about this bot.' },
    before: {
      defaultShown: 'the last call',
      sentence: 'Begins before the call with this id, for the next page.',
    },
    limit: { sentence: 'Lists this many calls at most.' },
  },
  lines: ({ calls }) =>
    resultLines(auditOperations.listAudit, {
      calls: calls.map(({ bot_id: id, bot_ids: ids, ...call }) => ({
        ...call,
        bot_id: id ?? (ids.length === 0 ? null : `${ids.length} bots`),
      })),
    }),
})
