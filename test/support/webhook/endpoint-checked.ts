import { systemClock } from '../../../src/clock.ts'
import { parseEndpoint } from '../../../src/webhook/endpoint.ts'
import { checkEndpoint } from '../../../src/webhook/endpoint-check.ts'
import { loopbackNetwork } from './webhook-setup.ts'

/** Checks an endpoint, and resolves with what is told of its answer. */
export async function endpointChecked(url: string): Promise<string> {
  const { steps } = await checkEndpoint({
    endpoint: parseEndpoint(url, { local: true }),
    secretHeaderNames: [],
    signing: { idPrefix: '0-check-', keys: () => undefined },
    known: { addresses: [], foundMs: 0 },
    network: loopbackNetwork,
    clock: systemClock,
    signal: new AbortController().signal,
    refusalOf: () => '',
  })
  return steps.at(-1)?.text ?? ''
}
