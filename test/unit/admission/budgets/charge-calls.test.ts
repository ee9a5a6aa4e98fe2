/** What of a call is charged, with routes that the test has. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import { LoopMeter } from '../../../../src/admission/budgets/loop-meter.ts'
import { nextTurn } from '../../../../src/kit/clock.ts'
import { chargeCalls, payForCall } from '../../../../src/admission/budgets/charge-calls.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

const workMs = 30

class WorkClock extends FakeClock {
  workedMs = 0

  override monotonicMs(): number {
    return super.monotonicMs() + this.workedMs
  }

  override soon(fire: () => void): void {
    setImmediate(fire)
  }
}

async function costOf(url: string): Promise<number> {
  const clock = new WorkClock()
  const meter = new LoopMeter(clock, () => clock.monotonicMs())
  let chargedMs = 0
  const payer = {
    turn: () => undefined,
    charge: () => undefined,
    begin: () => meter.begin(),
    spent: (sinceMs: number) => void (chargedMs += meter.costMs(sinceMs)),
  }
  const work = (): void => void (clock.workedMs += workMs)
  const app = Fastify()
  chargeCalls(app)
  app.addHook('onRequest', async (request) => void (request.payer = payer))
  app.addHook('preHandler', async (request) => void (await payForCall(request, clock)))
  app.get('/same-turn', async () => {
    await Promise.resolve()
    work()
    return {}
  })
  app.get('/bytes', async (_request, reply) => {
    work()
    return reply.send(Buffer.from('{}'))
  })
  app.get('/fails', async () => {
    work()
    throw new Error('failed')
  })
  const slow = {
    toJSON() {
      work()
      return {}
    },
  }
  app.get('/json-later', async () => {
    await nextTurn(clock)
    await nextTurn(clock)
    return slow
  })
  app.get('/others', async () => {
    await nextTurn(clock)
    // Others work while the call waits.
    work()
    await nextTurn(clock)
    return {}
  })
  await app.inject({ method: 'GET', url })
  return chargedMs
}

test('what a call does in the turn of its handler is charged, its JSON in any turn, and the work of others is not', async () => {
  for (const path of ['/same-turn', '/bytes', '/fails', '/json-later']) {
    assert.equal(await costOf(path), workMs, path)
  }
  assert.equal(await costOf('/others'), 0)
})
