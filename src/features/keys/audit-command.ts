/** `postbote audit`: the calls that changed something, as a table. */
import { auditOperations } from './audit-operations.ts'
import type { ParsedCommand } from '../../cli/commands/command-row.ts'
import { tableLines } from '../../cli/output/print-result.ts'
import { itemTable } from '../../cli/remote/cells.ts'
import { remoteCommand } from '../../cli/remote/remote-command.ts'

export const auditCommand: ParsedCommand = remoteCommand(auditOperations.listAudit, {
  sentence: 'lists the calls that changed something, with who made them; the last ones first',
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
  lines({ calls }) {
    if (calls.length === 0) return ['no calls']
    const shown = calls.map((call) => ({
      ...call,
      key: call.key_name ?? 'admin key',
      bot: call.bot_id ?? (call.bot_ids.length === 0 ? null : `${call.bot_ids.length} bots`),
    }))
    return tableLines(itemTable(shown, ['time', 'key', 'call', 'bot', 'on_key', 'result', 'id']))
  },
})
