/** The client as another package uses it: by its name, with its own compiler settings, in TypeScript and in JavaScript. */
import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { run } from '../../support/child-process.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

const root = fileURLToPath(new URL('../../../../', import.meta.url))
const compiler = join(root, 'node_modules/typescript/bin/tsc')

/** A directory with this package, and the types of Node, among its node_modules. */
function consumer(t: TestContext, files: Readonly<Record<string, string>>): string {
  const directory = temporaryDirectory(t)
  mkdirSync(join(directory, 'node_modules/@types'), { recursive: true })
  symlinkSync(root, join(directory, 'node_modules/postbote'))
  symlinkSync(join(root, 'node_modules/@types/node'), join(directory, 'node_modules/@types/node'))
  for (const [name, text] of Object.entries({ 'package.json': '{"type":"module"}', ...files })) {
    writeFileSync(join(directory, name), text)
  }
  return directory
}

test('its declarations satisfy a strict compiler that checks libraries, too', async (t) => {
  const compilerOptions = {
    target: 'es2022',
    module: 'nodenext',
    strict: true,
    skipLibCheck: false,
    exactOptionalPropertyTypes: true,
    types: ['node'],
    noEmit: true,
  }
  const directory = consumer(t, {
    'tsconfig.json': JSON.stringify({ compilerOptions, files: ['main.ts'] }),
    'main.ts': `
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
  })
  await run(process.execPath, [compiler, '-p', directory])
})

test('a program that uses it loads undici and nothing of the server', async (t) => {
  const directory = consumer(t, {
    'main.js': `
      import { createRequire } from 'node:module'
      import { PostboteClient } from 'postbote/client'
      await new PostboteClient({ key: 'key' }).close()
      const packages = Object.keys(createRequire(import.meta.url).cache).map(
        (file) => /.*node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(file)?.[1] ?? file,
      )
      console.log([...new Set(packages)].join())
    `,
  })
  const { stdout } = await run(process.execPath, [join(directory, 'main.js')])
  assert.equal(stdout.trim(), 'undici')
})

test('the rest of the package is not to be imported', async (t) => {
  const directory = consumer(t, { 'main.js': `import 'postbote/dist/src/serve.js'` })
  await assert.rejects(
    run(process.execPath, [join(directory, 'main.js')]),
    /ERR_PACKAGE_PATH_NOT_EXPORTED/,
  )
})
