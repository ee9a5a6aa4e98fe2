import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'

const script = fileURLToPath(new URL('../../scripts/start.js', import.meta.url))
const shell = promisify(execFile)

test('at every start the start script prints a token and two commands that work when they are pasted', async (t) => {
  const home = join(temporaryDirectory(t), "it's here")
  mkdirSync(home)
  const flags = ['--http-port=0', '--admin-port=0', '--workers=1']
  const first = await start(t, home, flags)
  const kept = join(home, 'data', 'demo-token')
  assert.equal(readFileSync(kept, 'utf8'), `${first.token}\n`)
  assert.equal(statSync(kept).mode & 0o777, 0o600)
  await useAsPasted(first, home)
  assert.equal(await first.stop(), 0)

  const second = await start(t, home, flags)
  assert.equal(second.token, first.token)
  await useAsPasted(second, home)
  assert.equal(await second.stop(), 0)
})

test('the commands of the start script reach Unix sockets', async (t) => {
  const home = temporaryDirectory(t)
  const sockets = ['--http-ip-address=./bots.sock', '--admin-ip-address=./admin.sock']
  const server = await start(t, home, [...sockets, '--dir=elsewhere', '--workers=1'])
  await useAsPasted(server, home)
  assert.equal(await server.stop(), 0)
})

test('the start script ends with the exit code of the server', async (t) => {
  const home = temporaryDirectory(t)
  const failed = await shell(process.execPath, [script, '--http-port=x'], { cwd: home }).catch(
    (error: unknown) => error,
  )
  assert(failed instanceof Error && 'code' in failed && 'stderr' in failed)
  assert.equal(failed.code, 2)
  assert.match(String(failed.stderr), /^postbote: --http-port: expected an integer/)
})

interface Started {
  readonly token: string
  readonly commands: readonly string[]
  stop(): Promise<number | null>
}

async function start(t: TestContext, cwd: string, flags: readonly string[]): Promise<Started> {
  const server = spawn(process.execPath, [script, ...flags], {
    cwd,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(server, 'close')
  t.after(async () => {
    server.kill('SIGKILL')
    await closed
  })
  let output = ''
  for await (const chunk of server.stdout.iterator({ destroyOnReturn: false })) {
    output += String(chunk)
    if (/Poll for it:\n.+\n/.test(output)) break
  }
  server.stdout.resume()
  const [, token] = /has the token (\S+)/.exec(output) ?? []
  assert(token !== undefined, output)
  const commands = output.split('\n').filter((line) => line.startsWith('  curl '))
  assert.equal(commands.length, 2, output)
  return {
    token,
    commands,
    async stop() {
      server.kill('SIGTERM')
      await closed
      return server.exitCode
    },
  }
}

async function useAsPasted(server: Started, cwd: string): Promise<void> {
  const [push, poll] = server.commands
  const pushed = JSON.parse(await answerOf(push!, cwd))
  assert.equal(typeof pushed.update_id, 'number')
  const { ok, result } = JSON.parse(await answerOf(poll!, cwd))
  assert.equal(ok, true)
  assert.equal(result.at(-1).update_id, pushed.update_id)
  assert.equal(result.at(-1).message.text, 'hello')
}

async function answerOf(command: string, cwd: string): Promise<string> {
  const { stdout } = await shell('bash', ['-c', `set -e; ${command} --silent --show-error`], {
    cwd,
  })
  return stdout
}
