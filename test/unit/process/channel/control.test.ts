import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { Control, exposeControl } from '../../../../src/process/channel/control.ts'
import { PostboteError } from '../../../../src/kit/errors.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

interface Api {
  add(a: number, b: number): Promise<number>
  fail(kind: string): Promise<void>
  never(): Promise<void>
}

class Channel extends EventEmitter {
  connected = true
  other: Channel | undefined
  send(message: object) {
    const copy = structuredClone(message)
    setImmediate(() => this.other?.emit('message', copy))
    return true
  }
}

function setUp() {
  const [here, there] = [new Channel(), new Channel()]
  here.other = there
  there.other = here
  const clock = new FakeClock()
  exposeControl<Api>(there, {
    add: (a, b) => Promise.resolve(a + b),
    fail: (kind) =>
      Promise.reject(
        kind === 'ours'
          ? new PostboteError('BAD_REQUEST', { detail: 'no such thing' })
          : Object.assign(new Error('no space'), { code: 'ENOSPC' }),
      ),
    never: () => new Promise(() => undefined),
  })
  return { here, clock, control: new Control<Api>(here, clock) }
}

test('a call gets its result, and both sides can call over one channel', async () => {
  const { here, control, clock } = setUp()
  exposeControl<Pick<Api, 'add'>>(here, { add: (a, b) => Promise.resolve(a * b) })
  const back = new Control<Pick<Api, 'add'>>(here.other ?? here, clock)
  const results = await Promise.all([control.call('add', [3, 4]), back.call('add', [3, 4])])
  assert.deepEqual(results, [7, 12])
  assert.equal(clock.timers, 0)
})

test('errors keep their codes and texts', async () => {
  const { control } = setUp()
  await assert.rejects(control.call('fail', ['ours']), (error) => {
    assert.ok(error instanceof PostboteError)
    assert.equal(error.code, 'BAD_REQUEST')
    assert.equal(error.message, 'Bad Request: no such thing')
    return true
  })
  await assert.rejects(control.call('fail', ['theirs']), { code: 'ENOSPC', message: 'no space' })
})

test('a call without a response in time is rejected', async () => {
  const { control, clock } = setUp()
  const call = assert.rejects(control.call('never', [], 1_000), /never took longer than 1000 ms/)
  await clock.advance(1_000)
  await call
})

test('open calls are rejected when the other process ends, on either event, and later ones immediately', async () => {
  for (const sign of ['disconnect', 'exit']) {
    const { control, here } = setUp()
    const call = assert.rejects(control.call('never', []), { code: 'PROCESS_GONE' })
    here.emit(sign)
    await call
    here.connected = false
    await assert.rejects(control.call('add', [1, 2]), { code: 'PROCESS_GONE' })
  }
})

test('only methods of the interface can be called', async () => {
  const { here, clock } = setUp()
  const untyped = new Control<{ toString(): Promise<string> }>(here, clock)
  await assert.rejects(untyped.call('toString', []), /no control call toString/)
})
