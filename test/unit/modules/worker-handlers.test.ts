import assert from 'node:assert/strict'
import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { workerHandlers } from '../../../src/modules/worker-handlers.ts'
import type { ListenerKind } from '../../../src/http/listener.ts'

function ways(kind: ListenerKind, url: string): string {
  const passed: string[] = []
  const through =
    (name: string) =>
    (next: RequestListener): RequestListener =>
    (request, response) => {
      passed.push(name)
      next(request, response)
    }
  const end = (name: string) => (): void => void passed.push(name)
  const handlers = workerHandlers({
    gate: { botListener: through('gate'), privateListener: through('gate') },
    router: { listener: (_kind, next) => through('router')(next) },
    probes: { onPublic: through('probes') },
    portal: { listener: through('portal') },
    bot: { listener: end('bot') },
    privateApi: { routing: end('private') },
  })
  const request = Object.assign(new IncomingMessage(new Socket()), { url })
  handlers[kind](request, new ServerResponse(request))
  return passed.join(' ')
}

test('what a public request passes is decided by the beginning of its target', () => {
  for (const url of ['/bot123:x/getUpdates', '/file/bot123:x/a', '/bot', '/botany']) {
    assert.equal(ways('bot', url), 'gate router bot', url)
  }
  for (const url of [
    '/healthz',
    '/portal/',
    '/',
    '/Bot1:x/getMe',
    '/file/',
    '/v1/bots',
    '//bot1:x/getMe',
  ]) {
    assert.equal(ways('bot', url), 'probes gate router portal bot', url)
  }
  assert.equal(ways('private', '/bot123:x/getUpdates'), 'gate router portal private')
})
