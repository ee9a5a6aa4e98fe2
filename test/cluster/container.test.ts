/**
 * The image of the Dockerfile, as far as that can be checked without building it (test/install/image.test.ts): the files that
 * it copies are enough, and they run as process 1 of an unprivileged user whose root is read-only.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseConfig } from '../../src/config/config.ts'
import { childrenOf } from '../support/kit/processes-below.ts'
import { Image, imageObstacle, type RunningImage } from '../support/programs/image.ts'
import { root } from '../support/server/package-user.ts'
import { freePort, portOf } from '../support/kit/port.ts'
import { until } from '../support/kit/until.ts'

const image = new Image()
const skip = imageObstacle()

test('the build stage gets every file that it names, and neither data nor keys', () => {
  const ignored = readFileSync(join(root, '.dockerignore'), 'utf8').split('\n')
  const passed = ignored.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
  assert.equal(
    ignored.find((line) => !line.startsWith('#')),
    '*',
  )
  const missing = passed.filter((name) => !existsSync(join(root, name)))
  assert.deepEqual(missing, [])
  const copied = image.instructions
    .filter(({ name, value }) => name === 'COPY' && !value.startsWith('--from'))
    .flatMap(({ value }) => value.split(' ').slice(0, -1))
    .filter((source) => source !== '.')
  assert.deepEqual(
    copied.filter((source) => !passed.includes(source)),
    [],
  )
  const tsconfig: { readonly include: readonly string[] } = JSON.parse(
    readFileSync(join(root, 'tsconfig.json'), 'utf8'),
  )
  assert.deepEqual(
    tsconfig.include.filter((folder) => !passed.includes(folder)),
    [],
  )
})

test('the image sets options that exist, and keeps its data in its volume', () => {
  const config = parseConfig({ argv: [], env: image.env, readFile: () => '' })
  assert.deepEqual([config.dir, config.adminIpAddress], [image.value('VOLUME'), '0.0.0.0'])
  assert.equal(image.value('EXPOSE'), `${config.httpPort} ${config.adminPort}`)
})

test('the image serves as process 1 of an unprivileged user with a read-only root', {
  skip,
}, async (t) => {
  const port = String(await freePort())
  const running = image.start(t, {
    POSTBOTE_HTTP_PORT: '0',
    POSTBOTE_ADMIN_PORT: port,
    POSTBOTE_WORKERS: '2',
  })
  const ready = await readyLine(running)
  assert.equal(healthOf(port), 0)
  const first = running.firstPid ?? 0
  const status = readFileSync(`/proc/${first}/status`, 'utf8')
  assert.match(status, /^Uid:\t1000\t1000\t1000\t1000$/m)
  assert.match(status, /^NSpid:\t\d+\t1$/m)
  assert.match(readFileSync(`/proc/${first}/mounts`, 'utf8'), /^\S+ \/ \S+ ro\b/m)
  assert.equal(statSync(join(running.data, 'postbote.json')).uid, 1_000)

  const admin = `http://127.0.0.1:${port}`
  const authorization = `Bearer ${readFileSync(join(running.data, 'admin.key'), 'utf8').trim()}`
  const call = async (path: string, body: object): Promise<{ bot_id: number; token: string }> => {
    const response = await fetch(admin + path, {
      method: 'POST',
      headers: { authorization },
      body: JSON.stringify(body),
    })
    return (await response.json()) as { bot_id: number; token: string }
  }
  assert.equal((await fetch(`${admin}/`)).status, 200, 'the page is missing')
  const bot = await call('/v1/bots', { first_name: 'Test', username: 'test_bot' })
  await call(`/v1/bots/${bot.bot_id}/updates`, { message: { text: 'hello' } })
  const updates = await fetch(
    `http://${ready.bot.replace('0.0.0.0', '127.0.0.1')}/bot${bot.token}/getUpdates`,
  )
  assert.match(await updates.text(), /"text":"hello"/)

  await t.test('it waits for its workers, and these start no processes', async () => {
    const [victim = 0] = running.workerPids
    process.kill(victim, 'SIGKILL')
    await until(
      () => running.workerPids.length === 2 && !running.workerPids.includes(victim),
      30_000,
    )
    assert.deepEqual(running.workerPids.flatMap(childrenOf), [])
    await until(() => healthOf(port) === 0, 30_000)
  })
  await t.test('it ends at a SIGTERM, with code 0', async () => {
    assert.equal(await running.end('SIGTERM'), 0, running.output)
  })
  assert.equal(healthOf(port), 1)
})

test('as process 1, a server that waits for its database ends at a SIGTERM', {
  skip,
}, async (t) => {
  const silent = createServer()
  const sockets = new Set<Socket>()
  silent.on('connection', (socket) => sockets.add(socket.on('error', () => undefined)))
  await once(silent.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
  const running = image.start(t, {
    POSTBOTE_DATABASE: `postgres://postbote@127.0.0.1:${portOf(silent)}/postbote`,
  })
  await until(() => sockets.size > 0)
  assert.equal(await running.end('SIGTERM'), 143, running.output)
})

async function readyLine(running: RunningImage): Promise<{ readonly bot: string }> {
  const line = (): string | undefined => /^.*"msg":"ready".*$/m.exec(running.output)?.[0]
  await until(() => line() !== undefined, 60_000).catch((error: unknown) => {
    throw new Error(running.output, { cause: error })
  })
  return JSON.parse(line() ?? '')
}

/** The exit code of the health check of the image. */
function healthOf(port: string): number | null {
  const [, ...args] = image.command('HEALTHCHECK')
  return spawnSync(process.execPath, args, { env: { POSTBOTE_ADMIN_PORT: port } }).status
}
