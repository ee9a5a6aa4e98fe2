import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type Config, ConfigError, isHelpAsked, parseConfig } from '../../../src/config/config.ts'
import { environmentName, optionGroups, optionRows } from '../../../src/config/config-options.ts'
import { helpText, optionsPage } from '../../../src/config/config-text.ts'

interface Given {
  readonly argv?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly file?: unknown
}

function parse({ argv = [], env = {}, file }: Given): Config {
  return parseConfig({
    argv: file === undefined ? argv : [...argv, '--config', 'postbote.json'],
    env,
    readFile(path) {
      if (path !== 'postbote.json')
        throw Object.assign(new Error('no such file'), { code: 'ENOENT' })
      return typeof file === 'string' ? file : JSON.stringify(file)
    },
  })
}

function problemsOf(given: Given): readonly string[] {
  let problems: readonly string[] = []
  assert.throws(
    () => parse(given),
    (error) => {
      assert.ok(error instanceof ConfigError)
      assert.equal(error.message, error.problems.join('\n'))
      problems = error.problems
      return true
    },
  )
  return problems
}

function proxyOf(text: string): Config['proxy'] {
  return parse({ argv: ['--proxy', text] }).proxy
}

function upstreamOf(text: string): Config['upstream'] {
  return parse({ argv: ['--upstream', text] }).upstream
}

test('without any source every option has its default', () => {
  assert.deepEqual(parse({}), {
    httpPort: 8081,
    httpIpAddress: '0.0.0.0',
    adminPort: 8082,
    adminIpAddress: '127.0.0.1',
    adminKeyFile: undefined,
    adminHosts: [],
    dir: './data',
    workers: undefined,
    shards: undefined,
    databases: [],
    databaseMaxBytes: undefined,
    nodeName: undefined,
    requireReplication: false,
    clusterListen: undefined,
    clusterAdvertise: undefined,
    clusterKeyFile: undefined,
    httpCert: undefined,
    httpCertKey: undefined,
    adminCert: undefined,
    adminCertKey: undefined,
    local: false,
    maxWebhookConnections: 100,
    maxTotalWebhookConnections: 10_000,
    webhookVerifyTimeoutMs: 4_500,
    webhookGoneTimeoutMs: 82_800_000,
    attemptBodyBytes: 1_024,
    attemptBodyOfReserved: false,
    noUserAgent: false,
    secretTokenHeaders: ['X-Service-Bot-Api-Secret-Token', 'X-Telegram-Bot-Api-Secret-Token'],
    proxy: undefined,
    relayFrom: [],
    upstream: undefined,
    demo: false,
    blockCidrs: [],
    allowCidrs: [],
    filter: undefined,
    foreignTokens: false,
    updateTypes: [],
    updateTypesOf: undefined,
    portal: undefined,
    publicHealthz: false,
    healthInWebhookInfo: false,
    compressOverBytes: 65_536,
    checkOverBytes: 131_072,
    maxUpdateBytes: 524_288,
    maxPendingUpdates: 100_000,
    maxPendingBytes: 134_217_728,
    windowBytes: undefined,
    retainMs: 0,
    retainBytes: 67_108_864,
    retainTotalBytes: 1_073_741_824,
    traceContext: false,
    diskReserveBytes: 268_435_456,
    eventsUrl: undefined,
    eventsSecretFile: undefined,
    logLevel: 'info',
    logFile: undefined,
  })
})

test('a flag takes its value from the next argument or after an equals sign', () => {
  assert.equal(parse({ argv: ['--http-port', '9000'] }).httpPort, 9_000)
  assert.equal(parse({ argv: ['--http-port=0'] }).httpPort, 0)
  assert.equal(parse({ argv: ['--local'] }).local, true)
  assert.equal(parse({ argv: ['--local', '--no-local'] }).local, false)
  assert.equal(parse({ argv: ['--local=false'] }).local, false)
})

test('flags override the environment, the environment the file, and the file the defaults', () => {
  const file = { 'http-port': 3, 'admin-port': 3, workers: 3, local: true }
  const env = { POSTBOTE_HTTP_PORT: '2', POSTBOTE_ADMIN_PORT: '2' }
  const config = parse({ argv: ['--http-port', '1', '--no-local'], env, file })
  assert.deepEqual(
    [config.httpPort, config.adminPort, config.workers, config.local, config.maxUpdateBytes],
    [1, 2, 3, false, 524_288],
  )
})

test('the environment may name the file', () => {
  assert.equal(
    parseConfig({
      argv: [],
      env: { POSTBOTE_CONFIG: '/etc/postbote.json' },
      readFile: (path) => (path === '/etc/postbote.json' ? '{"dir":"/var/lib/postbote"}' : ''),
    }).dir,
    '/var/lib/postbote',
  )
})

test('lists are repeated flags, texts with commas or JSON arrays, and replace the default', () => {
  const expected = ['10.0.0.0/8', 'fd00::/8']
  assert.deepEqual(
    parse({ argv: ['--block-cidr', '10.0.0.0/8', '--block-cidr=fd00::/8'] }).blockCidrs,
    expected,
  )
  assert.deepEqual(
    parse({ env: { POSTBOTE_BLOCK_CIDR: '10.0.0.0/8, fd00::/8' } }).blockCidrs,
    expected,
  )
  assert.deepEqual(parse({ file: { 'block-cidr': expected } }).blockCidrs, expected)
  assert.deepEqual(parse({ argv: ['--secret-token-header', 'X-A'] }).secretTokenHeaders, ['X-A'])
})

function databasesOf(given: Given): readonly string[] {
  return parse(given).databases.map(({ shown }) => shown)
}

test('databases are repeated flags, texts with white space or JSON arrays, in their order', () => {
  const urls = ['postgres://b,c:2/two', 'postgres://a/one']
  const expected = ['b:5432,c:2/two', 'a:5432/one']
  assert.deepEqual(databasesOf({ argv: urls.flatMap((url) => ['--database', url]) }), expected)
  assert.deepEqual(databasesOf({ env: { POSTBOTE_DATABASE: ` ${urls.join('\n ')}\n` } }), expected)
  assert.deepEqual(databasesOf({ file: { database: urls } }), expected)
  const env = { POSTBOTE_DATABASE: urls.join(' ') }
  assert.deepEqual(databasesOf({ argv: ['--database=none'], env }), [])
})

test('values are converted to the form that the server uses', () => {
  const config = parse({
    argv: ['--webhook-verify-timeout', '0.25', '--filter', '1/3', '--disk-reserve', '1'],
    env: {
      POSTBOTE_PROXY: 'http://user:p%40ss@proxy.example:3128',
      POSTBOTE_ADMIN_HOST: 'Ops.Example',
    },
    file: { compress: 'off', 'http-ip-address': './bot.sock', 'window-memory': 2 },
  })
  assert.equal(config.webhookVerifyTimeoutMs, 250)
  assert.deepEqual(config.filter, { remainder: 1, modulus: 3 })
  assert.equal(config.diskReserveBytes, 1_048_576)
  assert.equal(config.windowBytes, 2_097_152)
  assert.deepEqual(config.proxy, {
    host: 'proxy.example',
    port: 3_128,
    authorization: `Basic ${Buffer.from('user:p@ss').toString('base64')}`,
  })
  assert.deepEqual(config.adminHosts, ['ops.example'])
  assert.equal(config.compressOverBytes, undefined)
  assert.equal(config.httpIpAddress, './bot.sock')
})

test('a proxy is read with and without credentials, with an IPv6 host and with port 80', () => {
  assert.deepEqual(proxyOf('http://p:80'), { host: 'p', port: 80, authorization: undefined })
  assert.deepEqual(proxyOf('http://[::1]:8/'), { host: '::1', port: 8, authorization: undefined })
})

test('more workers than shards are refused if both are given', () => {
  const problems = problemsOf({ argv: ['--workers', '3'], env: { POSTBOTE_SHARDS: '2' } })
  assert.match(
    problems.join(),
    /^--workers: expected at most 2, the number of shards in POSTBOTE_SHARDS, got 3/,
  )
  assert.equal(parse({ argv: ['--workers', '2', '--shards', '2'] }).workers, 2)
})

test('added types have a name, and may have the path of a key and a time to live', () => {
  const { updateTypes } = parse({
    argv: ['--update-type', 'order:order.id:3600', '--update-type=ping,pong::60'],
  })
  assert.deepEqual(updateTypes, [
    { name: 'order', keyPath: 'order.id', ttlS: 3_600 },
    { name: 'ping', keyPath: undefined, ttlS: undefined },
    { name: 'pong', keyPath: undefined, ttlS: 60 },
  ])
})

test('the types of the reference and others are at most 42 together', () => {
  const types = Array.from({ length: 38 }, (_, nth) => `type_${nth}`).join()
  const problems = problemsOf({ argv: ['--update-type', types, '--update-types-of', '10.0'] })
  assert.deepEqual(problems, [
    '--update-type: expected at most 42 added types with those of update-types-of, got 43',
  ])
  const repeated = `guest_message:chat.id,${types.replace('type_0,', '')}`
  parse({ argv: ['--update-type', repeated, '--update-types-of', '10.0'] })
})

test('an upstream server is read with and without a path and a port', () => {
  assert.deepEqual(upstreamOf('https://u'), { origin: 'https://u', prefix: '' })
  assert.deepEqual(upstreamOf('HTTP://U:8081/'), { origin: 'http://u:8081', prefix: '' })
  assert.deepEqual(upstreamOf('http://[::1]:1/a/b//'), { origin: 'http://[::1]:1', prefix: '/a/b' })
})

test('URLs may have blanks around them, as a file or a copied line ends, and their paths stay as they are written', () => {
  const path = upstreamOf(" http://u/a/../%2e/'é\n")
  assert.deepEqual(path, { origin: 'http://u', prefix: "/a/../%2e/'%C3%A9" })
  assert.deepEqual(proxyOf('\thttp://p:80\r\n'), proxyOf('http://p:80'))
  const secret = '--events-secret-file=x'
  const argv = [
    '--portal= https://p ',
    '--relay-from=https://r\n',
    '--events-url= https://e/../x\n',
  ]
  const { portal, relayFrom, eventsUrl } = parse({ argv: [...argv, secret] })
  assert.deepEqual([portal, relayFrom, eventsUrl], ['https://p', ['https://r'], 'https://e/../x'])
})

test('an origin of relays is read in its usual form, and http only with --local', () => {
  const argv = ['--relay-from=https://API.telegram.org/,https://b:8443']
  assert.deepEqual(parse({ argv }).relayFrom, ['https://api.telegram.org', 'https://b:8443'])
  const plain = '--relay-from=http://127.0.0.1:8081'
  assert.match(problemsOf({ argv: [plain] }).join(), /^--relay-from: expected https/)
  assert.deepEqual(parse({ argv: [plain, '--local'] }).relayFrom, ['http://127.0.0.1:8081'])
})

test('a queue that could not hold the largest update is refused', () => {
  const problems = problemsOf({ argv: ['--max-pending-bytes', '2000'] })
  assert.match(problems.join(), /^--max-pending-bytes: expected .* at least max-update-bytes/)
})

const wrongValues: readonly (readonly [option: string, ...values: string[]])[] = [
  ['http-port', '65536', '-1', '1.5', '', '0x50', ' 80', 'port'],
  ['http-ip-address', 'localhost', '1.2.3', 'bot.sock', `/${'x'.repeat(107)}`],
  ['admin-port', '65536'],
  ['admin-ip-address', 'localhost'],
  ['admin-key-file', ''],
  ['admin-host', 'ops:80', 'http://ops', 'a b'],
  ['dir', ''],
  ['workers', '0', '257'],
  ['shards', '0', '3', '512'],
  [
    'database',
    'db',
    'mysql://h/d',
    'postgres://h',
    'postgres://h:port/d',
    'postgres://,h/d',
    '',
    'postgres://h/d mysql://h/d',
    Array.from({ length: 17 }, (_, nth) => `postgres://h/d${nth}`).join(' '),
  ],
  ['database-max-size', '0', '1048577'],
  ['node-name', 'a b', 'a/b', 'x'.repeat(64)],
  ['require-replication', 'maybe'],
  [
    'cluster-listen',
    '10.0.0.5',
    ':1',
    '10.0.0:1',
    'a:0',
    'a:65536',
    'a:',
    'fd00::5:1',
    '[a]:1',
    'a b:1',
  ],
  ['cluster-advertise', '10.0.0.5', 'http://a:1', '[fd00::5]', '[10.0.0.5]:1', '1.2.3.4.5:1'],
  ['cluster-key-file', ''],
  ['http-cert', ''],
  ['http-cert-key', ''],
  ['admin-cert', ''],
  ['admin-cert-key', ''],
  ['local', 'maybe', ''],
  ['max-webhook-connections', '0', '1001'],
  ['max-total-webhook-connections', '0'],
  ['webhook-verify-timeout', '0', '0.09', '60.1', '1e1', 'soon', '2m', '99ms'],
  ['webhook-gone-timeout', '0', '32d'],
  ['attempt-body', '-1', '4097', '5K', '1.5', '1KiBs', ''],
  ['attempt-body-of-reserved', 'maybe', ''],
  ['foreign-tokens', 'maybe', ''],
  [
    'update-type',
    'Order',
    '1order',
    'order-new',
    'message',
    'update_id',
    'ttl',
    'x'.repeat(32),
    'order:chat.',
    'order:a.b.c.d.e',
    `order:${'x'.repeat(65)}`,
    'order:order.id:0',
    'order:order.id:31536001',
    'order:order.id:1h',
    'order,order:chat.id',
    Array.from({ length: 43 }, (_, nth) => `type_${nth}`).join(),
  ],
  ['update-types-of', '9.0', ''],
  ['portal', 'p', 'ftp://p', 'https://p/x', 'https://p?x', 'https://p:0', 'https:///p'],
  ['public-healthz', 'maybe', ''],
  ['health-in-webhook-info', 'maybe', ''],
  ['trace-context', 'maybe', ''],
  ['secret-token-header', 'X A', 'X:', '', 'Content-Type', 'host', 'Content-MD5', 'Proxy-A', 'te'],
  ['no-user-agent', 'maybe', ''],
  ['relay-from', 'a', 'ftp://a', 'https://', 'https://a:0', 'https://a/b', 'https://u@a'],
  ['proxy', 'p:80', 'https://p:80', 'http://p', 'http://p:0', 'http://p:80/x', 'http://%:%@p:80'],
  [
    'upstream',
    'u',
    'ftp://u',
    'http://a:b@u',
    'http://u/?x',
    'http://u/#x',
    'http://u:0',
    'http:///u',
  ],
  ['demo', 'maybe'],
  ['block-cidr', '10.0.0.0', '10.0.0.0/33', 'fd00::/129', 'ten/8', '10.0.0.0/8/8'],
  ['allow-cidr', '10.0.0.0/'],
  ['filter', '3/3', '0/0', '1', '-1/3', '1/2/3'],
  ['check-over', 'on', '4097'],
  ['compress', 'on', '4097', '5M'],
  ['max-update-bytes', '1023', '4194254'],
  ['max-pending-updates', '0'],
  ['max-pending-bytes', '1023'],
  ['window-memory', '0', '1K'],
  ['retain', '', '1x', '-1h', '1.5.5h', '1w', '367d', 'off'],
  ['retain-bytes', '', '-1', '1MB', '1.5', '1,5G', '17TiB'],
  ['retain-total-bytes', '', '1 GB', '17T'],
  ['disk-reserve', '-1', '1048577'],
  ['events-url', 'a.example', 'ftp://a', 'https://', 'https://a:0', 'https://a/ b', 'https://a/#x'],
  ['events-secret-file', ''],
  ['log-level', 'verbose', 'INFO'],
  ['log-file', ''],
]

test('every option refuses values out of its range, and the error has its name and what was expected', () => {
  assert.deepEqual(
    wrongValues.map(([option]) => option).toSorted(),
    optionRows.map(([, row]) => row.name).toSorted(),
  )
  for (const [option, ...values] of wrongValues) {
    const expected = optionRows.find(([, row]) => row.name === option)![1].kind.expected
    for (const value of values) {
      const flag = problemsOf({ argv: [`--${option}=${value}`] })
      assert.equal(flag.length, 1, `${option} ${value}`)
      assert.ok(flag[0]!.startsWith(`--${option}: expected ${expected}, got `), flag[0])
      const isShown =
        !['database', 'proxy', 'relay-from', 'upstream', 'events-url'].includes(option) &&
        value.length <= 100
      if (isShown) assert.ok(flag[0]!.endsWith(JSON.stringify(value)), flag[0])
      if (value === '') continue
      const variable = problemsOf({ env: { [environmentName(option)]: value } })
      assert.ok(variable[0]!.startsWith(`${environmentName(option)}: expected`), variable[0])
      const key = problemsOf({ file: { [option]: value } })
      assert.ok(key[0]!.startsWith(`key "${option}" of postbote.json: expected`), key[0])
    }
  }
})

test('the base of links is an origin, and http only with --local', () => {
  assert.equal(
    parse({ argv: ['--portal=https://Bots.Example.com:443/'] }).portal,
    'https://bots.example.com',
  )
  assert.match(problemsOf({ argv: ['--portal=http://p:8081'] }).join(), /^--portal: expected https/)
  assert.equal(parse({ argv: ['--portal=http://p:8081', '--local'] }).portal, 'http://p:8081')
})

test('events need https and a secret, and a secret needs an address', () => {
  const url = 'events-url'
  assert.match(
    problemsOf({ argv: ['--events-secret-file', 'x'] }).join(),
    /expected events-url, too/,
  )
  const alone = problemsOf({ argv: [`--${url}=http://user:secret@a/`] })
  assert.equal(alone.length, 2)
  assert.match(alone.join(), /expected events-secret-file, too.*expected https/)
  assert(!alone.join().includes('secret@'))
  assert.deepEqual(problemsOf({ argv: ['--demo', '--upstream=http://u'] }), [
    '--demo: expected it without upstream, which answers the methods of the demo',
  ])
  const both = ['--events-url=http://a:8/x', '--events-secret-file=x', '--local']
  assert.equal(parse({ argv: both }).eventsUrl, 'http://a:8/x')
})

test('unknown flags, variables and keys are errors, all reported together', () => {
  assert.deepEqual(
    problemsOf({
      argv: ['--http-prt', '80', '--no-workers', '-x'],
      env: { POSTBOTE_HTTP_PRT: '80', HOME: '/root' },
      file: { 'http-prt': 80, config: 'x' },
    }),
    [
      '--http-prt: unknown option, did you mean --http-port?; see --help',
      '--no-workers: unknown option, did you mean --workers?; see --help',
      '-x: unknown option; see --help',
      'POSTBOTE_HTTP_PRT: unknown environment variable, did you mean POSTBOTE_HTTP_PORT?; see --help',
      'key "http-prt" of postbote.json: unknown key, did you mean http-port?; see --help',
      'key "config" of postbote.json: unknown key; see --help',
    ],
  )
})

test('what follows an unknown short flag is not shown, because it may be a secret', () => {
  const problem = '-s: unknown option; see --help'
  assert.deepEqual(problemsOf({ argv: ['-secret', '-s=secret'] }), [problem, problem])
})

test('a missing value is an error and does not consume the next flag', () => {
  assert.deepEqual(problemsOf({ argv: ['--dir', '--local'] }), [
    '--dir: expected a path after it, got no value',
  ])
  assert.match(problemsOf({ argv: ['--http-port'] }).join(), /^--http-port: expected an integer/)
  assert.match(problemsOf({ argv: ['--config'] }).join(), /^--config: expected a path after it/)
  assert.deepEqual(problemsOf({ argv: ['--no-local=1'] }), ['--no-local: takes no value'])
})

test('a file that cannot be read or is no JSON object is an error', () => {
  assert.deepEqual(problemsOf({ argv: ['--config', 'nowhere'] }), [
    '--config "nowhere": expected a readable file, got ENOENT',
  ])
  assert.match(problemsOf({ file: '{"dir":' }).join(), /expected a JSON object, got something/)
  assert.match(problemsOf({ file: '[]' }).join(), /expected a JSON object, got another JSON value/)
  assert.match(problemsOf({ file: { dir: null } }).join(), /key "dir" of postbote.json: expected/)
  assert.match(
    problemsOf({ file: { workers: [1] } }).join(),
    /key "workers" .* expected an integer/,
  )
  assert.match(problemsOf({ file: { 'block-cidr': [1] } }).join(), /key "block-cidr"/)
})

test('a password is never part of an error, whatever its source', () => {
  const secret = 'http://user:hunter2@proxy'
  const attempts: Given[] = [
    { argv: ['--proxy', secret] },
    { argv: ['--proxy', 'user:hunter2@proxy:80'] },
    { argv: ['--proxi', secret] },
    { argv: [`--proxi=${secret}`] },
    { argv: ['--http-port', secret] },
    { env: { POSTBOTE_PROXY: secret } },
    { env: { POSTBOTE_PROXI: secret } },
    { file: { proxy: secret } },
    { file: { proxi: secret } },
    { file: `{"proxy":"${secret}"` },
  ]
  for (const attempt of attempts) {
    assert.doesNotMatch(problemsOf(attempt).join('\n'), /hunter2/, JSON.stringify(attempt))
  }
})

test('an empty environment variable counts as unset', () => {
  assert.equal(parse({ env: { POSTBOTE_HTTP_PORT: '' } }).httpPort, 8_081)
})

test('a switch or a number may be a JSON value of its type', () => {
  const config = parse({ file: { local: true, 'webhook-verify-timeout': 1.5 } })
  assert.deepEqual([config.local, config.webhookVerifyTimeoutMs], [true, 1_500])
})

test('every duration takes units and every size too, and a number alone keeps its unit', () => {
  const config = parse({
    argv: ['--webhook-gone-timeout=2h', '--webhook-verify-timeout', '4.5s', '--retain=1.5h'],
    env: { POSTBOTE_MAX_PENDING_BYTES: '64M', POSTBOTE_COMPRESS: '32 KiB' },
    file: { 'window-memory': '1g', 'disk-reserve': 256, 'retain-bytes': '1.5G' },
  })
  assert.deepEqual(
    [config.webhookGoneTimeoutMs, config.webhookVerifyTimeoutMs, config.retainMs],
    [7_200_000, 4_500, 5_400_000],
  )
  assert.deepEqual(
    [config.maxPendingBytes, config.compressOverBytes, config.windowBytes],
    [67_108_864, 32_768, 1_073_741_824],
  )
  assert.deepEqual([config.diskReserveBytes, config.retainBytes], [268_435_456, 1_610_612_736])
  const units = /\b(?:timeout|bytes|size|memory|reserve|body|compress|check-over|retain)\b/
  for (const [, { name, kind }] of optionRows) {
    if (!units.test(name) || name === 'attempt-body-of-reserved') continue
    assert(['SIZE', 'DURATION'].includes(kind.placeholder ?? ''), name)
    assert(kind.shortest !== undefined, name)
  }
})

test('the negation of each switch is its name with no-, or without', () => {
  assert.equal(parse({ argv: ['--no-user-agent', '--user-agent'] }).noUserAgent, false)
  assert.equal(parse({ argv: ['--no-user-agent'] }).noUserAgent, true)
  assert.equal(
    parse({ argv: ['--user-agent'], file: { 'no-user-agent': true } }).noUserAgent,
    false,
  )
  assert.doesNotMatch(helpText() + optionsPage(), /no-no-/)
})

test('the help has the options below headings, no fact that holds for several is repeated', () => {
  const help = helpText(80)
  for (const line of help.split('\n')) assert(line.length <= 80 || !line.trim().includes(' '), line)
  const options = help.split('\n').filter((line) => /^ {2}--/.test(line))
  assert.equal(options.length, optionRows.length)
  const headings = help.split('\n').filter((line) => /^\S.*:$/.test(line))
  assert.equal(headings.length, Object.keys(optionGroups).length)
  for (const fact of ['read flags', 'commas', 'a number alone is seconds', 'unsets it']) {
    assert.equal(help.split(fact).length, 2, fact)
  }
})

test('the help and the documentation list every option', () => {
  for (const [, row] of optionRows) {
    assert.ok(helpText().includes(`--${row.name}`))
    assert.ok(optionsPage().includes(`\n- \`--${row.name}`))
  }
  assert.ok(isHelpAsked(['--local', '--help']))
  assert.ok(!isHelpAsked(['--local']))
})

test('docs/reference/options.md is up to date (node dist/scripts/generate-docs.js writes it)', () => {
  const page = readFileSync(
    new URL('../../../../docs/reference/options.md', import.meta.url),
    'utf8',
  )
  assert.equal(page, optionsPage())
})

test('a certificate needs its key, and a listener with a port', () => {
  parse({ argv: ['--http-cert=c', '--http-cert-key=k'] })
  assert.deepEqual(problemsOf({ argv: ['--http-cert=c', '--admin-cert-key=k'] }), [
    '--http-cert: expected http-cert-key with it',
    '--admin-cert-key: expected admin-cert with it',
  ])
  const argv = ['--admin-cert=c', '--admin-cert-key=k', '--admin-ip-address=/run/s']
  const socket = problemsOf({ argv })
  assert.match(socket.join(), /^--admin-cert: expected an IP address in admin-ip-address/)
})
