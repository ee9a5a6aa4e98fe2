import type { Clock } from '../../../src/kit/clock.ts'
import { parseEndpoint } from '../../../src/delivery/endpoint/endpoint.ts'
import { checkEndpoint, type CheckStep } from '../../../src/delivery/endpoint-check.ts'
import { loopbackNetworkOf } from './webhook-setup.ts'

/** Checks an endpoint, and resolves with the last step. */
export async function endpointChecked(url: string, clock: Clock): Promise<CheckStep> {
  const { steps } = await checkEndpoint({
    endpoint: parseEndpoint(url, { local: true }),
    secretHeaderNames: [],
    signing: { idPrefix: '0-check-', keys: () => undefined },
    known: { addresses: [], foundMs: 0 },
    network: loopbackNetworkOf(clock),
    clock,
    signal: new AbortController().signal,
    refusalOf: () => '',
  })
  const last = steps.at(-1)
  if (last === undefined) throw new Error('a check has steps')
  return last
}
