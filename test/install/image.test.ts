/**
 * The image that the Dockerfile makes, built by scripts/test-image and run as docs/run/install.md says. In other runs it is
 * skipped; test/cluster/container.test.ts tests the same files without building an image.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtImageObstacle, Container, podman } from '../support/programs/podman.ts'
import { until } from '../support/kit/until.ts'

const skip = builtImageObstacle()
/** For what takes a second or two: an emulated processor is ten times as slow. */
const patienceMs = 180_000
const machines: Readonly<Record<string, string>> = { amd64: 'x86_64', arm64: 'aarch64' }

test('the image contains the server without what only its build needs', { skip }, async () => {
  const list = ['run', '--rm', '--entrypoint', 'ls', 'localhost/postbote', '-A']
  const packages = (await podman(...list, '/postbote/node_modules')).split('\n')
  assert(packages.includes('fastify'))
  assert.deepEqual(
    packages.filter((name) => ['typescript', 'esbuild', 'grammy'].includes(name)),
    [],
  )
  assert.equal(await podman(...list, '/data'), '')
})

test('the image is that of the processor, and says what it is', { skip }, async () => {
  const format = '{{.Architecture}} {{json .Labels}}'
  const [arch = '', labels = ''] = (
    await podman('image', 'inspect', 'localhost/postbote', '--format', format)
  ).split(/ (.*)/)
  assert.equal(arch, process.env['POSTBOTE_IMAGE_ARCH'])
  const uname = ['run', '--rm', '--entrypoint', 'uname', 'localhost/postbote', '-m']
  assert.equal(await podman(...uname), machines[arch])
  if (process.env['POSTBOTE_IMAGE_FORMAT'] !== 'oci') return
  const { version }: { readonly version: string } = JSON.parse(
    await podman('run', '--rm', '--entrypoint', 'cat', 'localhost/postbote', 'package.json'),
  )
  assert.deepEqual(JSON.parse(labels), {
    'org.opencontainers.image.licenses': 'MIT',
    'org.opencontainers.image.title': 'postbote',
    'org.opencontainers.image.version': version,
  })
})

test('the image runs as docs/run/install.md says', { skip }, async (t) => {
  const names = { name: `postbote-${process.pid}`, volume: `postbote-data-${process.pid}` }
  const container = new Container(names)
  t.after(() => {
    container.remove()
    container.removeData()
  })
  await container.start()
  await until(() => container.isHealthy(), patienceMs)
  const api = await container.url(8082)

  await t.test(
    'its process 1 is the server, which has no rights and a read-only root',
    async () => {
      const status = await container.exec('cat', '/proc/1/status')
      assert.match(status, /^Uid:\t1000\t1000\t1000\t1000$/m)
      assert.match(status, /^CapEff:\t0+$/m)
      assert.match(
        await container.exec('cat', '/proc/1/cmdline'),
        /(?:^|\0)node\0.*main\.js\0serve/,
      )
      await assert.rejects(container.exec('touch', '/postbote/x'), /Read-only file system/)
    },
  )

  await t.test('it serves its page', async () => {
    for (const path of ['/', '/app.js', '/app.css']) {
      assert.equal((await fetch(api + path)).status, 200, path)
    }
  })

  const token = await container.exec(
    'postbote',
    'bots',
    'register',
    '--first-name=E',
    '--username=e_bot',
  )
  await t.test('it replaces its workers at a SIGHUP', async () => {
    await podman('kill', '--signal', 'HUP', container.name)
    await until(async () => (await container.log()).includes('"msg":"reloaded"'), patienceMs)
  })

  const call = async (path: string, text?: string): Promise<string> => {
    const key = await container.exec('cat', '/data/admin.key')
    const url = `${await container.url(text === undefined ? 8081 : 8082)}${path}`
    const headers = { authorization: `Bearer ${key}` }
    const push = { method: 'POST', headers, body: JSON.stringify({ message: { text } }) }
    const response = await fetch(url, text === undefined ? {} : push)
    assert.equal(response.status, 200)
    return response.text()
  }
  const poll = async (): Promise<readonly string[]> => {
    const { result } = JSON.parse(await call(`/bot${token}/getUpdates`))
    return result.map(({ message }: { readonly message: { text: string } }) => message.text)
  }
  const updates = `/v1/bots/${token.split(':')[0]}/updates`
  const again = async (): Promise<void> => {
    assert.equal(container.isHealthy(), false)
    container.remove()
    await container.start()
    await until(() => container.isHealthy(), patienceMs)
  }

  await t.test('another container continues with the data of one that was killed', async () => {
    await call(updates, 'one')
    assert.deepEqual(await poll(), ['one'])
    await podman('kill', '--signal', 'KILL', container.name)
    await podman('wait', container.name)
    await again()
    assert.deepEqual(await poll(), ['one'])
  })

  await t.test('it ends with code 0, and another container continues with its data', async () => {
    await call(updates, 'two')
    assert.equal(await container.stop(), 0)
    await again()
    assert.deepEqual(await poll(), ['one', 'two'])
  })
})
