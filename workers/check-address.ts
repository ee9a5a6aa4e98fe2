/** The Piscina task that checks addresses against the blocklist, outside the event loop that delivers updates. */

import { isBlocked } from '../src/http/blocklist.ts'

export interface AddressesToCheck {
  readonly ranges: SharedArrayBuffer
  readonly addresses: readonly string[]
}

/** Returns for each address, in the given order, whether connecting to it is allowed. */
export default function checkAddresses(task: AddressesToCheck): boolean[] {
  return task.addresses.map((address) => !isBlocked(task.ranges, address))
}
