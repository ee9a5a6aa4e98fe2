/** The process of an Origin: answers its questions, and ends with its parent. */
import { systemClock } from '../../../src/kit/clock.ts'
import type { OriginControl } from './origin-calls.ts'
import { OriginServer } from './origin-server.ts'

export interface OriginQuestion {
  readonly id: number
  readonly name: keyof OriginControl
  readonly parameters: readonly unknown[]
}

const tls = process.env['ORIGIN_TLS']
const server = new OriginServer(systemClock)
await server.listen(tls === undefined ? undefined : JSON.parse(tls))
process.on('disconnect', () => process.exit(0))
process.on('message', ({ id, name, parameters }: OriginQuestion) => {
  const method = server[name].bind(server) as (...given: readonly unknown[]) => Promise<unknown>
  method(...parameters).then(
    (value) => process.send?.({ id, value }),
    (error: unknown) => process.send?.({ id, error: String(error) }),
  )
})
process.send?.({ port: server.port })
