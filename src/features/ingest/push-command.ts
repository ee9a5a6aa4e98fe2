/** `postbote push`: pushes one update. */
import type { ParsedCommand } from '../../cli/commands/command-row.ts'
import { printResult } from '../../cli/output/print-result.ts'
import { placeText } from '../../api/place-text.ts'
import { CallRefusedError } from '../../cli/remote/remote-api.ts'
import { privateApiOf } from '../../cli/remote/private-api-of.ts'
import { orNone, remoteCommand } from '../../cli/remote/remote-command.ts'
import { standardInput } from '../../cli/remote/file-text.ts'
import { anyText, oneOf } from '../../config/config-values.ts'
import { orderingKeyBytesMax } from '../../kit/limits.ts'
import { updateOperations } from './update-operations.ts'

const updateArgument = {
  name: '[update]',
  kind: anyText,
  sentence:
    'The update without its update_id, as JSON: {"message":{...}}. Without it, standard input is read.',
} as const
const idempotencyKeyOption = {
  name: 'idempotency-key',
  kind: anyText,
  sentence: 'A push that is repeated with this key stores the update once.',
} as const
export const pushCommand: ParsedCommand = remoteCommand(updateOperations.pushUpdate, {
  sentence: 'pushes one update, and returns when it is on disk',
  arguments: [updateArgument],
  fields: {
    ordering_key: {
      defaultShown: 'derived from the update',
      sentence: `A webhook receives updates with the same key one after the other. It has at most ${orderingKeyBytesMax} bytes.`,
    },
    ttl: {
      defaultShown: 'by the type of the update',
      sentence: 'The update is not delivered any more after this time.',
    },
    validate: {
      kind: orNone(oneOf(['telegram']), undefined),
      default: 'none',
      sentence: 'telegram refuses an update that lacks a field that bot frameworks need.',
    },
  },
  options: [idempotencyKeyOption],
  async run(call, input) {
    const api = await privateApiOf(call)
    // The server delivers it byte for byte.
    const raw = call.get(updateArgument) ?? (await standardInput('push: expected an update'))
    const key = call.get(idempotencyKeyOption)
    const headers = key === undefined ? {} : { 'idempotency-key': key }
    const extras = { raw, headers }
    const result = await api
      .call(updateOperations.pushUpdate, input, extras)
      .catch((error: unknown) => throwPlaced(error, raw))
    printResult(call, result, (pushed) => {
      if ('filtered' in pushed) return ['filtered: the bot does not want updates of this type']
      const { update_id: id, duplicate } = pushed
      return [duplicate === true ? `update ${id} was stored before, with this key` : `update ${id}`]
    })
  },
})

/** Says where in the update something is wrong as an editor counts: by its line and column. */
function throwPlaced(error: unknown, raw: string): never {
  if (error instanceof CallRefusedError) error.message = placeText(error.message, raw)
  throw error
}
