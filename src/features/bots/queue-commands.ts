/** `postbote attempts`, `webhook check`, `pause`, `resume`, `retry` and `limits`: one queue of a bot. */
import { onOff } from '../../config/config-values.ts'
import type { ResultOf } from '../../api/operation.ts'
import { webhookOperations } from './webhook-operations.ts'
import { droppedText, isResponseDropped } from '../../api/dropped-response.ts'
import { foldAttempts } from '../../api/fold-attempts.ts'
import type { InputOf } from '../../api/target-of.ts'
import type { CommandCall } from '../../cli/commands/command-call.ts'
import type { ParsedCommand } from '../../cli/commands/command-row.ts'
import { attemptLines, headersText } from '../../cli/attempt-lines.ts'
import { privateApiOf } from '../../cli/remote/private-api-of.ts'
import { printResult, tell } from '../../cli/output/print-result.ts'
import { View } from '../../cli/output/view.ts'
import { fieldOption, remoteCommand } from '../../cli/remote/remote-command.ts'
import { resultLines } from '../../cli/remote/result-lines.ts'

const bodiesOption = {
  name: 'bodies',
  kind: onOff,
  sentence: 'Also shows the beginning of the responses to attempts that failed.',
} as const
const headersOption = {
  name: 'headers',
  kind: onOff,
  sentence:
    'Also shows the headers of the requests, and those of the responses to failed attempts.',
} as const
const deliveriesOption = fieldOption<number | null>(
  webhookOperations.setLimits,
  'deliveries_per_second',
  {
    defaultShown: 'the limit is shown and not changed',
    sentence:
      'Sends at most this many requests to the webhook in any second, retries included; none removes the limit.',
  },
)

/** At a terminal, so many attempts are shown. Chosen: with their errors, they fit the lowest terminal. */
const attemptsAtTerminal = 10

/** Without a default of its own, it tells whether it was given. */
const { default: _all, ...limitOption } = fieldOption<number>(
  webhookOperations.listAttempts,
  'limit',
  {
    defaultShown: `${attemptsAtTerminal} at a terminal, elsewhere all that are kept`,
    sentence: 'Shows this many attempts at most.',
  },
)

export const queueCommands: readonly ParsedCommand[] = [
  remoteCommand(webhookOperations.listAttempts, {
    sentence: 'shows the last attempts to deliver to the webhook of a bot, the newest first',
    options: [limitOption, bodiesOption, headersOption],
    run: showAttempts,
  }),
  remoteCommand(webhookOperations.checkWebhook, {
    sentence:
      'checks the endpoint of a bot: its name, addresses, TLS, and its response to an empty update',
    async run(call, input) {
      const api = await privateApiOf(call)
      const result = await api.call(webhookOperations.checkWebhook, input)
      printResult(call, result, checkLines)
      if (!result.value.ok) process.exitCode = 1
    },
  }),
  remoteCommand(webhookOperations.pauseBot, {
    sentence: 'pauses deliveries to the webhook of a bot; its updates wait',
  }),
  remoteCommand(webhookOperations.resumeBot, {
    sentence: 'resumes the deliveries after a pause',
  }),
  remoteCommand(webhookOperations.retryBot, {
    sentence: 'delivers the failed updates of a bot now, as after the repair of its endpoint',
    fields: {
      ordering_key: { defaultShown: 'all that wait for a retry' },
    },
  }),
  remoteCommand(webhookOperations.getLimits, {
    sentence: 'shows the limit of deliveries to the webhook of a bot, or sets or removes it',
    options: [deliveriesOption],
    async run(call, input) {
      const api = await privateApiOf(call)
      const rate = call.get(deliveriesOption)
      const { getLimits, setLimits } = webhookOperations
      const result =
        rate === undefined
          ? await api.call(getLimits, input)
          : await api.call(setLimits, { ...input, body: { deliveries_per_second: rate } })
      printResult(call, result, ({ deliveries_per_second: limit }) => [
        limit === null
          ? `deliveries of bot ${input.id} are not limited`
          : `deliveries of bot ${input.id} are limited to ${limit} per second`,
      ])
    },
  }),
]

async function showAttempts(
  call: CommandCall,
  input: InputOf<typeof webhookOperations.listAttempts>,
): Promise<void> {
  const api = await privateApiOf(call)
  const listed = await api.call(webhookOperations.listAttempts, input)
  const { columns } = webhookOperations.listAttempts
  const hasBodies = call.has(bodiesOption)
  const hasHeaders = call.has(headersOption)
  const { isTerminal, form, columns: chosen, isWide } = View.of(call)
  const isForPeople = isTerminal && form === 'table'
  const isCut = isForPeople && call.get(limitOption) === undefined
  // Who chooses columns or wants all of them wants each attempt.
  const isFolded = isForPeople && !hasBodies && !hasHeaders && chosen === undefined && !isWide
  const linesMax = isCut ? attemptsAtTerminal : Infinity
  printResult(call, listed, ({ attempts, request }, view) => [
    ...attemptLines({ attempts, columns, hasBodies, hasHeaders, isFolded, linesMax }, view),
    ...(hasHeaders && view.form !== 'csv' ? view.texts(requestLines(request)) : []),
  ])
  if (isForPeople) tellOfAttempts(listed.value, { hasBodies, isFolded, linesMax })
  if (hasBodies && form === 'table' && listed.value.attempts.some(isResponseDropped)) {
    tell(`no response is shown of some attempts. ${droppedText}`)
  }
}

/** Says what else there is to see. */
function tellOfAttempts(
  { attempts }: ResultOf<typeof webhookOperations.listAttempts>,
  {
    hasBodies,
    isFolded,
    linesMax,
  }: { readonly hasBodies: boolean; readonly isFolded: boolean; readonly linesMax: number },
): void {
  const isKept = attempts.some(({ response_body: body }) => body !== null)
  if (isKept && !hasBodies) tell('--bodies also shows what the endpoint has answered')
  const lines = isFolded ? foldAttempts(attempts) : attempts
  if (lines.length > linesMax) tell(`there are more attempts: --limit ${attempts.length}`)
}

/** A server of an earlier version does not tell what its requests look like. */
function requestLines(
  request: ResultOf<typeof webhookOperations.listAttempts>['request'] | undefined,
): readonly string[] {
  if (request === null || request === undefined) return []
  const { method, host, headers } = request
  return ['', `requests are now: ${method} to ${host} with ${headersText(headers)}`]
}

function checkLines(
  {
    advice,
    response_body: body,
    response_headers: headers,
    steps,
  }: ResultOf<typeof webhookOperations.checkWebhook>,
  view: View,
): readonly string[] {
  const lines = resultLines(webhookOperations.checkWebhook, { steps }, view)
  if (view.form === 'csv') return lines
  const response = { 'response headers': headersText(headers), 'response body': body }
  const shown = Object.entries(response).filter(([, value]) => value !== null)
  const others = [...shown.map(([name, value]) => `${name}: ${value}`), '', advice]
  return [...lines, ...view.texts(others)]
}
