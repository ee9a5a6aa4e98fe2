/**
 * The Debian package of a release in an empty Debian, which scripts/test-debian prepares. In other runs this is skipped. There
 * is no systemd in there: the test runs the command of the unit as the user that `DynamicUser` would choose.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { freePorts } from '../support/kit/port.ts'
import { RunningScript } from '../support/kit/running-script.ts'

const debian = process.env['POSTBOTE_DEBIAN'] ?? ''
const skip = debian === '' && 'needs the Debian that `scripts/test-debian` makes'

/** Within the range from which systemd chooses (`DynamicUser=` in systemd.exec(5)). */
const user = 61_184
const environment = join(debian, 'etc/postbote/environment')
/** Where systemd keeps the state of such a user, with a link to it. */
const data = join(debian, 'var/lib/private/postbote')

test('an empty Debian installs the package, runs the server, and keeps its data when it is purged', {
  skip,
}, async (t) => {
  const http = await freePorts(2)
  const admin = http + 1
  inDebian('apt-get', 'install', '--yes', '/postbote.deb')
  assert.equal(statSync(environment).mode & 0o777, 0o600)
  const wanted = join(debian, 'etc/systemd/system/multi-user.target.wants/postbote.service')
  assert.match(inDebian('readlink', wanted.slice(debian.length)), /postbote\.service$/)
  assert.match(inDebian('postbote', '--help'), /^Usage:\n {2}postbote serve/)
  const options = `POSTBOTE_HTTP_PORT=${http}\nPOSTBOTE_ADMIN_PORT=${admin}\n`
  writeFileSync(environment, options)
  mkdirSync(data, { recursive: true })
  chmodSync(data, 0o700)
  chownSync(data, user, user)
  symlinkSync('private/postbote', join(debian, 'var/lib/postbote'))

  const server = await serve(t)
  const registered = ['register', '--first-name=E', '--username=e_bot', '--dir=/var/lib/postbote']
  const token = inDebian('postbote', ...registered, '--admin-port', `${admin}`)
  const key = readFileSync(join(data, 'admin.key'), 'utf8').trim()
  const push = await fetch(`http://127.0.0.1:${admin}/v1/bots/${token.split(':')[0]}/updates`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: '{"message":{"text":"hello"}}',
  })
  assert.equal(push.status, 200)
  const poll = `http://127.0.0.1:${http}/bot${token}/getUpdates`
  assert.match(await (await fetch(poll)).text(), /"text":"hello"/)
  assert.equal(await server.end('SIGTERM'), 0)

  await t.test('its removal keeps the options, and a new installation takes them', () => {
    inDebian('apt-get', 'remove', '--yes', 'postbote')
    assert.equal(existsSync(join(debian, 'usr/lib/postbote')), false)
    assert.equal(existsSync(join(debian, 'usr/bin/postbote')), false)
    inDebian('dpkg', '--install', '/postbote.deb')
    assert.equal(readFileSync(environment, 'utf8'), options)
  })

  await t.test('a purge leaves nothing but the data, and says where they are', () => {
    const said = inDebian('apt-get', 'purge', '--yes', 'postbote')
    assert.match(said, /the data stays in \/var\/lib\/postbote/)
    const left = inDebian(
      'find',
      '/etc',
      '/usr',
      '/var',
      '-iname',
      '*postbote*',
      '-not',
      '-path',
      '*/log/*',
    )
    assert.deepEqual(
      left
        .trim()
        .split('\n')
        .filter((path) => !path.startsWith('/var/lib/private/postbote/'))
        .toSorted(),
      ['/var/lib/postbote', '/var/lib/private/postbote'],
    )
    assert.equal(readFileSync(join(data, 'admin.key'), 'utf8').trim(), key)
  })

  await t.test('an installation after a purge continues with the data', async (own) => {
    inDebian('dpkg', '--install', '/postbote.deb')
    writeFileSync(environment, options)
    const again = await serve(own)
    assert.match(await (await fetch(poll)).text(), /"text":"hello"/)
    assert.equal(await again.end('SIGTERM'), 0)
  })
})

/**
 * Runs a program as root in the Debian, without a network unless it is the server's command. Returns what it prints, without the
 * end of the last line.
 */
function inDebian(...command: readonly string[]): string {
  const needsNetwork = command[0] === 'postbote'
  const args = [
    '-m',
    ...(needsNetwork ? [] : ['-n']),
    'sh',
    '-c',
    entering,
    debian,
    'chroot',
    debian,
  ]
  const env = { PATH: process.env['PATH'], DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' }
  const { status, stdout, stderr } = spawnSync('unshare', [...args, ...command], {
    encoding: 'utf8',
    env,
  })
  assert.equal(status, 0, `${command.join(' ')}: ${stdout}${stderr}`)
  return (stdout + stderr).trim()
}

/** Has the Debian's own /proc for as long as the program runs; `$0` is its folder. */
const entering = 'mount -t proc proc "$0/proc" && exec "$@"'

/** Runs the command of the unit as systemd does, with its environment, and waits until it is ready. */
async function serve(t: TestContext): Promise<RunningScript> {
  const unit = readFileSync(join(debian, 'usr/lib/systemd/system/postbote.service'), 'utf8')
  const [, command = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? []
  const [, file = ''] = /^EnvironmentFile=-(.*)$/m.exec(unit) ?? []
  const env = readFileSync(join(debian, file), 'utf8').trim().split('\n').join(' ')
  const inside = `chroot --userspec=${user}:${user} ${debian} env -i ${env} ${command.replace('%S', '/var/lib')}`
  const server = new RunningScript(t, `unshare -m sh -c '${entering}' ${debian} ${inside}`)
  await server.printed(/"msg":"ready"/)
  return server
}
