import type { ResultAnswer } from '../method-call.ts'

/** SPEC 6: close answers true and changes nothing durable; webhooks go on. */
export function close(): ResultAnswer {
  return { result: 'true' }
}
