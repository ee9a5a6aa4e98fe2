/** Another bot API server, for `--upstream`, which accepts every call and records it. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { portOf } from '../kit/port.ts'
import type { EndingTest } from '../server/server.ts'

export interface UpstreamCall {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly bytes: number
  readonly sha256: string
  /** The text of short bodies. */
  readonly text: string
}

export type UpstreamAnswer = (call: UpstreamCall, response: ServerResponse) => void

export interface FakeUpstream {
  readonly url: string
  readonly calls: readonly UpstreamCall[]
  /** Calls whose connection closed before they had their response. */
  readonly aborted: readonly string[]
  /** Called with each request before its body is read; the body is read when it resolves. */
  hold: (request: IncomingMessage, response: ServerResponse) => Promise<void>
  atLeast(count: number): Promise<void>
  /** Forgets the recorded calls and `hold`, and uses another response from now on. */
  reset(answer?: UpstreamAnswer): void
  stop(): Promise<void>
}

const textBytesMax = 64 * 1024

export async function startUpstream(
  t: EndingTest,
  answer: UpstreamAnswer = accept,
): Promise<FakeUpstream> {
  let answerNow = answer
  const calls: UpstreamCall[] = []
  const aborted: string[] = []
  const server = createServer((request, response) => {
    const { method = '', url = '', headers } = request
    const hash = createHash('sha256')
    let bytes = 0
    let text = ''
    response.once('close', () => {
      if (!response.writableFinished) aborted.push(url)
    })
    request.on('error', () => undefined)
    request.once('end', () => {
      const call = { method, url, headers, bytes, sha256: hash.digest('hex'), text }
      calls.push(call)
      server.emit('call')
      answerNow(call, response)
    })
    void upstream.hold(request, response).then(() =>
      request.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        hash.update(chunk)
        if (bytes <= textBytesMax) text += chunk.toString()
      }),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async (): Promise<void> => {
    if (!server.listening) return
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  t.after(stop)
  const upstream: FakeUpstream = {
    url: `http://127.0.0.1:${portOf(server)}`,
    calls,
    aborted,
    hold: readAtOnce,
    async atLeast(count) {
      while (calls.length < count) await once(server, 'call')
    },
    reset(next = accept) {
      answerNow = next
      upstream.hold = readAtOnce
      calls.length = 0
      aborted.length = 0
    },
    stop,
  }
  return upstream
}

function readAtOnce(): Promise<void> {
  return Promise.resolve()
}

function accept(_call: UpstreamCall, response: ServerResponse): void {
  response.writeHead(200, { 'Content-Type': 'application/json' })
  response.end('{"ok":true,"result":{"upstream":true}}')
}
