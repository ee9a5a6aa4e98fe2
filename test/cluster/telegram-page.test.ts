import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { freePorts } from '../support/kit/port.ts'
import { programObstacle } from '../support/kit/program-obstacle.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { Origin } from '../support/origin/origin.ts'
import { foreignToken } from '../support/origin/relay-server.ts'

const root = dirname(fileURLToPath(new URL('../../../package.json', import.meta.url)))
const page = readFileSync(join(root, 'docs/start/telegram.md'), 'utf8')
const blocks = [...page.matchAll(/^```sh\n(.*?)^```/gms)].map(([, text]) => text ?? '')
const botId = 123_456_789

const skip = programObstacle('curl')

/** Pastes the commands of the page, all at once, into a shell that ends with its server. Returns what it prints. */
async function paste(t: TestContext, environment: NodeJS.ProcessEnv): Promise<string> {
  const origin = await Origin.start(t)
  const token = foreignToken(botId)
  await origin.control.register([{ botId, token }])
  const cwd = temporaryDirectory(t)
  symlinkSync(join(root, 'dist'), join(cwd, 'dist'))
  const port = await freePorts(2)
  const text = blocks
    .join('\n')
    .replaceAll('https://api.telegram.org', origin.url)
    .replace('123456789:AAF...', token)
    .replaceAll(':8082', `:${port + 1}`)
  const shell = spawn('bash', ['-c', `${text}\nkill $!; wait`], {
    cwd,
    env: {
      ...process.env,
      POSTBOTE_HTTP_PORT: `${port}`,
      POSTBOTE_ADMIN_PORT: `${port + 1}`,
      POSTBOTE_WORKERS: '1',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  for (const stream of [shell.stdout, shell.stderr]) {
    stream.setEncoding('utf8')
    stream.on('data', (piece: string) => {
      printed += piece
    })
  }
  await once(shell, 'close')
  return printed
}

test('the commands of the page about Telegram work when they are pasted as one', {
  skip,
}, async (t) => {
  const printed = await paste(t, { POSTBOTE_LOCAL: 'true' })
  assert.match(printed, /polling/, printed)
  assert.doesNotMatch(printed, /^postbote: /m, printed)
})

test('if the server does not start, the commands of the page end and say why', {
  skip,
}, async (t) => {
  const printed = await paste(t, { POSTBOTE_WORKERS: 'x' })
  assert.match(printed, /POSTBOTE_WORKERS: expected an integer/)
})
