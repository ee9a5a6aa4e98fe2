/**
 * A hostile client that does to both listeners what no client does, each time on a separate connection: partial
 * requests, resets, offers of other protocols, tunnels, noise. Other clients must not notice.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { Repeating } from '../producers/busy-clients.ts'
import type { RegisteredBot, Server } from '../server/server.ts'

/** How long it stays; some requests get a response within that time, others do not. */
const staysMs = [0, 2, 20]
/** Fast enough for a few dozen actions during each reload; without a pause it would take the processor time of all others. */
const pauseMs = 15
/** Under load. */
const closedWithinMs = 20_000
const noise = Buffer.from(Array.from({ length: 400 }, (_value, index) => (index * 151) % 256))

export class Vandal extends Repeating {
  readonly #ports: readonly number[]
  readonly #deeds: readonly (readonly (string | Buffer)[])[]

  constructor(server: Pick<Server, 'botUrl' | 'privateUrl' | 'key'>, bot: RegisteredBot) {
    super()
    this.#ports = [server.botUrl, server.privateUrl].map((url) => Number(new URL(url).port))
    this.#deeds = deedsTo(server.key, bot)
  }

  protected override async once(round: number): Promise<void> {
    const { length } = this.#deeds
    const pass = Math.floor(round / length)
    const port = this.#ports[pass % this.#ports.length] ?? 0
    const socket = connect({ host: '127.0.0.1', port })
    await once(socket, 'connect')
    // The server may cut the connection at any time.
    socket.on('error', () => undefined)
    const isClosed = new Promise<void>((resolve) => void socket.once('close', () => resolve()))
    for (const piece of this.#deeds[round % length] ?? []) socket.write(piece)
    await setTimeout(staysMs[pass % staysMs.length])
    if (round % 5 === 0) socket.resume().end()
    else socket.resetAndDestroy()
    const tooLate = setTimeout(closedWithinMs, 'late', { ref: false })
    const outcome = await Promise.race([isClosed, tooLate])
    socket.destroy()
    if (outcome === 'late') throw new Error(`a connection was held behind deed ${round % length}`)
    await setTimeout(pauseMs)
  }
}

function deedsTo(key: string, { botId, token }: RegisteredBot): (string | Buffer)[][] {
  const host = `Host: localhost\r\nAuthorization: Bearer ${key}\r\n`
  const call = `POST /bot${token}/getMe HTTP/1.1\r\n${host}Content-Length: 2\r\n\r\n{}`
  const half = `POST /v1/bots/${botId}/updates HTTP/1.1\r\n${host}Content-Length: 99\r\n\r\n{"mess`
  const offer = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'
  const pairs = `POST /v1/updates HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`
  return [
    [call.slice(0, 30)],
    [call.slice(0, -1)],
    [call.repeat(30)],
    [call, noise],
    [`CONNECT 10.0.0.1:443 HTTP/1.1\r\n${host}\r\n`, noise],
    [`CONNECT /bot${token}/getMe HTTP/1.1\r\n${host}\r\n`],
    [call.replace('Host', `${offer}Host`), call, half],
    [half],
    [half.replace('Host', `${offer}Host`)],
    [`${pairs}20\r\n{"bot_id":${botId},`],
    [noise],
    [],
  ]
}
