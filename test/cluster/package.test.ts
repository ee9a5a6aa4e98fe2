/** The package that `npm pack` makes of a built checkout: its contents, and that they are enough outside of the checkout. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { run } from '../support/kit/child-process.ts'
import { RunningScript } from '../support/kit/running-script.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { PackageUser, root } from '../support/server/package-user.ts'

interface Packed {
  readonly filename: string
  readonly files: readonly { readonly path: string }[]
}

interface Manifest {
  readonly bin: { readonly postbote: string }
  readonly dependencies: Readonly<Record<string, string>>
}

const prebuilds = `native-bindings/prebuilds/${process.platform}-${process.arch}`
const manifest: Manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

test('the package works when it is installed', async (t) => {
  const directory = temporaryDirectory(t)
  const { filename, files } = await pack(directory)
  const tarball = join(directory, filename)

  await t.test(
    'it contains the server, the client and their documentation, and nothing else',
    () => {
      const paths = files.map(({ path }) => path)
      const compiled =
        /^dist\/(?:clients\/typescript|src|workers|native-bindings)\/[\w/-]+\.(?:c?js|d\.ts)$/
      const addon = /^native-bindings\/(?:prebuilds\/linux-\w+\/\w+\.node|\w+\.[ch])$/
      const others = paths.filter((path) => !compiled.test(path) && !addon.test(path))
      assert.deepEqual(others.toSorted(), [
        'LICENSE',
        'README.md',
        'dist/dashboard/app.css',
        'dist/dashboard/app.js',
        'dist/dashboard/first-paint.js',
        'dist/dashboard/index.html',
        'dist/dashboard/portal.css',
        'dist/dashboard/portal.html',
        'dist/dashboard/portal.js',
        'docs/know/moving-from-telegram.md',
        'docs/know/why-not.md',
        'docs/reference/cli.md',
        'docs/reference/errors.md',
        'docs/reference/limits.md',
        'docs/reference/openapi.json',
        'docs/reference/options.md',
        'docs/run/Caddyfile',
        'docs/run/alerts/grafana-dashboard.json',
        'docs/run/alerts/prometheus-rules.yml',
        'docs/run/alerts/prometheus-scrape.yml',
        'docs/run/alerts/to-slack-and-pagerduty.js',
        'docs/run/cluster-haproxy.cfg',
        'docs/run/cluster-nginx.conf',
        'docs/run/cluster.md',
        'docs/run/install.md',
        'docs/run/nginx.conf',
        'docs/run/operations.md',
        'docs/run/reverse-proxy.md',
        'docs/run/trouble.md',
        'docs/start/bot.md',
        'docs/start/operator.md',
        'docs/start/producer.md',
        'docs/use/api.md',
        'docs/use/client.md',
        'docs/use/frameworks.md',
        'docs/use/protocol.md',
        'examples/pm2/ecosystem.config.cjs',
        'examples/systemd/postbote.service',
        'native-bindings/binding.gyp',
        'package.json',
        'scripts/build-native',
      ])
      const addons = readdirSync(join(root, 'native-bindings'))
        .filter((name) => name.endsWith('.c'))
        .map((name) => `${prebuilds}/${name.replace(/\.c$/, '.node')}`)
      assert.deepEqual(
        addons.filter((file) => !paths.includes(file)),
        [],
      )
      const sources = ['src', 'workers'].flatMap((folder) =>
        readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
          .filter((name) => name.endsWith('.ts') && !name.startsWith('page/'))
          .map((name) => `dist/${folder}/${name.replace(/\.ts$/, '.js')}`),
      )
      assert(sources.length > 100)
      assert.deepEqual(
        sources.filter((file) => !paths.includes(file)),
        [],
      )
    },
  )

  for (const module of ['nodenext', 'bundler'] as const) {
    await t.test(`its client has types for ${module}`, async (own) => {
      const project = await user(own, tarball)
      project.write(
        'main.ts',
        `
          import { PostboteClient, type PushResult } from 'postbote/client'
          const client = new PostboteClient<{ message: { text: string } }>({ key: 'key' })
          const result: PushResult = await client.push(1, { message: { text: 'hello' } })
          // @ts-expect-error
          await client.push(1, { message: { text: 1 } })
          console.log(result)
        `,
      )
      await project.compile('main.ts', module)
    })
  }

  await t.test('its command prints the help', async (own) => {
    const command = commandOf(await user(own, tarball))
    const { stdout } = await run(command, ['--help'])
    assert.match(stdout, /^Usage: postbote COMMAND/)
    const { stdout: ofRepair } = await run(command, ['repair', '--help'])
    assert.match(ofRepair, /^Usage: postbote repair .*--rebuild/)
    assert.doesNotMatch(ofRepair, /--http-port/)
  })

  await t.test('it builds its addons for a machine for which it has none', async (own) => {
    const project = await user(own, tarball)
    const home = project.path('node_modules/postbote')
    const serve = ['serve', '--dir', project.path('data'), '--http-port=0', '--admin-port=0']
    for (const missing of ['check_updates.node', 'split_pairs.node', '.']) {
      rmSync(join(home, prebuilds, missing), { recursive: true })
      await assert.rejects(run(commandOf(project), serve), /not built for .*"npm run build:native"/)
    }
    assert(!existsSync(project.path('data')))
    await run('npm', ['run', 'build:native'], { cwd: home, env: offline(project.path('cache')) })
    assert(existsSync(join(home, prebuilds, 'shared_region.node')))
  })

  await t.test('its server serves its client and a bot', async (own) => {
    const project = await user(own, tarball)
    const options = `--dir ${project.path('data')} --http-ip-address 127.0.0.1 --http-port 0 --admin-port 0`
    const server = new RunningScript(own, `${commandOf(project)} serve --workers 1 ${options}`)
    const [line] = await server.printed(/^.*"msg":"ready".*$/m)
    const ready: { readonly bot: string; readonly private: string } = JSON.parse(line)
    const key = readFileSync(project.path('data/admin.key'), 'utf8')
    project.write(
      'main.js',
      `
        import { PostboteClient } from 'postbote/client'
        const client = new PostboteClient(${JSON.stringify({ url: `http://${ready.private}`, key })})
        const { botId, token } = await client.createBot({ firstName: 'Test', username: 'test_bot' })
        await client.push(botId, { message: { text: 'one' } })
        for await (const { error } of client.pushAll([{ botId, update: { message: { text: 'two' } } }])) {
          if (error !== undefined) throw error
        }
        await client.close()
        const answer = await fetch('http://${ready.bot}/bot' + token + '/getUpdates')
        const { result } = await answer.json()
        console.log(result.map(({ message }) => message.text).join())
      `,
    )
    assert.equal(await project.run('main.js'), 'one,two')
    assert.equal(await server.end('SIGTERM'), 0)
  })
})

test('the package of the client alone works when it is installed', async (t) => {
  const directory = temporaryDirectory(t)
  const source = join(directory, 'package')
  await run(process.execPath, [join(root, 'dist/scripts/client-package.js'), source])
  const { filename, files } = await pack(directory, source)
  const paths = files.map(({ path }) => path)

  await t.test('it has the client with its types, and nothing of the server', () => {
    const own =
      /^lib\/(?:clients\/typescript\/[\w-]+|src\/kit\/(?:added-type|clock|errors|limits|update-types))\.(?:js|d\.ts)$/
    const others = paths.filter((path) => !own.test(path))
    assert.deepEqual(others.toSorted(), ['LICENSE', 'README.md', 'package.json'])
    const page = readFileSync(join(source, 'README.md'), 'utf8')
    assert.match(page, /import \{ PostboteClient \} from 'postbote-client'/)
    assert.doesNotMatch(page, /postbote\/client|comes with the server|\]\((?!https?:|#)/)
  })

  await t.test('it has types, and runs with its own dependencies only', async (own) => {
    const project = new PackageUser(own)
    const home = project.path('node_modules/postbote-client')
    mkdirSync(home)
    await run('tar', ['-xzf', join(directory, filename), '--strip-components=1', '-C', home])
    const { dependencies }: Manifest = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'))
    assert.deepEqual(dependencies, { undici: manifest.dependencies['undici'] })
    project.link('undici', join(root, 'node_modules/undici'))
    const program = `
      import { PostboteClient, type PushResult } from 'postbote-client'
      const client = new PostboteClient<{ message: { text: string } }>({ key: 'key' })
      export const push = (): Promise<PushResult> => client.push(1, { message: { text: 'hello' } })
    `
    project.write('main.ts', program)
    for (const module of ['nodenext', 'bundler'] as const) await project.compile('main.ts', module)
    project.write(
      'main.js',
      `
        import { createServer } from 'node:http'
        import { PostboteClient } from 'postbote-client'
        const server = createServer((request, response) => {
          response.setHeader('Content-Type', 'application/json')
          request.resume().on('end', () => response.end('{"update_id":7}'))
        })
        server.listen(0, '127.0.0.1', async () => {
          const url = 'http://127.0.0.1:' + server.address().port
          const client = new PostboteClient({ url, key: 'a-key-of-sixteen' })
          console.log((await client.push(1, { message: { text: 'hello' } })).updateId)
          await client.close()
          server.close()
        })
      `,
    )
    assert.equal(await project.run('main.js'), '7')
  })
})

/** Neither this account's npm settings nor the network take part. */
function offline(cache: string): NodeJS.ProcessEnv {
  return { ...process.env, npm_config_cache: cache, npm_config_offline: 'true' }
}

/** Runs `npm pack` as for the distribution of a built checkout. */
async function pack(directory: string, source = root): Promise<Packed> {
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', directory], {
    cwd: source,
    env: offline(join(directory, 'cache')),
  })
  const [packed]: Packed[] = JSON.parse(stdout)
  assert(packed !== undefined)
  return packed
}

/** Returns a project with the package unpacked, as npm does it, and with the packages that it depends on. */
async function user(t: TestContext, tarball: string): Promise<PackageUser> {
  const project = new PackageUser(t)
  const place = project.path('node_modules/postbote')
  mkdirSync(place)
  await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', place])
  for (const name of Object.keys(manifest.dependencies)) {
    project.link(name, join(root, 'node_modules', name))
  }
  project.link('.bin/postbote', join('../postbote', manifest.bin.postbote))
  return project
}

function commandOf(project: PackageUser): string {
  return project.path('node_modules/.bin/postbote')
}
