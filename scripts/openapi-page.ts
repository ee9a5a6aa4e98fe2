/** Generates docs/openapi.json: the response of a server without bots to GET /v1/openapi.json. */
import { PrivateApiGuard } from '../src/private-api/private-api-guard.ts'
import { createPrivateApi, type PrivateApiOptions } from '../src/private-api/private-api.ts'

export async function openApiPage(): Promise<string> {
  // The routes are only registered, so nothing else is used of what a worker gives them.
  const unused: PrivateApiOptions = Object.create(null)
  const guard = new PrivateApiGuard({ adminKey: 'key', hosts: [] })
  const app = createPrivateApi({ ...unused, guard, isUnixSocket: () => false, updateBytesMax: 1 })
  const headers = { host: 'localhost', authorization: 'Bearer key' }
  const { body } = await app.inject({ url: '/v1/openapi.json', headers })
  await app.close()
  return `${JSON.stringify(JSON.parse(body), null, 2)}\n`
}
