/**
 * TLS servers with handshakes that cost the client as much as possible, in a separate process: `node hostile-tls.js`
 * prints `{"NAME": PORT, ...}` as one line and ends with its parent.
 */
import assert from 'node:assert/strict'
import { createECDH, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer as createTcpServer, type Server } from 'node:net'
import { createServer, type TlsOptions } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { portOf } from '../kit/port.ts'

const file = fileURLToPath(import.meta.url)

/**
 * Starts the servers.
 *
 * @param atEnd - Registers the function that ends the process.
 * @returns The ports by name: `plain` is an ordinary endpoint, each other one an attack.
 */
export async function startHostileTls(
  atEnd: (end: () => Promise<void>) => void,
): Promise<ReadonlyMap<string, number>> {
  const child = spawn(process.execPath, [file], { stdio: ['pipe', 'pipe', 'inherit'] })
  atEnd(async () => {
    const ended = once(child, 'exit')
    if (child.kill('SIGKILL')) await ended
  })
  let text = ''
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    text += String(chunk)
    if (text.endsWith('\n')) break
  }
  assert.ok(text.endsWith('\n'), 'the hostile endpoints did not start')
  return new Map(Object.entries<number>(JSON.parse(text)))
}

// DER, as far as certificates need it.
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const digits = content.length.toString(16)
  const bytes = hex(digits.padStart(digits.length + (digits.length % 2), '0'))
  const length = content.length < 128 ? bytes : Buffer.from([0x80 | bytes.length, ...bytes])
  return Buffer.concat([Buffer.from([tag]), length, content])
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, ...parts)
}

function integer(bytes: Buffer): Buffer {
  return der(0x02, (bytes[0] ?? 0) > 127 ? Buffer.concat([Buffer.of(0), bytes]) : bytes)
}

function bits(bytes: Buffer): Buffer {
  return der(0x03, Buffer.of(0), bytes)
}

function hex(text: string): Buffer {
  return Buffer.from(text, 'hex')
}

const rsaEncryption = sequence(hex('06092a864886f70d010101'), hex('0500'))
const sha256WithRsa = sequence(hex('06092a864886f70d01010b'), hex('0500'))
const ecdsaWithSha256 = sequence(hex('06082a8648ce3d040302'))

function nameOf(text: string): Buffer {
  return sequence(der(0x31, sequence(hex('0603550403'), der(0x0c, Buffer.from(text)))))
}

interface Certificate {
  readonly name: string
  readonly issuer: string
  readonly publicKey: Buffer
  readonly algorithm: Buffer
  /** A key that signs, or bytes in place of a signature. */
  readonly signature: KeyObject | Buffer
}

let serial = 1

function certificate({ name, issuer, publicKey, algorithm, signature }: Certificate): Buffer {
  const validity = sequence(
    der(0x17, Buffer.from('250101000000Z')),
    der(0x17, Buffer.from('450101000000Z')),
  )
  const constraints = sequence(hex('0603551d13'), hex('0101ff'), der(0x04, sequence(hex('0101ff'))))
  const body = sequence(
    hex('a003020102'),
    integer(Buffer.of(1, serial >> 8, serial++ & 255)),
    algorithm,
    nameOf(issuer),
    validity,
    nameOf(name),
    publicKey,
    der(0xa3, sequence(constraints)),
  )
  const signed = Buffer.isBuffer(signature) ? signature : sign('sha256', body, signature)
  return sequence(body, algorithm, bits(signed))
}

/** An issuer that does not exist: a key, and bytes that look like its signature until the signature is verified. */
interface FakeIssuer {
  readonly publicKey: Buffer
  readonly algorithm: Buffer
  readonly signature: Buffer
}

function fakeRsa(modulusBytes: number, exponent: Buffer): FakeIssuer {
  const modulus = randomBytes(modulusBytes)
  modulus[0] = 0xc1
  modulus[modulusBytes - 1] = 0x01
  const key = sequence(integer(modulus), integer(exponent))
  const signature = Buffer.concat([Buffer.of(1), randomBytes(modulusBytes - 1)])
  return { publicKey: sequence(rsaEncryption, bits(key)), algorithm: sha256WithRsa, signature }
}

function fakeEc(namedCurve: string, isExplicit = false): FakeIssuer {
  const paramEncoding = isExplicit ? 'explicit' : 'named'
  const { publicKey } = generateKeyPairSync('ec', { namedCurve, paramEncoding })
  const orderBytes = createECDH(namedCurve).generateKeys().length >> 1
  const number = (): Buffer => integer(Buffer.concat([Buffer.of(1), randomBytes(orderBytes - 2)]))
  return {
    publicKey: publicKey.export({ type: 'spki', format: 'der' }),
    algorithm: ecdsaWithSha256,
    signature: sequence(number(), number()),
  }
}

const leaf = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
const leafKey = leaf.publicKey.export({ type: 'spki', format: 'der' })

/** A leaf with this many certificates above it, each the issuer of the previous one. */
function chain(length: number, makeIssuer: () => FakeIssuer): readonly Buffer[] {
  const issuers = Array.from({ length }, () => makeIssuer())
  const first = makeIssuer()
  const certificates = [
    certificate({ ...first, name: 'bot.example', issuer: 'issuer 0', publicKey: leafKey }),
  ]
  for (const [index, { publicKey }] of issuers.entries()) {
    const { algorithm, signature } = issuers[index + 1] ?? first
    const names = { name: `issuer ${index}`, issuer: `issuer ${index + 1}` }
    certificates.push(certificate({ ...names, publicKey, algorithm, signature }))
  }
  return certificates
}

function pem(type: string, bytes: Buffer): string {
  const text = bytes.toString('base64').replaceAll(/(.{64})(?=.)/g, '$1\n')
  return `-----BEGIN ${type}-----\n${text}\n-----END ${type}-----\n`
}

function withChain(certificates: readonly Buffer[], version: TlsOptions['minVersion']): TlsOptions {
  return {
    key: leaf.privateKey.export({ type: 'pkcs8', format: 'pem' }),
    cert: certificates.map((each) => pem('CERTIFICATE', each)).join(''),
    minVersion: version,
    maxVersion: version,
  }
}

function plain(): readonly Buffer[] {
  const names = { name: 'bot.example', issuer: 'bot.example' }
  const how = { algorithm: ecdsaWithSha256, signature: leaf.privateKey }
  return [certificate({ ...names, ...how, publicKey: leafKey })]
}

/** A group of 10,000 bits, the most that OpenSSL accepts. OpenSSL does not check whether the modulus is a prime. */
function withLargeGroup(): TlsOptions {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const modulus = randomBytes(1_250)
  modulus[0] = 0xff
  modulus[1_249] = 0x0b
  const names = { name: 'bot.example', issuer: 'bot.example' }
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const how = { algorithm: sha256WithRsa, signature: privateKey, publicKey: spki }
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    cert: pem('CERTIFICATE', certificate({ ...names, ...how })),
    dhparam: pem('DH PARAMETERS', sequence(integer(modulus), integer(Buffer.of(2)))),
    ciphers: 'DHE-RSA-AES128-GCM-SHA256',
    maxVersion: 'TLSv1.2',
  }
}

const longExponent = Buffer.alloc(8, 0xff)
const endpoints: Readonly<Record<string, () => TlsOptions>> = {
  plain: () => withChain(plain(), 'TLSv1.3'),
  'a group of 10,000 bits': withLargeGroup,
  'ffdhe8192 in TLS 1.3': () => ({ ...withChain(plain(), 'TLSv1.3'), ecdhCurve: 'ffdhe8192' }),
  '100 certificates': () =>
    withChain(
      chain(99, () => fakeEc('prime256v1')),
      'TLSv1.3',
    ),
  '100 certificates in TLS 1.2': () =>
    withChain(
      chain(99, () => fakeEc('secp521r1')),
      'TLSv1.2',
    ),
  '100 KB of certificates': () =>
    withChain(
      chain(230, () => fakeEc('secp521r1')),
      'TLSv1.3',
    ),
  'RSA keys of 16,384 bits': () =>
    withChain(
      chain(20, () => fakeRsa(2_048, longExponent)),
      'TLSv1.3',
    ),
  'one RSA key of 16,384 bits': () =>
    withChain(
      chain(1, () => fakeRsa(2_048, longExponent)),
      'TLSv1.2',
    ),
  'RSA keys with an exponent of 3,000 bits': () =>
    withChain(
      chain(70, () => fakeRsa(384, Buffer.alloc(375, 0x7f))),
      'TLSv1.3',
    ),
  'a binary curve': () =>
    withChain(
      chain(99, () => fakeEc('sect571r1')),
      'TLSv1.3',
    ),
  'a curve of its own': () =>
    withChain(
      chain(9, () => fakeEc('sect571r1', true)),
      'TLSv1.2',
    ),
}

function uint24(value: number): Buffer {
  return Buffer.of(value >> 16, (value >> 8) & 255, value & 255)
}

/** The first flight of TLS 1.2 needs no key, so a server can show any certificate before it must prove anything. */
function withStolenCertificate(): Server {
  const { publicKey, ...how } = fakeRsa(2_048, longExponent)
  const shown = certificate({ ...how, name: 'bot.example', issuer: 'bot.example', publicKey })
  const message = (type: number, body: Buffer): Buffer =>
    Buffer.concat([Buffer.of(type), uint24(body.length), body])
  // RSA key exchange: TLS_RSA_WITH_AES_128_GCM_SHA256, no session, no compression, secure renegotiation.
  const hello = Buffer.concat([hex('0303'), randomBytes(32), hex('00009c000005ff01000100')])
  const list = Buffer.concat([uint24(shown.length + 3), uint24(shown.length), shown])
  const flight = Buffer.concat([message(2, hello), message(11, list), message(14, Buffer.alloc(0))])
  const record = Buffer.concat([hex('160303'), uint24(flight.length).subarray(1), flight])
  return createTcpServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => void socket.write(record))
  })
}

async function serve(): Promise<void> {
  const servers = new Map<string, Server>([
    ['a leaf with an RSA key of 16,384 bits', withStolenCertificate()],
  ])
  for (const [name, options] of Object.entries(endpoints)) {
    const server = createServer(options(), (socket) => void socket.on('error', () => undefined))
    server.on('tlsClientError', () => undefined)
    servers.set(name, server)
  }
  const ports: Record<string, number> = {}
  for (const [name, server] of servers) {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    ports[name] = portOf(server)
  }
  process.stdin.resume().on('close', () => process.exit())
  console.log(JSON.stringify(ports))
}

if (process.argv[1] === file) await serve()
