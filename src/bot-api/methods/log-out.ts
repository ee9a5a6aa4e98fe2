import type { ResultAnswer } from '../method-call.ts'

/** protocol.md §6: logOut returns true and changes nothing durable; webhooks go on. */
export function logOut(): ResultAnswer {
  return { result: 'true' }
}
