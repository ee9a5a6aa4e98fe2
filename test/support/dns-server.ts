/** A DNS server on loopback whose answers a test may change at any time, and that remembers every question. */
import type { TestContext } from 'node:test'
import dns2 from 'dns2'

const { Packet, UDPServer } = dns2
const serverFailure = 2
const nameError = 3

export interface DnsServer {
  readonly port: number
  /** In lower case and without a dot at the end -> addresses of both families. A name that is not here is unknown. */
  readonly names: Map<string, readonly string[]>
  /** Names that get no answer, or `AAAA name` for those that get none for this family. */
  readonly silent: Set<string>
  /** Names for which the server has trouble of its own. */
  readonly failing: Set<string>
  /** How often the IPv4 addresses of a name were asked for. */
  questions(name: string): number
}

export interface DnsOptions {
  readonly port?: number
  /** Before each answer to a question for IPv4 addresses; it may change the names. */
  readonly onQuestion?: (name: string) => void
}

export async function startDns(t: TestContext, options: DnsOptions = {}): Promise<DnsServer> {
  const names = new Map<string, readonly string[]>()
  const counts = new Map<string, number>()
  const silent = new Set<string>()
  const failing = new Set<string>()
  const server = new UDPServer({ type: 'udp4' })
  server.on('requestError', (error) => t.diagnostic(`DNS: ${String(error)}`))
  server.on('request', (request, send) => {
    const answer = Packet.createResponseFromRequest(request)
    const [question] = request.questions
    if (question === undefined) return
    const name = question.name.toLowerCase().replace(/\.$/, '')
    if (question.type === Packet.TYPE.A) {
      options.onQuestion?.(name)
      counts.set(name, (counts.get(name) ?? 0) + 1)
    }
    const asksForSix = question.type === Packet.TYPE.AAAA
    if (silent.has(name) || silent.has(`${asksForSix ? 'AAAA' : 'A'} ${name}`)) return
    const known = names.get(name)
    if (known === undefined) answer.header.rcode = failing.has(name) ? serverFailure : nameError
    const wanted = (known ?? []).filter((address) => address.includes(':') === asksForSix)
    const { name: asked, type } = question
    answer.answers.push(
      ...wanted.map((address) => ({ name: asked, type, class: Packet.CLASS.IN, ttl: 0, address })),
    )
    send(answer)
  })
  await server.listen(options.port ?? 0, '127.0.0.1')
  t.after(() => server.close())
  const questions = (name: string): number => counts.get(name) ?? 0
  return { port: server.address().port, names, silent, failing, questions }
}
