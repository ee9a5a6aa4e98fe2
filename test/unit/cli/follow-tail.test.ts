import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tailReconnectMs } from '../../../src/api/limits.ts'
import { CallRefusedError } from '../../../src/cli/remote/remote-api.ts'
import { followTail, tailReopenMsMax } from '../../../src/cli/follow-tail.ts'
import { FakeClock, settle } from '../../support/kit/fake-clock.ts'

type Opening = Error | readonly (string | Error)[]

const one = 'event: update\ndata: {"update_id":1}\n\n'
const two = 'event: update\ndata: {"update_id":2}\n\n'
const nobody = new Error('no server responds at here')
const refusal = (status: number): Error => new CallRefusedError({ status, body: '' })

/** Follows a tail of a server that responds in turn with these texts and errors, and then never again. */
function following(openings: readonly Opening[]) {
  const clock = new FakeClock()
  const ending = new AbortController()
  const seen: string[] = []
  const left = [...openings]
  const openedAtMs: number[] = []
  const lastIds: (string | undefined)[] = []
  const done = followTail({
    clock,
    signal: ending.signal,
    name: 'the tail',
    afterGap: 'what happened in between is not shown',
    open: async (lastId) => {
      lastIds.push(lastId)
      openedAtMs.push(clock.monotonicMs())
      const next = left.shift()
      if (next === undefined) return silence(ending.signal)
      if (next instanceof Error) throw next
      return parts(next)
    },
    onEvent: ({ data }) => seen.push(data),
    tell: (text) => seen.push(text),
  })
  // Tests look at the promise later.
  done.catch(() => undefined)
  return { clock, ending, seen, openedAtMs, lastIds, done }
}

async function* parts(texts: readonly (string | Error)[]): AsyncGenerator<string> {
  for (const text of texts) {
    if (text instanceof Error) throw text
    yield text
  }
}

async function* silence(signal: AbortSignal): AsyncGenerator<string> {
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
  yield 'event: update\ndata: {"late":1}\n\n'
}

test('a tail that the server ends is opened again, and both are told', async () => {
  const { clock, ending, seen, openedAtMs, done } = following([[one], [two, 'event: up']])
  await clock.advance(tailReconnectMs - 1)
  assert.equal(openedAtMs.length, 1)
  await clock.advance(1)
  assert.equal(openedAtMs.length, 2)
  assert.deepEqual(seen, [
    '{"update_id":1}',
    'the server has ended the tail, as at a reload; connecting again',
    'the tail continues; what happened in between is not shown',
    '{"update_id":2}',
    'the server has ended the tail, as at a reload; connecting again',
  ])
  ending.abort()
  await done
})

test('while no server responds it is told once, and the pauses grow up to their bound', async () => {
  const down = Array.from({ length: 8 }, () => nobody)
  const lost = new Error('the connection to here was lost')
  const { clock, ending, seen, openedAtMs, done } = following([[one, lost], ...down, [two]])
  await clock.advance(60_000)
  assert.deepEqual(seen.slice(0, 5), [
    '{"update_id":1}',
    'the connection to here was lost; connecting again',
    'no server responds at here; connecting again',
    'the tail continues; what happened in between is not shown',
    '{"update_id":2}',
  ])
  const pauses = openedAtMs.slice(1).map((atMs, nth) => atMs - (openedAtMs[nth] ?? 0))
  assert.deepEqual(pauses.slice(0, 5), [500, 1_000, 2_000, 4_000, tailReopenMsMax])
  assert.equal(Math.max(...pauses), tailReopenMsMax)
  // After a success it begins again with a short pause.
  assert.equal(pauses.at(-1), tailReconnectMs)
  ending.abort()
  await done
})

test('a server that does not respond at first is an error', async () => {
  await assert.rejects(following([nobody]).done, nobody)
  await assert.rejects(following([refusal(503)]).done, CallRefusedError)
})

test('a refusal for good ends a tail, and one for the moment does not', async () => {
  const { clock, done, seen } = following([[one], refusal(503), refusal(429), refusal(404)])
  await clock.advance(60_000)
  await assert.rejects(done, /status 404/)
  assert.deepEqual(
    seen.map((text) => /status (\d+)/.exec(text)?.[1]).filter((status) => status !== undefined),
    ['503', '429'],
  )
})

test('the signal ends a tail at once, while it reads and while it waits', async () => {
  const reading = following([])
  await settle()
  reading.ending.abort()
  await reading.done
  const waiting = following([[one]])
  await settle()
  waiting.ending.abort()
  await waiting.done
  assert.deepEqual([reading.seen.length, waiting.clock.timers], [0, 0])
})

test('each opening gets the last id of those before, also one without an event, and none of a torn event', async () => {
  const withId = `id: 7\n${one}`
  const openings = [[one], [withId, 'id: 8\n\n'], ['id: 9\nevent: up'], []]
  const { clock, ending, lastIds, done } = following(openings)
  await clock.advance(100 * tailReopenMsMax)
  assert.deepEqual(lastIds.slice(0, 4), [undefined, undefined, '8', '8'])
  ending.abort()
  await done
})
