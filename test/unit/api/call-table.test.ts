import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiOperations } from '../../../src/modules/api-operations.ts'
import { CallTable, pathPart } from '../../../src/api/call-table.ts'

const calls = new CallTable(apiOperations)

test('each operation is found by its verb and its path, with or without a query', () => {
  assert(apiOperations.length > 40)
  for (const operation of apiOperations) {
    const url = operation.path.replaceAll(/:\w+/g, '4711')
    assert.equal(calls.at(operation.method, url), operation, url)
    assert.equal(calls.at(operation.method, `${url}?a=/b/c`), operation, url)
  }
})

test('a path that is none of an operation is not found', () => {
  for (const url of [
    '/',
    '',
    '*',
    '/v1',
    '/v1/updates/',
    '/v1/updatesx',
    '/x/v1/updates',
    '/v1/shards/1/records/',
    '/v1/bots/1/dead-letters/2/replay/3',
    '/v1/keys/',
    '/?/v1/updates',
  ]) {
    assert.equal(calls.at('GET', url), undefined, url)
  }
  assert.equal(calls.at('PUT', '/v1/updates'), undefined)
  assert.equal(calls.at(undefined, '/v1/updates'), undefined)
})

test('a name in a path has precedence over a parameter', () => {
  assert.equal(calls.at('POST', '/v1/bots/1/dead-letters/replay')?.id, 'replayDeadLetters')
  assert.equal(calls.at('GET', '/v1/bots/1/dead-letters/replay'), undefined)
})

test('a request is looked up once', () => {
  const request = { method: 'GET', url: '/v1/summary' }
  assert.equal(calls.madeBy(request)?.id, 'getSummary')
  request.url = '/v1/nodes'
  assert.equal(calls.madeBy(request)?.id, 'getSummary')
  const other = { method: 'GET', url: '/none' }
  assert.equal(calls.madeBy(other), undefined)
  other.url = '/v1/nodes'
  assert.equal(calls.madeBy(other), undefined)
})

test('the parts of a path end at the query', () => {
  assert.equal(pathPart('/v1/shards/12/records?x=/9/', 3), '12')
  assert.equal(pathPart('/v1/shards?x=/9/', 3), '')
})

test('the verbs at a path are those of its operations that need a key', () => {
  assert.deepEqual(calls.verbsAt('/v1/bots/12'), ['GET', 'PATCH', 'DELETE'])
  assert.deepEqual(calls.verbsAt('/v1/session'), ['GET', 'POST', 'DELETE'])
  assert.deepEqual(calls.verbsAt('/healthz'), [])
  assert.deepEqual(calls.verbsAt('/v1/nothing'), [])
})
