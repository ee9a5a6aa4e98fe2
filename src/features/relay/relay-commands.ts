/** `postbote relay`: sets, shows and removes the relay of a bot. Its token is read from a file or standard input. */
import { ConfigError } from '../../config/config.ts'
import { onOff, path } from '../../config/config-values.ts'
import { needs } from './needs.ts'
import { relayOperations } from './relay-operations.ts'
import type { ParsedCommand } from '../../cli/commands/command-row.ts'
import type { ResultOf } from '../../api/operation.ts'
import { fieldCell } from '../../cli/remote/cells.ts'
import { fileText, standardInput } from '../../cli/remote/file-text.ts'
import { printResult } from '../../cli/output/print-result.ts'
import type { View } from '../../cli/output/view.ts'
import { privateApiOf } from '../../cli/remote/private-api-of.ts'
import { remoteCommand } from '../../cli/remote/remote-command.ts'
import { resultLines, underSentence } from '../../cli/remote/result-lines.ts'

const tokenFileOption = {
  name: 'token-file',
  kind: path,
  defaultShown: 'standard input',
  sentence: 'File with the token of the bot at the other server.',
} as const
const sameTokenOption = {
  name: 'same-token',
  kind: onOff,
  sentence: 'Keeps the token that is stored, and reads none.',
} as const

export const relayCommands: readonly ParsedCommand[] = [
  remoteCommand(relayOperations.setRelay, {
    fields: { from: {} },
    options: [tokenFileOption, sameTokenOption],
    async run(call, input) {
      const file = call.get(tokenFileOption)
      if (file !== undefined && call.has(sameTokenOption)) {
        throw new ConfigError(['--same-token: expected no --token-file, which has another token'])
      }
      const read = (): Promise<string> =>
        file === undefined ? standardInput('relay set: expected a token') : fileText(file)
      const token = call.has(sameTokenOption) ? undefined : (await read()).trim()
      const api = await privateApiOf(call)
      const { from = '' } = input.body ?? {}
      const result = await api.call(relayOperations.setRelay, { ...input, body: { from, token } })
      printResult(call, result, relayLines)
    },
  }),
  remoteCommand(relayOperations.getRelay, { lines: relayLines }),
  remoteCommand(relayOperations.removeRelay, {
    sentence: 'ends the relay of a bot; what was relayed stays',
  }),
]

type Relay = ResultOf<typeof relayOperations.getRelay>

function relayLines(relay: Relay, view: View): readonly string[] {
  const lines = resultLines(relayOperations.getRelay, relay, view)
  return underSentence(relaySentence(relay, view.nowMs), view, lines)
}

/** Whether it works, and when it did last, or will try again. */
function relaySentence(relay: Relay, nowMs: number | undefined): string {
  const cell = (field: 'last_update' | 'next_poll'): string =>
    fieldCell(relayOperations.getRelay.result().properties[field], relay[field], nowMs)
  const last = relay.last_update === null ? 'none came yet' : `the last came ${cell('last_update')}`
  const next = relay.next_poll === null ? '' : `; next try ${cell('next_poll')}`
  const when = relay.state === 'paused' ? next : `; ${last}`
  return `relay of bot ${relay.bot_id}: ${needs.relayText(relay)}${when}`
}
