/** The call that lists what was changed, and which calls are listed there. */
import { declareOperations } from '../../api/operation.ts'
import * as is from '../../api/words.ts'
import { botIdMax, botIdMin } from '../../kit/limits.ts'

/** A list of calls has this many at most: some 300 KB. */
export const auditPageMax = 1_000
/** An id in the table of operations has at most this many characters. */
const operationLengthMax = 64
/** A time in the query is at most this: the last one of 6 bytes in milliseconds. */
const auditTimeSMax = Math.floor(2 ** 48 / 1_000) - 1

export const auditOperations = declareOperations('server', {
  listAudit: {
    route: 'GET /v1/audit',
    scope: 'all',
    about: 'keys',
    command: 'audit',
    columns: [
      'time',
      'key_name',
      'operation',
      'bot_id',
      'username',
      'changes',
      'result',
      'on_key',
      'call',
      'id',
    ],
    none: 'no calls',
    more: '#audit',
    summary: 'Lists the calls that changed something, the last ones first',
    query: () => ({
      since: is.optional(is.timeUpTo(auditTimeSMax, 'Only calls from then on.')),
      until: is.optional(is.timeUpTo(auditTimeSMax, 'Only calls before.')),
      key: is.optional(
        is.text('the id of a key, or admin for the admin key', {
          pattern: '^(?:admin|[0-9a-f]{16})$',
        }),
      ),
      operation: is.optional(
        is.text('Only calls of this operation, such as removeBot.', {
          maxLength: operationLengthMax,
        }),
      ),
      bot: is.optional(
        is.integer('Only calls about this bot.', { minimum: botIdMin, maximum: botIdMax }),
      ),
      before: is.optional(
        is.text('the id of a call in this list, which the next page comes after', {
          pattern: '^[0-9a-f]{20}$',
        }),
      ),
      limit: is.listLimit(auditPageMax, 100),
    }),
    result: () =>
      is.named('Audit', 'The calls, the last one first.', { calls: is.list(recordedCall()) }),
  },
})

function recordedCall() {
  return is.named('RecordedCall', 'A call that changed something.', {
    id: is.text('The id of this entry.'),
    time: is.preciseTime('When the call was answered.'),
    key_id: is.orNull(is.text('The key that made it; null: the admin key.')),
    key_name: is.orNull(is.name('The name of that key.'), 'admin key'),
    operation: is.text('The operationId of the call.'),
    call: is.text('Its verb and its path.'),
    bot_id: is.orNull(is.botId()),
    username: is.optional(
      is.name('The username that the bot had then; absent if the server does not know it.'),
    ),
    bot_ids: is.list(
      is.botId(),
      'The bots of a part of a call that registers many; otherwise empty.',
    ),
    test: is.flag('Whether it was about the /test/ queue of the bot.'),
    on_key: is.orNull(is.text('The id of the access key or signing key that it was about.')),
    changes: is.optional(
      is.list(
        is.named('SettingChange', 'A setting that the call changed.', {
          field: is.text('Its name in this API.'),
          from: is.optional(
            is.orNull(is.text('The value before; null: not set. Absent for a secret.')),
          ),
          to: is.optional(is.orNull(is.text('The value after the call.'))),
        }),
        'The settings that it changed; absent from a server of an earlier version. Long values are cut, and secrets are not shown.',
      ),
    ),
    result: is.text('`ok`, or the code of the error.'),
    request_id: is.text('The X-Request-Id of the response.'),
  })
}
