import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  noticeRetryMs,
  noticesWaitingMax,
  ServiceManager,
} from '../../../../src/cli/serve/service-manager.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

const pid = 77

function ignore(): void {
  // The log of the tests has warnings only.
}

function setUp(environment: Record<string, string>) {
  const clock = new FakeClock()
  const env: Record<string, string | undefined> = { ...environment }
  const sent: string[] = []
  const addresses = new Set<string>()
  const warnings: string[] = []
  const state = { isFull: false, failure: '' }
  const manager = new ServiceManager({
    clock,
    log: {
      debug: ignore,
      info: ignore,
      error: ignore,
      warn: (_fields, text) => void warnings.push(text),
    },
    env,
    pid,
    send(address, bytes) {
      if (state.failure !== '') throw new Error(state.failure)
      if (state.isFull) return false
      addresses.add(address.toString())
      sent.push(bytes.toString())
      return true
    },
  })
  return { manager, clock, env, sent, addresses, warnings, state }
}

test('each phase of the server is one notice', () => {
  const { manager, clock, sent, addresses } = setUp({ NOTIFY_SOCKET: '/run/notify' })
  manager.starting()
  manager.ready('Serving')
  manager.goesOn('reloading')
  manager.goesOn('reloaded')
  manager.goesOn('reload failed')
  manager.goesOn('ending')
  assert.deepEqual(sent, [
    'STATUS=Starting',
    'READY=1\nSTATUS=Serving',
    `RELOADING=1\nMONOTONIC_USEC=${clock.machineMs() * 1_000}\nSTATUS=Replacing the workers`,
    'READY=1\nSTATUS=Serving',
    'READY=1\nSTATUS=Serving; the last reload failed, see the log',
    'STOPPING=1\nSTATUS=Responding to open requests',
  ])
  assert.deepEqual([...addresses], ['/run/notify'])
})

test('the address of an abstract socket begins with a zero byte', () => {
  const { manager, addresses } = setUp({ NOTIFY_SOCKET: '@name' })
  manager.starting()
  assert.deepEqual([...addresses], ['\0name'])
})

test('without a service manager nothing is sent, and one at an unknown kind of address is logged', async () => {
  for (const [env, count] of [
    [{ WATCHDOG_USEC: '2000000' }, 0],
    [{ NOTIFY_SOCKET: 'vsock:2:9' }, 1],
    [{ NOTIFY_SOCKET: '/' }, 1],
  ] as const) {
    const { manager, sent, clock, warnings } = setUp(env)
    manager.starting()
    manager.ready('Serving')
    await clock.advance(10_000)
    assert.deepEqual(sent, [])
    assert.equal(warnings.length, count)
  }
})

test('a reload during the start does not make the server ready, nor does one that ends during its end', () => {
  const { manager, sent } = setUp({ NOTIFY_SOCKET: '/run/notify' })
  manager.goesOn('reloading')
  manager.goesOn('reloaded')
  assert.deepEqual(sent, [])
  manager.ready('Serving')
  manager.goesOn('ending')
  manager.goesOn('reloaded')
  assert.match(sent.at(-1) ?? '', /^STOPPING=1\n/)
})

test('signs of life are sent twice in the time of the watchdog, from ready on', async () => {
  const { manager, clock, sent } = setUp({
    NOTIFY_SOCKET: '/run/notify',
    WATCHDOG_USEC: '3000000',
    WATCHDOG_PID: `${pid}`,
  })
  manager.starting()
  await clock.advance(10_000)
  assert.deepEqual(sent, ['STATUS=Starting'])
  manager.ready('Serving')
  await clock.advance(4_500)
  assert.deepEqual(sent.slice(2), Array(4).fill('WATCHDOG=1'))
})

test('a watchdog of another process, or an unusable time, gets no signs of life', async () => {
  for (const env of [{ WATCHDOG_PID: '78', WATCHDOG_USEC: '3000000' }, { WATCHDOG_USEC: '0' }]) {
    const { manager, clock, sent } = setUp({ NOTIFY_SOCKET: '/run/notify', ...env })
    manager.ready('Serving')
    await clock.advance(10_000)
    assert.deepEqual(sent, ['READY=1\nSTATUS=Serving'])
  }
})

test('the workers do not inherit the address of the service manager', () => {
  const { env } = setUp({
    NOTIFY_SOCKET: '/run/notify',
    WATCHDOG_USEC: '1',
    WATCHDOG_PID: '1',
    HOME: '/',
  })
  assert.deepEqual(env, { HOME: '/' })
})

test('a notice that finds a full queue is sent later, in order, and signs of life do not pile up', async () => {
  const { manager, clock, sent, state } = setUp({
    NOTIFY_SOCKET: '/run/notify',
    WATCHDOG_USEC: '2000000',
  })
  state.isFull = true
  manager.starting()
  manager.ready('Serving')
  await clock.advance(20_000)
  state.isFull = false
  await clock.advance(noticeRetryMs)
  assert.deepEqual(sent, ['STATUS=Starting', 'READY=1\nSTATUS=Serving', 'WATCHDOG=1'])
})

test('of too many notices that wait, the oldest are dropped', async () => {
  const { manager, clock, sent, state } = setUp({ NOTIFY_SOCKET: '/run/notify' })
  manager.ready('Serving')
  state.isFull = true
  for (let nth = 0; nth < noticesWaitingMax; nth++) manager.goesOn('reloading')
  manager.goesOn('ending')
  state.isFull = false
  await clock.advance(noticeRetryMs)
  assert.equal(sent.length, 1 + noticesWaitingMax)
  assert.match(sent.at(-1) ?? '', /^STOPPING=1\n/)
})

test('a service manager that does not listen is logged once and disturbs nothing', () => {
  const { manager, warnings, state, sent } = setUp({ NOTIFY_SOCKET: '/run/notify' })
  state.failure = 'ENOENT'
  manager.starting()
  manager.ready('Serving')
  assert.deepEqual(warnings, ['the service manager cannot be notified'])
  state.failure = ''
  manager.goesOn('ending')
  assert.equal(sent.length, 1)
})
