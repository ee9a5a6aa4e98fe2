/**
 * Polls and single pushes over TLS, beside the same over plain HTTP. With two workers, half of the requests over TLS are
 * forwarded: the primary cannot read whose they are. `tls-connect` makes a handshake for each request.
 */
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { makeCertificate } from '../certificate.ts'
import type { BenchCase, CaseContext } from '../contestant.ts'
import { ownContestant } from '../http-contestants.ts'
import type { HttpConnection } from '../http-sample.ts'
import { directPlan, type PollShape, polledBots } from '../poll-plan.ts'
import { updateBytes } from '../sample-updates.ts'
import { ServerUnderTest } from '../server-under-test.ts'
import { pushedBots, pushPlan } from './push.ts'

const connections = 32
const plainName = 'postbote, plain HTTP'

interface TlsShape {
  readonly name: string
  readonly title: string
  readonly operation: string
  /** Fills a server, and returns the load of it. */
  readonly prepare: (context: CaseContext, server: ServerUnderTest) => Promise<LoadOf>
}

/** Makes the connections to a server that has what was prepared. */
type LoadOf = (server: ServerUnderTest) => readonly HttpConnection[]

function polls(shape: PollShape): TlsShape['prepare'] {
  return async (_context, server) => {
    const polled = await polledBots(server, await server.registerBots(connections), shape)
    return (at) => directPlan(at, polled, shape)
  }
}

const shapes: readonly TlsShape[] = [
  {
    name: 'tls-poll',
    title: `getUpdates with nothing to give over TLS, ${connections} connections`,
    operation: 'request',
    prepare: polls({ updates: 0 }),
  },
  {
    name: 'tls-poll-100',
    title: `getUpdates with 100 x ${updateBytes} B to give over TLS, ${connections} connections`,
    operation: 'request',
    prepare: polls({ updates: 100 }),
  },
  {
    name: 'tls-connect',
    title: 'a connection with a handshake of TLS for each getUpdates with nothing to give',
    operation: 'request',
    prepare: polls({ updates: 0, isOneShot: true }),
  },
  {
    name: 'tls-push',
    title: 'single pushes over TLS, 300 B updates, 64 connections, 1,000 bots',
    operation: 'update',
    async prepare(context, server) {
      await server.registerBots(pushedBots)
      return (at) => {
        const load = { hasIdempotencyKey: false, isMixed: false, key: at.adminKey }
        return pushPlan(context, at, load)
      }
    },
  },
]

export const tlsCases: readonly BenchCase[] = shapes.map(({ name, title, operation, prepare }) => ({
  name,
  title,
  operation,
  targets: [],
  charted: { kind: 'cpuRatio', against: plainName },
  async open(context) {
    // It is prepared over plain HTTP.
    const before = await ServerUnderTest.start(context)
    const loadOf = await prepare(context, before)
    await before.close()
    const { directory } = before
    const server = await ServerUnderTest.start(context, { directory, flags: tlsFlags(context) })
    const secured = loadOf(server).map((each) => ({ ...each, isTls: true }))
    const own = ownContestant(context, { server, connections: secured })
    if (context.isAlone) return [own]
    const plain = await ServerUnderTest.start(context)
    const plainLoadOf = await prepare(context, plain)
    return [
      own,
      ownContestant(context, { name: plainName, server: plain, connections: plainLoadOf(plain) }),
    ]
  },
}))

function tlsFlags({ directory }: CaseContext): readonly string[] {
  const place = mkdtempSync(join(directory, 'tls-'))
  const { file, keyFile } = makeCertificate(place)
  const files = ['--http-cert', file, '--http-cert-key', keyFile]
  return [...files, ...files.map((word) => word.replace('--http', '--admin'))]
}
