/** Calls over links, and a clock for them. */
import { systemClock } from '../../../src/kit/clock.ts'
import type { LinkCall } from '../../../src/links/link/link-call.ts'
import type { LinkSet } from '../../../src/links/link/link-set.ts'
import { FakeClock } from '../kit/fake-clock.ts'
import { ReceivedResponse } from '../producers/received-response.ts'

export interface Asked {
  readonly isFresh?: boolean
  readonly isStream?: boolean
  readonly isRepeat?: boolean
  readonly method?: string
  readonly url?: string
  readonly body?: Buffer
}

/** Timers are the test's, turns of the event loop are real. */
export class LinkClock extends FakeClock {
  override soon(fire: () => void): void {
    systemClock.soon(fire)
  }
}

export interface LinkCalls {
  readonly call: (receiver: ReceivedResponse, options?: Asked) => LinkCall
  /** The same, with a receiver of its own. */
  readonly ask: (options?: Asked) => ReceivedResponse
}

/** Returns how to call the worker in this place. */
export function callsOf(links: LinkSet, place: number): LinkCalls {
  const call: LinkCalls['call'] = (receiver, options = {}) => {
    const {
      isFresh = false,
      isStream = false,
      isRepeat = false,
      method = 'GET',
      url = '/',
      body,
    } = options
    const origin = { listener: 'bot', clientAddress: '192.0.2.1', hops: 1 } as const
    const fields = { method, url, rawHeaders: ['Host', 'x'], origin }
    const to = { place, isFresh, isStream, isRepeat }
    const made = links.call(to, { fields, hasBody: body !== undefined }, receiver)
    if (body !== undefined) made.end(body)
    return made
  }
  const ask: LinkCalls['ask'] = (options) => {
    const receiver = new ReceivedResponse()
    call(receiver, options)
    return receiver
  }
  return { call, ask }
}
