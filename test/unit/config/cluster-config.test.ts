import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clusterPortProblems } from '../../../src/config/cluster-config.ts'
import {
  type Config,
  ConfigError,
  parseConfig,
  reloadedConfig,
} from '../../../src/config/config.ts'

const database = '--database=postgres://db/postbote'
const listen = '--cluster-listen=10.0.0.5:8450'
const key = '--cluster-key-file=/etc/cluster.key'

function configOf(argv: readonly string[], env: Readonly<Record<string, string>> = {}): Config {
  return parseConfig({ argv, env, readFile: () => '{}' })
}

function problemsOf(...argv: readonly string[]): readonly string[] {
  try {
    configOf(argv)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

test('a server in a cluster has an address and a key', () => {
  const withKey = configOf([database, listen, key])
  assert.deepEqual(withKey.clusterListen, { host: '10.0.0.5', port: 8_450 })
  assert.equal(withKey.clusterAdvertise, undefined)
  assert.equal(withKey.clusterKeyFile, '/etc/cluster.key')
})

test('an address is one of IPv4, one of IPv6 or a name, with a port', () => {
  const addresses: readonly (readonly [string, string, number])[] = [
    ['10.0.0.5:1', '10.0.0.5', 1],
    ['[fd00::5]:65535', 'fd00::5', 65_535],
    ['Node-1.Example:8450', 'node-1.example', 8_450],
    ['localhost:80', 'localhost', 80],
  ]
  for (const [text, host, port] of addresses) {
    const config = configOf([database, `--cluster-listen=${text}`, key])
    assert.deepEqual(config.clusterListen, { host, port })
  }
})

test('each option of a cluster needs the address, and an error names the option as it was given', () => {
  for (const option of [key, '--cluster-advertise=10.0.0.5:8450']) {
    const name = option.split('=')[0] ?? ''
    assert.deepEqual(problemsOf(database, option), [
      `${name}: expected cluster-listen, which it belongs to`,
    ])
  }
  assert.throws(
    () => configOf([], { POSTBOTE_CLUSTER_KEY_FILE: '/etc/cluster.key' }),
    /^ConfigError: POSTBOTE_CLUSTER_KEY_FILE: expected cluster-listen/,
  )
})

test('a cluster needs a database', () => {
  assert.deepEqual(problemsOf(listen, key), [
    '--cluster-listen: expected database, because servers share bots only by a database',
  ])
})

test('a server proves who it is by a key, which it needs', () => {
  assert.deepEqual(problemsOf(database, listen), [
    '--cluster-listen: expected cluster-key-file with it',
  ])
})

test('the options of certificates for other servers are unknown, wherever they come from', () => {
  for (const name of ['cluster-cert', 'cluster-cert-key', 'cluster-ca']) {
    assert.deepEqual(problemsOf(database, listen, key, `--${name}=/etc/file.pem`), [
      `--${name}: unknown option; see --help`,
    ])
    const variable = `POSTBOTE_${name.toUpperCase().replaceAll('-', '_')}`
    assert.throws(() => configOf([database, listen, key], { [variable]: '/etc/file.pem' }), {
      message: `${variable}: unknown environment variable; see --help`,
    })
  }
})

test('an address that nobody can connect to needs one to advertise', () => {
  for (const host of ['0.0.0.0', '[::]', '[0:0::0]', '[::ffff:0.0.0.0]']) {
    const everywhere = `--cluster-listen=${host}:8450`
    assert.match(
      problemsOf(database, everywhere, key).join(),
      /^--cluster-listen: expected cluster-advertise with it/,
    )
    const advertised = '--cluster-advertise=a.example:9000'
    assert.deepEqual(problemsOf(database, everywhere, key, advertised), [])
    assert.match(
      problemsOf(database, listen, key, `--cluster-advertise=${host}:8450`).join(),
      /^--cluster-advertise: expected an address to connect to, got /,
    )
  }
  assert.deepEqual(problemsOf(database, '--cluster-listen=[::1]:8450', key), [])
})

test('several mistakes are reported together', () => {
  assert.equal(problemsOf('--cluster-listen=0.0.0.0:8450').length, 3)
})

test('every worker has a port, of the address and of the one that is advertised', () => {
  const config = configOf([
    database,
    '--cluster-listen=10.0.0.5:65532',
    '--cluster-advertise=a:65533',
    key,
  ])
  assert.deepEqual(clusterPortProblems(config, 3), [])
  assert.match(
    clusterPortProblems(config, 4).join(),
    /^--cluster-advertise \(POSTBOTE_CLUSTER_ADVERTISE\): expected a port of at most 65532, got 65533/,
  )
  assert.equal(clusterPortProblems(config, 5).length, 2)
  assert.deepEqual(clusterPortProblems(configOf([]), 256), [])
})

test('the options of a cluster take effect after a restart', () => {
  const running = configOf([database, listen, key])
  const read = configOf([
    database,
    '--cluster-listen=10.0.0.6:8450',
    '--cluster-advertise=a:1',
    '--cluster-key-file=/etc/other.key',
  ])
  const { config, needRestart } = reloadedConfig(running, read)
  assert.deepEqual(config, running)
  assert.deepEqual(needRestart, ['cluster-listen', 'cluster-advertise', 'cluster-key-file'])
})
