/** `postbote tail` as a program, at a server that reloads, restarts and removes the bot. */
import assert from 'node:assert/strict'
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { type Server, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'
import { mainFile, outputOf } from '../support/programs/postbote.ts'

const options = { workers: 2, flags: ['--local'] }
/** For the tests after which it is as before. */
const sharedServer = shared((owner) => startServer(owner, options))

class RunningTail {
  out = ''
  err = ''
  readonly child: ChildProcessByStdio<null, Readable, Readable>
  readonly #ended: Promise<unknown[]>

  constructor(t: TestContext, server: Server, args: readonly string[]) {
    const place = ['--dir', server.dir, '--admin-port', new URL(server.privateUrl).port]
    this.child = spawn(process.execPath, [mainFile, 'tail', ...args, ...place], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    t.after(() => this.child.kill('SIGKILL'))
    this.#ended = once(this.child, 'close')
    this.child.stdout.setEncoding('utf8').on('data', (text: string) => (this.out += text))
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => (this.err += text))
  }

  /** Pushes until the tail shows something, because nobody sees when it begins. */
  async begun(server: Server, botId: number): Promise<void> {
    await until(async () => {
      await server.push(botId, { message: { text: 'begin' } })
      return this.out !== ''
    })
  }

  async beginsAgain(server: Server, botId: number): Promise<void> {
    this.out = ''
    this.err = ''
    await this.begun(server, botId)
  }

  /** Resolves to the exit code. */
  async code(): Promise<unknown> {
    return (await this.#ended)[0]
  }
}

test('tail shows what happens, with --json and --payloads for programs, and ends at SIGINT with code 0', async (t) => {
  const server = await sharedServer()
  const { botId, token } = await server.register()
  const people = new RunningTail(t, server, [`${botId}`])
  const programs = new RunningTail(t, server, [`${botId}`, '--json', '--payloads'])
  await people.begun(server, botId)
  await programs.begun(server, botId)
  const updateId = await server.push(botId, { message: { text: 'last' } })
  await server.call(token, 'getUpdates', { offset: (updateId ?? 0) + 1 })
  await until(() => people.out.includes('confirmed') && programs.out.includes('confirmed'))
  const time = '\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\dZ'
  assert.match(people.out, new RegExp(`^${time}  update ${updateId}  message  25 bytes$`, 'm'))
  assert.match(
    people.out,
    new RegExp(`^${time}  confirmed \\d+ updates? below ${(updateId ?? 0) + 1}$`, 'm'),
  )
  const events = programs.out
    .trimEnd()
    .split('\n')
    .map((line): unknown => JSON.parse(line))
  assert.deepEqual(events.at(-2), {
    event: 'update',
    update_id: updateId,
    type: 'message',
    bytes: 25,
    update: { message: { text: 'last' } },
  })
  for (const tail of [people, programs]) tail.child.kill('SIGINT')
  assert.deepEqual([await people.code(), await programs.code()], [0, 0])
  assert.deepEqual([people.err, programs.err], ['', ''])
})

test('tail goes on after a reload and a restart of the server, and ends when its bot is removed', async (t) => {
  const server = await startServer(t, options)
  const { botId } = await server.register()
  const tail = new RunningTail(t, server, [`${botId}`])
  await tail.begun(server, botId)
  await outputOf(['reload', '--dir', server.dir])
  await until(() => tail.err.includes('the tail continues'))
  assert.match(
    tail.err,
    /^the server has ended the tail, as at a reload; connecting again\nthe tail /,
  )
  await tail.beginsAgain(server, botId)
  const again = await server.restart()
  await until(() => tail.err.includes('the tail continues'))
  await tail.beginsAgain(again, botId)
  await again.admin('DELETE', `/v1/bots/${botId}`)
  assert.equal(await tail.code(), 4)
  assert.match(tail.err, /postbote: the server refused the call: 404 UNKNOWN_BOT: /)
})

test('tail ends without an error when its reader has ended, at the next event', async (t) => {
  const server = await sharedServer()
  const { botId } = await server.register()
  const tail = new RunningTail(t, server, [`${botId}`])
  await tail.begun(server, botId)
  tail.child.stdout.destroy()
  await server.push(botId, { message: { text: 'nobody reads this' } })
  assert.equal(await tail.code(), 0)
  assert.equal(tail.err, '')
})

test('a tail of an unknown bot, and of no server, is an error at once', async (t) => {
  const server = await sharedServer()
  const unknown = new RunningTail(t, server, ['4799'])
  assert.equal(await unknown.code(), 4)
  assert.match(unknown.err, /^postbote: the server refused the call: 404 UNKNOWN_BOT: /)
})
