/**
 * What a hostile client sends to the bot API to make a worker do much work at low cost. Before there were bounds for
 * them, each of these blocked a worker for up to seconds, or took its memory or its descriptors.
 */
import { gzipSync } from 'node:zlib'
import type { AttackPlan } from './attack-messages.ts'
import type { RegisteredBot } from './server-under-test.ts'

export interface Attack {
  readonly name: string
  /** Aimed at the workers of these bots, which belong to the attacker. */
  plan(target: AttackTarget): AttackPlan
}

export interface AttackTarget {
  readonly port: number
  readonly fromAddress: string
  readonly bots: readonly RegisteredBot[]
  /** Endpoints whose TLS handshakes cost their client as much as possible. */
  readonly tlsPorts: readonly number[]
}

const mib = 1024 * 1024
const connections = 8
const crowd = { kind: 'crowd', openedPerSecond: 500, openMax: 2_000 } as const

interface Message {
  readonly method: string
  readonly headers: readonly string[]
  readonly body?: Uint8Array
}

/** Sends one body again and again, compressed if that makes it shorter. */
function repeated(name: string, method: string, contentType: string, body: string): Attack {
  const packed = gzipSync(body)
  const headers = [
    `Content-Type: ${contentType}`,
    'Content-Encoding: gzip',
    `Content-Length: ${packed.length}`,
  ]
  return {
    name,
    plan: ({ port, fromAddress, bots }) => ({
      kind: 'repeat',
      port,
      fromAddress,
      connections,
      requests: bots.map((bot) => requestOf(bot, { method, headers, body: packed })),
    }),
  }
}

function requestOf({ token }: RegisteredBot, { method, headers, body }: Message): Uint8Array {
  const head = [`POST /bot${token}/${method} HTTP/1.1`, 'Host: localhost', ...headers]
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body ?? Buffer.alloc(0)])
}

const form = 'multipart/form-data; boundary='

function partOf(head: string, content: string): string {
  return `--b\r\n${head}\r\n\r\n${content}\r\n--b--\r\n`
}

function pemOf(inside: string): string {
  const head =
    'Content-Disposition: form-data; name="certificate"; filename="c.pem"\r\nContent-Type: text/plain'
  const url = '--b\r\nContent-Disposition: form-data; name="url"\r\n\r\nhttps://127.0.0.1:8443/\r\n'
  return url + partOf(head, inside)
}

const unfinished: Message = { method: 'getMe', headers: ['Content-Length: 9'] }

/** 3 MiB of beginnings of certificates, none of which ends. */
const beginnings = '-----BEGIN CERTIFICATE-----\n'

export const attacks: readonly Attack[] = [
  {
    name: 'one-byte chunks',
    plan: ({ port, fromAddress, bots }) => ({
      kind: 'endless',
      port,
      fromAddress,
      connections,
      heads: bots.map((bot) =>
        requestOf(bot, { method: 'setWebhook', headers: ['Transfer-Encoding: chunked'] }),
      ),
      piece: Buffer.from('1\r\nx\r\n'.repeat(10_000)),
    }),
  },
  repeated(
    'certificate without an end',
    'setWebhook',
    `${form}b`,
    pemOf(beginnings.repeat((3 * mib) / beginnings.length - 100)),
  ),
  repeated('multipart of dashes', 'getMe', `${form}-`, '-'.repeat(mib - 1)),
  repeated('500,000 lines in a part', 'getMe', `${form}b`, partOf('a:\r\n'.repeat(260_000), 'x')),
  repeated(
    '500,000 parameters of a part',
    'getMe',
    `${form}b`,
    partOf(`Content-Disposition: form-data${';a'.repeat(520_000)}`, 'x'),
  ),
  repeated(
    'JSON 500,000 deep',
    'getMe',
    'application/json',
    `{"a":${'['.repeat(500_000)}${']'.repeat(500_000)}}`,
  ),
  repeated(
    '500,000 parameters of a form',
    'getMe',
    'application/x-www-form-urlencoded',
    'a=b&'.repeat(260_000),
  ),
  repeated('gzip bomb', 'getMe', 'application/json', ' '.repeat(64 * mib)),
  {
    name: 'setWebhook with a dead endpoint',
    plan: ({ port, fromAddress, bots }) => ({
      kind: 'repeat',
      port,
      fromAddress,
      connections,
      requests: bots.map((bot) =>
        requestOf(bot, {
          method: 'setWebhook?url=https://127.0.0.1:1/',
          headers: ['Content-Length: 0'],
        }),
      ),
    }),
  },
  {
    name: 'setWebhook with hostile TLS',
    plan: ({ port, fromAddress, bots, tlsPorts }) => ({
      kind: 'repeat',
      port,
      fromAddress,
      connections,
      requests: bots.flatMap((bot) =>
        tlsPorts.map((tlsPort) =>
          requestOf(bot, {
            method: `setWebhook?url=https://127.0.0.1:${tlsPort}/`,
            headers: ['Content-Length: 0'],
          }),
        ),
      ),
    }),
  },
  {
    name: 'idle connections',
    plan: ({ port, fromAddress, bots }) => ({
      ...crowd,
      port,
      fromAddress,
      messages: bots.map((bot) =>
        requestOf(bot, { method: 'getMe', headers: ['Content-Length: 0'] }),
      ),
    }),
  },
  {
    name: 'half-requests',
    plan: ({ port, fromAddress, bots }) => ({
      ...crowd,
      port,
      fromAddress,
      messages: bots.map((bot) => requestOf(bot, unfinished)),
    }),
  },
  {
    name: 'pipelined unknown paths',
    plan: ({ port, fromAddress, bots }) => ({
      kind: 'endless',
      port,
      fromAddress,
      connections,
      // The first request brings the connection to a worker.
      heads: bots.map((bot) => requestOf(bot, { method: 'getMe', headers: ['Content-Length: 0'] })),
      piece: Buffer.from('GET / HTTP/1.1\r\n\r\n'.repeat(10_000)),
    }),
  },
]
