/** The Piscina task that judges addresses, away from the event loop that delivers. */

import { isBlocked } from '../src/net/blocklist.ts'

export interface AddressesToCheck {
  readonly ranges: SharedArrayBuffer
  readonly addresses: readonly string[]
}

/** Whether each address may be connected to, in the order given. */
export default function checkAddresses(task: AddressesToCheck): boolean[] {
  return task.addresses.map((address) => !isBlocked(task.ranges, address))
}
