import assert from 'node:assert/strict'
import { test } from 'node:test'
import { paramsNote } from '../../../src/bot-api/params-note.ts'
import { paramsOfBody } from '../../../src/bot-api/params.ts'

const own = ['offset', 'timeout', 'allowed_updates', 'drop_pending_updates']
const range = { default: 0, min: 0, max: 50 }

function noteOf(
  body: string,
  contentType = 'application/x-www-form-urlencoded',
): string | undefined {
  const params = paramsOfBody(Buffer.from(body), contentType)
  params.integer('offset', range)
  params.integer('timeout', range)
  params.boolean('drop_pending_updates')
  return paramsNote('getUpdates', params, own)
}

test('what is as it should be has no note, however clients write it', () => {
  for (const body of [
    '',
    'offset=1&timeout=30',
    'offset=%2B7&timeout= 5',
    'offset=99999999999999999999',
  ])
    assert.equal(noteOf(body), undefined, body)
  for (const text of ['true', 'True', '1', 'yes', 'false', '0', 'no', ''])
    assert.equal(noteOf(`drop_pending_updates=${text}`), undefined, text)
  assert.equal(
    noteOf('{"offset":12,"timeout":50,"drop_pending_updates":false}', 'application/json'),
    undefined,
  )
  assert.equal(noteOf('null', 'text/plain'), undefined)
})

test('each parameter that is ignored or counts as something else is named', () => {
  const ignored = 'getUpdates was called with what is ignored:'
  const cases = [
    ['offset=latest', `${ignored} offset is no whole number and counts as 0`],
    ['offset=12.5', `${ignored} offset is no whole number and counts as 12`],
    ['timeout=soon', `${ignored} timeout is no whole number and counts as 0`],
    [
      'drop_pending_updates=maybe',
      `${ignored} drop_pending_updates is no boolean and counts as false`,
    ],
    [
      'allowed_updates[0]=message&allowed_updates[1]=poll',
      `${ignored} there is no parameter "allowed_updates[0]", "allowed_updates[1]"`,
    ],
    ['allowed_updates[]=', `${ignored} there is no parameter "allowed_updates[]"`],
    ['timeout=5&latest', `${ignored} there is no parameter "latest"`],
    ['latest&timeout=5', `${ignored} there is no parameter "latest"`],
    ['offset=1e3', `${ignored} offset is no whole number and counts as 1`],
    ['offset=[7]', `${ignored} offset is no whole number and counts as 0`],
    ['offset=', undefined],
    ['latest', `${ignored} the body has a form that is not read`],
    ['ofset=1', `${ignored} there is no parameter "ofset"`],
    ['allowed-updates=[]', `${ignored} there is no parameter "allowed-updates"`],
    ['allowed_updates.0=poll', `${ignored} there is no parameter of such a name`],
    [' offset=1', `${ignored} there is no parameter of such a name`],
    ['\u043effset=1', `${ignored} there is no parameter of such a name`],
  ] as const
  for (const [body, note] of cases) assert.equal(noteOf(body), note)
  assert.equal(
    noteOf('{"offset":1}', 'text/plain; charset=utf-8'),
    `${ignored} the body has a Content-Type that is not read (text/plain)`,
  )
})

function part(name: string, fileName: string): string {
  return `--x\r\nContent-Disposition: form-data; name="${name}"${fileName}\r\n\r\n["poll"]\r\n`
}

test('a file is named that is no value of a parameter', () => {
  const multipart = 'multipart/form-data; boundary=x'
  const ignored = 'getUpdates was called with what is ignored:'
  const file = '; filename="types.json"'
  assert.equal(noteOf(`${part('allowed_updates', '')}--x--`, multipart), undefined)
  assert.equal(
    noteOf(`${part('allowed_updates', file)}${part('a b', file)}--x--`, multipart),
    `${ignored} the file "allowed_updates"`,
  )
  assert.equal(noteOf(`${part('a b', file)}--x--`, multipart), `${ignored} the file of such a name`)
})

test('a note shows nothing that may be a secret, and stays short', () => {
  assert.doesNotMatch(noteOf('123456789:AAsecret=1') ?? '', /123|secret/)
  const note = noteOf('offset=x', '<script>/evil\u001b') ?? ''
  assert.ok(!note.includes('script'))
  const many = Array.from({ length: 500 }, (_, nth) => `name${nth}=1`).join('&')
  assert.ok((noteOf(many) ?? '').length < 200)
})
