/** Generates docs/reference/openapi.json: the response of a server without bots to GET /v1/openapi.json. */
import { systemClock } from '../src/kit/clock.ts'
import { PrivateApiGuard } from '../src/access/private-api-guard.ts'
import { fleetHooks } from '../src/features/fleet/module.ts'
import { lookBackHooks } from '../src/features/look-back/module.ts'
import { portalHooks } from '../src/features/portal/module.ts'
import { relayHooks } from '../src/features/relay/module.ts'
import { Modules } from '../src/kit/modules.ts'
import type { WorkerModule } from '../src/worker/module.ts'
import { createPrivateApi } from '../src/modules/private-api.ts'
import type { LoopPayer } from '../src/http/loop-payer.ts'
import type { PrivateApiOptions } from '../src/modules/private-api.ts'

export async function openApiPage(): Promise<string> {
  const app = unusedPrivateApi()
  const headers = { authorization: 'Bearer key' }
  const { body } = await app.inject({ url: '/v1/openapi.json', headers })
  await app.close()
  return `${JSON.stringify(JSON.parse(body), null, 2)}\n`
}

const free: LoopPayer = {
  turn: () => undefined,
  charge: () => undefined,
  begin: () => 0,
  spent: () => undefined,
}

/** Returns a private API whose routes are registered and whose bots are not there. Its key is `key`. */
export function unusedPrivateApi(): ReturnType<typeof createPrivateApi> {
  const unused: PrivateApiOptions = Object.create(null)
  const modules = new Modules<WorkerModule>()
  modules.list.push(
    portalHooks(Object.create(null), Object.create(null)),
    relayHooks(Object.create(null), Object.create(null)),
    fleetHooks(Object.create(null)),
    lookBackHooks(Object.create(null), Object.create(null)),
  )
  const guard = new PrivateApiGuard({ adminKey: 'key', hosts: [], clock: systemClock })
  return createPrivateApi({
    ...unused,
    guard,
    modules,
    keys: { ...Object.create(null), ring: guard.ring },
    counters: { add: () => undefined, observe: () => undefined },
    clock: systemClock,
    payerOf: () => free,
    onRefused: () => undefined,
    isUnixSocket: () => false,
    updateBytesMax: 1,
  })
}
