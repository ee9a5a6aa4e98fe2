/**
 * The Debian package of a release in an empty Debian with systemd, which scripts/test-debian starts: it has no network. In other
 * runs this is skipped.
 */
import assert from 'node:assert/strict'
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  attempt,
  booted,
  debian,
  inDebian,
  noDebian as skip,
} from '../support/programs/debian-machine.ts'
import { root } from '../support/server/package-user.ts'
import { until } from '../support/kit/until.ts'

const environment = join(debian, 'etc/postbote/environment')
const own = ['--dir', '/var/lib/postbote']
const node = '/usr/lib/postbote/bin/node'

test('an empty Debian installs the package, runs the server, and keeps its data when it is purged', {
  skip,
}, async (t) => {
  await booted()
  const [, libc = ''] = /glibc (2\.\d+) or newer/.exec(read('docs/know/promise.md')) ?? []
  const needed = inDebian('dpkg-deb', '--field', '/postbote.deb', 'Depends')
  assert(needed.startsWith(`libc6 (>= ${libc}), `), needed)
  inDebian('apt-get', 'install', '--yes', '/postbote.deb')
  assert.equal(inDebian('systemctl', 'is-enabled', 'postbote'), 'enabled')
  assert.equal(inDebian('systemctl', 'is-active', 'postbote'), 'active')
  assert.equal(statSync(environment).mode & 0o777, 0o600)
  const version = inDebian('postbote', '--version')
  const register = ['bots', 'register', '--first-name', 'E', '--username', 'e_bot', ...own]
  const token = inDebian('postbote', ...register)
  const push = (text: string): string =>
    inDebian(
      'postbote',
      'push',
      token.split(':')[0] ?? '',
      JSON.stringify({ message: { text } }),
      ...own,
    )
  const poll = (port = 8_081): readonly string[] => {
    const url = `http://127.0.0.1:${port}/bot${token}/getUpdates`
    const script = `fetch('${url}').then((response) => response.text()).then(console.log)`
    const { result } = JSON.parse(inDebian(node, '-e', script))
    return result.map(
      ({ message }: { readonly message: { readonly text: string } }) => message.text,
    )
  }
  push('one')
  assert.deepEqual(poll(), ['one'])

  await t.test('its unit is valid, and the server runs as a user of its own in its sandbox', () => {
    assert.equal(inDebian('systemd-analyze', 'verify', 'postbote.service'), '')
    const inside = inDebian('cat', `/proc/${mainPid()}/status`)
    const [, uid = ''] = /^Uid:\t(\d+)/m.exec(inside) ?? []
    assert(Number(uid) >= 61_184 && Number(uid) <= 65_519, uid)
    assert.match(inside, /^CapEff:\t0+$/m)
    assert.match(inside, /^NoNewPrivs:\t1$/m)
    assert.match(inside, /^Seccomp:\t2$/m)
    const [mode = '', owner] = inDebian(
      'stat',
      '--format',
      '%a %u',
      '/var/lib/private/postbote/',
    ).split(' ')
    assert.deepEqual([mode, owner], ['700', uid])
  })
  const options = 'POSTBOTE_HTTP_PORT=8091\n'
  await t.test('it takes the options of its file at a restart', () => {
    assert.match(readFileSync(environment, 'utf8'), /systemctl restart postbote$/m)
    writeFileSync(environment, options)
    inDebian('systemctl', 'restart', 'postbote')
    assert.deepEqual(poll(8_091), ['one'])
    inDebian('systemctl', 'reload', 'postbote')
    assert.deepEqual(poll(8_091), ['one'])
  })

  await t.test('systemd starts it again when it is killed, and nothing is lost', async () => {
    push('two')
    inDebian('systemctl', 'kill', '--kill-who=main', '--signal=KILL', 'postbote')
    await until(() => attempt('systemctl', 'is-active', 'postbote').output !== 'active', 30_000)
    await until(() => attempt('systemctl', 'is-active', 'postbote').status === 0, 30_000)
    assert.deepEqual(poll(8_091), ['one', 'two'])
  })

  await t.test(
    'a newer version keeps the options without a question, and the way back works',
    () => {
      newerPackage()
      inDebian('apt-get', 'install', '--yes', '/newer.deb')
      assert.equal(inDebian('postbote', '--version'), newer)
      push('three')
      assert.equal(readFileSync(environment, 'utf8'), options)
      assert.deepEqual(poll(8_091), ['one', 'two', 'three'])
      inDebian('apt-get', 'install', '--yes', '--allow-downgrades', '/postbote.deb')
      assert.equal(inDebian('postbote', '--version'), version)
      assert.deepEqual(poll(8_091), ['one', 'two', 'three'])
    },
  )

  await t.test('an installation says why the server does not start, and ends all the same', () => {
    appendFileSync(environment, 'POSTBOTE_ADMIN_PORT=none\n')
    const said = inDebian('dpkg', '--install', '/postbote.deb')
    assert.match(said, /postbote: the server did not start/)
    assert.match(said, /POSTBOTE_ADMIN_PORT: expected an integer .*, got "none"/)
    writeFileSync(environment, options)
    assert.doesNotMatch(inDebian('dpkg', '--install', '/postbote.deb'), /did not start/)
    assert.equal(inDebian('systemctl', 'is-active', 'postbote'), 'active')
  })

  await t.test(
    'its removal ends the server and keeps the options, which a new installation takes',
    () => {
      inDebian('apt-get', 'remove', '--yes', 'postbote')
      assert.equal(attempt('systemctl', 'is-active', 'postbote').output, 'inactive')
      assert.equal(existsSync(join(debian, 'usr/lib/postbote')), false)
      assert.equal(existsSync(join(debian, 'usr/bin/postbote')), false)
      inDebian('dpkg', '--install', '/postbote.deb')
      assert.equal(readFileSync(environment, 'utf8'), options)
      assert.deepEqual(poll(8_091), ['one', 'two', 'three'])
    },
  )

  await t.test('a purge leaves nothing but the data, and says where they are', () => {
    const said = inDebian('apt-get', 'purge', '--yes', 'postbote')
    assert.match(said, /the data stays in \/var\/lib\/postbote/)
    const places = ['/etc', '/usr', '/var', '-iname', '*postbote*']
    const left = inDebian('find', ...places, '-not', '-path', '*/log/*').split('\n')
    assert.deepEqual(
      left.filter((path) => !path.startsWith('/var/lib/private/postbote/')).toSorted(),
      ['/var/lib/postbote', '/var/lib/private/postbote'],
    )
  })

  await t.test('an installation after a purge continues with the data', () => {
    inDebian('dpkg', '--install', '/postbote.deb')
    assert.deepEqual(poll(), ['one', 'two', 'three'])
  })
})

function read(name: string): string {
  return readFileSync(join(root, name), 'utf8')
}

function mainPid(): string {
  return inDebian('systemctl', 'show', 'postbote', '--value', '--property', 'MainPID')
}

const newer = '99.0.1'

/** Packs the same server once more as a later version. */
function newerPackage(): void {
  const version = `/newer/usr/lib/postbote/package.json`
  inDebian('dpkg-deb', '--raw-extract', '/postbote.deb', '/newer')
  inDebian('sed', '-i', `s/^Version: .*/Version: ${newer}/`, '/newer/DEBIAN/control')
  inDebian('sed', '-i', `s/"version": ".*"/"version": "${newer}"/`, version)
  inDebian('dpkg-deb', '-Znone', '--build', '/newer', '/newer.deb')
}
