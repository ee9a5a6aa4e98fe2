/** The clients of a peer in one process: a producer, or the consumers of all queues. */
import { DelayLog, type Delays } from '../delays.ts'
import type { IngestSample } from '../ingest-sample.ts'
import { peerNamed } from '../peers/all-peers.ts'
import { ConfirmedCount } from '../peers/confirmed-count.ts'
import { LaneProducer } from '../peers/lane-producer.ts'
import type { EventSink } from '../peers/peer.ts'
import type { PeerQuestion } from '../peers/peer-messages.ts'
import { monotonicUs, stampOf } from '../time-stamp.ts'
import { serveHelper } from './serve-helper.ts'

const waitMsMax = 60_000
const delays = new DelayLog()
const confirmed = new ConfirmedCount()
let producer: LaneProducer | undefined

const sink: EventSink = {
  arrived({ message: { text } }) {
    if (!delays.isWatching) return
    const sentUs = stampOf(text)
    if (sentUs !== undefined) delays.note(monotonicUs() - sentUs)
  },
  confirmed: (count) => confirmed.add(count),
}

function connected(): LaneProducer {
  if (producer === undefined) throw new Error('expected a connected producer')
  return producer
}

serveHelper(async (question: PeerQuestion): Promise<IngestSample | Delays | number | undefined> => {
  switch (question.kind) {
    case 'connect': {
      const peer = peerNamed(question.peer)
      const made = await peer.connect(question.address, question.queues)
      producer = new LaneProducer(made, { ...peer, queues: question.queues })
      return undefined
    }
    case 'consume':
      await peerNamed(question.peer).consume(question.address, question.queues, sink)
      return undefined
    case 'push':
      return connected().push(question)
    case 'steady':
      return connected().steady(question)
    case 'watch':
      confirmed.reset()
      delays.watch()
      return undefined
    case 'confirmed':
      await confirmed.reaches(question.count, waitMsMax)
      return undefined
    case 'delays':
      return delays.take(question.count, waitMsMax)
    default:
      return undefined
  }
})
