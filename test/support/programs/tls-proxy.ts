/**
 * What nginx, haproxy and Caddy have in common when a test runs one of them with a configuration of docs/run: its listeners
 * with TLS, the changes to the documented text, its start and its end.
 */
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { isOpen } from '../kit/is-open.ts'
import { issueCertificate, type KeyPair } from '../network/certificates.ts'

/** Where a client connects to. */
export interface TlsProxy {
  readonly botsPort: number
  readonly pushPort: number
  readonly certificate: KeyPair
}

export const botsHost = 'bots.example.com'
export const pushHost = 'push.example.com'

const lookPauseMs = 20

/** Issues a certificate for both hosts. */
export function proxyCertificate(): KeyPair {
  return issueCertificate({ name: botsHost, alternatives: `DNS:${botsHost},DNS:${pushHost}` })
}

/** Every text must be found; otherwise the configuration has changed and the test would use something else. */
export function replaceAll(text: string, replacements: Readonly<Record<string, string>>): string {
  let replaced = text
  for (const [from, to] of Object.entries(replacements)) {
    assert(replaced.includes(from), `the configuration has no ${from}`)
    replaced = replaced.replaceAll(from, to)
  }
  return replaced
}

/** Waits until a proxy that was just started accepts connections. If it does not, this throws with the proxy's log. */
export async function untilStarted(
  child: ChildProcess,
  {
    port,
    limitMs,
    log,
  }: { readonly port: number; readonly limitMs: number; readonly log: () => string },
): Promise<void> {
  for (let waitedMs = 0; waitedMs < limitMs; waitedMs += lookPauseMs) {
    if (child.exitCode !== null) break
    if (await isOpen(port)) return
    await new Promise((resolve) => setTimeout(resolve, lookPauseMs))
  }
  throw new Error(`${child.spawnfile} did not start: ${log()}`)
}

/** Ends a proxy, unless it has ended, and waits until it is gone. */
export async function endProxy(
  child: ChildProcess | undefined,
  signal: 'SIGTERM' | 'SIGKILL',
): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill(signal)
  await gone
}
