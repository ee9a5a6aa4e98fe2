/** One call to the private API of a running server, for the command line. */
import { request } from 'node:http'
import type { Config } from '../config/config.ts'
import { isSocketPath } from '../config/config-values.ts'
import { readAdminKey } from '../shard/data-directory.ts'

export interface PrivateApiResponse {
  readonly status: number
  readonly body: string
}

/** Rejects if the server cannot be reached. */
export async function callAdmin(
  config: Config,
  call: { readonly method: string; readonly path: string; readonly body?: object },
): Promise<PrivateApiResponse> {
  const key = await readAdminKey({ directory: config.dir, keyFile: config.adminKeyFile })
  const place = config.adminIpAddress
  const target = isSocketPath(place)
    ? { socketPath: place }
    : {
        host: place === '0.0.0.0' ? '127.0.0.1' : place === '::' ? '::1' : place,
        port: config.adminPort,
      }
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        ...target,
        method: call.method,
        path: call.path,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        agent: false,
      },
      (response) => {
        let body = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => (body += chunk))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
        response.on('error', reject)
      },
    )
    outgoing.on('error', (cause) => {
      const where = isSocketPath(place) ? place : `${place}:${config.adminPort}`
      reject(new Error(`no server responds at ${where}`, { cause }))
    })
    outgoing.end(call.body === undefined ? undefined : JSON.stringify(call.body))
  })
}
