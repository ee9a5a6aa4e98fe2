import type { ResultReply } from './method-call.ts'

/** protocol.md §6: logOut returns true and changes nothing durable; webhooks go on. */
export function logOut(): ResultReply {
  return { result: 'true' }
}
