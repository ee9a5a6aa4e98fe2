/**
 * A reverse proxy before a server that records the calls of each bot, because the server counts all bots together.
 *
 *     const log = await startCallLog(t, server.botUrl)
 *     ... { apiRoot: log.url }
 *     log.callsOf(token).filter(({ status }) => status === 409)
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { portOf } from '../kit/port.ts'

export interface LoggedCall {
  /** The name as the client writes it. */
  readonly method: string
  /** Undefined until the call has its response. */
  status: number | undefined
  /** Whether an earlier call of its bot had been refused with 409 when it arrived. */
  readonly isAfterRefusal: boolean
}

export interface CallLog {
  readonly url: string
  callsOf(token: string): readonly LoggedCall[]
}

export async function startCallLog(t: TestContext, target: string): Promise<CallLog> {
  const calls = new Map<string, LoggedCall[]>()
  const server = createServer((incoming, response) => {
    const { pathname } = new URL(incoming.url ?? '', target)
    const [, token = '', method = ''] = /^\/bot([^/]+)\/(.*)$/.exec(decodeURI(pathname)) ?? []
    const before = calls.get(token) ?? []
    const isAfterRefusal = before.some(({ status }) => status === 409)
    const call: LoggedCall = { method, status: undefined, isAfterRefusal }
    calls.set(token, [...before, call])
    passOn(incoming, response, { target, call })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${portOf(server)}`,
    callsOf: (token) => calls.get(token) ?? [],
  }
}

function passOn(
  incoming: IncomingMessage,
  response: ServerResponse,
  { target, call }: { readonly target: string; readonly call: LoggedCall },
): void {
  const { method = '', url = '', headers } = incoming
  const outgoing = request(target + url, { method, headers, agent: false }, (answer) => {
    call.status = answer.statusCode
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(response)
  })
  outgoing.on('error', () => response.destroy())
  // A client that aborts its poll frees it.
  response.on('close', () => outgoing.destroy())
  incoming.pipe(outgoing)
}
