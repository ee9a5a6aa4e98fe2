/**
 * A separate network for a test: a process with only a loopback interface, which has any addresses that the test needs,
 * and whose names are resolved by 127.0.0.1. No packet can leave it. It needs unshare, ip, and a system that allows
 * this user to create namespaces.
 *
 * The test file runs twice. Outside, `runInNamespace` runs it again inside and reports the inner tests as its own.
 * Inside, it defines these tests.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { temporaryDirectory } from './temporary-directory.ts'

const mark = 'TEST_NETWORK_NAMESPACE'

export const isInNamespace = process.env[mark] !== undefined

/** Why no namespace can be created here; undefined if one can. */
export function namespaceObstacle(): string | undefined {
  // Everybody is root in it, and PostgreSQL does not run as root.
  if (process.env['TEST_START_SERVER'] !== undefined) return 'a cluster runs in no namespace'
  const tried = spawnSync('unshare', ['-rnm', 'ip', 'link', 'set', 'lo', 'up'], {
    encoding: 'utf8',
  })
  if (tried.status === 0) return undefined
  const why = tried.error?.message ?? tried.stderr.trim()
  return `no network namespace can be made here: ${why}`
}

/** Outside: runs the tests of a compiled file in a namespace and reports each of them. */
export async function runInNamespace(t: TestContext, file: string): Promise<void> {
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env
  const args = ['-rnm', '--kill-child', process.execPath, '--test-reporter=tap', file]
  const child = spawn('unshare', args, {
    env: { ...env, [mark]: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.after(() => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  await once(child, 'close')
  const results = [...output.matchAll(/^ *(not ok|ok) \d+ - (.*)$/gm)]
  for (const [, result, name = ''] of results) {
    await t.test(name, () => assert.equal(result, 'ok', output))
  }
  for (const [, text = ''] of output.matchAll(/^ *# (said: .*)$/gm)) t.diagnostic(text)
  assert.ok(child.exitCode === 0 && results.length > 0, output)
}

/** Inside: adds these addresses to the loopback interface and makes 127.0.0.1 the name server. */
export function setUpNamespace(t: TestContext, addresses: readonly string[]): void {
  ip('link', 'set', 'lo', 'up')
  for (const address of addresses) {
    const family = address.includes(':') ? ['/128', 'nodad'] : ['/32']
    ip('addr', 'add', `${address}${family[0]}`, 'dev', 'lo', ...family.slice(1))
  }
  const file = join(temporaryDirectory(t), 'resolv.conf')
  writeFileSync(file, 'nameserver 127.0.0.1\noptions timeout:2 attempts:2\n')
  execFileSync('mount', ['--bind', file, '/etc/resolv.conf'], { stdio: 'pipe' })
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', args, { stdio: 'pipe' })
}
