/** Generates docs/reference/openapi.json: the response of a server without bots to GET /v1/openapi.json. */
import { systemClock } from '../src/kit/clock.ts'
import { PrivateApiGuard } from '../src/access/private-api-guard.ts'
import { Modules } from '../src/kit/modules.ts'
import type { ModuleParts, WorkerModule } from '../src/worker/module.ts'
import { createPrivateApi } from '../src/modules/private-api.ts'
import { workerModules } from '../src/modules/worker-modules.ts'
import type { LoopPayer } from '../src/http/loop-payer.ts'
import type { PrivateApiOptions } from '../src/modules/private-api.ts'

export async function openApiPage(): Promise<string> {
  const app = await unusedPrivateApi()
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
export async function unusedPrivateApi(): Promise<ReturnType<typeof createPrivateApi>> {
  const unused: PrivateApiOptions = Object.create(null)
  const modules = new Modules<WorkerModule>()
  for (const make of Object.values(workerModules)) modules.list.push(await make(unusedParts()))
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

/** What modules are made of. They use it only when something happens, and nothing does. */
function unusedParts(): ModuleParts {
  const nothing = Object.create(null)
  return {
    ...nothing,
    config: { relayFrom: [] },
    adminKey: 'key',
    dataDir: 'unused',
    // No files are kept of what may be elsewhere next.
    isShared: true,
    registry: nothing,
    clock: systemClock,
  }
}
