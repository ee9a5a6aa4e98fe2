import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mayNameMethod, replyMethod } from '../../../src/bot-api/upstream-replies.ts'
import { form, json, multipart } from '../../support/bots/read-params.ts'

function methodOf(type: string, body: string): string | undefined {
  return replyMethod(type, Buffer.from(body))
}

function part(name: string, value: string, more = ''): string {
  return `--B\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`
}

test('a method is found in each form in which frameworks respond', () => {
  assert.equal(methodOf(json, '{"chat_id":1,"method":"sendMessage"}'), 'sendMessage')
  assert.equal(methodOf(`${json}; charset=utf-8`, '{"method":"SENDmessage"}'), 'SENDmessage')
  assert.equal(methodOf(form, 'text=a%20b&method=sendMessage'), 'sendMessage')
  assert.equal(methodOf(multipart, `${part('method', 'sendPhoto')}--B--\r\n`), 'sendPhoto')
})

test('methods that only read, and those about the connection, are not sent, in any case', () => {
  const names = ['getMe', 'GETchat', 'get', 'setWebhook', 'SetWebHook', 'deletewebhook', 'close']
  for (const name of [...names, 'logOut']) {
    assert.equal(methodOf(json, JSON.stringify({ method: name })), undefined, name)
  }
  assert.equal(methodOf(json, '{"method":"closeForumTopic"}'), 'closeForumTopic')
  assert.equal(methodOf(json, '{"method":"forgetMe"}'), 'forgetMe')
})

test('a body that names no method, or is broken, is no reply', () => {
  const file = part('method', 'sendPhoto', '; filename="method"')
  const bodies: readonly (readonly [string, string])[] = [
    [json, ''],
    [json, '{}'],
    [json, '[{"method":"sendMessage"}]'],
    [json, '"method"'],
    [json, '{"method":null}'],
    [json, '{"method":{"a":1}}'],
    [json, '{"method":"sendMessage"'],
    [json, '{"result":{"method":"sendMessage"}}'],
    [json, '{"method":"../sendMessage"}'],
    [json, '{"method":"send message"}'],
    [json, '{"method":"send\\u0000"}'],
    [json, `{"method":"${'a'.repeat(65)}"}`],
    [form, 'methods=sendMessage'],
    [multipart, `${file}--B--\r\n`],
    [multipart, part('method', 'sendPhoto')],
    ['multipart/form-data', `${part('method', 'sendPhoto')}--B--\r\n`],
    ['text/html', '{"method":"sendMessage"}'],
  ]
  for (const [type, body] of bodies) assert.equal(methodOf(type, body), undefined, body)
})

test('only bodies of a type that can name a method are read', () => {
  for (const type of [json, form, multipart, `${json};charset=UTF-8`]) assert(mayNameMethod(type))
  for (const type of ['', 'text/plain', 'text/html', 'image/png']) assert(!mayNameMethod(type))
})
