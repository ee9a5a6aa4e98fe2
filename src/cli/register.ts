/** `postbote register`: registers a bot at the running server and prints its token, which is never shown again. */
import { optionTable } from '../config/config-options.ts'
import type { CommandCall } from './command-call.ts'
import type { ParsedCommand } from './command-row.ts'
import { configFileOption } from './config-file-option.ts'
import { PrivateApiClient } from './private-api-client.ts'
import { newBotIdArgument } from './remote/bot-id-argument.ts'
import { firstNameOption, usernameOption, warnOfUsername } from './remote/bots-commands.ts'

export const registerCommand: ParsedCommand = {
  kind: 'parsed',
  name: 'register',
  sentence: 'registers a bot with a running server and prints its token',
  arguments: [newBotIdArgument],
  options: [
    firstNameOption,
    usernameOption,
    optionTable.dir,
    optionTable.adminPort,
    configFileOption,
  ],
  takesServerOptions: true,
  run: register,
}

async function register(call: CommandCall): Promise<void> {
  const body = {
    bot_id: call.get(newBotIdArgument),
    first_name: call.need(firstNameOption),
    username: call.need(usernameOption),
  }
  const api = await PrivateApiClient.ofConfig(call.config())
  const response = await api.send({ method: 'POST', path: '/v1/bots', body })
  if (response.status !== 200)
    throw new Error(`the server refused the registration: ${response.body}`)
  const issued: { readonly token: string; readonly same_username?: readonly number[] } = JSON.parse(
    response.body,
  )
  process.stdout.write(`${issued.token}\n`)
  warnOfUsername(body.username, issued)
}
