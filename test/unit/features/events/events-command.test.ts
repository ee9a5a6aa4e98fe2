import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventJson, eventLine } from '../../../../src/features/events/events-command.ts'

const event = {
  name: 'queue.full',
  data: '{"id":1,"type":"queue.full","time":1800000000.25,"bot_id":7,"text":"The queue is full\\u001b[2J"}',
}

test('an event is one line for people, without characters that change the terminal', () => {
  const line = eventLine(event)
  assert.match(line, /^2027-01-15 08:00:00Z {2}queue\.full {10}The queue is full/)
  assert(!line.includes('\u001b'))
})

test('an event of a node says which one', () => {
  const data = '{"time":1800000000,"node":"east-1","text":"x"}'
  assert.match(eventLine({ name: 'shard.broken', data }), /Z {2}east-1 {2}shard\.broken/)
})

test('an event for programs is the JSON of the server, and missed events have a type, too', () => {
  assert.equal(eventJson(event), event.data)
  assert.equal(eventJson({ name: 'missed', data: '{"count":3}' }), '{"type":"missed","count":3}')
  assert.match(eventLine({ name: 'missed', data: '{"count":3}' }), /^3 or more events are missing/)
})
