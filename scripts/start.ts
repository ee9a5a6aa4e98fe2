/**
 * `./scripts/start`: the server with a demo bot, and the two commands to try it. This process is the primary of the
 * server, so its signals and exit code are those of the server.
 *
 * The demo bot's token is the only token that is kept in clear: in <dir>/demo-token, readable only by its owner.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CallRefusedError, RemoteApi } from '../src/cli/remote/remote-api.ts'
import { botOperations } from '../src/features/bots/bot-operations.ts'
import type { ListenAddress } from '../src/http/listener.ts'
import type { Primary } from '../src/process/primary/primary.ts'
import { type Config, isHelpAsked } from '../src/config/config.ts'
import { helpText } from '../src/config/config-text.ts'
import { configOf, runCommand } from '../src/cli/commands/run-command.ts'
import { serve } from '../src/modules/serve.ts'
import { adminKeyPath } from '../src/shard/data-directory.ts'
import { writeFileAtomically } from '../src/store/write-file.ts'
import { demoLines } from './demo-lines.ts'

await runCommand(() => start(process.argv.slice(2)))

async function start(argv: readonly string[]): Promise<void> {
  if (isHelpAsked(argv)) {
    process.stdout.write(`Usage: ./scripts/start [options]\n\n${helpText()}`)
    return
  }
  const config = demoConfigOf(argv)
  const primary = await serve(config, () => demoConfigOf(argv))
  const [bot, admin] = ['bot', 'private'].map((name) => boundAddress(primary, name))
  if (bot === undefined || admin === undefined) throw new Error('a listener is missing')
  try {
    const token = await demoToken(config, admin)
    const keyFile = adminKeyPath(config.dir, config.adminKeyFile)
    process.stdout.write(demoLines({ token, bot, admin, keyFile }))
  } catch (error) {
    // Only the server matters, and it runs.
    process.stderr.write(`postbote: no demo bot: ${String(error)}\n`)
  }
}

/** Without an upstream server, the server is one to try a first bot: it answers what the bot sends. */
function demoConfigOf(argv: readonly string[]): Config {
  const config = configOf(argv)
  const isGiven = config.upstream !== undefined || argv.some((flag) => flag.startsWith('--demo'))
  return isGiven ? config : { ...config, demo: true }
}

function boundAddress(primary: Primary, listener: string): ListenAddress | undefined {
  return primary.addresses.find((bound) => bound.listener === listener)?.address
}

/** Returns the token of an earlier start. If there is none, or its bot was removed, this registers a new bot. */
async function demoToken(config: Config, admin: ListenAddress): Promise<string> {
  const path = join(config.dir, 'demo-token')
  const at: Config = 'port' in admin ? { ...config, adminPort: admin.port } : config
  const api = await RemoteApi.ofConfig(at)
  const kept = await readFile(path, 'utf8').catch(() => '')
  const botId = /^(\d+):/.exec(kept)?.[1]
  if (botId !== undefined && (await isRegistered(api, botId))) return kept.trim()
  const body = { first_name: 'Demo', username: 'demo_bot' }
  const { token } = (await api.call(botOperations.createBot, { body })).value
  await writeFileAtomically(path, `${token}\n`, 0o600)
  return token
}

async function isRegistered(api: RemoteApi, id: string): Promise<boolean> {
  try {
    await api.call(botOperations.getBot, { id })
    return true
  } catch (error) {
    if (error instanceof CallRefusedError) return false
    throw error
  }
}
