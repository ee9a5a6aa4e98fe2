import assert from 'node:assert/strict'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'node:test'
import type { BotQueue } from '../../../src/bots/bot-queue.ts'
import type { PollRequest } from '../../../src/bots/poller.ts'
import { getUpdates } from '../../../src/bot-api/get-updates.ts'
import { read } from '../../support/bots/read-params.ts'

async function pollOf(query: string): Promise<PollRequest | undefined> {
  let asked: PollRequest | undefined
  const call = new IncomingMessage(new Socket())
  const polledBy: IncomingMessage[] = []
  const poller = {
    polledBy: (from: IncomingMessage) => polledBy.push(from),
    poll(request: PollRequest): [] {
      asked = request
      return []
    },
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- all that the method uses of it
  const queue = { poller, note: () => undefined } as unknown as BotQueue
  await getUpdates({
    queue,
    params: await read({ query }),
    token: '',
    request: call,
    presence: { onGone: undefined },
  })
  assert.deepEqual(polledBy, [call])
  return asked
}

test('a poll waits for at most 50 s, and not at all if its timeout is no number', async () => {
  const timeouts = [
    '50',
    '51',
    '59',
    '100',
    '99999999999999999999',
    '0',
    '-1',
    '-99',
    'x',
    '',
    '7.9',
  ]
  const waits = await Promise.all(timeouts.map((text) => pollOf(`timeout=${text}`)))
  assert.deepEqual(
    waits.map((poll) => poll?.timeoutMs),
    [50_000, 50_000, 50_000, 50_000, 50_000, 0, 0, 0, 0, 0, 7_000],
  )
})

test('a poll without parameters returns up to 100 updates at once, from the oldest, of the types last set', async () => {
  assert.deepEqual(await pollOf(''), {
    offset: 0,
    limit: 100,
    timeoutMs: 0,
    allowedTypes: undefined,
  })
})
