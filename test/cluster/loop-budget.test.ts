/** A client whose calls are expensive is slowed down, and others are served meanwhile. */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { botOf } from '../support/bot-of.ts'
import { send } from '../support/server.ts'
import { sharedServer } from '../support/shared-server.ts'

const shared = sharedServer()

/** Nearly as much as a call may have, all of it to be parsed: some 10 ms. */
const expensive = gzipSync(`{"a":[${'0,'.repeat(500_000)}0]}`)
const calls = 80

test('of expensive calls that come all at once some wait and some get 429, while other clients, and bots, are served', async () => {
  const server = await shared()
  const [greedy, other] = [await server.register(botOf(0)), await server.register(botOf(0, 1))]
  const attack = Array.from({ length: calls }, () =>
    callFrom('127.0.0.2', `${server.botUrl}/bot${greedy.token}/getMe`),
  )
  for (let nth = 0; nth < 10; nth++) {
    const me = await send({ method: 'GET', url: `${server.botUrl}/bot${other.token}/getMe` })
    assert.equal(me.status, 200, me.text)
    await server.push(other.botId, { message: { text: 'hello' } })
  }
  const answers = await Promise.all(attack)
  const refused = answers.filter(({ status }) => status === 429)
  assert.ok(refused.length > 0 && refused.length < calls, `${refused.length} were refused`)
  for (const { text } of refused) assert.match(text, /"parameters":\{"retry_after":[1-9]/)
  for (const { status } of answers) assert.ok(status === 200 || status === 429, `${status}`)
})

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
