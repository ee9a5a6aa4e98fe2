/** A client whose calls are expensive is slowed down, and others are served at the same time. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { jsonValuesMax } from '../../src/bot-api/params.ts'
import { botOf } from '../support/server/bot-of.ts'
import { send, startServer } from '../support/server/server.ts'
import { shared as sharedBy } from '../support/server/shared-server.ts'

const shared = sharedBy((owner) => startServer(owner, { flags: ['--public-healthz'] }))
const attackerAddress = '127.0.0.2'

/**
 * Nearly the largest body of a call, with nearly as many keys as it may have, all of which are escapes and new: parsing takes
 * 4 ms on a fast machine. It does not compress suspiciously well.
 */
const keys = Array.from({ length: jsonValuesMax - 100 }, (_, nth) => {
  const escapes = Array.from({ length: 42 }, (_each, at) => 0x4e00 + ((nth * 42 + at) % 20_011))
  return `"${escapes.map((code) => `\\u${code.toString(16)}`).join('')}":0`
})
const expensive = gzipSync(`{${keys.join()}}`)
const calls = 100
/**
 * The share of CPU that the worker must have had: without enough CPU it pays debts of CPU time while it waits for its
 * turn.
 */
const cpuShareMin = 0.4

test('when many expensive calls arrive at once, some wait and some get 429, and other clients, bots and the probes of the same address are served', async (t) => {
  const server = await shared()
  const [greedy, other] = [await server.register(botOf(0)), await server.register(botOf(0, 1))]
  const startMs = performance.now()
  const startCpuMs = cpuMsOf(server.workerPids())
  const attack = Array.from({ length: calls }, () =>
    callFrom(attackerAddress, `${server.botUrl}/bot${greedy.token}/getMe`),
  )
  for (let nth = 0; nth < 10; nth++) {
    const me = await send({ method: 'GET', url: `${server.botUrl}/bot${other.token}/getMe` })
    assert.equal(me.status, 200, me.text)
    await server.push(other.botId, { message: { text: 'hello' } })
    // A load balancer may have the address of all its clients.
    const agent = new Agent({ localAddress: attackerAddress })
    const probe = await send({ method: 'GET', url: `${server.botUrl}/readyz`, agent })
    assert.equal(probe.status, 200, probe.text)
  }
  const answers = await Promise.all(attack)
  const share = (cpuMsOf(server.workerPids()) - startCpuMs) / (performance.now() - startMs)
  for (const { status } of answers) assert.ok(status === 200 || status === 429, `${status}`)
  const refused = answers.filter(({ status }) => status === 429)
  if (refused.length === 0 && share < cpuShareMin) {
    t.skip(`the machine is too busy: the worker had ${Math.round(share * 100)} % of a CPU`)
    return
  }
  assert.ok(refused.length > 0 && refused.length < calls, `${refused.length} were refused`)
  for (const { text } of refused) assert.match(text, /"parameters":\{"retry_after":[1-9]/)
})

/** Linux counts in hundredths of a second. */
function cpuMsOf(pids: readonly number[]): number {
  let ticks = 0
  for (const pid of pids) {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
    ticks += Number(fields[11]) + Number(fields[12])
  }
  return ticks * 10
}

function callFrom(
  localAddress: string,
  url: string,
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const headers = {
      'content-type': 'application/json',
      'content-encoding': 'gzip',
      'content-length': expensive.length,
    }
    const sent = request(url, { method: 'POST', headers, localAddress, agent: false }, (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (piece: string) => (text += piece))
      answer.once('end', () => resolve({ status: answer.statusCode ?? 0, text }))
    })
    sent.once('error', reject)
    sent.end(expensive)
  })
}
