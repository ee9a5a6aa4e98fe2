/**
 * The image that the Dockerfile makes, built by scripts/test-image and run as docs/run/install.md says. In other runs it is
 * skipped; test/cluster/container.test.ts tests the same files without building an image.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtImageObstacle, Container, podman } from '../support/programs/podman.ts'
import { until } from '../support/kit/until.ts'

const skip = builtImageObstacle()

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

test('the image runs as docs/run/install.md says', { skip }, async (t) => {
  const names = { name: `postbote-${process.pid}`, volume: `postbote-data-${process.pid}` }
  const container = new Container(names)
  t.after(() => {
    container.remove()
    container.removeData()
  })
  await container.start()
  await until(() => container.isHealthy(), 60_000)
  const api = await container.url(8082)

  await t.test(
    'its process 1 is the server, which has no rights and a read-only root',
    async () => {
      const status = await container.exec('cat', '/proc/1/status')
      assert.match(status, /^Uid:\t1000\t1000\t1000\t1000$/m)
      assert.match(status, /^CapEff:\t0+$/m)
      assert.match(await container.exec('cat', '/proc/1/cmdline'), /^node\0.*main\.js\0serve/)
      await assert.rejects(container.exec('touch', '/postbote/x'), /Read-only file system/)
    },
  )

  await t.test('it serves its page', async () => {
    for (const path of ['/', '/app.js', '/app.css']) {
      assert.equal((await fetch(api + path)).status, 200, path)
    }
  })

  const token = await container.exec('postbote', 'register', '--first-name=E', '--username=e_bot')
  await t.test('it replaces its workers at a SIGHUP', async () => {
    await podman('kill', '--signal', 'HUP', container.name)
    await until(async () => (await container.log()).includes('"msg":"reloaded"'), 60_000)
  })

  await t.test('it ends with code 0, and another container continues with its data', async () => {
    const key = await container.exec('cat', '/data/admin.key')
    const pushed = await fetch(`${api}/v1/bots/${token.split(':')[0]}/updates`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: '{"message":{"text":"hello"}}',
    })
    assert.equal(pushed.status, 200)
    assert.equal(await container.stop(), 0)
    assert.equal(container.isHealthy(), false)
    container.remove()
    await container.start()
    await until(() => container.isHealthy(), 60_000)
    const updates = await fetch(`${await container.url(8081)}/bot${token}/getUpdates`)
    assert.match(await updates.text(), /"text":"hello"/)
  })
})
