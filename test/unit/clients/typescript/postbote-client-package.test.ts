/**
 * Uses the client as another project does that has a checkout among its packages: by its name, in TypeScript and JavaScript.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { PackageUser, root } from '../../../support/server/package-user.ts'

function user(t: TestContext): PackageUser {
  const project = new PackageUser(t)
  project.link('postbote', root)
  return project
}

test('its declarations satisfy a strict compiler that checks libraries, too', async (t) => {
  const project = user(t)
  project.write(
    'main.ts',
    `
      import { PostboteClient, PostboteClientError, type PushResult } from 'postbote/client'
      const client = new PostboteClient({ url: 'http://127.0.0.1:8082', key: 'key' })
      const result: PushResult = await client.push(4711, { message: { text: 'hello' } })
      // @ts-expect-error
      await client.push(4711, { massage: {} })
      const stream = client.openStream()
      await stream.ready()
      stream.push(4711, { poll: {} }).catch((error: unknown) => {
        if (error instanceof PostboteClientError && error.code === 'QUEUE_FULL') throw error
        // @ts-expect-error
        if (error instanceof PostboteClientError && error.code === 'QUEUE_FOOL') throw error
      })
      for await (const each of client.pushAll([{ botId: 1, update: { message: {} } }])) {
        if (each.error === undefined && !each.result.isFiltered) console.log(each.result.updateId, result)
      }
    `,
  )
  await project.compile('main.ts', 'nodenext')
})

test('a program that uses it loads undici and no code of the server', async (t) => {
  const project = user(t)
  project.write(
    'main.js',
    `
      import { createRequire } from 'node:module'
      import { PostboteClient } from 'postbote/client'
      await new PostboteClient({ key: 'key' }).close()
      const packages = Object.keys(createRequire(import.meta.url).cache).map(
        (file) => /.*node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(file)?.[1] ?? file,
      )
      console.log([...new Set(packages)].join())
    `,
  )
  assert.equal(await project.run('main.js'), 'undici')
})

test('the rest of the package cannot be imported', async (t) => {
  const project = user(t)
  project.write('main.js', `import 'postbote/dist/src/cli/serve.js'`)
  await assert.rejects(project.run('main.js'), /ERR_PACKAGE_PATH_NOT_EXPORTED/)
})
