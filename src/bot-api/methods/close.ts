import type { MethodCall, ResultAnswer } from '../method-call.ts'

/**
 * SPEC 6: close answers true and changes nothing durable; webhooks go on. A waiting poll ends with an empty list, as at
 * the end of the server (SPEC 10). The reference answers it with "500 Internal Server Error: restart", since its part
 * for the bot ends; here nothing restarts, and the list lets every framework go on without an error.
 */
export function close({ queue }: Pick<MethodCall, 'queue'>): ResultAnswer {
  queue.poller.end()
  return { result: 'true' }
}
