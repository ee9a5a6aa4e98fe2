/**
 * A server with TLS from files for tests that speak plain HTTP: in front of each listener is a proxy of this process that
 * speaks TLS to it. It passes on half-closes and resets.
 */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { portOf } from '../kit/port.ts'
import { temporaryDirectory } from '../kit/temporary-directory.ts'
import { type Server, type ServerOptions, startServer } from '../server/server.ts'
import { issueCertificate } from './certificates.ts'

/** Starts the server, and returns it as clients of the proxies see it. */
export async function startBehindTls(t: TestContext, options: ServerOptions): Promise<Server> {
  const directory = temporaryDirectory(t)
  const { cert, key } = issueCertificate({ name: 'server', alternatives: 'IP:127.0.0.1' })
  const [certFile, keyFile] = [join(directory, 'cert.pem'), join(directory, 'key.pem')]
  writeFileSync(certFile, cert)
  writeFileSync(keyFile, key, { mode: 0o600 })
  const files = ['http', 'admin'].flatMap((name) => [
    `--${name}-cert=${certFile}`,
    `--${name}-cert-key=${keyFile}`,
  ])
  const server = await startServer(t, { ...options, flags: [...(options.flags ?? []), ...files] })
  const [bot, admin] = await Promise.all(
    [server.botUrl, server.privateUrl].map((url) => startProxy(t, Number(new URL(url).port), cert)),
  )
  return server.reachedAt({ bot: `127.0.0.1:${bot}`, private: `127.0.0.1:${admin}` })
}

async function startProxy(t: TestContext, port: number, ca: string): Promise<number> {
  const proxy = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const below = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
    const secured = connectTls({ socket: below, ca, host: '127.0.0.1' })
    secured.allowHalfOpen = true
    client.pipe(secured).pipe(client)
    client.on('error', () => void below.resetAndDestroy())
    secured.on('error', () => void client.destroy())
    client.on('close', () => void secured.destroy())
    // What it has received before its end is still being written.
    secured.on('close', () => {
      if (!secured.readableEnded) client.destroy()
    })
  })
  proxy.listen(0, '127.0.0.1')
  t.after(() => void proxy.close())
  await once(proxy, 'listening')
  return portOf(proxy)
}
