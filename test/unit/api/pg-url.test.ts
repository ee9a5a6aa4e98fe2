import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Client } from 'pg'
import { parsePgUrl, type PgUrl } from '../../../src/api/pg-url.ts'

function parsed(text: string): PgUrl {
  const url = parsePgUrl(text)
  assert(url !== undefined, `${text} is no URL of a database`)
  return url
}

/** What `pg` makes of the URL of each server. */
function clientsOf(text: string): Client[] {
  return parsed(text).servers.map(({ url }) => new Client({ connectionString: url }))
}

function hostsOf(text: string): string[] {
  return clientsOf(text).map(({ host, port }) => `${host} ${port}`)
}

test('a URL names one server, whose port is 5432 if it names none', () => {
  const [client] = clientsOf('postgres://bote:secret@db.example.org/queues?sslmode=disable')
  assert.deepEqual(
    [client?.host, client?.port, client?.user, client?.password, client?.database, client?.ssl],
    ['db.example.org', 5_432, 'bote', 'secret', 'queues', false],
  )
  assert.deepEqual(hostsOf('postgresql://db:6432/queues'), ['db 6432'])
})

test('a URL names several servers, and each keeps the user, the database and the options', () => {
  const text = 'postgres://bote:secret@a,b:5433,[2001:db8::1],[::1]:6000/queues?sslmode=disable'
  assert.deepEqual(hostsOf(text), ['a 5432', 'b 5433', '2001:db8::1 5432', '::1 6000'])
  for (const { user, password, database, ssl } of clientsOf(text)) {
    assert.deepEqual([user, password, database, ssl], ['bote', 'secret', 'queues', false])
  }
})

test('the servers and their ports may be in the query, as libpq takes them', () => {
  assert.deepEqual(hostsOf('postgres:///queues?host=a,b&port=5433,5434'), ['a 5433', 'b 5434'])
  assert.deepEqual(hostsOf('postgres:///queues?host=a,b&port=6000'), ['a 6000', 'b 6000'])
  assert.deepEqual(hostsOf('postgres://a,b:1/queues?port=6000'), ['a 6000', 'b 1'])
  assert.deepEqual(hostsOf('postgres:///queues'), ['localhost 5432'])
})

test('a Unix socket is named by its directory', () => {
  const text = 'postgres://bote:secret@/queues?host=/run/postgresql&port=5433'
  const [client] = clientsOf(text)
  assert.deepEqual(
    [client?.host, client?.port, client?.user, client?.password, client?.database],
    ['/run/postgresql', 5_433, 'bote', 'secret', 'queues'],
  )
  assert.equal(parsed(text).shown, '/run/postgresql:5433/queues')
  assert.deepEqual(hostsOf('postgres:///queues?host=/run/a,/run/b'), ['/run/a 5432', '/run/b 5432'])
})

test('what is shown are the servers and the database', () => {
  const { shown, servers } = parsed(
    'postgres://bote:secret@a,[::1]:6000/my%20queues?sslmode=disable',
  )
  assert.equal(shown, 'a:5432,[::1]:6000/my queues')
  assert.deepEqual(
    servers.map((server) => server.shown),
    ['a:5432', '[::1]:6000'],
  )
})

test('a user and a password of any characters reach the server, and nothing of them is shown', () => {
  // Characters that are not in the rest of the URL, so that finding them is finding the password.
  const text = fc.string({
    unit: fc.constantFrom(...Array.from('XYZ@:/?#[]%&=+, é"')),
    minLength: 1,
    maxLength: 12,
  })
  fc.assert(
    fc.property(text, text, (user, password) => {
      const userinfo = `${encodeURIComponent(user)}Q:${encodeURIComponent(password)}Q`
      const url = `postgres://${userinfo}@a,/queues`.replace(',', ',b:5433')
      for (const client of clientsOf(url)) {
        assert.deepEqual([client.user, client.password], [`${user}Q`, `${password}Q`])
      }
      assert.deepEqual(hostsOf(url), ['a 5432', 'b 5433'])
      assert.equal(parsed(url).shown, 'a:5432,b:5433/queues')
    }),
  )
})

test('a password that is not encoded is never shown as a host, a port or a database', () => {
  // Each of these characters ends a part of a URL.
  for (const ending of ['@', '/', '?', '#', ':', ',', '%']) {
    for (const password of [`QX${ending}QY`, `12${ending}QY`, `12${ending}34@QY`, `1${ending}`]) {
      for (const host of ['a', 'a,b:5433', '']) {
        const url = parsePgUrl(`postgres://bote:${password}@${host}/queues`)
        const all = [url?.shown ?? '', ...(url?.servers ?? []).map(({ shown }) => shown)].join(' ')
        assert.doesNotMatch(all, /Q|12|34|bote/, `${password} ${host}`)
      }
    }
  }
})

test('a URL does not name the connections: a claim finds those of an old owner by their name', () => {
  const url = parsed('postgres://a/queues?application_name=mine&fallback_application_name=too')
  assert.equal(url.servers[0]?.url, 'postgres://a:5432/queues')
})

test('what is no URL of a database is refused', () => {
  const bad = [
    '',
    'queues',
    'mysql://a/queues',
    'https://a/queues',
    'postgres:a/queues',
    // without a database
    'postgres://a',
    'postgres://a/',
    'postgres://a?host=b',
    // without one of the servers
    'postgres://a,,b/queues',
    'postgres://,a/queues',
    'postgres:///queues?host=',
    // ports that are none
    'postgres://a:x/queues',
    'postgres://a:/queues',
    'postgres://a:0/queues',
    'postgres://a:65536/queues',
    'postgres://a:1:2/queues',
    'postgres:///queues?host=/run&port=x',
    'postgres:///queues?host=/run&port=65536',
    // hosts that are none
    'postgres://a b/queues',
    'postgres://[::1/queues',
    'postgres://[::x]/queues',
    'postgres://::1/queues',
    'postgres:///queues?host=a:5433',
    'postgres:///queues?host=a@b',
    // codes of characters that are none
    'postgres://a/%zz',
    'postgres://b%zz@a/queues',
    'postgres://b:%zz@a/queues',
  ]
  for (const text of bad) assert.equal(parsePgUrl(text), undefined, text)
})

test('a host named host is a host', () => {
  assert.deepEqual(hostsOf('postgres://host,host:1/queues'), ['host 5432', 'host 1'])
  assert.deepEqual(hostsOf('postgres://bote@/queues?host=/run/host/'), ['/run/host/ 5432'])
})
