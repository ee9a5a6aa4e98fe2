/** TLS endpoints and clients that send handshake messages after the handshake. Each is cheap to send and expensive to read. */
import { createCipheriv, createHmac } from 'node:crypto'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { connect as connectTls, TLSSocket, type TLSSocketOptions } from 'node:tls'

/** Sends `count` KeyUpdates of TLS 1.3 in one write. */
export function keyUpdatingEndpoint(
  identity: Pick<TLSSocketOptions, 'key' | 'cert'>,
  count: number,
): Server {
  return createServer((raw) => {
    raw.on('error', () => undefined)
    let secret = Buffer.alloc(0)
    const ciphers = 'TLS_AES_128_GCM_SHA256'
    const tls = new TLSSocket(raw, { ...identity, ciphers, minVersion: 'TLSv1.3', isServer: true })
    tls.on('error', () => undefined)
    tls.on('keylog', (line: Buffer) => {
      const [name, , value = ''] = line.toString().trim().split(' ')
      if (name === 'SERVER_TRAFFIC_SECRET_0') secret = Buffer.from(value, 'hex')
    })
    // OpenSSL has sent two tickets by then.
    tls.once('secure', () => setImmediate(() => raw.write(keyUpdates(secret, { count, sent: 2 }))))
  })
}

/** Connects to a server of TLS 1.3, and sends `count` KeyUpdates in one write. */
export function keyUpdatingClient(port: number, count: number): Socket {
  const raw = connect(port, '127.0.0.1')
  raw.on('error', () => undefined)
  const ciphers = 'TLS_AES_128_GCM_SHA256'
  const tls = connectTls({ socket: raw, ciphers, minVersion: 'TLSv1.3', rejectUnauthorized: false })
  tls.on('error', () => undefined)
  tls.on('keylog', (line: Buffer) => {
    const [name, , value = ''] = line.toString().trim().split(' ')
    if (name !== 'CLIENT_TRAFFIC_SECRET_0') return
    const bytes = keyUpdates(Buffer.from(value, 'hex'), { count, sent: 0 })
    tls.once('secureConnect', () => setImmediate(() => raw.write(bytes)))
  })
  return raw
}

/** Sends `count` HelloRequests of TLS 1.2 in one write. */
export function helloRequestingEndpoint(
  identity: Pick<TLSSocketOptions, 'key' | 'cert'>,
  count: number,
): Server {
  return createServer((raw) => {
    raw.on('error', () => undefined)
    let first: Buffer | undefined
    let master = Buffer.alloc(0)
    let clientRandom = Buffer.alloc(0)
    // The server's random is read from its ServerHello, which comes first.
    const wire = new Duplex({
      read: () => undefined,
      write: (bytes: Buffer, _encoding, done) => {
        first ??= bytes
        raw.write(bytes, () => done())
      },
    })
    raw.on('data', (bytes) => wire.push(bytes))
    const ciphers = 'ECDHE-ECDSA-AES128-GCM-SHA256'
    const tls = new TLSSocket(wire, { ...identity, ciphers, maxVersion: 'TLSv1.2', isServer: true })
    tls.on('error', () => undefined)
    tls.on('keylog', (line: Buffer) => {
      const [, random = '', value = ''] = line.toString().trim().split(' ')
      clientRandom = Buffer.from(random, 'hex')
      master = Buffer.from(value, 'hex')
    })
    tls.once('secure', () => {
      const serverRandom = first?.subarray(11, 43) ?? Buffer.alloc(0)
      const seed = Buffer.concat([Buffer.from('key expansion'), serverRandom, clientRandom])
      const keys = expandMaster(master, seed)
      setTimeout(() => raw.write(helloRequests(keys, count)), 100)
    })
  })
}

function helloRequests(keys: Buffer, count: number): Buffer {
  const records: Buffer[] = []
  // The server's Finished was its record 0.
  for (let nth = 1; nth <= count; nth++) {
    const sequence = Buffer.alloc(8)
    sequence.writeUInt32BE(nth, 4)
    const nonce = Buffer.concat([keys.subarray(36, 40), sequence])
    const cipher = createCipheriv('aes-128-gcm', keys.subarray(16, 32), nonce)
    cipher.setAAD(Buffer.concat([sequence, Buffer.of(22, 3, 3, 0, 4)]))
    const sealed = cipher.update(Buffer.alloc(4))
    records.push(Buffer.of(22, 3, 3, 0, 28), sequence, sealed, cipher.final(), cipher.getAuthTag())
  }
  return Buffer.concat(records)
}

/** The first 64 bytes of the PRF of RFC 5246, section 5; AES-128-GCM needs 40. */
function expandMaster(master: Buffer, seed: Buffer): Buffer {
  const hmac = (bytes: Buffer): Buffer => createHmac('sha256', master).update(bytes).digest()
  const one = hmac(seed)
  const two = hmac(one)
  return Buffer.concat([hmac(Buffer.concat([one, seed])), hmac(Buffer.concat([two, seed]))])
}

/** @param options - `sent` is the number of records that were sent with the first key */
function keyUpdates(
  first: Buffer,
  { count, sent }: { readonly count: number; readonly sent: number },
): Buffer {
  const records: Buffer[] = []
  let secret = first
  for (let nth = 0; nth < count; nth++) {
    const nonce = expand(secret, 'iv', 12)
    // Only the first key has been used before.
    if (nth === 0) nonce[11] = (nonce[11] ?? 0) ^ sent
    const head = Buffer.of(23, 3, 3, 0, 22)
    const cipher = createCipheriv('aes-128-gcm', expand(secret, 'key', 16), nonce).setAAD(head)
    const sealed = cipher.update(Buffer.of(24, 0, 0, 1, 0, 22))
    records.push(head, sealed, cipher.final(), cipher.getAuthTag())
    secret = expand(secret, 'traffic upd', 32)
  }
  return Buffer.concat(records)
}

/** HKDF-Expand-Label of RFC 8446, section 7.1, for up to 32 bytes. */
function expand(secret: Buffer, label: string, length: number): Buffer {
  const name = `tls13 ${label}`
  const info = Buffer.concat([
    Buffer.of(0, length, name.length),
    Buffer.from(name),
    Buffer.of(0, 1),
  ])
  return createHmac('sha256', secret).update(info).digest().subarray(0, length)
}
