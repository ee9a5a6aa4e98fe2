/** A DNS server on loopback. A test may change its records at any time, and it remembers every question. */
import type { TestContext } from 'node:test'
import dns2 from 'dns2'

const { Packet, UDPServer } = dns2
const serverFailure = 2
const nameError = 3

export interface DnsServer {
  readonly port: number
  /** Names in lower case without a trailing dot, with addresses of both families. Any other name does not exist. */
  readonly names: Map<string, readonly string[]>
  /** Names that get no response, or `AAAA name` for those without a response for this family only. */
  readonly silent: Set<string>
  /** Names for which the server reports a failure. */
  readonly failing: Set<string>
  /** Number of questions for the IPv4 addresses of a name. */
  questions(name: string): number
}

export interface DnsOptions {
  readonly port?: number
  /** Called before each response to a question for IPv4 addresses; it may change the names. */
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
