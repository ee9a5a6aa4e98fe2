import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tailJson, tailLine } from '../../../../src/features/tail/tail-command.ts'

const nowMs = Date.UTC(2026, 10, 23, 8, 15)
const update = {
  name: 'update',
  data: '{"update_id":7,"type":"message","bytes":60,"update":{"message":\n{"n":12345678901234567890,"update":{}}}}',
}

test('for programs an event is one line, byte for byte as the server sent it', () => {
  assert.equal(
    tailJson(update),
    '{"event":"update","update_id":7,"type":"message","bytes":60,"update":{"message": {"n":12345678901234567890,"update":{}}}}',
  )
  assert.equal(tailJson({ name: 'missed', data: '{"count":3}' }), '{"event":"missed","count":3}')
})

test('for people an event is one line with its time, and an update has all its digits', () => {
  const line = (name: string, data: string): string => tailLine({ name, data }, nowMs)
  const time = '2026-11-23 08:15:00Z  '
  assert.equal(
    tailLine(update, nowMs),
    `${time}update 7  message  60 bytes  {"message": {"n":12345678901234567890,"update":{}}}`,
  )
  assert.equal(
    line('update', '{"update_id":8,"type":"poll","bytes":9}'),
    `${time}update 8  poll  9 bytes`,
  )
  assert.equal(line('confirmed', '{"count":1,"below":9}'), `${time}confirmed 1 update below 9`)
  assert.equal(
    line('dropped', '{"count":2,"below":9}'),
    `${time}dropped 2 updates below 9, which the bot did not want`,
  )
  assert.equal(
    line('missed', '{"count":5}'),
    `${time}missed 5 events, because this reader was too slow`,
  )
  assert.equal(line('later', '{"x":1}'), `${time}later {"x":1}`)
})

test('control characters of an update cannot reach the terminal', () => {
  const data = '{"update_id":8,"type":"poll","bytes":9,"update":{"poll":"\u009B2J\u202E"}}'
  assert.ok(tailLine({ name: 'update', data }, nowMs).endsWith('{"poll":"?2J?"}'))
})
