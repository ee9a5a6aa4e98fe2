/**
 * npm's packages of a release in the empty Debian that scripts/test-debian starts, which has no network and no compiler. In other
 * runs this is skipped.
 */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  attempt,
  booted,
  debian,
  inDebian,
  noDebian as skip,
} from '../support/programs/debian-machine.ts'

/** The versions of docs/know/promise.md. */
for (const version of [20, 22, 24]) {
  test(`npm's packages work on Node.js ${version} without a compiler`, { skip }, async () => {
    await booted()
    const tools = 'command -v make || command -v g++ || command -v python3'
    assert.notEqual(attempt('sh', '-c', tools).status, 0)
    const home = `/srv/${version}`
    mkdirSync(join(debian, home))
    writeFileSync(join(debian, home, 'package.json'), '{"type":"module"}')
    writeFileSync(join(debian, home, 'main.js'), program)
    const inHome = (line: string): string => {
      const npm = `alias npm='node /npm/npm/bin/npm-cli.js' npx='node /npm/npm/bin/npx-cli.js'`
      const path = `cd ${home}; export PATH=/npm/node-${version}/bin:$PATH HOME=/root`
      return inDebian('sh', '-c', `${path}; ${npm}\n${line}`)
    }
    inHome('npm install --offline --no-audit --no-fund --cache /npm/cache /npm/postbote-*.tgz')
    const { version: own }: { readonly version: string } = JSON.parse(
      inHome('cat node_modules/postbote-client/package.json'),
    )
    assert.equal(inHome('npx postbote --version'), own)
    assert.equal(inHome('node main.js').split('\n').at(-1), 'one,two')
  })
}

/** Starts the server, and drives it with the clients of both packages. */
const program = `
  import { spawn } from 'node:child_process'
  import { once } from 'node:events'
  import { readFileSync } from 'node:fs'
  import { createInterface } from 'node:readline'
  import { PostboteClient } from 'postbote/client'
  import { PostboteClient as Alone } from 'postbote-client'
  const ports = ['--http-port=0', '--admin-port=0', '--workers=1']
  const server = spawn('node_modules/.bin/postbote', ['serve', '--dir=data', ...ports])
  for await (const line of createInterface(server.stdout)) {
    const { msg, bot, private: api } = JSON.parse(line)
    if (msg !== 'ready') continue
    const options = { url: 'http://' + api, key: readFileSync('data/admin.key', 'utf8').trim() }
    const [client, alone] = [new PostboteClient(options), new Alone(options)]
    const { botId, token } = await client.createBot({ firstName: 'T', username: 't_bot' })
    await client.push(botId, { message: { text: 'one' } })
    await alone.push(botId, { message: { text: 'two' } })
    await Promise.all([client.close(), alone.close()])
    const { result } = await (await fetch('http://' + bot + '/bot' + token + '/getUpdates')).json()
    console.log(result.map(({ message }) => message.text).join())
    server.kill('SIGTERM')
    const [code] = await once(server, 'exit')
    process.exit(code)
  }
`
