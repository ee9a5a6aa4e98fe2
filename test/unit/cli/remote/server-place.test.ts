/**
 * The door of keys: every command that calls a server, while a stranger has its port, and while a stranger answers. The
 * commands come from their table, so a new one is tested, too.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { commandTable } from '../../../../src/modules/command-table.ts'
import type { CommandRow } from '../../../../src/cli/commands/command-row.ts'
import {
  networkOfProcess,
  openCommandSocket,
  type ServerStatus,
} from '../../../../src/cli/serve/command-socket.ts'
import { startChild } from '../../../support/kit/child-process.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'
import { makeCertificate } from '../../../support/network/certificates.ts'
import { runInProcess } from '../../../support/programs/run-in-process.ts'
import { httpAnswer, Stranger } from '../../../support/programs/stranger.ts'

const key = 'A-key-that-nobody-else-may-get-0123456789abc'
/** A user that has nothing. */
const nobody = 65_534
const rootOnly = process.geteuid?.() === 0 ? false : 'only root can start programs of others'

/** Those that call no server. Any other one takes an address and a key. */
const callNobody = [
  'serve',
  'reload',
  'verify',
  'repair',
  'import',
  'database init',
  'database import',
  'database export',
  'nodes',
  'node drain',
  'node undrain',
  'doctor',
  'bench',
  'completion',
  'version',
]
const callers = commandTable.filter(({ name }) => !callNobody.includes(name))

/** What a command gets for its arguments, and the options that it needs. */
const values: Readonly<Record<string, string>> = {
  '<bot_id>': '4711',
  '<update_id>': '7',
  '<job_id>': '7',
  '<key_id>': '0123456789abcdef',
  '<name>': 'shop',
  '<file>': '/nonexistent/backup',
}
const more: Readonly<Record<string, readonly string[]>> = {
  register: ['--first-name', 'Echo', '--username', 'echo_bot'],
  'bots register': ['--first-name', 'Echo', '--username', 'echo_bot'],
  'bots set': ['--polls', 'take_over'],
  'bots remove': ['--yes'],
  'webhook set': ['https://bot.example/'],
  'relay set': ['--from', 'https://api.telegram.org', '--same-token'],
  push: ['{"message":{}}'],
  'updates erase': ['--ordering-key', 'a', '--yes'],
  'updates replay': ['7'],
  'dead-letters replay': ['--all'],
  'dead-letters drop': ['--all'],
  'portal create': ['--ttl', '60'],
  'portal revoke': ['--all'],
  'keys create': ['--scopes', 'read'],
}

function wordsOf(row: CommandRow, t: TestContext): readonly string[] {
  const words = row.kind === 'parsed' ? row.arguments.map(({ name }) => name) : []
  const needed = words.flatMap((name) => {
    if (name === '<file>') return [join(temporaryDirectory(t), 'backup')]
    return name.startsWith('<')
      ? [values[name] ?? assert.fail(`${row.name}: a value for ${name}`)]
      : []
  })
  return [...row.name.split(' '), ...needed, ...(more[row.name] ?? [])]
}

/** A data directory with an admin key. */
function keyDirectory(t: TestContext): string {
  const dir = join(temporaryDirectory(t), 'data')
  mkdirSync(dir, { mode: 0o700 })
  writeFileSync(join(dir, 'admin.key'), `${key}\n`, { mode: 0o600 })
  return dir
}

/** Has the command socket of a directory say this, as its server would. */
async function answering(
  t: TestContext,
  dir: string,
  status: Partial<ServerStatus>,
): Promise<void> {
  const runPath = join(dir, 'run')
  mkdirSync(runPath, { recursive: true, mode: 0o700 })
  const close = await openCommandSocket({
    directory: dir,
    runPath,
    status: () => ({ pid: 1, state: 'ready', network: networkOfProcess(), ...status }),
    reload: () => Promise.resolve(),
  })
  t.after(close)
}

test('every command either calls no server or takes the directory of one', () => {
  for (const { name, options } of callers) {
    assert(
      options.some((option) => option.name === 'dir'),
      `${name}: where does its key go?`,
    )
  }
  assert(callers.length > 45)
})

test('while no server runs on the directory, no command connects to who has its port', async (t) => {
  const stranger = await Stranger.start(t)
  stranger.answer = httpAnswer('{}')
  const [gone, killed] = [keyDirectory(t), keyDirectory(t)]
  // What is left of a server that was killed.
  const left = join(killed, 'run', 'control.sock')
  mkdirSync(join(killed, 'run'))
  closedSocket(left)
  writeFileSync(join(killed, 'postbote.pid'), `1\n${left}\n`)
  for (const [nth, row] of callers.entries()) {
    const dir = nth % 2 === 0 ? gone : killed
    const place = [`--dir=${dir}`, `--admin-port=${stranger.port}`]
    const { code, out, err } = await runInProcess([...wordsOf(row, t), ...place])
    const expected = `postbote: no server runs on ${dir}: name the directory of a server with --dir\n`
    assert.deepEqual([code, out, err], [1, '', expected], row.name)
  }
  for (const command of ['doctor', 'reload']) {
    const place = [`--dir=${gone}`]
    await runInProcess([
      command,
      ...place,
      ...(command === 'doctor' ? [`--admin-port=${stranger.port}`] : []),
    ])
  }
  assert.equal(stranger.received, '')
})

/** Leaves the file of a socket at which nobody listens. */
function closedSocket(path: string): void {
  const child = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`
  spawnSync(process.execPath, ['-e', child])
}

test('a key goes to no program of another user, which has taken the port of a server meanwhile', {
  skip: rootOnly,
}, async (t) => {
  const { port, sent } = await takerOf(t, nobody)
  const dir = keyDirectory(t)
  await answering(t, dir, { private: `127.0.0.1:${port}` })
  for (const row of callers) {
    const { code, out, err } = await runInProcess([...wordsOf(row, t), `--dir=${dir}`])
    const expected = `postbote: user ${nobody}, who does not own ${dir}, listens at 127.0.0.1:${port}, and nothing was sent: name the server with --url and --key-file\n`
    assert.deepEqual([code, out, err], [1, '', expected], row.name)
  }
  assert.equal(await sent(), '')
})

test('without the right to enter a directory, its owner gets the key, and nobody else', {
  skip: rootOnly,
}, async (t) => {
  const dir = keyDirectory(t)
  const root = join(dir, '..')
  chmodSync(root, 0o755)
  const keyFile = join(root, 'key')
  writeFileSync(keyFile, key, { mode: 0o644 })
  await answering(t, dir, { private: '127.0.0.1:1' })
  const asNobody = async (port: string): Promise<string> => {
    const place = [`--dir=${dir}`, `--admin-port=${port}`, `--key-file=${keyFile}`]
    process.seteuid?.(nobody)
    try {
      return (await runInProcess(['bots', 'list', ...place])).err
    } finally {
      process.seteuid?.(0)
    }
  }
  const [owner, other] = [await takerOf(t, 12_345), await takerOf(t, 12_346)]
  chownSync(dir, 12_345, 12_345)
  assert.match(await asNobody(other.port), /user 12346, who does not own .* and nothing was sent/)
  assert.equal(await other.sent(), '')
  assert.match(await asNobody(owner.port), /does not come from the private API/)
  assert((await owner.sent()).includes(key))
})

/** Starts a program of another user that answers everything with nothing, and says what it was sent. */
async function takerOf(
  t: TestContext,
  user: number,
): Promise<{ readonly port: string; readonly sent: () => Promise<string> }> {
  const child = startChild(t, ['-e', `process.setuid(${user});${takerProgram}`])
  const port = await child.nextLine()
  return {
    port,
    sent() {
      child.process.kill('SIGTERM')
      return child.nextLine().then((line) => JSON.parse(line))
    },
  }
}

const takerProgram = `
let sent = ''
const server = require('node:net').createServer((socket) => {
  socket.on('error', () => undefined).on('data', (data) => {
    sent += data.toString('latin1')
    socket.end('HTTP/1.1 200 OK\\r\\n\\r\\n')
  })
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
process.on('SIGTERM', () => {
  console.log(JSON.stringify(sent))
  process.exit()
})`

test('a server says where it listens, and why it cannot be called there', async (t) => {
  const stranger = await Stranger.start(t)
  stranger.answer = httpAnswer('{"error":{"code":"UNKNOWN_BOT","message":"No bot"}}', {
    status: '404 Not Found',
  })
  const errorWith = async (
    status: Partial<ServerStatus>,
    ...options: string[]
  ): Promise<string> => {
    const dir = keyDirectory(t)
    await answering(t, dir, status)
    const { err } = await runInProcess(['bots', 'list', `--dir=${dir}`, ...options])
    return err.replaceAll(dir, 'DIR')
  }
  const reached = /^postbote: the server refused the call: 404 UNKNOWN_BOT: No bot\n$/
  const at = `127.0.0.1:${stranger.port}`
  assert.match(await errorWith({ private: at }, '--admin-port=1'), reached)
  assert.match(await errorWith({ private: `0.0.0.0:${stranger.port}` }), reached)
  assert.match(await errorWith({ private: at, state: 'starting' }), reached)
  // An earlier version does not name its network, and one before that not its address.
  assert.match(await errorWith({ private: at, network: undefined }), reached)
  assert.match(await errorWith({}, `--admin-port=${stranger.port}`), reached)
  assert.match(
    await errorWith({ state: 'starting' }),
    /^postbote: the server on DIR is starting and does not listen yet: try again\n$/,
  )
  assert.match(
    await errorWith({ private: at, network: 'net:[1]' }),
    /^postbote: the server on DIR runs in another network, such as that of a container: /,
  )
  assert.match(
    await errorWith({ private: at, isPrivateTls: true }),
    /^postbote: the server at 127\.0\.0\.1:\d+ speaks no TLS: ask it with http\n$/,
  )
  assert.match(
    await errorWith({ private: '/nonexistent/socket' }),
    /^postbote: no server responds at \/nonexistent\/socket \(ENOENT\)\n$/,
  )
})

test('the private listener may be a Unix socket, if its file belongs to the owner of the directory', async (t) => {
  const dir = keyDirectory(t)
  const path = join(dir, '..', 'private.sock')
  let received = ''
  const server = createServer((socket) =>
    socket.on('data', (data) => {
      received += data.toString()
      socket.end(httpAnswer('[]'))
    }),
  ).listen(path)
  await once(server, 'listening')
  t.after(() => server.close())
  await answering(t, dir, { private: path })
  const list = ['bots', 'list', `--dir=${dir}`]
  assert.match((await runInProcess(list)).err, /does not come from the private API/)
  assert(received.includes(key))
  received = ''
  const link = join(dir, '..', 'link.sock')
  symlinkSync(path, link)
  await answering(t, dir, { private: link })
  assert.match((await runInProcess(list)).err, /it cannot be seen who listens/)
  assert.equal(received, '')
  if (rootOnly !== false) return
  await answering(t, dir, { private: path })
  chownSync(path, nobody, nobody)
  assert.match((await runInProcess(list)).err, /user 65534, who does not own/)
  assert.equal(received, '')
})

/** Responses that no server of this API sends, whatever the call. */
const strange = {
  nothing: '',
  'no HTTP': 'SSH-2.0-OpenSSH_9.6\r\n\r\n',
  'an end in the head': 'HTTP/1.1 200 OK\r\nContent-Ty',
  'half a body':
    'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"bots":[',
  'an empty body': httpAnswer(''),
  HTML: httpAnswer('<html></html>', { type: 'text/html' }),
  'HTML as JSON': httpAnswer('<html></html>'),
  'JSON as text': httpAnswer('{}', { type: 'text/plain' }),
  'almost the type': httpAnswer('{}', { type: 'application/jsonlines' }),
  'no content': 'HTTP/1.1 204 No Content\r\n\r\n',
  array: httpAnswer('[]'),
  null: httpAnswer('null'),
  object: httpAnswer('{}'),
  text: httpAnswer('"bots"'),
  number: httpAnswer('7'),
  'an array of nothing': httpAnswer('[null,{}]'),
  'half of JSON': httpAnswer('{"bots":['),
  'an error without text': httpAnswer('{"error":null}', { status: '500 Oops' }),
  'an error of another API': httpAnswer('{"error":{"code":7,"message":{}}}', { status: '403 No' }),
  'events of another program': httpAnswer('<html>\n', { type: 'text/event-stream' }),
  'an event without data': httpAnswer('event: update\ndata: {}\n\n', { type: 'text/event-stream' }),
  'a text as event': httpAnswer('event: missed\ndata: x\n\n', { type: 'text/event-stream' }),
} as const

const oneSentence =
  /^postbote: (the response of \S+ does not come from the private API of Postbote: check the address|the response of the server does not come from the private API of Postbote: check the address|the server refused the call: status \d+, without an error of Postbote|the connection to \S+ was lost[^\n]*)\n$/

test('a response that is not of this API is one clear sentence of every command', async (t) => {
  const stranger = await Stranger.start(t)
  const other = await Stranger.start(t)
  const dir = keyDirectory(t)
  await answering(t, dir, { private: `127.0.0.1:${stranger.port}` })
  const moved = `Location: http://127.0.0.1:${other.port}/\r\n`
  const keyFile = join(dir, 'admin.key')
  const redirect = httpAnswer('', { status: '307 Temporary Redirect', headers: moved })
  const answers = Object.entries({ ...strange, redirect })
  for (const row of callers) {
    const isRemote = row.options.some(({ name }) => name === 'url')
    const url = [`--url=http://127.0.0.1:${stranger.port}`, `--key-file=${keyFile}`]
    const words = [...wordsOf(row, t), ...(isRemote ? url : [`--dir=${dir}`])]
    for (const [what, answer] of answers) {
      stranger.answer = answer
      const { code, out, err } = await runInProcess(words)
      const shown = `${row.name}, ${what}: ${err}${out}`
      assert.equal(out, '', shown)
      assert.match(err, oneSentence, shown)
      assert.equal(code, err.includes('refused the call') ? 4 : 1, shown)
    }
  }
  assert.equal(other.connections, 0)
})

test('a server that speaks TLS is named if it was asked without, and needs no private key of its client', async (t) => {
  const pair = makeCertificate('localhost')
  const server = createTlsServer(pair, (socket) => {
    socket.on('error', () => undefined).on('data', () => socket.end(httpAnswer('[]')))
  })
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const at = `127.0.0.1:${Object(server.address()).port}`
  const dir = keyDirectory(t)
  const certificate = join(dir, 'cert.pem')
  writeFileSync(certificate, pair.cert)
  const list = ['bots', 'list', `--key-file=${join(dir, 'admin.key')}`]
  const plain = await runInProcess([...list, `--url=http://${at}`])
  assert.deepEqual(
    [plain.code, plain.err],
    [1, `postbote: the server at http://${at} speaks TLS: ask it with https\n`],
  )
  await answering(t, dir, { private: at, isPrivateTls: true })
  const own = await runInProcess([...list, `--dir=${dir}`, `--admin-cert=${certificate}`])
  assert.match(own.err, /does not come from the private API/)
})

test('a proxy that answers in its own words that it speaks TLS is recognised', async (t) => {
  const pair = makeCertificate('localhost')
  const secure = createTlsServer(pair, (socket) => socket.on('error', () => undefined).end())
  const html =
    '<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>'
  const answer = httpAnswer(html, { status: '400 Bad Request', type: 'text/html' })
  let isSecure = true
  // As nginx does, it looks at the first byte: a handshake begins with 22.
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', (data) => {
      if (!isSecure || data[0] !== 22) {
        socket.end(answer)
        return
      }
      socket.pause().unshift(data)
      secure.emit('connection', socket)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const at = `http://127.0.0.1:${Object(server.address()).port}`
  const keyFile = `--key-file=${join(keyDirectory(t), 'admin.key')}`
  const { code, err } = await runInProcess(['summary', `--url=${at}`, keyFile])
  const expected = `postbote: the server at ${at} speaks TLS: ask it with https\n`
  assert.deepEqual([code, err], [1, expected])
  isSecure = false
  const plain = await runInProcess(['summary', `--url=${at}`, keyFile])
  assert.deepEqual(
    [plain.code, plain.err],
    [4, 'postbote: the server refused the call: status 400, without an error of Postbote\n'],
  )
})

test('a key that the server does not know is one sentence of every command, with its exit code', async (t) => {
  const stranger = await Stranger.start(t)
  const message = 'The key is not valid'
  stranger.answer = httpAnswer(JSON.stringify({ error: { code: 'UNAUTHORIZED', message } }), {
    status: '401 Unauthorized',
  })
  const dir = keyDirectory(t)
  await answering(t, dir, { private: `127.0.0.1:${stranger.port}` })
  for (const row of callers) {
    const { code, out, err } = await runInProcess([...wordsOf(row, t), `--dir=${dir}`])
    const expected = `postbote: the server refused the call: 401 UNAUTHORIZED: ${message}\n`
    assert.deepEqual([code, out, err], [4, '', expected], row.name)
  }
})
