/** The dispatcher of the events for an operator, who may name any address. */
import type { DeliverySource } from '../../delivery/delivery-source.ts'
import { Dispatcher, type DispatcherOptions } from '../../delivery/dispatcher.ts'
import {
  createHostLookup,
  readHostsFile,
  systemLookup,
} from '../../delivery/endpoint/host-lookup.ts'
import type { ServerGate } from '../../delivery/pace/flood-gate.ts'
import type { Counters } from '../../kit/surroundings.ts'
import type { StoredSigningKey } from '../../shard/records/bot-record.ts'
import type { EventDispatcher } from './event-sender.ts'

/** Where events are delivered, and the keys that sign them. */
export interface EventTarget {
  readonly url: string
  readonly keys: readonly StoredSigningKey[]
  /** Before the id of an event in `webhook-id`: ids are unique within one server. */
  readonly idPrefix: string
}

/** What it shares with the dispatchers of webhooks. */
export type SharedSender = Pick<DispatcherOptions, 'clock' | 'network' | 'random' | 'userAgent'>

export function eventDispatcher(
  sender: SharedSender & { readonly counters: Counters },
  { url, keys, idPrefix }: EventTarget,
  source: DeliverySource,
): EventDispatcher {
  const { clock, counters, network, random, userAgent } = sender
  return new Dispatcher({
    settings: { url, maxConnections: 1 },
    source,
    clock,
    random,
    network: {
      ...network,
      lookup: createHostLookup(clock, readHostsFile, systemLookup),
      judge: async (addresses) => addresses.map(() => true),
    },
    secretHeaderNames: [],
    userAgent,
    signing: { idPrefix, keys: () => keys },
    goneTimeoutMs: Number.POSITIVE_INFINITY,
    serverGate: openGate,
    onGone: ignore,
    onGoneClock: ignore,
    counters: {
      add: (outcome, count) => {
        if (outcome !== 'delivered') counters.add('operator_events_failed', count)
      },
    },
  })
}

/** The one connection for events does not count among those of webhooks. */
const openGate: ServerGate = {
  mayOpen: () => true,
  opened: ignore,
  closed: ignore,
  mayIdle: () => true,
  turnedAway: ignore,
  mustYield: () => false,
}

function ignore(): void {
  // Nothing to do.
}
