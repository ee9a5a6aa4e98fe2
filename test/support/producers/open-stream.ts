/** A producer's stream over requests without a network, with its clock. */
import { clientDefaults, type Retry } from '../../../clients/typescript/client-options.ts'
import { LaneMap, type LanePlace } from '../../../clients/typescript/lane-map.ts'
import { PostboteClientError } from '../../../clients/typescript/postbote-client-error.ts'
import { PushStream, type StreamGroups } from '../../../clients/typescript/push-stream.ts'
import { ServerConnection } from '../../../clients/typescript/server-connection.ts'
import { FakeClock } from '../kit/fake-clock.ts'
import { FakePairRequest } from './fake-pair-requests.ts'

export const lost = (): PostboteClientError => new PostboteClientError('CONNECTION_LOST')
export const refusal = (code: string): object => ({ error: { code, message: 'no' } })

/** Groups of shards that a test sets, with eight shards. */
export class FakeGroups implements StreamGroups {
  readonly #connection: ServerConnection
  map: LaneMap
  /** What the next requests wait for before they are opened. */
  reading: Promise<PostboteClientError | undefined> | undefined
  ends = 0

  constructor(clock: FakeClock) {
    const place = { url: 'http://127.0.0.1:1', key: 'key' }
    this.#connection = new ServerConnection({ ...place, connections: 1, timeoutMs: 1, clock })
    this.map = new LaneMap(this.#connection, [])
  }

  set(...groups: readonly (readonly number[])[]): void {
    const connection = this.#connection
    this.map = new LaneMap(connection, [{ connection, shards: 8, groups }])
  }

  refreshed(): Promise<PostboteClientError | undefined> | undefined {
    return this.reading
  }

  refreshOld(): void {}

  onRequestEnded(): void {
    this.ends += 1
  }

  doWithout(): void {
    this.set()
  }
}

/** Opens a stream, with its clock and the requests it has opened. Each delay is half of its maximum. */
export function openStream({
  hasKeys = true,
  pairsMax = 100,
  bytesMax = 100_000,
  endsLate = false,
} = {}) {
  const clock = new FakeClock()
  const groups = new FakeGroups(clock)
  const requests: FakePairRequest[] = []
  const places: LanePlace[] = []
  const retried: Retry[] = []
  let keys = 0
  let closings = 0
  const stream = new PushStream({
    openRequest: (place, events) => {
      const request = new FakePairRequest(events)
      request.endsLate = endsLate
      requests.push(request)
      places.push(place)
      return request
    },
    groups,
    settings: clientDefaults,
    bounds: { pairsMax, bytesMax },
    surroundings: { clock, random: () => 0.5 },
    newKey: () => (hasKeys ? `key-${keys++}` : undefined),
    onRetry: (retry) => retried.push(retry),
    withoutKey: (error) => error,
    onClosed: () => (closings += 1),
  })
  const request = (at = requests.length - 1): FakePairRequest => requests[at]!
  /** Returns the last request that names this shard; undefined for one that names none. */
  const requestFor = (shard?: number): FakePairRequest =>
    requests[places.findLastIndex((place) => place.shard === shard)]!
  /** The shards that the requests have named, in their order. */
  const shardsNamed = (): (number | undefined)[] => places.map(({ shard }) => shard)
  /** Pushes for one bot; the returned list collects the outcomes. */
  const push = (texts: readonly string[], botId = 7): Outcome[] =>
    texts.map((text) => {
      const outcome: Outcome = { text }
      stream.push(botId, { message: { text } }).then(
        (result) => (outcome.id = result.isFiltered ? 0 : result.updateId),
        (error) => (outcome.code = error.code),
      )
      return outcome
    })
  const opened = { stream, clock, groups, requests, retried, request, requestFor, shardsNamed }
  return { ...opened, push, closings: () => closings }
}

export interface Outcome {
  readonly text: string
  id?: number
  code?: string
}
