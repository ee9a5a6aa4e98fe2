/**
 * A sender of webhooks as people write it: jobs in one queue of BullMQ, and a worker that posts each with undici. It
 * keeps no order: several jobs of a bot or a chat can be under way at the same time.
 */
import { Pool } from 'undici'
import { type BullModule, jobOptions } from '../peers/bullmq.ts'
import type { BullmqWebhookQuestion } from '../peers/bullmq-webhook-messages.ts'
import type { PeerEvent } from '../peers/peer.ts'
import { peerModule } from '../peers/peer-module.ts'
import { redisClient } from '../peers/redis-server.ts'
import { sampleUpdate, seededRandom } from '../sample-updates.ts'
import { steadyTicks } from '../steady-ticks.ts'
import { monotonicUs, stampText } from '../time-stamp.ts'
import { serveHelper } from './serve-helper.ts'

type Asked<Kind> = Extract<BullmqWebhookQuestion, { readonly kind: Kind }>
type Queue = InstanceType<BullModule['Queue']>

const queueName = 'webhooks'
const jobsPerCall = 1_000
const event: PeerEvent = JSON.parse(sampleUpdate(seededRandom(3), 1))
let queue: Queue | undefined
let completed = 0

async function work({ address, url, headers, concurrency }: Asked<'work'>): Promise<void> {
  const { Worker } = peerModule<BullModule>('bullmq')
  const { origin, pathname: path } = new URL(url)
  const pool = new Pool(origin, { connections: concurrency })
  const worker = new Worker(
    queueName,
    async ({ data }) => {
      const body = JSON.stringify(data)
      const response = await pool.request({ path, method: 'POST', headers: [...headers], body })
      await response.body.dump()
      if (response.statusCode >= 300) throw new Error(`got ${response.statusCode}`)
    },
    { connection: redisClient(address), concurrency },
  )
  worker.on('completed', () => (completed += 1))
  await worker.waitUntilReady()
}

function connected(): Queue {
  if (queue === undefined) throw new Error('expected a connected queue')
  return queue
}

async function add(count: number): Promise<void> {
  const job = { name: 'webhook', data: event, opts: jobOptions }
  for (let left = count; left > 0; left -= jobsPerCall) {
    await connected().addBulk(Array.from({ length: Math.min(left, jobsPerCall) }, () => job))
  }
}

async function steady(pace: Asked<'steady'>): Promise<number> {
  const adding: Promise<unknown>[] = []
  const count = await steadyTicks(pace, (due) => {
    const text = stampText(event.message.text, monotonicUs())
    const job = { name: 'webhook', data: { message: { ...event.message, text } }, opts: jobOptions }
    adding.push(connected().addBulk(Array.from({ length: due }, () => job)))
  })
  await Promise.all(adding)
  return count
}

serveHelper(async (question: BullmqWebhookQuestion): Promise<number | undefined> => {
  switch (question.kind) {
    case 'connect': {
      const { Queue } = peerModule<BullModule>('bullmq')
      queue = new Queue(queueName, { connection: redisClient(question.address) })
      return undefined
    }
    case 'work':
      await work(question)
      return undefined
    case 'add':
      await add(question.count)
      return undefined
    case 'steady':
      return steady(question)
    case 'completed':
      return completed
    default:
      return undefined
  }
})
