/** `postbote webhook`: sets, shows and removes the webhook of a bot. What may be secret is read from files or standard input. */
import { anyText, path } from '../../config/config-values.ts'
import type { ResultOf } from '../../api/operation.ts'
import { botOperations } from './bot-operations.ts'
import { healthSentence } from './bots-commands.ts'
import { nextSteps } from '../../cli/next-steps.ts'
import { webhookOperations } from './webhook-operations.ts'
import type { ParsedCommand } from '../../cli/commands/command-row.ts'
import { fileText, standardInput } from '../../cli/remote/file-text.ts'
import { printResult } from '../../cli/output/print-result.ts'
import { View } from '../../cli/output/view.ts'
import { privateApiOf } from '../../cli/remote/private-api-of.ts'
import { printCall, remoteCommand } from '../../cli/remote/remote-command.ts'
import { resultLines, underSentence } from '../../cli/remote/result-lines.ts'

const endpointArgument = {
  name: '[endpoint]',
  kind: anyText,
  sentence:
    'The URL of the webhook. Without it, standard input is read, which other users of the machine cannot see.',
} as const
const secretTokenFileOption = {
  name: 'secret-token-file',
  kind: path,
  sentence: 'File with the secret that each delivery carries.',
} as const
const certificateFileOption = {
  name: 'certificate-file',
  kind: path,
  sentence: 'PEM file with the certificate of the endpoint, if no authority has signed it.',
} as const

export const webhookCommands: readonly ParsedCommand[] = [
  remoteCommand(webhookOperations.setWebhook, {
    sentence: 'sets the webhook of a bot, if its endpoint can be reached',
    arguments: [endpointArgument],
    fields: {
      ip_address: {},
      max_connections: { defaultShown: '40' },
      allowed_updates: {
        defaultShown: 'the default set',
        sentence: 'The types that the bot wants.',
      },
      drop_pending_updates: {},
    },
    options: [secretTokenFileOption, certificateFileOption],
    async run(call, input) {
      const [secretFile, certificateFile] = [
        call.get(secretTokenFileOption),
        call.get(certificateFileOption),
      ]
      const body = {
        ...input.body,
        url:
          call.get(endpointArgument) ?? (await standardInput('webhook set: expected a URL')).trim(),
        secret_token: secretFile === undefined ? undefined : await fileText(secretFile),
        certificate: certificateFile === undefined ? undefined : await fileText(certificateFile),
      }
      const api = await privateApiOf(call)
      const result = await api.call(webhookOperations.setWebhook, { ...input, body })
      printCall(call, webhookOperations.setWebhook, result, input)
    },
  }),
  remoteCommand(webhookOperations.getWebhook, {
    async run(call, input) {
      const api = await privateApiOf(call)
      const result = await api.call(webhookOperations.getWebhook, input)
      // JSON is the response of the server. People want to know whether the webhook works.
      const { id } = input
      const isForPeople = View.of(call).form === 'table'
      const bot = isForPeople ? (await api.call(botOperations.getBot, { id })).value : undefined
      printResult(call, result, (webhook, view) => {
        const lines = resultLines(webhookOperations.getWebhook, webhook, view)
        if (bot === undefined) return lines
        const isTest = input.query?.test ?? false
        return [
          ...underSentence(webhookSentence(bot, webhook, isTest), view, lines),
          ...view.texts(nextSteps(isTest ? bot.test : bot, `${id}${isTest ? ' --test' : ''}`)),
        ]
      })
    },
  }),
  remoteCommand(webhookOperations.deleteWebhook, {
    sentence: 'removes the webhook of a bot, which then polls',
  }),
]

/** A bot may poll and be well, or not. */
function webhookSentence(
  bot: ResultOf<typeof botOperations.getBot>,
  { host }: ResultOf<typeof webhookOperations.getWebhook>,
  isTest = false,
): string {
  const sentence = healthSentence(bot, isTest)
  return host === null ? `no webhook is set; ${sentence}` : sentence
}
