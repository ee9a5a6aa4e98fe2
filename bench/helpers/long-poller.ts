/** Bots that poll as their frameworks do: one long poll after the other, each confirming the updates of the one before. */
import { DelayLog, type Delays } from '../delays.ts'
import type { LongPollerQuestion } from '../latency-messages.ts'
import { LongPolls } from '../long-polls.ts'
import { monotonicUs, readStamps } from '../time-stamp.ts'
import { serveHelper } from './serve-helper.ts'

const idStart = Buffer.from('{"update_id":')
const idDigitsMax = 10
const waitMsMax = 60_000
const delays = new DelayLog()

/** Notes the delays of the updates. Returns the offset that confirms them. */
function received(body: Buffer): number | undefined {
  if (delays.isWatching) {
    const nowUs = monotonicUs()
    for (const sentUs of readStamps(body)) delays.note(nowUs - sentUs)
  }
  const lastAt = body.lastIndexOf(idStart)
  if (lastAt < 0) return undefined
  const first = lastAt + idStart.length
  return Number.parseInt(body.toString('latin1', first, first + idDigitsMax), 10) + 1
}

/** Ends the process: a bot that stops would show as delays that never arrive. */
function fail(error: Error): void {
  process.stderr.write(`${error.message.slice(0, 500)}\n`)
  process.exit(1)
}

serveHelper(async (question: LongPollerQuestion): Promise<Delays | undefined> => {
  switch (question.kind) {
    case 'start':
      for (const token of question.tokens) {
        void new LongPolls({ port: question.port, token, received, failed: fail })
      }
      return undefined
    case 'watch':
      delays.watch()
      return undefined
    case 'delays':
      return delays.take(question.count, waitMsMax)
    default:
      return undefined
  }
})
