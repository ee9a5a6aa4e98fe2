import type { MethodCall, ResultReply } from './method-call.ts'

/**
 * protocol.md §6: close returns true and changes nothing durable; webhooks go on.
 *
 * A waiting poll ends with an empty list, as it does when the server ends (protocol.md §10). The reference server ends it with
 * "500 Internal Server Error: restart", because its part for the bot ends. Nothing restarts here, and every framework
 * continues after an empty list without an error.
 */
export function close({ queue }: Pick<MethodCall, 'queue'>): ResultReply {
  queue.poller.end()
  return { result: 'true' }
}
