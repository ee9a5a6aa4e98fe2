/** `postbote register`: registers a bot at the running server and prints its token, which is never shown again. */
import { PrivateApiClient } from './private-api-client.ts'
import { type Config, ConfigError } from '../config/config.ts'

export async function register(
  argv: readonly string[],
  configOf: (argv: readonly string[]) => Config,
): Promise<void> {
  const { own, rest } = split(argv)
  const firstName = own.get('first-name')
  const username = own.get('username')
  if (firstName === undefined || username === undefined) {
    throw new ConfigError(['register: expected --first-name NAME and --username NAME'])
  }
  const botId = own.get('bot-id')
  const api = await PrivateApiClient.ofConfig(configOf(rest))
  const response = await api.send({
    method: 'POST',
    path: '/v1/bots',
    body: {
      ...(botId === undefined ? {} : { bot_id: Number(botId) }),
      first_name: firstName,
      username,
    },
  })
  if (response.status !== 200)
    throw new Error(`the server refused the registration: ${response.body}`)
  const { token }: { token: string } = JSON.parse(response.body)
  process.stdout.write(`${token}\n`)
}

/** Separates the bot id and the two names from the other arguments, which are options of the server. */
function split(argv: readonly string[]): {
  readonly own: Map<string, string>
  readonly rest: string[]
} {
  const own = new Map<string, string>()
  const rest: string[] = []
  for (let index = 0; index < argv.length; index++) {
    const argument = argv[index] ?? ''
    const [, name, inline] = /^--(first-name|username)(?:=(.*))?$/s.exec(argument) ?? []
    if (name !== undefined) {
      own.set(name, inline ?? argv[++index] ?? '')
    } else if (index === 0 && /^\d+$/.test(argument)) {
      own.set('bot-id', argument)
    } else {
      rest.push(argument)
    }
  }
  return { own, rest }
}
