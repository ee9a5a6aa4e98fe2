/** The examples for Docker Compose and pm2, without either of them. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { stopMsMax } from '../../scripts/service-limits.ts'
import { parseConfig } from '../../src/config/config.ts'
import { issueCertificate } from '../support/network/certificates.ts'
import { nginxObstacle } from '../support/programs/nginx.ts'
import { root } from '../support/server/package-user.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { yamlDocuments, yamlObstacle } from '../support/kit/yaml.ts'

interface Compose {
  readonly services: {
    readonly postbote: {
      readonly build: string
      readonly environment: Readonly<Record<string, string>>
      readonly ports: readonly string[]
      readonly stop_grace_period: string
      readonly volumes: readonly string[]
    }
    readonly nginx: { readonly volumes: readonly string[] }
  }
  readonly volumes: Readonly<Record<string, unknown>>
}

const folder = join(root, 'examples/compose')
const site = readFileSync(join(root, 'docs/run/nginx.conf'), 'utf8')
const skip = yamlObstacle()

test('compose.yaml starts a server with options that exist, and gives it the time to end', {
  skip,
}, () => {
  const { postbote } = readCompose().services
  const config = parseConfig({ argv: [], env: postbote.environment, readFile: () => '' })
  assert.deepEqual([config.httpIpAddress, config.adminIpAddress], ['127.0.0.1', '127.0.0.1'])
  assert.equal(Number.parseInt(postbote.stop_grace_period, 10) * 1_000, stopMsMax)
  assert(existsSync(join(folder, postbote.build, 'Dockerfile')))
  assert.match(site, new RegExp(`server_name ${config.adminHosts[0]};`))
  const inside = postbote.ports.map((port) => port.split(':')[1])
  assert.deepEqual(
    inside.filter((port) => !site.includes(`listen ${port} ssl`)),
    [],
  )
})

test('compose.yaml mounts files that exist, and those that nginx names', { skip }, () => {
  const { services, volumes } = readCompose()
  const mounts = Object.values(services).flatMap((service) => service.volumes)
  const missing = mounts
    .map((mount) => mount.split(':')[0] ?? '')
    // The operator brings the certificate.
    .filter((source) => !source.startsWith('./tls/'))
    .filter((source) => !(source in volumes) && !existsSync(join(folder, source)))
  assert.deepEqual(missing, [])
  const targets = mounts.map((mount) => mount.split(':')[1] ?? '')
  const certificates = [...site.matchAll(/\/etc\/ssl\/[^;]+/g)].map(([file]) => file)
  assert(certificates.length > 0)
  assert.deepEqual(
    certificates.filter((file) => !targets.includes(file)),
    [],
  )
})

test('nginx accepts its two files of compose.yaml together', { skip: nginxObstacle() }, (t) => {
  const directory = temporaryDirectory(t)
  const { cert, key } = issueCertificate({ name: 'bots.example.com' })
  for (const sub of ['conf.d', 'log']) mkdirSync(join(directory, sub))
  writeFileSync(join(directory, 'bots.example.com.pem'), cert)
  writeFileSync(join(directory, 'bots.example.com.key'), key)
  const here = (text: string): string =>
    text
      .replaceAll('/etc/nginx/conf.d', join(directory, 'conf.d'))
      .replaceAll('/etc/ssl', directory)
      .replaceAll('/var/log/nginx', join(directory, 'log'))
      .replaceAll('/run/nginx.pid', join(directory, 'pid'))
      .replace(/^user .*$/m, '')
  writeFileSync(join(directory, 'conf.d/postbote.conf'), here(site))
  const main = join(directory, 'nginx.conf')
  writeFileSync(main, here(readFileSync(join(folder, 'nginx.conf'), 'utf8')))
  const { status, stderr } = spawnSync('nginx', ['-t', '-c', main], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
})

test('the pm2 file runs the server once, gives it the time to end, and starts it again after a crash', () => {
  const file = join(root, 'examples/pm2/ecosystem.config.cjs')
  interface App {
    readonly script: string
    readonly args: readonly string[]
    readonly env: Readonly<Record<string, string>>
    readonly exec_mode: string
    readonly kill_timeout: number
    readonly treekill: boolean
    readonly stop_exit_codes?: readonly number[]
    readonly exp_backoff_restart_delay: number
  }
  const { apps }: { readonly apps: readonly App[] } = createRequire(file)(file)
  const [app, ...others] = apps
  assert(app !== undefined && others.length === 0)
  assert.equal(app.script, join(root, 'dist/src/main.js'))
  assert.deepEqual(app.args, ['serve'])
  const { dir } = parseConfig({ argv: [], env: app.env, readFile: () => '' })
  assert.equal(dir, process.env['POSTBOTE_DIR'] ?? join(root, 'data'))
  assert.equal(app.kill_timeout, stopMsMax)
  assert.deepEqual([app.exec_mode, app.treekill], ['fork', false])
  // pm2 7.0.4 takes a server that was killed by a signal for one that ended with code 0, and would not start it again.
  assert.equal(app.stop_exit_codes, undefined)
  assert(app.exp_backoff_restart_delay > 0)
})

function readCompose(): Compose {
  const [file] = yamlDocuments<Compose>(readFileSync(join(folder, 'compose.yaml'), 'utf8'))
  assert(file !== undefined)
  return file
}
