/** The call that lists what was changed, and which calls are listed there. */
import { Type } from 'typebox'
import { botIdMax, botIdMin } from '../../kit/limits.ts'
import { fieldSchemas } from '../../api/field-schemas.ts'
import { declareOperations } from '../../api/operation.ts'

const { botId, listLimit, orNull, preciseTime } = fieldSchemas

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
    columns: ['time', 'key_name', 'call', 'bot_id', 'on_key', 'result', 'id'],
    none: 'no calls',
    more: '#audit',
    summary: 'Lists the calls that changed something, the last ones first',
    query: () => ({
      since: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: auditTimeSMax,
          description: 'Only calls from this Unix time on.',
        }),
      ),
      until: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: auditTimeSMax,
          description: 'Only calls before this Unix time.',
        }),
      ),
      key: Type.Optional(
        Type.String({
          pattern: '^(?:admin|[0-9a-f]{16})$',
          description: 'the id of a key, or admin for the admin key',
        }),
      ),
      operation: Type.Optional(
        Type.String({
          maxLength: operationLengthMax,
          description: 'Only calls of this operation, such as removeBot.',
        }),
      ),
      bot: Type.Optional(
        Type.Integer({
          minimum: botIdMin,
          maximum: botIdMax,
          description: 'Only calls about this bot.',
        }),
      ),
      before: Type.Optional(
        Type.String({
          pattern: '^[0-9a-f]{20}$',
          description: 'the id of a call in this list, which the next page comes after',
        }),
      ),
      limit: listLimit(auditPageMax, 100),
    }),
    result: () =>
      Type.Object(
        { calls: Type.Array(recordedCall()) },
        { $id: 'Audit', description: 'The calls, the last one first.' },
      ),
  },
})

function recordedCall() {
  return Type.Object(
    {
      id: Type.String({ description: 'The id of this entry.' }),
      time: preciseTime('When the call was answered.'),
      key_id: orNull(Type.String({ description: 'The key that made it; null: the admin key.' })),
      key_name: orNull(Type.String({ description: 'The name of that key.' }), 'admin key'),
      operation: Type.String({ description: 'The operationId of the call.' }),
      call: Type.String({ description: 'Its verb and its path.' }),
      bot_id: orNull(botId()),
      bot_ids: Type.Array(botId(), {
        description: 'The bots of a part of a call that registers many; otherwise empty.',
      }),
      test: Type.Boolean({ description: 'Whether it was about the /test/ queue of the bot.' }),
      on_key: orNull(
        Type.String({ description: 'The id of the access key or signing key that it was about.' }),
      ),
      result: Type.String({ description: '`ok`, or the code of the error.' }),
      request_id: Type.String({ description: 'The X-Request-Id of the response.' }),
    },
    { $id: 'RecordedCall', description: 'A call that changed something.' },
  )
}
