/** A producer's stream over requests without a network, with its clock. */
import { clientDefaults, type Retry } from '../../../src/client/client-options.ts'
import { PostboteClientError } from '../../../src/client/postbote-client-error.ts'
import { PushStream } from '../../../src/client/push-stream.ts'
import { FakeClock } from '../kit/fake-clock.ts'
import { FakePairRequest } from './fake-pair-requests.ts'

export const lost = (): PostboteClientError => new PostboteClientError('CONNECTION_LOST')
export const refusal = (code: string): object => ({ error: { code, message: 'no' } })

/** Opens a stream, with its clock and the requests it has opened. Each delay is half of its maximum. */
export function openStream({ hasKeys = true, pairsMax = 100, bytesMax = 100_000 } = {}) {
  const clock = new FakeClock()
  const requests: FakePairRequest[] = []
  const retried: Retry[] = []
  let keys = 0
  let closings = 0
  const stream = new PushStream({
    openRequest: (events) => {
      const request = new FakePairRequest(events)
      requests.push(request)
      return request
    },
    settings: clientDefaults,
    bounds: { pairsMax, bytesMax },
    surroundings: { clock, random: () => 0.5 },
    newKey: () => (hasKeys ? `key-${keys++}` : undefined),
    onRetry: (retry) => retried.push(retry),
    unreachedMs: () => undefined,
    withoutKey: (error) => error,
    onClosed: () => (closings += 1),
  })
  const request = (at = requests.length - 1): FakePairRequest => requests[at]!
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
  return { stream, clock, requests, retried, request, push, closings: () => closings }
}

export interface Outcome {
  readonly text: string
  id?: number
  code?: string
}
